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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import DAY, Baseline, Sample, SampleState, Sums, block_of
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
LEAST_STRATUM = 200
"""Scores from which a stratum has a reference of its own; smaller ones are tested together."""
_POOL = ""
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

    def share(self, weight: float, max_weight: float) -> float:
        """The weight over the largest that was to be expected before it came; more only where a rate limit is felt."""
        largest = max(self.largest, max_weight)
        self.largest = max(self.largest, weight)
        return min(1.0, weight / largest)

    def take(self, at: float, score: float, share: float, weight: float, ceiling: float) -> None:
        """One score. Evidence stays under `ceiling`: a change that lasted long is not held against what follows.

        The bets shrink together, so that those that fit the change keep their lead: they see its end first.
        """
        won = odds(score, self.baseline.references[block_of(at)], share)
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
        hour, off = int(at // 3600), score - self.baseline.means[block_of(at)]
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


@dataclass(frozen=True, slots=True)
class DetectorState:
    """What is kept of a detector; see there."""

    learning: dict[str, SampleState]
    tested: dict[str, StratumState]
    pooled: tuple[str, ...]
    together: bool
    target: float | None
    look: float | None


class Detector:
    """Learns what is normal, stratum by stratum, and tests what follows; with a `target`, tests against that.

    Learning ends after whole weeks (or whatever `baseline.days` are) of at least `baseline.scores` scores. Strata
    that are too small for a reference of their own are then tested together, weighted; so is everything against a
    target, which is a target for the mean of all.
    """

    def __init__(self, settings: DriftConfig, target: float | None = None) -> None:
        self._settings, self.target = settings, target
        self.learning: dict[str, Sample] = {}
        self.tested: dict[str, Stratum] = {}
        self._pooled: set[str] = set()
        self._together = target is not None
        """Whether all strata are tested together, whatever their names."""
        self._look: float | None = None
        """When it is next seen whether there is enough to end learning."""
        if target is not None:
            self.tested[_POOL] = Stratum(Baseline.pinned(target))

    def take(
        self, at: float, stratum: str, score: float, *, weight: float, max_weight: float, threshold: float
    ) -> None:
        """A score of an interaction that ended `at` (Unix seconds), chosen by `stratum` with `weight`.

        `max_weight` bounds the weights that are configured. `threshold` is the family's at this moment.
        """
        if self._look is not None and at >= self._look:
            self._end_learning(at, max_weight)
        name = _POOL if self._together or stratum in self._pooled else stratum
        tested = self.tested.get(name)
        if tested is None:
            self._look = self._look or at + self._period
            self.learning.setdefault(stratum, Sample()).add(at, score, weight)
            return
        share = tested.share(weight, max_weight) if name == _POOL else 1.0
        tested.take(at, score, share, weight, CEILING * len(self.tested) * threshold)

    @property
    def evidence(self) -> float:
        """In days; to be compared with the threshold."""
        return sum(each.mean_evidence for each in self.tested.values()) / max(1, len(self.tested))

    @property
    def is_learning(self) -> bool:
        """Whether nothing is tested yet."""
        return not self.tested

    def reference(self, at: float) -> float | None:
        """What scores have to stay above at a moment; of several strata the mean. None while learning."""
        return _mean([each.baseline.references[block_of(at)] for each in self.tested.values()])

    @property
    def baseline(self) -> float | None:
        """What was learned, of several strata the mean; None while learning and where a reference was given."""
        return _mean([each.baseline.mean for each in self.tested.values() if each.baseline.scores])

    @property
    def between_days(self) -> float | None:
        """Standard deviation between the days that were learned, the largest of all strata; None where unknown."""
        known = [each.baseline.between_days for each in self.tested.values()]
        return max((spread for spread in known if spread is not None), default=None)

    @property
    def swing(self) -> float:
        """How far the quarters of the day lie apart in what was learned, or is being learned."""
        learned = [each.baseline.by_block for each in self.tested.values()]
        parts = learned or [sample.block_means() for sample in self.learning.values()]
        return max((max(known) - min(known) for known in parts if known), default=0.0)

    @property
    def learned_at(self) -> float | None:
        """When learning ends if there are scores enough by then, in Unix seconds; None when nothing is learned."""
        return self._look if self.is_learning else None

    @property
    def scores(self) -> int:
        """Scores tested since the baseline, or learned from so far."""
        parts = self.learning if self.is_learning else self.tested
        return sum(each.scores for each in parts.values())

    @property
    def change(self) -> ChangePoint | None:
        """Of the stratum with most evidence; None where nothing has risen."""
        return max(self.tested.values(), key=lambda each: each.mean_evidence).change if self.tested else None

    def pin(self, max_weight: float, at: float | None = None) -> None:
        """What was learned so far is the baseline from now on, or `at` is the reference; evidence begins at 0.

        ValueError where there is too little to learn from.
        """
        if at is not None:
            self.learning, self._look, self._together = {}, None, True
            self.tested = {_POOL: Stratum(Baseline.pinned(at))}
        elif self.is_learning:
            if self.scores < LEAST_STRATUM:
                raise ValueError(f"at least {LEAST_STRATUM} scores expected; got {self.scores} so far")
            self._arm(max_weight)
        for stratum in self.tested.values():
            stratum.restart()

    def set_back(self, now: float) -> None:
        """The clock was set back to `now`: what was known of later moments is of now."""
        for sample in self.learning.values():
            sample.last = min(sample.last, now)
        for stratum in self.tested.values():
            stratum.last = min(stratum.last, now)
        if self._look is not None:
            self._look = min(self._look, now + self._period)

    @property
    def _period(self) -> float:
        return self._settings.baseline.days * DAY

    def _end_learning(self, at: float, max_weight: float) -> None:
        """At the end of each whole period: tests begin where there is enough."""
        if sum(sample.scores for sample in self.learning.values()) >= self._settings.baseline.scores:
            self._arm(max_weight)
        if not self.learning:
            self._look = None
        elif self._look is not None:
            self._look += self._period * (1 + (at - self._look) // self._period)

    def _arm(self, max_weight: float) -> None:
        large = {name: sample for name, sample in self.learning.items() if sample.scores >= LEAST_STRATUM}
        small = {name: sample for name, sample in self.learning.items() if name not in large}
        pool = Sample()
        for sample in small.values():
            pool = pool.merged(sample)
        together = pool.scores >= LEAST_STRATUM and _POOL not in self.tested
        doubt = DOUBT / (len(large) + together) if large or together else DOUBT
        tolerance, by_block = self._settings.tolerance, self._settings.reference == "by_block"
        learned = partial(Sample.baseline, tolerance=tolerance, by_block=by_block, doubt=doubt)
        for name, sample in large.items():
            self.tested[name] = Stratum(learned(sample), sample.last)
        if together:
            self.tested[_POOL] = Stratum(learned(pool, max_weight=max_weight), pool.last)
            self._pooled = set(small)
        self.learning = {} if together else small

    def state(self) -> DetectorState:
        """What `resume` goes on from."""
        learning = {name: sample.state() for name, sample in self.learning.items()}
        tested = {name: stratum.state() for name, stratum in self.tested.items()}
        return DetectorState(learning, tested, tuple(sorted(self._pooled)), self._together, self.target, self._look)

    def resume(self, state: DetectorState) -> None:
        """Goes on from the state of an earlier process."""
        self.learning = {name: Sample.of(each) for name, each in state.learning.items()}
        self.tested = {name: Stratum.of(each) for name, each in state.tested.items()}
        self._pooled, self._look, self._together = set(state.pooled), state.look, state.together


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
