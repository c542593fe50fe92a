"""What was normal: the scores that a detector learns from, and the reference that follows from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, PositiveFloat

from tracescore.formulas import Vector, gaffke_interval, weighted_mean

DAY = 86_400.0
BLOCKS = 4
"""Parts of a day (UTC) that may have a reference each, so that a daily swing is no change."""
_CELL = 1 / 200
"""Scores are kept as counts and sums of cells this wide: the mean is exact, the spread nearly so."""
SWINGS = 2.0
"""Standard deviations between days that the reference lies below the mean. At 300 scores a day, days
that differ by a standard deviation of .02 then give .17 false alarms a month of a detector instead of .75, and a fall
of .10 beside a weekend .05 lower takes 150 scores instead of 70; with 1.5 it is .34 and 100, with 2.2 .13 and 200."""
_LARGEST_REFERENCE = 0.999
"""What is divided by 1 - reference must not burst."""
_LEAST_OF_BLOCK = 200
"""Scores from which the mean of a block tells a swing from luck."""

T = TypeVar("T", "_Cell", "Day")


def block_of(at: float) -> int:
    """The block of the day, 0 to 3, that a moment (Unix seconds) lies in."""
    return int(at % DAY // (DAY / BLOCKS))


OfBlocks = Annotated[tuple[float, ...], Field(min_length=BLOCKS, max_length=BLOCKS)]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a stratum scored while it was learned, and the references that it has to stay above from then on.

    It is kept as it is here.

    `mean` has the standard error `error`, over `scores` observations (0: the reference was set by hand).
    `means` and `references` hold one value per block of the day; they are all equal unless learned by block.
    `by_block` are the means of the blocks that had enough scores, whatever the references. `between_days` is the
    standard deviation of the true means of days; None where that was not learned.
    """

    mean: float
    error: float
    scores: int
    means: OfBlocks
    references: OfBlocks
    by_block: tuple[float, ...] = ()
    between_days: float | None = None

    @classmethod
    def pinned(cls, reference: float) -> Baseline:
        """A reference that is given rather than learned."""
        return cls(reference, 0.0, 0, (reference,) * BLOCKS, (reference,) * BLOCKS)


class Sums(NamedTuple):
    """Scores less their baseline: how many, their sum, the sum of their squares, and of their weights.

    Where weights count, a score is a part of one, its weight over the largest: taken as a whole number of equal
    scores, they then promise less than they know, never more.
    """

    scores: float = 0
    total: float = 0.0
    squares: float = 0.0
    weight: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class SampleState:
    """What is kept of a sample: the time of its newest score, its cells and its days.

    A row of `cells` is (block, place of the cell, its four figures), one of `days` (day since the epoch, its three).
    """

    last: float | None
    cells: tuple[tuple[int, int, PositiveFloat, float, PositiveFloat, float], ...]
    days: tuple[tuple[int, PositiveFloat, float, float], ...] = ()


class _Cell(NamedTuple):
    """Scores that are nearly equal: how many, their sum, the sum of their weights and of weight x score."""

    scores: float = 0
    total: float = 0.0
    weight: float = 0.0
    weighted: float = 0.0

    def plus(self, score: float, weight: float) -> _Cell:
        return _Cell(self.scores + 1, self.total + score, self.weight + weight, self.weighted + weight * score)


class Day(NamedTuple):
    """The scores of a day (UTC): how many, their sum and the sum of their squares."""

    scores: float = 0
    total: float = 0.0
    squares: float = 0.0


def spread_between(days: Collection[Day]) -> float:
    """Standard deviation of the true means of days: what their means differ by beyond the chance in the scores.

    The analysis-of-variance estimate for groups of unequal size (Searle, Casella & McCulloch, Variance Components,
    1992, section 3.6), not under 0; 0 as well for fewer than two days, or with no more scores than days.
    """
    scores, total, squares = np.array(list(days), dtype=np.float64).reshape(-1, 3).T
    count, freedom = scores.sum(), scores.size - 1
    if freedom < 1 or count <= scores.size:
        return 0.0
    between = (total**2 / scores).sum() - total.sum() ** 2 / count
    within = squares.sum() - (total**2 / scores).sum()
    size = (count - (scores**2).sum() / count) / freedom
    return math.sqrt(max(0.0, (between / freedom - within / (count - scores.size)) / size))


