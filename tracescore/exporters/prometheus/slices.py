"""Means of the slices of a population, and the lowest of them with an interval that knows it was looked for.

Whoever looks at twenty tenants finds one that is low by chance. The interval of the lowest is therefore one of twenty
that hold all together with 95 %: each is wrong with a twentieth of the chance (Bonferroni; as intervals O. J. Dunn,
Multiple Comparisons Among Means, JASA 56, 1961), whatever the slices have to do with each other.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracescore.formulas import effective_count, gaffke_interval, weighted_mean

_DOUBT = 0.05

Scores = tuple[Sequence[float], Sequence[float]]
"""Scores in [0, 1], and their weights."""


class SliceMean(NamedTuple):
    """Weighted mean of a slice over `scores` observations, and its interval."""

    slice: str
    mean: float
    lower: float
    upper: float
    scores: int


class LowestSlice(NamedTuple):
    """The slice with the lowest mean; its interval holds together with those of all `looked_at`.

    `surely` when the interval lies below the mean of all slices together.
    """

    of: SliceMean
    looked_at: int
    surely: bool


def slice_means(slices: Mapping[str, Scores], max_weight: float, min_count: float, most: int = 1) -> list[SliceMean]:
    """The `most` lowest of those with `min_count` effective scores, each with its own interval of 95 % (Gaffke's).

    `max_weight` bounds the weights that the sampling gives.
    """
    known = [name for name, (_, weights) in slices.items() if effective_count(weights) >= min_count]
    lowest = sorted(known, key=lambda name: weighted_mean(*slices[name]) or 0.0)[:most]
    return [_mean(name, slices[name], max_weight, _DOUBT) for name in lowest]


def lowest_slice(slices: Mapping[str, Scores], max_weight: float, min_count: float) -> LowestSlice | None:
    """The lowest of two or more slices that have scores enough; None where there are none to compare."""
    known = {name: of for name, of in slices.items() if effective_count(of[1]) >= min_count}
    if len(known) < 2:
        return None
    name = min(known, key=lambda each: weighted_mean(*known[each]) or 0.0)
    lowest = _mean(name, known[name], max_weight, _DOUBT / len(known))
    scores, weights = ([one for of in known.values() for one in of[place]] for place in (0, 1))
    return LowestSlice(lowest, len(known), lowest.upper < (weighted_mean(scores, weights) or 0.0))


def _mean(name: str, of: Scores, max_weight: float, doubt: float) -> SliceMean:
    scores, weights = of
    mean = weighted_mean(scores, weights) or 0.0
    lower, upper = gaffke_interval(scores, weights, max(max_weight, *weights), 1 - doubt)
    return SliceMean(name, mean, min(lower, mean), max(upper, mean), len(scores))
