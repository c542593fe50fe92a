"""The series behind the score metrics, and the one cap on how many there may be.

Label values come from telemetry. They are cleaned and cut, and beyond the cap they become `other`: a service that
puts a request id into its version costs a flood of scores in `other`, not the memory of everybody's Prometheus.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import Exemplar, HistogramMetricFamily

from tracescore.drift.window import Window
from tracescore.model import Clock

OTHER = "other"
_MAX_LABEL = 128

Sum = Callable[[float, float], float]
"""(weight, score) -> what is added."""

SUMS: dict[str, tuple[str, Sum]] = {
    "weight": ("weights", lambda w, _: w),
    "weighted_score": ("weight x score", lambda w, s: w * s),
    "weight_squared": ("squared weights", lambda w, _: w * w),
    "weight_squared_score": ("squared weight x score", lambda w, s: w * w * s),
    "weight_squared_score_squared": ("squared weight x squared score", lambda w, s: w * w * s * s),
}
"""Name -> (what it is the sum of, how). They add up over replicas and time and give, over any window, the mean
(weighted_score / weight), the effective count (weight^2 / weight_squared) and the variance of the mean."""


def label(value: str) -> str:
    """A label value made safe: printable, at most 128 characters, never empty (that would be no label at all)."""
    cut = value if len(value) <= _MAX_LABEL else value[: _MAX_LABEL - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut) or "unknown"


class Buckets:
    """A histogram of scores; every bucket keeps its own last exemplar, so that low scores stay one click away."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: list[Exemplar | None] = [None] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, score: float, exemplar: Exemplar) -> None:
        """Counts a score in the first bucket whose bound it does not exceed."""
        place = bisect_left(self._bounds, score)
        self._counts[place] += 1
        self._exemplars[place] = exemplar
        self._sum += score

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Adds the cumulative buckets, the sum and the count to a family."""
        total, buckets = 0, []
        for bound, count, exemplar in zip((*self._bounds, float("inf")), self._counts, self._exemplars, strict=True):
            total += count
            name = "+Inf" if bound == float("inf") else repr(float(bound))
            buckets.append((name, float(total), exemplar) if exemplar else (name, float(total)))
        family.add_metric(labels, buckets, self._sum)


@dataclass(slots=True)
class Live:
    """What only series of gauges and histograms have."""

    window: Window
    buckets: Buckets


class Series:
    """Everything kept for one label set of one metric group; `live` is None for slices, which are sums alone."""

    def __init__(self, labels: tuple[str, ...], target: float | None, live: Live | None, cost: int) -> None:
        self.labels, self.live, self.cost = labels, live, cost
        self.sums = dict.fromkeys(SUMS, 0.0)
        self.below_target = 0.0
        self.abstained = 0.0
        self.used = 0.0
        """When it was last used, in Unix seconds."""
        self._target = target

    def add(self, weight: float, score: float) -> None:
        """Adds a score to the sums."""
        for name, (_, term) in SUMS.items():
            self.sums[name] += term(weight, score)
        if self._target is not None and score < self._target:
            self.below_target += weight


Make = Callable[[tuple[str, ...]], Series]
"""Builds the series of one label set."""


class SeriesTable:
    """(group, label values) -> Series, at most `limit` Prometheus series in all.

    The first label value is the judge's name, ours and not the telemetry's; it stays when the others become
    `other`. A set that has not been used for `idle` seconds gives way to a new one, so that a process that lives
    through many releases still shows the newest.
    """

    def __init__(self, limit: int, reserve: int, idle: float, clock: Clock) -> None:
        """`reserve` series of the limit are kept for `other`."""
        self._limit, self._idle, self._clock = max(0, limit - reserve), idle, clock
        self._named: OrderedDict[tuple[str, tuple[str, ...]], Series] = OrderedDict()
        self._other: dict[tuple[str, tuple[str, ...]], Series] = {}
        self._cost = 0

    def get(self, group: str, labels: tuple[str, ...], cost: int, make: Make) -> Series:
        """The series of a label set, or those of `other` when there is no room for `cost` new ones."""
        key, now = (group, labels), self._clock()
        series = self._named.get(key)
        if series is None:
            if not self._room(cost, now):
                return self._folded(group, labels, make)
            series = self._named[key] = make(labels)
            self._cost += cost
        self._named.move_to_end(key)
        series.used = now
        return series

    def group(self, group: str) -> Iterator[Series]:
        """The series of one group."""
        for table in (self._named, self._other):
            yield from (series for (name, _), series in table.items() if name == group)

    def __len__(self) -> int:
        """How many Prometheus series the table stands for."""
        return self._cost + sum(series.cost for series in self._other.values())

    def _room(self, cost: int, now: float) -> bool:
        while self._named and self._cost + cost > self._limit:
            oldest = next(iter(self._named.values()))
            if now - oldest.used <= self._idle:
                return False
            self._cost -= self._named.popitem(last=False)[1].cost
        return self._cost + cost <= self._limit

    def _folded(self, group: str, labels: tuple[str, ...], make: Make) -> Series:
        folded = (labels[0], *[OTHER] * (len(labels) - 1))
        if (group, folded) not in self._other:
            self._other[group, folded] = make(folded)
        return self._other[group, folded]
