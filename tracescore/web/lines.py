"""From buckets of scores to what a chart shows: points that each stand on enough scores to have an interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracescore.drift.comparing import limits
from tracescore.drift.weighted_sums import LEAST, WeightedSums
from tracescore.formulas import clip
from tracescore.web.history import Bucket

_SILENCE = 8
"""Part of the time shown after which a silence interrupts a line."""


@dataclass(frozen=True, slots=True)
class ScoreMean:
    """A weighted mean over `scores`, which say as much as `effective` equally weighted ones.

    `lower` and `upper` are its 95 % limits (`drift.comparing.limits`); None where too few scores are behind them.
    """

    value: float
    lower: float | None
    upper: float | None
    scores: int
    effective: float


@dataclass(frozen=True, slots=True)
class Point:
    """The scores from `start` to `end` (Unix seconds), and their mean `value`."""

    start: float
    end: float
    value: float
    buckets: Sequence[Bucket]

    @property
    def middle(self) -> float:
        """Between start and end."""
        return (self.start + self.end) / 2

    @property
    def mean(self) -> ScoreMean:
        """The mean with its limits, worked out when it is asked for."""
        return _mean(self.buckets)


def mean_of(buckets: Sequence[Bucket]) -> ScoreMean | None:
    """The mean of all scores; None without any."""
    return _mean(buckets) if buckets else None


def _mean(buckets: Sequence[Bucket]) -> ScoreMean:
    sums = WeightedSums(*map(sum, zip(*(each.sums for each in buckets), strict=True)))
    found, value = limits(sums), clip(sums.weighted_score / sums.weight)
    scores = sum(each.scores for each in buckets)
    return ScoreMean(value, found and found.lower, found and found.upper, scores, sums.effective_count)


def points(buckets: Sequence[Bucket], width: float, length: float, least: float = 0.0) -> list[list[Point]]:
    """Stretches of points, interrupted by silences. Buckets of `width` seconds with too few scores join the next ones.

    So do those of less than `least` seconds. What is left at the end of a stretch joins the point before it, where
    there is one. `length`: seconds that are shown.
    """
    return [list(_joined(each, width, least)) for each in _stretches(buckets, width, length / _SILENCE)]


def _stretches(buckets: Sequence[Bucket], width: float, silence: float) -> Iterator[list[Bucket]]:
    stretch: list[Bucket] = []
    for bucket in buckets:
        if stretch and bucket.start - stretch[-1].start - width > silence:
            yield stretch
            stretch = []
        stretch.append(bucket)
    if stretch:
        yield stretch


def _joined(stretch: Sequence[Bucket], width: float, least: float) -> Iterator[Point]:
    groups: list[list[Bucket]] = [[]]
    weight = squared = 0.0
    for bucket in stretch:
        group = groups[-1]
        if group and weight**2 / squared >= LEAST and bucket.start - group[0].start >= least:
            groups.append([])
            weight = squared = 0.0
        groups[-1].append(bucket)
        weight, squared = weight + bucket.sums.weight, squared + bucket.sums.weight_squared
    if len(groups) > 1 and weight**2 / squared < LEAST:
        left = groups.pop()
        groups[-1] += left
    for each in groups:
        total = sum(bucket.sums.weight for bucket in each)
        value = clip(sum(bucket.sums.weighted_score for bucket in each) / total)
        yield Point(each[0].start, each[-1].start + width, value, each)
