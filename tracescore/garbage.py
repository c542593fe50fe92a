"""Pauses of the garbage collector, which stops everything while it looks at all that lives.

Thousands of interactions that wait make it look at millions of objects, for a tenth of a second at a time, again and
again; nearly all of them will be freed by their reference counts alone. So what has lived for some seconds is taken out
of its sight, and looked at again only now and then, or when the memory grows: an error can make a cycle that holds a
whole request, and thousands of these would fill the memory.
"""

from __future__ import annotations

import gc
import resource

import anyio

_FREEZE_EVERY = 1.0
_SWEEP_EVERY, _SWEEP_AT_MOST_EVERY = 900.0, 10.0
"""Seconds. Cycles that have become garbage meanwhile wait for the sweep."""
_GROWN = 1.1
"""Times the largest size of the process at the last sweep from which it is swept again."""


async def keep_pauses_short() -> None:
    """Runs until it is cancelled; one per process."""
    since, size = _SWEEP_EVERY, 0.0
    while True:
        if since >= _SWEEP_EVERY or (since >= _SWEEP_AT_MOST_EVERY and _largest_size() > _GROWN * size):
            gc.unfreeze()
            gc.collect()
            since, size = 0.0, _largest_size()
        gc.freeze()
        await anyio.sleep(_FREEZE_EVERY)
        since += _FREEZE_EVERY


def _largest_size() -> float:
    """Of the process so far, in whatever unit the system has."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
