"""Scoring is a guest in the event loop: what can wait goes on when nobody else has anything to do."""

from __future__ import annotations

import time

import anyio
import anyio.lowlevel

_QUIET = 5
"""Rounds of the event loop with nothing in them after which it is idle: a request takes many short steps."""
_EMPTY = 0.00003
"""Seconds that such a round takes at the most."""


class Turns:
    """Those who wait go on one by one, in the order in which they came, so that others get in between."""

    def __init__(self) -> None:
        self._first = anyio.Lock()

    async def next(self, until: float) -> None:
        """Returns when the event loop has nothing else to do, and after `until` (by time.monotonic) in any case.

        It asks again and again; where even empty rounds of the loop take long, it always waits until then.
        """
        quiet, now = 0, time.monotonic()
        async with self._first:
            while True:
                before = now
                await anyio.lowlevel.checkpoint()
                now = time.monotonic()
                quiet = quiet + 1 if now - before < _EMPTY else 0
                if quiet == _QUIET or now >= until:
                    return
