"""What was normal: the scores that a detector learns from, and the reference that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat

from tracescore.formulas import Vector, gaffke_interval, weighted_mean

DAY = 86_400.0
BLOCKS = 4
"""Parts of a day (UTC) that may have a reference each, so that a daily swing is no change."""
_CELL = 1 / 200
"""Scores are kept as counts and sums of cells this wide: the mean is exact, the spread nearly so."""
_LARGEST_REFERENCE = 0.999
"""What is divided by 1 - reference must not burst."""
_LEAST_OF_BLOCK = 200
"""Scores from which the mean of a block tells a swing from luck."""


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
    `by_block` are the means of the blocks that had enough scores, whatever the references.
    """

    mean: float
    error: float
    scores: int
    means: OfBlocks
    references: OfBlocks
    by_block: tuple[float, ...] = ()

    @classmethod
    def pinned(cls, reference: float) -> Baseline:
        """A reference that is given rather than learned."""
        return cls(reference, 0.0, 0, (reference,) * BLOCKS, (reference,) * BLOCKS)


@dataclass(frozen=True, slots=True)
class SampleState:
    """What is kept of a sample: the time of its newest score, and (block, place of the cell, its four figures)."""

    last: float | None
    cells: tuple[tuple[int, int, PositiveFloat, float, PositiveFloat, float], ...]


class _Cell(NamedTuple):
    """Scores that are nearly equal: how many, their sum, the sum of their weights and of weight x score."""

    scores: float = 0
    total: float = 0.0
    weight: float = 0.0
    weighted: float = 0.0

    def plus(self, score: float, weight: float) -> _Cell:
        return _Cell(self.scores + 1, self.total + score, self.weight + weight, self.weighted + weight * score)


class Sample:
    """What was seen of one stratum while it is learned, by block of the day; `last` is the time of the newest."""

    def __init__(self, last: float = -math.inf) -> None:
        self.last = last
        self._cells: dict[tuple[int, int], _Cell] = {}

    def add(self, at: float, score: float, weight: float) -> None:
        """Takes in a score in [0, 1] of an interaction that ended `at` (Unix seconds)."""
        key = block_of(at), int(score / _CELL)
        self._cells[key] = self._cells.get(key, _Cell()).plus(score, weight)
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
                both._cells[key] = _Cell(*map(sum, zip(both._cells.get(key, _Cell()), cell, strict=True)))
        return both

    def baseline(self, tolerance: float, *, by_block: bool, doubt: float, max_weight: float | None = None) -> Baseline:
        """The baseline of what is here: references are min(mean - tolerance, lower limit of the mean).

        The limit is Gaffke's, wrong with probability `doubt`, shared among the blocks. Scores count equally, or by
        their weights, of at most `max_weight`, where that is given. ValueError without a score.
        """
        whole = self._mean_and_error(range(BLOCKS), weighted=max_weight is not None)
        parts = [(block,) for block in range(BLOCKS)] if by_block else [tuple(range(BLOCKS))] * BLOCKS
        doubt = doubt / BLOCKS if by_block else doubt
        ends = {part: self._reference(part, tolerance, doubt, max_weight, whole[0]) for part in set(parts)}
        means, references = zip(*(ends[part] for part in parts), strict=True)
        return Baseline(*whole, self.scores, means, references, self.block_means())

    def _reference(
        self, blocks: tuple[int, ...], tolerance: float, doubt: float, max_weight: float | None, otherwise: float
    ) -> tuple[float, float]:
        """(mean, reference) of some blocks; without a score the reference is 0, below which nothing falls."""
        scores, weights = self._arrays(blocks, weighted=max_weight is not None)
        mean = weighted_mean(scores, weights)
        if mean is None:
            return otherwise, 0.0
        largest = max(max_weight or 1.0, float(weights.max()))
        lower, _ = gaffke_interval(scores, weights, largest, 1 - 2 * doubt)
        return mean, min(max(0.0, min(mean - tolerance, lower)), _LARGEST_REFERENCE)

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
        return SampleState(last, tuple((*key, *cell) for key, cell in self._cells.items()))

    @classmethod
    def of(cls, state: SampleState) -> Sample:
        """The sample that an earlier process had."""
        sample = cls(-math.inf if state.last is None else state.last)
        sample._cells = {(block, place): _Cell(*cell) for block, place, *cell in state.cells}
        return sample
