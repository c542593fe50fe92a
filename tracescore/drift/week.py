"""How the days differ that something was learned from: by chance, by what day of the week they are, and else.

A weekend that is always lower is no change. Taken for a spread between the days it would cost the working days their
sight: where weekends lie .10 lower, a reference for all days alike tells a fall of .10 after 1,500 scores.
"""

import math
from collections.abc import Collection, Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tracescore.formulas import Vector

Grouping = tuple[int, ...]
"""The group of each weekday, Monday first."""
ALIKE: Grouping = (0,) * 7
GROUPINGS: tuple[Grouping, ...] = ((0, 0, 0, 0, 0, 1, 1), (0, 0, 0, 0, 1, 1, 0), (0, 1, 2, 3, 4, 5, 6))
"""Saturday and Sunday, Friday and Saturday, or each weekday for itself, which takes two whole weeks."""
_SURE = 0.02
"""Chance that any grouping is believed where all weekdays are alike: it would make the reference a little lower."""
_TENTH = NormalDist().inv_cdf(0.9)
_LEAST_DAYS = 2
"""Days of a group from which it has a mean of its own."""


class Day(NamedTuple):
    """The scores of a day (UTC): how many, their sum and the sum of their squares."""

    scores: float = 0
    total: float = 0.0
    squares: float = 0.0


def weekday(day: float) -> int:
    """0 for a Monday to 6 for a Sunday, of days since 1970-01-01, which was a Thursday."""
    return int(day + 3) % 7


def sums_of(days: Mapping[int, Day], grouping: Grouping) -> dict[int, Vector]:
    """The days of each group as an array of shape (days, 3)."""
    found: dict[int, list[Day]] = {}
    for day, sums in days.items():
        found.setdefault(grouping[weekday(day)], []).append(sums)
    return {group: np.array(rows, dtype=np.float64) for group, rows in found.items()}


def grouping_of(days: Mapping[int, Day]) -> Grouping:
    """The grouping that explains most surely how the days differ; `ALIKE` where none does."""
    chances = {each: _chance(list(sums_of(days, each).values())) for each in GROUPINGS}
    surest = min(GROUPINGS, key=lambda each: chances[each])
    return surest if chances[surest] < _SURE / len(GROUPINGS) else ALIKE


def _chance(groups: Collection[Vector]) -> float:
    """By the F test of a one-way analysis of variance of the means of days, which count as their scores do.

    1 where a group has too few days. The F distribution is brought to the normal one by Paulson's formula (Ann. Math.
    Stat. 13, 1942), which is right to a tenth of the chance here.
    """
    most, free = len(groups) - 1, sum(len(rows) for rows in groups) - len(groups)
    if most < 1 or free < 1 or min(len(rows) for rows in groups) < _LEAST_DAYS:
        return 1.0
    scores, total, _ = np.concatenate(list(groups)).T
    means = np.concatenate([np.full(len(rows), rows[:, 1].sum() / rows[:, 0].sum()) for rows in groups])
    within = float((scores * (total / scores - means) ** 2).sum()) / free
    between = float((scores * (means - total.sum() / scores.sum()) ** 2).sum()) / most
    if within < 1e-12:
        return float(between < 1e-12)
    root, a, b = math.cbrt(between / within), 2 / (9 * most), 2 / (9 * free)
    return NormalDist().cdf(-((1 - b) * root - (1 - a)) / math.sqrt(b * root * root + a))


def spread_between(days: Mapping[int, Day], grouping: Grouping = ALIKE) -> float | None:
    """Standard deviation of the true means of days of a group: what they differ by beyond the chance in the scores.

    The analysis-of-variance estimate for groups of unequal size (Searle, Casella & McCulloch, Variance Components,
    1992, section 3.6), not under 0. None where it is not measured: no group with two days, or no more scores than days.
    """
    squares = _mean_squares(days, grouping)
    return squares and squares.spread()


def spread_at_most(days: Mapping[int, Day], grouping: Grouping = ALIKE) -> float | None:
    """The upper limit of 90 % of `spread_between`: few days show little of how much days differ.

    The mean square between days is divided by the tenth quantile of chi squared over its degrees of freedom, by Wilson
    and Hilferty's formula (PNAS 17, 1931).
    """
    squares = _mean_squares(days, grouping)
    if squares is None:
        return None
    part = 2 / (9 * squares.freedom)
    return squares.spread((1 - part - _TENTH * math.sqrt(part)) ** 3)


class _MeanSquares(NamedTuple):
    """`between` days, with degrees of `freedom`, and `within` them; `size`: scores a day, as unequal days count."""

    between: float
    within: float
    freedom: int
    size: float

    def spread(self, luck: float = 1.0) -> float:
        """The standard deviation beyond chance, if the mean square between days is `luck` times what it should be."""
        return math.sqrt(max(0.0, (self.between / luck - self.within) / self.size))


def _mean_squares(days: Mapping[int, Day], grouping: Grouping) -> _MeanSquares | None:
    groups = sums_of(days, grouping).values()
    count = sum(float(rows[:, 0].sum()) for rows in groups)
    freedom = len(days) - len(groups)
    if freedom < 1 or count <= len(days):
        return None
    between = within = size = 0.0
    for rows in groups:
        scores, total, squares = rows.T
        parts = float((total**2 / scores).sum())
        between += parts - float(total.sum()) ** 2 / float(scores.sum())
        within += float(squares.sum()) - parts
        size += float(scores.sum() - (scores**2).sum() / scores.sum())
    return _MeanSquares(between / freedom, within / (count - len(days)), freedom, size / freedom)
