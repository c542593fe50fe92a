"""What is kept for one label set of the score metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tracescore.exporters.prometheus.conversations import Squares
from tracescore.exporters.prometheus.histogram import Buckets, BucketsState
from tracescore.exporters.prometheus.window import Window

SumName = Literal["weight", "weighted_score", "weight_squared", "weight_squared_score", "weight_squared_score_squared"]
SUMS: dict[SumName, str] = {
    "weight": "Sum of weights of the scores.",
    "weighted_score": "Sum of weight x score of the scores.",
    "weight_squared": "Sum over conversations of (sum of weights) squared.",
    "weight_squared_score": "Sum over conversations of (sum of weights) x (sum of weight x score).",
    "weight_squared_score_squared": "Sum over conversations of (sum of weight x score) squared.",
}
"""Name -> help. They add up over replicas and time and give, over any window, the mean (weighted_score / weight), the
effective count (weight^2 / weight_squared) and the variance of the mean."""


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
        self.target = target

    def add(self, weight: float, score: float, squares: Squares) -> None:
        """Adds a score to the sums, the squared ones of which grow by `squares`."""
        for name, more in zip(SUMS, (weight, weight * score, *squares), strict=True):
            self.sums[name] += more
        if self.target is not None and score < self.target:
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
