"""Time that passes only when somebody waits, so that tests look at the pauses asked for instead of sitting them out."""

from __future__ import annotations

import anyio.lowlevel

from tracescore.net.retry import Timing


class Hours:
    """A clock that stands still but for the pauses, which it keeps in `asked`."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.now += seconds
        await anyio.lowlevel.checkpoint()

    @property
    def timing(self) -> Timing:
        return Timing(lambda: self.now, self.sleep)
