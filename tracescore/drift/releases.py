"""What the newest releases of a service scored, side by side. For people: no detector looks at it."""

import math
from typing import NamedTuple

from tracescore.drift.observations import Against, DetectorKind, Name
from tracescore.drift.weighted_sums import WeightedSums

_KEPT = 5
_CONFIDENT = 1.96


class ReleaseChange(NamedTuple):
    """The mean of a release less that of the one before, with its 95 % interval at this moment."""

    difference: float
    lower: float
    upper: float


ReleaseState = tuple[str, float, tuple[tuple[Name, Against, float, float, float, float, float], ...]]
"""What is kept of a release: its name, when it was first seen, and by detector its `WeightedSums`."""


class Releases:
    """The latest releases in the order in which they were first seen: when that was, and their sums."""

    def __init__(self) -> None:
        self.first_seen: dict[str, float] = {}
        self._sums: dict[str, dict[DetectorKind, WeightedSums]] = {}

    def note(self, release: str, at: float) -> None:
        """An answer of a release was seen `at` (Unix seconds); the oldest of too many is forgotten."""
        if release not in self.first_seen:
            self.first_seen[release], self._sums[release] = at, {}
            while len(self.first_seen) > _KEPT:
                oldest = next(iter(self.first_seen))
                del self.first_seen[oldest], self._sums[oldest]

    def add(self, release: str, kind: DetectorKind, score: float, weight: float) -> None:
        """An observation; of a release that is forgotten already it is left out."""
        sums = self._sums.get(release)
        if sums is not None:
            sums[kind] = sums.get(kind, WeightedSums()).plus(score, weight)

    def compared(self, kind: DetectorKind) -> ReleaseChange | None:
        """The newest release less the one before it; None without two that have scores enough."""
        if len(self._sums) < 2:
            return None
        before, after = (each.get(kind, WeightedSums()).mean_and_variance for each in list(self._sums.values())[-2:])
        if before is None or after is None:
            return None
        mean, half = after[0] - before[0], _CONFIDENT * math.sqrt(before[1] + after[1])
        return ReleaseChange(mean, mean - half, mean + half)

    def state(self) -> tuple[ReleaseState, ...]:
        """What `resume` goes on from."""
        return tuple(
            (release, at, tuple((*kind, *sums) for kind, sums in self._sums[release].items()))
            for release, at in self.first_seen.items()
        )

    def resume(self, state: tuple[ReleaseState, ...]) -> None:
        """Goes on from what an earlier process had."""
        for release, at, rows in state:
            self.first_seen[release] = at
            self._sums[release] = {DetectorKind(name, against): WeightedSums(*sums) for name, against, *sums in rows}
