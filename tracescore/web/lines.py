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
    """The mean of the scores from `start` to `end` (Unix seconds)."""

    start: float
    end: float
    mean: ScoreMean


def mean_of(buckets: Sequence[Bucket]) -> ScoreMean | None:
    """The mean of all scores; None without any."""
    sums = WeightedSums(*map(sum, zip(*(each.sums for each in buckets), strict=True))) if buckets else WeightedSums()
    if sums.weight <= 0:
        return None
    found, scores = limits(sums), sum(each.scores for each in buckets)
    value = clip(sums.weighted_score / sums.weight)
    return ScoreMean(value, found and found.lower, found and found.upper, scores, sums.effective_count)


def points(buckets: Sequence[Bucket], width: float, length: float) -> list[list[Point]]:
    """Stretches of points, interrupted by silences. Buckets of `width` seconds with too few scores join the next ones.

    What is left at the end of a stretch joins the point before it, where there is one.
    """
    return [list(_joined(each, width)) for each in _stretches(buckets, width, length / _SILENCE)]


def _stretches(buckets: Sequence[Bucket], width: float, silence: float) -> Iterator[list[Bucket]]:
    stretch: list[Bucket] = []
    for bucket in buckets:
        if stretch and bucket.start - stretch[-1].start - width > silence:
            yield stretch
            stretch = []
        stretch.append(bucket)
    if stretch:
        yield stretch


def _joined(stretch: Sequence[Bucket], width: float) -> Iterator[Point]:
    groups: list[list[Bucket]] = []
    group: list[Bucket] = []
    for bucket in stretch:
        group.append(bucket)
        mean = mean_of(group)
        if mean is not None and mean.effective >= LEAST:
            groups.append(group)
            group = []
    if group and groups:
        groups[-1] += group
    elif group:
        groups.append(group)
    for each in groups:
        mean = mean_of(each)
        if mean is not None:
            yield Point(each[0].start, each[-1].start + width, mean)
