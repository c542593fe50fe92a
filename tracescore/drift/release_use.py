"""Which releases of a service are in use, which one is the running one, and which one ran before it.

A release is in use until the service has given so many answers without one of its own that it would have had some:
twenty, or five times as many as it usually lets pass. So a rollback is seen after twenty answers, and a canary with
one answer in fifty is not taken for gone between two of them. No time passes in this: services are silent at night.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pydantic import NonNegativeInt, PositiveInt

_LEAST = 20
_GAPS = 5
MOST = 50
"""Releases of a service that are remembered; beyond them the longest unused go, and none that is in use."""


@dataclass(slots=True)
class Use:
    """When a release was first and last seen (Unix seconds), its answers, and those of the service up to then."""

    first: float
    last: float
    answers: int
    before_first: int
    until_last: int


UseState = tuple[str, float, float, PositiveInt, NonNegativeInt, PositiveInt]
"""What is kept of a release: its name and its `Use`."""


class ReleasePair(NamedTuple):
    """Two releases; `before` is None where there was only one."""

    running: str
    before: str | None


class ReleaseUse:
    """The releases of one service."""

    def __init__(self) -> None:
        self.known: dict[str, Use] = {}
        self._answers = 0

    def note(self, release: str, at: float) -> str | None:
        """An answer of a release was seen `at`; gives the name of one that is forgotten for it.

        The release itself where all that are remembered are in use.
        """
        self._answers += 1
        use = self.known.get(release)
        if use is not None:
            use.last, use.answers, use.until_last = max(use.last, at), use.answers + 1, self._answers
            return None
        gone = None
        if len(self.known) >= MOST:
            gone = min(self.known, key=self._rank)
            if self.in_use(gone):
                return release
            del self.known[gone]
        self.known[release] = Use(at, at, 1, self._answers - 1, self._answers)
        return gone

    def in_use(self, release: str) -> bool:
        """See the module."""
        use = self.known[release]
        usual = (use.until_last - use.before_first) / use.answers
        return self._answers - use.until_last < max(_LEAST, _GAPS * usual)

    def ranked(self) -> list[str]:
        """All releases: those in use, the newest first, and then the others, the last used first."""
        return sorted(self.known, key=self._rank, reverse=True)

    @property
    def pair(self) -> ReleasePair | None:
        """The running release and the one before it; None before any answer."""
        ranked = self.ranked()
        return ReleasePair(ranked[0], ranked[1] if len(ranked) > 1 else None) if ranked else None

    def set_back(self, now: float) -> None:
        """The clock was set back to `now`: what was seen later was seen now."""
        for use in self.known.values():
            use.first, use.last = min(use.first, now), min(use.last, now)

    def state(self) -> tuple[int, tuple[UseState, ...]]:
        """What `resume` goes on from."""
        rows = ((name, u.first, u.last, u.answers, u.before_first, u.until_last) for name, u in self.known.items())
        return self._answers, tuple(rows)

    def resume(self, state: tuple[int, tuple[UseState, ...]]) -> None:
        """Goes on from the state of an earlier process."""
        self._answers = state[0]
        self.known = {name: Use(first, last, *counts) for name, first, last, *counts in state[1]}

    def _rank(self, release: str) -> tuple[bool, int]:
        use, in_use = self.known[release], self.in_use(release)
        return in_use, use.before_first if in_use else use.until_last
