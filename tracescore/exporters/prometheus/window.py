"""A sliding window of weighted scores of one measure under one set of labels.

The window slides in event time: an observation belongs to the moment its interaction ended, however long the judge
took. What leaves the window leaves the estimate, also when nothing new arrives.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from tracescore.formulas import (
    Vector,
    WindowEstimate,
    effective_count,
    gaffke_interval,
    lag1_correlation,
    weighted_mean,
)
from tracescore.model import Clock

MAX_HELD = 10_000
"""Observations held at most; beyond it the oldest go first, and the window covers less time than was asked for."""

_NOTHING = WindowEstimate(mean=None, lower=None, upper=None, worst=None, best=None, effective_count=0.0, lag1=None)


def late(at: float, length: float, now: float) -> bool:
    """Whether an interaction that ended `at` has left a window of `length` seconds; all in Unix seconds."""
    return at <= now - length


class _Observation(NamedTuple):
    """Ordered by event time, then by arrival, so that a heap of them has the oldest on top."""

    at: float
    arrival: int
    weight: float
    lo: float
    hi: float
    scored: bool
    conversation: str


class Window:
    """Holds what was observed during the last `length` seconds, and estimates the mean score from it.

    An estimate is made anew only when something came or went.
    """

    def __init__(
        self, length: float, min_count: int, max_weight: float, clock: Clock, max_held: int = MAX_HELD
    ) -> None:
        """`max_weight` is the largest weight that the sampling in force gives to one interaction."""
        self._length, self._min_count, self._max_weight = length, min_count, max_weight
        self._clock, self._max_held = clock, max_held
        self._held: list[_Observation] = []
        self._arrivals = count()
        self._estimate: WindowEstimate | None = _NOTHING

    def __len__(self) -> int:
        self._expire()
        return len(self._held)

    def add(self, at: float, weight: float, lo: float, hi: float, *, scored: bool, conversation: str = "") -> bool:
        """Takes in an evaluation of an interaction that ended `at` (Unix seconds; the future counts as now).

        `lo` and `hi` are both the score where there is one, else the bounds of what it can have been.
        Evaluations of one named conversation form one observation. What is late is left out. True when the
        oldest observation had to go to make room.
        """
        if late(at, self._length, self._clock()):
            return False
        at = min(at, self._clock())
        heappush(self._held, _Observation(at, next(self._arrivals), weight, lo, hi, scored, conversation))
        self._estimate = None
        if len(self._held) <= self._max_held:
            return False
        heappop(self._held)
        return True

    def estimate(self) -> WindowEstimate:
        """What the window says now; see `WindowEstimate`.

        The mean and its interval need `min_count` effective scores. The worst and best case need `min_count`
        effective evaluations, scored or not: they must stand exactly when scores are missing.
        """
        self._expire()
        if self._estimate is None:
            self._estimate = self._estimated()
        return self._estimate

    def _expire(self) -> None:
        now = self._clock()
        while self._held and late(self._held[0].at, self._length, now):
            heappop(self._held)
            self._estimate = None

    def _estimated(self) -> WindowEstimate:
        scores, score_weights, lows, highs, weights = _per_conversation(self._held)
        effective = effective_count(score_weights)
        mean = lower = upper = worst = best = None
        if effective >= self._min_count:
            mean = weighted_mean(scores, score_weights)
            lower, upper = gaffke_interval(scores, score_weights, max(self._max_weight, float(score_weights.max())))
        if effective_count(weights) >= self._min_count:
            worst, best = weighted_mean(lows, weights), weighted_mean(highs, weights)
        return WindowEstimate(mean, lower, upper, worst, best, effective, self._lag1())

    def _lag1(self) -> float | None:
        """The lag-1 correlation of the scores that belong to no conversation; None under `min_count` of them."""
        single = [each.lo for each in sorted(self._held) if each.scored and not each.conversation]
        return lag1_correlation(single) if len(single) >= self._min_count else None


def _per_conversation(observations: Iterable[_Observation]) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """One observation per conversation, and per evaluation that belongs to none.

    Returns (scores, their weights), of shape (n,) for the n that hold a score, and (lo, hi, weights) of all m.

    Answers in one conversation resemble each other: counted singly they promise more than they know. The values
    of a conversation are its weighted means, its weight is the sum of its weights. So the mean of the window
    stays the mean over interactions, as in the counters, while a long conversation costs effective count.
    """
    groups: dict[str | int, list[float]] = {}
    for _, arrival, weight, lo, hi, scored, conversation in observations:
        group = groups.setdefault(conversation or arrival, [0.0, 0.0, 0.0, 0.0, 0.0])
        group[0] += weight * lo
        group[1] += weight * hi
        group[2] += weight
        if scored:
            group[3] += weight * lo
            group[4] += weight
    low, high, weights, score, score_weights = np.array(list(groups.values()), dtype=np.float64).reshape(-1, 5).T
    known = score_weights > 0
    scores = np.clip(score[known] / score_weights[known], 0, 1)
    return scores, score_weights[known], np.clip(low / weights, 0, 1), np.clip(high / weights, 0, 1), weights
