"""A histogram whose counts can go on after a restart, and whose buckets may each lead to a trace."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client.core import Exemplar, HistogramMetricFamily
from pydantic import NonNegativeInt


@dataclass(frozen=True, slots=True)
class BucketsState:
    """What is kept of a histogram: a count per bound and one more; exemplars are of the moment and left out."""

    bounds: tuple[float, ...]
    counts: tuple[NonNegativeInt, ...]
    sum: float

    def __post_init__(self) -> None:
        """ValueError where counts and bounds do not belong together."""
        if len(self.counts) != len(self.bounds) + 1:
            raise ValueError(f"{len(self.bounds) + 1} counts expected; got {len(self.counts)}")


class Buckets:
    """A histogram; every bucket keeps its own last exemplar, so that low scores stay one click away."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: list[Exemplar | None] = [None] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, score: float, exemplar: Exemplar | None = None) -> None:
        """Counts a value in the first bucket whose bound it does not exceed."""
        place = bisect_left(self._bounds, score)
        self._counts[place] += 1
        self._exemplars[place] = exemplar
        self._sum += score

    def set_exemplar(self, score: float, exemplar: Exemplar) -> None:
        """Sets the exemplar of a value that has been counted."""
        self._exemplars[bisect_left(self._bounds, score)] = exemplar

    def state(self) -> BucketsState:
        """What `resume` goes on from."""
        return BucketsState(tuple(self._bounds), tuple(self._counts), self._sum)

    def resume(self, state: BucketsState) -> None:
        """Goes on from the counts of an earlier process, whose further bounds are left out, unless it lacked some."""
        if not {*self._bounds} <= {*state.bounds}:
            return
        self._counts, self._sum = [0] * len(self._counts), state.sum
        for bound, count in zip((*state.bounds, math.inf), state.counts, strict=True):
            self._counts[bisect_left(self._bounds, bound)] += count

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Adds the cumulative buckets, the sum and the count to a family."""
        total, buckets = 0, []
        for bound, count, exemplar in zip((*self._bounds, float("inf")), self._counts, self._exemplars, strict=True):
            total += count
            name = "+Inf" if bound == float("inf") else repr(float(bound))
            buckets.append((name, float(total), exemplar) if exemplar else (name, float(total)))
        family.add_metric(labels, buckets, self._sum)