class Sample:
    """What was seen of one stratum while it is learned, by block of the day; `last` is the time of the newest."""

    def __init__(self, last: float = -math.inf) -> None:
        self.last = last
        self._cells: dict[tuple[int, int], _Cell] = {}
        self._days: dict[int, Day] = {}

    def add(self, at: float, score: float, weight: float) -> None:
        """Takes in a score in [0, 1] of an interaction that ended `at` (Unix seconds)."""
        key = block_of(at), int(score / _CELL)
        self._cells[key] = self._cells.get(key, _Cell()).plus(score, weight)
        day = int(at // DAY)
        self._days[day] = _sum(self._days.get(day, Day()), Day(1, score, score * score))
        self.last = max(self.last, at)

    @property
    def scores(self) -> int:
        """How many there are."""
        return int(sum(cell.scores for cell in self._cells.values()))

    def merged(self, other: Sample) -> Sample:
        """Both together."""
        both = Sample(max(self.last, other.last))
        for cells in (self._cells, other._cells):
            for key, cell in cells.items():
                both._cells[key] = _sum(both._cells.get(key, _Cell()), cell)
        for days in (self._days, other._days):
            for day, sums in days.items():
                both._days[day] = _sum(both._days.get(day, Day()), sums)
        return both

    def baseline(self, tolerance: float, *, by_block: bool, doubt: float, max_weight: float | None = None) -> Baseline:
        """The baseline of what is here: references are min(mean - gap, lower limit of the mean).

        The gap is the tolerance, or `SWINGS` standard deviations between days where these are more: days that differ
        by as much as those that were learned are no change.
        The limit is Gaffke's, wrong with probability `doubt`, shared among the blocks. Scores count equally, or by
        their weights, of at most `max_weight`, where that is given. ValueError without a score.
        """
        whole = self._mean_and_error(range(BLOCKS), weighted=max_weight is not None)
        parts = [(block,) for block in range(BLOCKS)] if by_block else [tuple(range(BLOCKS))] * BLOCKS
        doubt = doubt / BLOCKS if by_block else doubt
        between = spread_between(self._days.values())
        gap = max(tolerance, SWINGS * between)
        ends = {part: self._reference(part, gap, doubt, max_weight, whole[0]) for part in set(parts)}
        means, references = zip(*(ends[part] for part in parts), strict=True)
        return Baseline(*whole, self.scores, means, references, self.block_means(), between)

    def _reference(
        self, blocks: tuple[int, ...], gap: float, doubt: float, max_weight: float | None, otherwise: float
    ) -> tuple[float, float]:
        """(mean, reference) of some blocks; without a score the reference is 0, below which nothing falls."""
        scores, weights = self._arrays(blocks, weighted=max_weight is not None)
        mean = weighted_mean(scores, weights)
        if mean is None:
            return otherwise, 0.0
        largest = max(max_weight or 1.0, float(weights.max()))
        lower, _ = gaffke_interval(scores, weights, largest, 1 - 2 * doubt)
        return mean, min(max(0.0, min(mean - gap, lower)), _LARGEST_REFERENCE)

    def _mean_and_error(self, blocks: Iterable[int], *, weighted: bool) -> tuple[float, float]:
        scores, weights = self._arrays(blocks, weighted=weighted)
        mean = weighted_mean(scores, weights)
        if mean is None:
            raise ValueError("a baseline needs a score")
        # One made-up score at either end, so that equal scores do not promise that the next one is equal too.
        scores, weights = np.append(scores, (0.0, 1.0)), np.append(weights, [weights.mean()] * 2)
        return mean, float(np.sqrt((weights**2 * (scores - mean) ** 2).sum())) / float(weights.sum())

    def _arrays(self, blocks: Iterable[int], *, weighted: bool) -> tuple[Vector, Vector]:
        cells = [cell for key, cell in sorted(self._cells.items()) if key[0] in set(blocks)]
        counts = [int(cell.scores) for cell in cells]
        if weighted:
            values = [(cell.weighted / cell.weight, cell.weight / cell.scores) for cell in cells]
        else:
            values = [(cell.total / cell.scores, 1.0) for cell in cells]
        scores, weights = np.array(values, dtype=np.float64).reshape(-1, 2).T
        return np.repeat(scores.clip(0, 1), counts), np.repeat(weights, counts)

    def block_means(self) -> tuple[float, ...]:
        """The means of the blocks of the day that have scores enough."""
        blocks = [self._arrays((block,), weighted=False)[0] for block in range(BLOCKS)]
        return tuple(float(scores.mean()) for scores in blocks if scores.size >= _LEAST_OF_BLOCK)

    def state(self) -> SampleState:
        """What `of` makes it again from."""
        last = self.last if math.isfinite(self.last) else None
        cells = tuple((*key, *cell) for key, cell in self._cells.items())
        return SampleState(last, cells, tuple((day, *sums) for day, sums in self._days.items()))

    @classmethod
    def of(cls, state: SampleState) -> Sample:
        """The sample that an earlier process had."""
        sample = cls(-math.inf if state.last is None else state.last)
        sample._cells = {(block, place): _Cell(*cell) for block, place, *cell in state.cells}
        sample._days = {day: Day(*sums) for day, *sums in state.days}
        return sample


def _sum(one: T, other: T) -> T:
    """Both together, figure by figure."""
    return type(one)(*map(sum, zip(one, other, strict=True)))
