"""Pauses of the garbage collector, which stops everything while it looks at all that lives.

Thousands of interactions that wait make it look at millions of objects, for a tenth of a second at a time, again and
again; nearly all of them will be freed by their reference counts alone. So what has lived for some seconds is taken out
of its sight, and looked at again only now and then.
"""

from __future__ import annotations

import gc

import anyio

_FREEZE_EVERY = 1.0
_SWEEP_EVERY = 900.0
"""Seconds. Cycles that have become garbage meanwhile wait for the sweep."""


async def keep_pauses_short() -> None:
    """Runs until it is cancelled; one per process."""
    until_sweep = 0.0
    while True:
        if until_sweep <= 0:
            gc.unfreeze()
            gc.collect()
            until_sweep = _SWEEP_EVERY
        gc.freeze()
        await anyio.sleep(_FREEZE_EVERY)
        until_sweep -= _FREEZE_EVERY
