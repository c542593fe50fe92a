"""The series behind the score metrics, and the one cap on how many there may be.

Label values come from telemetry. They are cleaned and cut, and beyond the cap they become `other`: a service that
puts a request id into its version costs a flood of scores in `other`, not the memory of everybody's Prometheus.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tracescore.exporters.prometheus.histogram import Buckets, BucketsState
from tracescore.exporters.prometheus.window import Window

OTHER = "other"

Sum = Callable[[float, float], float]
"""(weight, score) -> what is added."""

SumName = Literal["weight", "weighted_score", "weight_squared", "weight_squared_score", "weight_squared_score_squared"]
SUMS: dict[SumName, tuple[str, Sum]] = {
    "weight": ("weights", lambda w, _: w),
    "weighted_score": ("weight x score", lambda w, s: w * s),
    "weight_squared": ("squared weights", lambda w, _: w * w),
    "weight_squared_score": ("squared weight x score", lambda w, s: w * w * s),
    "weight_squared_score_squared": ("squared weight x squared score", lambda w, s: w * w * s * s),
}
"""Name -> (what it is the sum of, how). They add up over replicas and time and give, over any window, the mean
(weighted_score / weight), the effective count (weight^2 / weight_squared) and the variance of the mean."""


@dataclass(frozen=True, slots=True)
class SeriesState:
    """What is kept of a series; `folded` where it is one of `other`, `used` in Unix seconds."""

    group: str
    labels: tuple[str, ...]
    folded: bool
    sums: dict[SumName, float]
    below_target: float
    abstained: float
    used: float
    buckets: BucketsState | None

    def __post_init__(self) -> None:
        """ValueError where a sum is missing."""
        if self.sums.keys() != SUMS.keys():
            raise ValueError(f"sums: {', '.join(SUMS)} expected; got {len(self.sums)} of them")


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

    def state(self, group: str, *, folded: bool) -> SeriesState:
        """What `resume` goes on from."""
        buckets = self.live.buckets.state() if self.live else None
        moving = self.below_target, self.abstained, self.used
        return SeriesState(group, self.labels, folded, dict(self.sums), *moving, buckets)

    def resume(self, state: SeriesState) -> None:
        """Goes on from the sums and counts of an earlier process."""
        self.sums = dict(state.sums)
        self.below_target, self.abstained, self.used = state.below_target, state.abstained, state.used
        if self.live and state.buckets:
            self.live.buckets.resume(state.buckets)


Make = Callable[[tuple[str, ...]], Series]
"""Builds the series of one label set."""


class SeriesTable:
    """(group, label values) -> Series, at most `limit` Prometheus series in all.

    The first label value is the judge's name, ours and not the telemetry's; it stays when the others become
    `other`. A set that has not been used for `idle` seconds gives way to a new one, so that a process that lives
    through many releases still shows the newest.
    """

    def __init__(self, limit: int, reserve: int, idle: float) -> None:
        """`reserve` series of the limit are kept for `other`."""
        self._limit, self._idle = max(0, limit - reserve), idle
        self._named: OrderedDict[tuple[str, tuple[str, ...]], Series] = OrderedDict()
        self._other: dict[tuple[str, tuple[str, ...]], Series] = {}
        self._cost = 0

    def get(self, group: str, labels: tuple[str, ...], cost: int, make: Make, now: float) -> Series:
        """The series of a label set, or those of `other` when there is no room for `cost` new ones at `now`."""
        if labels == _folded(labels):
            return self._folded(group, labels, make)
        key = group, labels
        series = self._named.get(key)
        if series is None:
            if not self._room(cost, now):
                return self._folded(group, labels, make)
            series = self._named[key] = make(labels)
            self._cost += cost
        self._named.move_to_end(key)
        series.used = now
        return series

    def find(self, group: str, labels: tuple[str, ...]) -> Series | None:
        """The series of a label set if it has any."""
        return self._named.get((group, labels)) or self._other.get((group, _folded(labels)))

    def group(self, group: str) -> Iterator[Series]:
        """The series of one group."""
        for table in (self._named, self._other):
            yield from (series for (name, _), series in table.items() if name == group)

    def state(self) -> tuple[SeriesState, ...]:
        """What `resume` goes on from, the longest unused first."""
        named = (series.state(group, folded=False) for (group, _), series in self._named.items())
        other = (series.state(group, folded=True) for (group, _), series in self._other.items())
        return (*named, *other)

    def resume(self, states: Iterable[SeriesState], make: Callable[[str], Make | None]) -> None:
        """Goes on from the series of an earlier process. `make` gives what builds a group's series, if there is one.

        Those for which there is no room any more are left out.
        """
        for state in states:
            build, key = make(state.group), (state.group, state.labels)
            if build is None:
                continue
            series = build(state.labels)
            series.resume(state)
            if state.folded:
                self._other[key] = series
            elif self._cost + series.cost <= self._limit:
                self._named[key] = series
                self._cost += series.cost

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
        folded = _folded(labels)
        if (group, folded) not in self._other:
            self._other[group, folded] = make(folded)
        return self._other[group, folded]


def _folded(labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels[0], *[OTHER] * (len(labels) - 1)
