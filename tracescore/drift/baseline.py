"""What was normal: the scores that a detector learns from, and the reference that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
from pydantic import Field, PositiveFloat

from tracescore.drift.week import ALIKE, Day, Grouping, grouping_of, spread_at_most, spread_between, sums_of, weekday
from tracescore.formulas import Vector, gaffke_interval, weighted_mean

DAY = 86_400.0
BLOCKS = 4
"""Parts of a day (UTC) that may have a reference each, so that a daily swing is no change."""
_CELL = 1 / 200
"""Scores are kept as counts and sums of cells this wide: the mean is exact, the spread nearly so."""
SWINGS = 2.0
"""Standard deviations between days that are alike that the reference lies below the mean. Days that differ by a
standard deviation of .02 then give .1 to .2 false alarms a month of a detector instead of .75 (docs/drift.md); 2.3
gives as many and is later, 1.5 twice as many."""
_LARGEST_REFERENCE = 0.999
"""What is divided by 1 - reference must not burst."""
_LEAST_OF_BLOCK = 200
"""Scores from which the mean of a block tells a swing from luck."""

T = TypeVar("T", "_Cell", "Day")


def block_of(at: float) -> int:
    """The block of the day, 0 to 3, that a moment (Unix seconds) lies in."""
    return int(at % DAY // (DAY / BLOCKS))


OfBlocks = Annotated[tuple[float, ...], Field(min_length=BLOCKS, max_length=BLOCKS)]
OfWeekdays = Annotated[tuple[float, ...], Field(min_length=7, max_length=7)]
_EVEN = (0.0,) * 7


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a stratum scored while it was learned, and the references that it has to stay above from then on.

    It is kept as it is here.

    `mean` has the standard error `error`, over `scores` observations (0: the reference was set by hand).
    `means` and `references` hold one value per block of the day; they are all equal unless learned by block.
    `by_block` are the means of the blocks that had enough scores, whatever the references. `between_days` is the
    standard deviation of the true means of days, of weekdays that are alike, and is `between_days_at_most`; None where
    that was not learned.
    `means_by_weekday` and `references_by_weekday` are what is to be added on a weekday, Monday first.
    """

    mean: float
    error: float
    scores: int
    means: OfBlocks
    references: OfBlocks
    by_block: tuple[float, ...] = ()
    between_days: float | None = None
    means_by_weekday: OfWeekdays = _EVEN
    references_by_weekday: OfWeekdays = _EVEN
    between_days_at_most: float | None = None

    def mean_at(self, at: float) -> float:
        """The mean that was learned for a moment, in Unix seconds."""
        return self.means[block_of(at)] + self.means_by_weekday[weekday(at // DAY)]

    def reference_at(self, at: float) -> float:
        """What scores have to stay above at a moment, in Unix seconds."""
        reference = self.references[block_of(at)] + self.references_by_weekday[weekday(at // DAY)]
        return min(max(0.0, reference), _LARGEST_REFERENCE)

    def no_lower_than(self, other: Baseline) -> Baseline:
        """With references raised, all alike, until none is below that of another baseline."""
        here, there = (
            np.add.outer(each.references, each.references_by_weekday).clip(0, _LARGEST_REFERENCE)
            for each in (self, other)
        )
        by = float(max(0.0, (there - here).max()))
        return replace(self, references=tuple(each + by for each in self.references))

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

    def shifted(self, by: float) -> Sums:
        """Less a baseline that is lower by so much."""
        squares = self.squares + 2 * by * self.total + by * by * self.scores
        return self._replace(total=self.total + by * self.scores, squares=squares)


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


class Sample:
    """What was seen of one stratum while it is learned, by block of the day.

    `scores` is how many there are, `last` the time of the newest, `days` those of each day since the epoch.
    """

    def __init__(self, last: float = -math.inf) -> None:
        self.last, self.scores = last, 0
        self._cells: dict[tuple[int, int], _Cell] = {}
        self.days: dict[int, Day] = {}

    def add(self, at: float, score: float, weight: float) -> None:
        """Takes in a score in [0, 1] of an interaction that ended `at` (Unix seconds)."""
        key = block_of(at), int(score / _CELL)
        self._cells[key] = self._cells.get(key, _Cell()).plus(score, weight)
        day = int(at // DAY)
        self.days[day] = _sum(self.days.get(day, Day()), Day(1, score, score * score))
        self.last, self.scores = max(self.last, at), self.scores + 1

    def merged(self, other: Sample) -> Sample:
        """Both together."""
        both = Sample(max(self.last, other.last))
        both.scores = self.scores + other.scores
        for cells in (self._cells, other._cells):
            for key, cell in cells.items():
                both._cells[key] = _sum(both._cells.get(key, _Cell()), cell)
        for days in (self.days, other.days):
            for day, sums in days.items():
                both.days[day] = _sum(both.days.get(day, Day()), sums)
        return both

    def baseline(self, tolerance: float, *, by_block: bool, doubt: float, max_weight: float | None = None) -> Baseline:
        """The baseline of what is here: references are min(mean - gap, lower limit of the mean).

        The gap is the tolerance, or `SWINGS` standard deviations between days that should be alike where these are
        more: days that differ by as much as those that were learned are no change.
        The limit is Gaffke's, wrong with probability `doubt`, shared among the blocks. Scores count equally, or by
        their weights, of at most `max_weight`, where that is given. ValueError without a score.
        """
        whole = self._mean_and_error(range(BLOCKS), weighted=max_weight is not None)
        parts = [(block,) for block in range(BLOCKS)] if by_block else [tuple(range(BLOCKS))] * BLOCKS
        grouping = grouping_of(self.days)
        between = spread_between(self.days, grouping)
        gap = max(tolerance, SWINGS * (between or 0.0))
        shared = doubt / BLOCKS if by_block else doubt
        ends = {part: self._reference(part, gap, shared, max_weight, whole[0]) for part in set(parts)}
        means, references = zip(*(ends[part] for part in parts), strict=True)
        at_most = spread_at_most(self.days, grouping)
        learned = Baseline(*whole, self.scores, means, references, self.block_means(), between)
        learned = replace(learned, between_days_at_most=at_most)
        if grouping == ALIKE:
            return learned
        mean, reference = self._reference(tuple(range(BLOCKS)), 0.0, doubt, max_weight, whole[0])
        return self._of_weekdays(learned, grouping, tolerance, mean - reference)

    def _of_weekdays(self, learned: Baseline, grouping: Grouping, tolerance: float, uncertain: float) -> Baseline:
        """The baseline with what is learned of groups of weekdays; `uncertain`: how far the mean may be too high.

        A group has seen fewer days and scores than there are: its reference lies lower by as much.
        """
        groups, days = sums_of(self.days, grouping), len(self.days)
        scores, total, _ = (float(each) for each in np.array(list(self.days.values())).sum(axis=0))
        swing = SWINGS * (learned.between_days or 0.0)
        off, low = dict[int, float](), dict[int, float]()
        for group, rows in groups.items():
            of_group = float(rows[:, 0].sum())
            few = math.sqrt((1 + 1 / len(rows)) / (1 + 1 / days))
            needed = max(tolerance, few * swing, uncertain * math.sqrt(scores / of_group))
            off[group] = float(rows[:, 1].sum()) / of_group - total / scores
            low[group] = off[group] - (needed - max(tolerance, swing, uncertain))
        means, references = (tuple(by[group] for group in grouping) for by in (off, low))
        return replace(learned, means_by_weekday=means, references_by_weekday=references)

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
        return SampleState(last, cells, tuple((day, *sums) for day, sums in self.days.items()))

    @classmethod
    def of(cls, state: SampleState) -> Sample:
        """The sample that an earlier process had."""
        sample = cls(-math.inf if state.last is None else state.last)
        sample._cells = {(block, place): _Cell(*cell) for block, place, *cell in state.cells}
        sample.scores = int(sum(cell.scores for cell in sample._cells.values()))
        sample.days = {day: Day(*sums) for day, *sums in state.days}
        return sample


def _sum(one: T, other: T) -> T:
    """Both together, figure by figure."""
    return type(one)(*map(sum, zip(one, other, strict=True)))
