"""A clock for waiting: a system clock that is set must neither keep traces open nor close them early."""

from __future__ import annotations

import logging
import time

from tracescore.model import Clock

_log = logging.getLogger("tracescore.service")

_JUMP = 1.0
"""Seconds at once; a clock that is only adjusted goes faster or slower by far less."""
_UNSETTLED = 600.0
"""Seconds after a jump in which there are interactions that began on its other side."""


class SteadyClock:
    """Unix seconds as the system's clock had them at the start, counted on by a monotonic clock.

    What is stored in these seconds can be compared with those of the next process. `jumps` are noticed when the clock
    is asked, which is about once a second.
    """

    def __init__(self, wall: Clock, monotonic: Clock = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = self._seen = wall() - monotonic()
        self._jumped = float("-inf")

    def __call__(self) -> float:
        """The time."""
        now = self._monotonic()
        offset = self._wall() - now
        if abs(offset - self._seen) > _JUMP:
            self._jumped = now
            detail = "tracescore closes traces in time, but does not measure the lag for ten minutes"
            _log.warning('event=clock_set seconds=%+.0f detail="%s"', offset - self._seen, detail)
        self._seen = offset
        return now + self._offset

    def settled(self) -> bool:
        """Whether times of the system's clock from before and after this moment can be compared."""
        return self._monotonic() - self._jumped > _UNSETTLED
