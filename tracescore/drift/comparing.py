"""One release against another: the difference of their means, and how far chance alone could have brought it.

Where both ran in the same hours, hours are compared with hours: a release that was live by day is not held against one
that was live by night. Of n and m scores in an hour, the hour counts n m / (n + m) for both (the weights of Cochran,
1954, and of Mantel and Haenszel). Where they did not, each release counts with all the hours that it has.

The interval. Each mean gets the limits of Wilson's score interval (1927), made for scores between 0 and 1 by a design
effect f = (n v + 4 q) / (n p + 4 q): n the effective count, v the variance of the scores, p = m (1 - m) what it would
be, were the scores with this mean m all 0 or 1, and q = m' (1 - m') at m' = (n m + 1) / (n + 2). Wilson's own is f = 1,
which it is for 0 and 1; the four made-up scores keep it from 0 where all scores happen to be equal. The limits of the
difference follow from those of the means by the square-and-add of Newcombe (Statistics in Medicine 17, 1998, method 10;
Zou and Donner 2008 show it for any two limits). tests/benchmarks/releases.py prints its coverage and width.

It holds at each moment and for each measure alone, not over all moments and measures together.
"""

import math
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from tracescore.drift.weighted_sums import WeightedSums
from tracescore.formulas import Vector, clip

SharedTraffic = Literal["side_by_side", "adjacent"]
"""The hours that both releases have scores of, each hour by itself; or all hours that each of them has."""
CONFIDENT = 1.96
MADE_UP = 4
SHARED = 0.5
"""Part of the scores of either release that lies in hours of both, from which those hours alone are compared."""

Hours = Mapping[int, WeightedSums]
"""Hours since 1970 -> what was scored in them; hours without a score are left out."""


class MeanLimits(NamedTuple):
    """A mean with its 95 % limits, and of how many scores, as equally weighted ones."""

    mean: float
    lower: float
    upper: float
    effective_count: float


class ReleaseComparison(NamedTuple):
    """The mean of a release less that of another with its 95 % limits, how they were compared, and over which hours."""

    difference: float
    lower: float
    upper: float
    traffic: SharedTraffic
    release: MeanLimits
    before: MeanLimits
    first_hour: int
    last_hour: int

    @property
    def verdict(self) -> Literal["worse", "better", "no difference seen"]:
        """What the interval says of the first release."""
        return "worse" if self.upper < 0 else "better" if self.lower > 0 else "no difference seen"


def limits(sums: WeightedSums) -> MeanLimits | None:
    """Mean and limits, see the module; None where too few scores are behind them."""
    found = sums.mean_and_variance
    if found is None:
        return None
    mean, count = clip(found[0]), sums.effective_count
    near = (count * mean + 1) / (count + 2)
    made_up, binary = MADE_UP * near * (1 - near), count * mean * (1 - mean)
    effect = (count * count * found[1] + made_up) / (binary + made_up)
    part = CONFIDENT**2 * effect / count
    centre = (mean + part / 2) / (1 + part)
    half = math.sqrt(part * mean * (1 - mean) + part * part / 4) / (1 + part)
    return MeanLimits(mean, clip(centre - half), clip(centre + half), count)


def compare(release: Hours, before: Hours) -> ReleaseComparison | None:
    """The mean of a `release` less that of another, from their hours; None where one of them has too few scores."""
    ours, theirs = _table(release), _table(before)
    both = sorted(release.keys() & before.keys())
    if both:
        new, old = (_table({hour: of[hour] for hour in both}) for of in (release, before))
        if max(new[0].sum() / ours[0].sum(), old[0].sum() / theirs[0].sum()) >= SHARED:
            found = _difference(_balanced(new, old[0]), _balanced(old, new[0]), "side_by_side", both)
            if found is not None:
                return found
    new_sums, old_sums = (WeightedSums(*each.sum(axis=1).tolist()) for each in (ours, theirs))
    return _difference(new_sums, old_sums, "adjacent", release.keys() | before.keys())


def _table(hours: Hours) -> Vector:
    """The sums by hour, of shape (5, n)."""
    flat = np.fromiter(chain.from_iterable(hours.values()), dtype=np.float64, count=5 * len(hours))
    return flat.reshape(-1, 5).T


def _balanced(own: Vector, other: Vector) -> WeightedSums:
    """The sums of hours, shape (5, n), each hour weighted as Mantel and Haenszel do; weights of the other: (n,)."""
    part = other / (own[0] + other)
    return WeightedSums(*(own[:2] @ part).tolist(), *(own[2:] @ part**2).tolist())


def _difference(
    release: WeightedSums, before: WeightedSums, traffic: SharedTraffic, hours: Collection[int]
) -> ReleaseComparison | None:
    new, old = limits(release), limits(before)
    if new is None or old is None:
        return None
    difference = new.mean - old.mean
    down = math.hypot(new.mean - new.lower, old.upper - old.mean)
    up = math.hypot(new.upper - new.mean, old.mean - old.lower)
    return ReleaseComparison(difference, difference - down, difference + up, traffic, new, old, min(hours), max(hours))
