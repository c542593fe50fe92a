"""Sums over weighted scores from which their mean and its variance follow, and which add up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tracescore.formulas import mean_and_variance

LEAST = 20
"""Effective scores below which nothing is said of their mean."""


class WeightedSums(NamedTuple):
    """Sums over scores s of weights w: of w, w s, w^2, w^2 s and w^2 s^2."""

    weight: float = 0.0
    weighted_score: float = 0.0
    weight_squared: float = 0.0
    weight_squared_score: float = 0.0
    weight_squared_score_squared: float = 0.0

    def plus(self, score: float, weight: float, times: int = 1) -> WeightedSums:
        """With one score more, or with `times` = -1 one less."""
        square = weight * weight
        terms = (weight, weight * score, square, square * score, square * score * score)
        return WeightedSums(*(old + times * term for old, term in zip(self, terms, strict=True)))

    def merged(self, other: Iterable[float]) -> WeightedSums:
        """Both together."""
        return WeightedSums(*map(sum, zip(self, other, strict=True)))

    @property
    def effective_count(self) -> float:
        """As many equally weighted scores say as much; 0 without any."""
        return self.weight**2 / self.weight_squared if self.weight_squared > 0 else 0.0

    @property
    def mean_and_variance(self) -> tuple[float, float] | None:
        """The mean and its variance; None where too few scores are behind it."""
        if self.weight <= 0 or self.effective_count < LEAST:
            return None
        return mean_and_variance(*self)
