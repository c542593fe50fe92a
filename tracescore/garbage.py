"""Pauses of the garbage collector, which stops everything while it looks at all that lives.

Thousands of interactions that wait make it look at hundreds of thousands of objects, for a fifth of a second at a
time, again and again; nearly all of them will be freed by their reference counts alone. So what is there at the start
is never looked at, and what has lived for some seconds only now and then, or when the memory grows: an error can make
a cycle that holds a whole request, and thousands of these would fill the memory.
"""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import anyio

_NEVER = 2**31 - 1
"""Full collections after which one more is due: none comes by itself."""
_LOOK_EVERY = 10.0
_SWEEP_EVERY = 900.0
"""Seconds. Cycles that become garbage when they are no longer young wait for the sweep."""
_GROWN = 2.0
"""Times the size of the process after the last sweep from which it is swept again."""


async def keep_pauses_short() -> None:
    """Runs until it is cancelled; one per process."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _NEVER)
    since, size = 0.0, _size()
    try:
        while True:
            await anyio.sleep(_LOOK_EVERY)
            since += _LOOK_EVERY
            if since >= _SWEEP_EVERY or _size() > _GROWN * size:
                gc.collect()
                since, size = 0.0, _size()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _size() -> float:
    """Of the process in memory, in whatever unit the system has; at its largest where it does not tell the present."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
