"""Whether a measure has fallen: a sequential test whose false alarms are rare in days, whatever the traffic does.

A Shiryaev-Roberts e-detector (Shin, Ramdas & Rinaldo, arXiv 2203.03532) per stratum: S <- (1 + f (ref - x) / (1 -
ref)) (S + r) for several bets f at once, M their mean. A stratum is the sampling rule that chose the interaction:
inside it the ratio does not matter, so no weights are needed. r are the days since the stratum's previous score. As
long as the mean score, given all before, is not below the reference, M less the days that have passed is a
supermartingale: the mean time until M passes A days is at least A days. The evidence of a detector is the average
over its strata, of a family the average over its detectors; the same holds for both.

Pure: times and scores in, evidence out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from tracescore.drift.baseline import DAY, Baseline, Sums
from tracescore.formulas import Vector

BETS: Vector = np.array([0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95])
"""Shares f of the stake: small ones see small falls, large ones see large falls soon."""
OfBets = Annotated[tuple[float, ...], Field(min_length=len(BETS), max_length=len(BETS))]
LONGEST_GAP = 0.25
"""Days that one pause counts for at most: after a silent week the first bad score must not weigh a week."""
DOUBT = 0.005
"""How often a learned reference lies above the true mean. At 0.05, three of a hundred installs that learned from 200 to
500 scores would have false alarms twice as often as promised; at 0.005 hardly one, and from 1,000 scores on it costs
next to nothing, as the tolerance is the larger part."""
CEILING = 1_000.0
"""Evidence grows to so many times the threshold at most. From there a mended change is over within some hundred scores;
a lower ceiling would let luck end, and begin again, the alert of a change that lasts."""
_SURE = 0.95
"""The share of references that the threshold counts on."""
_KEPT_HOURS = 24 * 7


def threshold(days: float, detectors: int) -> float:
    """Evidence in days at which a change is told, for false alarms of the family at least `days` apart on average."""
    return days * detectors / _SURE


def odds(score: ArrayLike, reference: ArrayLike, share: ArrayLike = 1.0) -> Vector:
    """What a whole stake wins (or loses: never more than itself) by a score in [0, 1]; all arguments broadcast.

    `share` in (0, 1] is the weight of the score over the largest weight there can be, where weights count.
    """
    reference = np.asarray(reference, dtype=np.float64)
    return np.asarray(share * (reference - np.asarray(score)) / (1 - reference))


def grown(evidence: Vector, won: Vector, days: ArrayLike) -> Vector:
    """One step of the recursion, of shape (..., bets), for one stream or many at once.

    `won` is what `odds` gives and `days` the time since the previous score, both of shape (...).
    """
    stake: Vector = evidence + np.minimum(np.asarray(days, dtype=np.float64), LONGEST_GAP)[..., None]
    return (1 + BETS * won[..., None]) * stake


class ChangePoint(NamedTuple):
    """When the evidence began to rise (Unix seconds), and how many scores came since."""

    onset: float
    scores: int


@dataclass(frozen=True, slots=True)
class StratumState:
    """What is kept of a stratum: by bet evidence, gain, its onset and scores since, and (hour, its four sums)."""

    baseline: Baseline
    last: float | None
    scores: int
    largest: float
    bets: Annotated[tuple[OfBets, ...], Field(min_length=4, max_length=4)]
    hours: tuple[tuple[int, float, float, float, float], ...]


class Stratum:
    """The test of one stratum against its baseline."""

    def __init__(self, baseline: Baseline, last: float = -math.inf) -> None:
        """`last` is the time of the newest score of the baseline."""
        self.baseline, self.last, self.scores = baseline, last, 0
        self.largest = 0.0
        """The largest weight so far."""
        self.hours: dict[int, Sums] = {}
        """Hour since the epoch -> its scores less the baseline, for the last seven days."""
        self.restart()

    def restart(self) -> None:
        """Begins anew with the same baseline."""
        self.evidence: Vector = np.zeros(len(BETS))
        # The most likely onset, bet by bet: where the gain so far (as in CUSUM) was last 0.
        self._gain: Vector = np.zeros(len(BETS))
        self._onset: Vector = np.zeros(len(BETS))
        self._since: Vector = np.zeros(len(BETS))

    def rebase(self, baseline: Baseline) -> None:
        """Goes on against another baseline. Evidence stands: each score was held against what was known of it."""
        old, self.baseline = self.baseline, baseline
        moments = {hour: hour * 3600.0 for hour in self.hours}
        by = {hour: old.mean_at(at) - baseline.mean_at(at) for hour, at in moments.items()}
        self.hours = {hour: sums.shifted(by[hour]) for hour, sums in self.hours.items()}

    def share(self, weight: float, max_weight: float) -> float:
        """The weight over the largest that was to be expected before it came; more only where a rate limit is felt."""
        largest = max(self.largest, max_weight)
        self.largest = max(self.largest, weight)
        return min(1.0, weight / largest)

    def take(self, at: float, score: float, share: float, weight: float, ceiling: float) -> None:
        """One score. Evidence stays under `ceiling`: a change that lasted long is not held against what follows.

        The bets shrink together, so that those that fit the change keep their lead: they see its end first.
        """
        won = odds(score, self.baseline.reference_at(at), share)
        days = max(0.0, at - self.last) / DAY if math.isfinite(self.last) else 0.0
        self.evidence = grown(self.evidence, won, days)
        self.evidence *= min(1.0, ceiling / max(self.mean_evidence, ceiling))
        fresh = self._gain <= 0
        self._onset[fresh], self._since[fresh] = at, 0
        self._since += 1
        self._gain = np.maximum(0.0, self._gain + np.log1p(BETS * won))
        self.last, self.scores = max(at, self.last), self.scores + 1
        self._remember(at, score, share, weight)

    @property
    def mean_evidence(self) -> float:
        """M, in days."""
        return float(self.evidence.mean())

    @property
    def change(self) -> ChangePoint | None:
        """By the bet that won most; None while none has won."""
        best = int(self.evidence.argmax())
        return ChangePoint(float(self._onset[best]), int(self._since[best])) if self._gain[best] > 0 else None

    def since(self, at: float) -> Sums:
        """The scores less their baseline since the hour of `at`, of seven days at most."""
        total = Sums()
        for hour, sums in self.hours.items():
            total = total.plus(sums) if hour >= at // 3600 else total
        return total

    def _remember(self, at: float, score: float, share: float, weight: float) -> None:
        hour, off = int(at // 3600), score - self.baseline.mean_at(at)
        if hour not in self.hours:
            newest = max(self.hours, default=hour)
            self.hours = {old: sums for old, sums in self.hours.items() if old > newest - _KEPT_HOURS}
        self.hours[hour] = self.hours.get(hour, Sums()).plus(Sums(share, share * off, share * off * off, weight))

    def state(self) -> StratumState:
        """What `of` makes it again from."""
        last = self.last if math.isfinite(self.last) else None
        bets = tuple(tuple(of.tolist()) for of in (self.evidence, self._gain, self._onset, self._since))
        hours = tuple((hour, *sums) for hour, sums in self.hours.items())
        return StratumState(self.baseline, last, self.scores, self.largest, bets, hours)

    @classmethod
    def of(cls, state: StratumState) -> Stratum:
        """The stratum that an earlier process had."""
        stratum = cls(state.baseline, -math.inf if state.last is None else state.last)
        stratum.scores, stratum.largest = state.scores, state.largest
        stratum.evidence, stratum._gain, stratum._onset, stratum._since = map(np.array, state.bets)
        stratum.hours = {hour: Sums(*sums) for hour, *sums in state.hours}
        return stratum
