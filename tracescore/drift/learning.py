"""What a detector learns from, stratum by stratum, and the baselines that follow.

With little traffic, or where days may differ much, enough is known for a reference weeks before there is the last word
on it. A provisional one is in force meanwhile, and the scores that it tests are held back from what is learned: those
of a fall are no part of what is normal.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import DAY, Sample
from tracescore.drift.stratum import DOUBT, Stratum

LEAST_STRATUM = 200
"""Scores from which a stratum has a reference of its own, or a detector a provisional one; smaller strata are tested
together."""
PROVISIONAL_DAYS = 7
"""Days from which there may be a provisional reference: they hold one weekend."""
UNEVEN_DAYS = 28
"""Days of learning where days may differ by more than the tolerance: how much they do is not known after seven."""
POOL = ""
"""The stratum of those that are tested together."""


class HeldScore(NamedTuple):
    """A score that was tested already and may be learned from later."""

    at: float
    stratum: str
    score: float
    weight: float


class Armed(NamedTuple):
    """The strata to test, the names that are tested together, and the samples that are too small for a test."""

    tested: dict[str, Stratum]
    pooled: set[str]
    left: dict[str, Sample]


class Learning:
    """The samples of one detector, since `began` (Unix seconds), and what is held back from them, oldest first."""

    def __init__(self, settings: DriftConfig) -> None:
        self._settings = settings
        self.samples: dict[str, Sample] = {}
        self.held: deque[HeldScore] = deque()
        self.began: float | None = None

    def add(self, each: HeldScore) -> None:
        """Learns from a score."""
        self.began = each.at if self.began is None else self.began
        self.samples.setdefault(each.stratum, Sample()).add(each.at, each.score, each.weight)

    def hold(self, each: HeldScore, *, suspected: bool) -> None:
        """Keeps a score back. Of too many the oldest is learned from, or while a fall is suspected the newest left out.

        As many are held as a baseline takes.
        """
        if len(self.held) < self._settings.baseline.scores:
            self.held.append(each)
        elif not suspected:
            self.add(self.held.popleft())
            self.held.append(each)

    def drop(self, onset: float) -> None:
        """Never learns from what is held since `onset`: it is of a fall."""
        if self.held and self.held[-1].at >= onset:
            self.held = deque(each for each in self.held if each.at < onset)

    @property
    def scores(self) -> int:
        """How many were learned from."""
        return sum(sample.scores for sample in self.samples.values())

    def enough_for_provisional(self, at: float) -> bool:
        """Whether a reference can be told at a moment, though it is not the last word."""
        began = math.inf if self.began is None else self.began
        return at >= began + PROVISIONAL_DAYS * DAY and self.scores >= LEAST_STRATUM

    def settled(self, before: float) -> dict[str, Sample]:
        """The samples with what is held of moments before `before`."""
        whole = Learning(self._settings)
        whole.samples = {name: Sample().merged(sample) for name, sample in self.samples.items()}
        for each in self.held:
            if each.at < before:
                whole.add(each)
        return whole.samples

    def settle(self, samples: dict[str, Sample], before: float) -> None:
        """Goes on from what `settled` gave for `before`; what is held since stays held."""
        self.samples = samples
        self.held = deque(each for each in self.held if each.at >= before)

    def armed(self, samples: Mapping[str, Sample], max_weight: float, *, pool: bool) -> Armed:
        """The tests that samples are enough for. With `pool` those too small for one of their own have one together.

        `max_weight` bounds their weights.
        """
        large = {name: sample for name, sample in samples.items() if sample.scores >= LEAST_STRATUM}
        small = {name: sample for name, sample in samples.items() if name not in large}
        pooled = Sample()
        for sample in small.values():
            pooled = pooled.merged(sample)
        together = pool and pooled.scores >= LEAST_STRATUM
        doubt = DOUBT / max(1, len(large) + together)
        tolerance, by_block = self._settings.tolerance, self._settings.reference == "by_block"
        learned = partial(Sample.baseline, tolerance=tolerance, by_block=by_block, doubt=doubt)
        tested = {name: Stratum(learned(sample), sample.last) for name, sample in large.items()}
        if together:
            tested[POOL] = Stratum(learned(pooled, max_weight=max_weight), pooled.last)
        return Armed(tested, set(small) if together else set(), {} if together else small)
