"""A detector: it learns what is normal, and tests what follows against that, each stratum for itself."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import DAY, SWINGS, Baseline, Sample, SampleState, Sums
from tracescore.drift.learning import LEAST_STRATUM, POOL, UNEVEN_DAYS, HeldScore, Learning
from tracescore.drift.stratum import CEILING, ChangePoint, Stratum, StratumState

_LEAST_TRAFFIC, _LEAST_SPREAD = 50, 0.01
"""Scores of which a spread is told, and the spread of those that are all alike."""


class Traffic(NamedTuple):
    """Scores a day, and their standard deviation."""

    per_day: float
    spread: float


@dataclass(frozen=True, slots=True)
class DetectorState:
    """What is kept of a detector; see there. `given`: the reference that the configuration gave."""

    learning: dict[str, SampleState]
    tested: dict[str, StratumState]
    pooled: tuple[str, ...]
    together: bool
    target: float | None
    look: float | None
    began: float | None = None
    held: tuple[tuple[float, str, float, float], ...] = ()
    provisional: bool = False
    fallen: bool = False
    given: float | None = None


class Detector:
    """Learns what is normal, stratum by stratum, and tests what follows; with a `target`, tests against that.

    Learning ends after whole weeks (or whatever `baseline.days` are) of at least `baseline.scores` scores, and not
    before four weeks where days may differ much. Before, from 200 scores of seven days on, a provisional reference is
    in force. Strata that are too small for a reference of their own are tested together, weighted; so is everything
    against a target, which is a target for the mean of all, and against a reference that is `given`.
    """

    def __init__(self, settings: DriftConfig, target: float | None = None, given: float | None = None) -> None:
        self._settings, self.target, self.given = settings, target, given
        self._learning = Learning(settings)
        self.tested: dict[str, Stratum] = {}
        self._pooled: set[str] = set()
        fixed = given if target is None else target
        self._together = fixed is not None
        """Whether all strata are tested together, whatever their names."""
        self._look: float | None = None
        """When it is next seen whether there is enough to end learning."""
        self.is_provisional = False
        """Whether the reference in force is not the last word."""
        self._fallen = False
        """Whether evidence has passed the threshold and is not over yet."""
        if fixed is not None:
            self.tested[POOL] = Stratum(Baseline.pinned(fixed))

    @property
    def learning(self) -> dict[str, Sample]:
        """The samples of strata that are still learned."""
        return self._learning.samples

    def take(
        self, at: float, stratum: str, score: float, *, weight: float, max_weight: float, threshold: float
    ) -> None:
        """A score of an interaction that ended `at` (Unix seconds), chosen by `stratum` with `weight`.

        `max_weight` bounds the weights that are configured. `threshold` is the family's at this moment.
        """
        suspected = self.evidence >= math.sqrt(threshold)
        if self._look is not None and at >= self._look:
            self._end_learning(at, max_weight, suspected=suspected)
        if not self.tested and self._learning.enough_for_provisional(at):
            self._provide(max_weight)
        name = POOL if self._together or stratum in self._pooled else stratum
        tested = self.tested.get(name)
        if tested is None or self.is_provisional:
            self._learn(HeldScore(at, stratum, score, weight), suspected=suspected)
        if tested is not None:
            share = tested.share(weight, max_weight) if name == POOL else 1.0
            tested.take(at, score, share, weight, CEILING * len(self.tested) * threshold)
            if self.is_provisional:
                self._learn_from_no_fall(threshold)

    def _learn(self, each: HeldScore, *, suspected: bool) -> None:
        self._look = self._look or each.at + self._period
        if self.is_provisional:
            self._learning.hold(each, suspected=suspected)
        else:
            self._learning.add(each)

    def _learn_from_no_fall(self, threshold: float) -> None:
        """What is held since the onset of a fall that was reported is let go, until nothing is suspected any more."""
        evidence, change = self.evidence, self.change
        self._fallen = evidence >= (math.sqrt(threshold) if self._fallen else threshold)
        if self._fallen and change is not None:
            self._learning.drop(change.onset)

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
        return _mean([each.baseline.reference_at(at) for each in self.tested.values()])

    @property
    def baseline(self) -> float | None:
        """What was learned, of several strata the mean; None while learning and where a reference was given."""
        return _mean([each.baseline.mean for each in self.tested.values() if each.baseline.scores])

    @property
    def between_days(self) -> float | None:
        """Standard deviation between the days that were learned, the largest of all strata; None where unknown."""
        known = [each.baseline.between_days for each in self.tested.values()]
        return max((spread for spread in known if spread is not None), default=None)

    def gap(self, at: float) -> float | None:
        """How far the mean of what was learned may fall at a moment before it is a change, of several strata the mean.

        None while learning and where a reference was given.
        """
        learned = [each.baseline for each in self.tested.values() if each.baseline.scores]
        return _mean([each.mean_at(at) - each.reference_at(at) for each in learned])

    @property
    def swing(self) -> float:
        """How far the quarters of the day lie apart in what was learned, or is being learned."""
        learned = [each.baseline.by_block for each in self.tested.values()]
        parts = learned or [sample.block_means() for sample in self.learning.values()]
        return max((max(known) - min(known) for known in parts if known), default=0.0)

    @property
    def learned_at(self) -> float | None:
        """When learning ends if there are scores enough by then, in Unix seconds; None when nothing is learned."""
        return self._look if self.is_learning or self.is_provisional else None

    @property
    def learned_from(self) -> int:
        """Scores that were learned from, or will be unless they turn out to be of a fall."""
        if self.is_learning or self.is_provisional:
            return self._learning.scores + len(self._learning.held)
        return sum(each.baseline.scores for each in self.tested.values())

    @property
    def scores(self) -> int:
        """Scores tested since the baseline, or learned from so far."""
        return self._learning.scores if self.is_learning else sum(each.scores for each in self.tested.values())

    def scores_since(self, at: float) -> int:
        """Scores tested since the hour of a moment, of seven days at most; those that are weighed count by weight."""
        return round(sum(each.since(at).scores for each in self.tested.values()))

    @property
    def traffic(self) -> Traffic | None:
        """The traffic of all strata over the last days that are known; None for too few scores."""
        tested = [(hour / 24, sums) for each in self.tested.values() for hour, sums in each.hours.items()]
        whole_days = [(day, Sums(*sums)) for each in self.learning.values() for day, sums in each.days.items()]
        seen = tested or whole_days
        moments = [at for at, _ in seen]
        count, total, squares, _ = map(sum, zip(Sums(), *(sums for _, sums in seen), strict=True))
        if count < _LEAST_TRAFFIC:
            return None
        spread = math.sqrt(max(0.0, squares / count - (total / count) ** 2))
        days = max(moments) - min(moments) + (1 / 24 if tested else 1)
        return Traffic(count / max(1.0, days), max(spread, _LEAST_SPREAD))

    @property
    def change(self) -> ChangePoint | None:
        """The change point of the stratum with most evidence; None where no evidence has risen."""
        return max(self.tested.values(), key=lambda each: each.mean_evidence).change if self.tested else None

    def pin(self, max_weight: float, at: float | None = None) -> None:
        """What was learned so far is the baseline from now on, or `at` is the reference; evidence begins at 0.

        ValueError where there is too little to learn from.
        """
        if at is not None:
            self._together = True
            self._go_on({POOL: Stratum(Baseline.pinned(at))}, set(), {})
        elif self.is_learning:
            if self.scores < LEAST_STRATUM:
                raise ValueError(f"at least {LEAST_STRATUM} scores expected; got {self.scores} so far")
            self._go_on(*self._learning.armed(self.learning, max_weight, pool=True))
        elif self.is_provisional:
            self._go_on(self.tested, self._pooled, {})
        for stratum in self.tested.values():
            stratum.restart()

    def set_back(self, now: float) -> None:
        """The clock was set back to `now`: what was known of later moments is of now."""
        for sample in self.learning.values():
            sample.last = min(sample.last, now)
        for stratum in self.tested.values():
            stratum.last = min(stratum.last, now)
        self._learning.held = deque(each._replace(at=min(each.at, now)) for each in self._learning.held)
        if self._learning.began is not None:
            self._learning.began = min(self._learning.began, now)
        if self._look is not None:
            self._look = min(self._look, now + self._period)

    @property
    def _period(self) -> float:
        return self._settings.baseline.days * DAY

    def _provide(self, max_weight: float) -> None:
        """A provisional reference, from what is there."""
        armed = self._learning.armed(self.learning, max_weight, pool=True)
        self.tested, self._pooled, self.is_provisional = armed.tested, armed.pooled, True

    def _end_learning(self, at: float, max_weight: float, *, suspected: bool) -> None:
        """At the end of each whole period: tests begin where there is enough, or go on against what is known by now."""
        if self.is_provisional:
            self._promote(at, max_weight, suspected=suspected)
        elif self._learning.scores >= self._settings.baseline.scores:
            armed = self._learning.armed(self.learning, max_weight, pool=POOL not in self.tested)
            if not self.tested and self._wants_weeks(at, armed.tested):
                self.tested, self._pooled, self.is_provisional = armed.tested, armed.pooled, True
            else:
                self._go_on(self.tested | armed.tested, self._pooled | armed.pooled, armed.left)
        if self._look is not None:
            self._look += self._period * (1 + (at - self._look) // self._period)

    def _wants_weeks(self, at: float, tested: Mapping[str, Stratum]) -> bool:
        """Whether days may differ by so much that one week's luck must not be the last word."""
        most = max((each.baseline.between_days_at_most or 0.0 for each in tested.values()), default=0.0)
        began = at if self._learning.began is None else self._learning.began
        return SWINGS * most > self._settings.tolerance and at < began + UNEVEN_DAYS * DAY

    def _promote(self, at: float, max_weight: float, *, suspected: bool) -> None:
        """The last word on what is normal, once there is enough that is not suspected to be of a fall.

        While one is suspected no reference becomes lower, and no stratum another one.
        """
        change = self.change if suspected else None
        samples = self._learning.settled(change.onset if change else math.inf)
        if sum(sample.scores for sample in samples.values()) < self._settings.baseline.scores:
            return
        armed = self._learning.armed(samples, max_weight, pool=True)
        if suspected and armed.tested.keys() != self.tested.keys():
            return
        tested = dict(armed.tested)
        for name in armed.tested.keys() & self.tested.keys():
            known, learned = self.tested[name], armed.tested[name].baseline
            known.rebase(learned.no_lower_than(known.baseline) if suspected else learned)
            tested[name] = known
        if self._wants_weeks(at, tested):
            self.tested, self._pooled = tested, armed.pooled
            self._learning.settle(samples, change.onset if change else math.inf)
        else:
            self._go_on(tested, armed.pooled, armed.left)

    def _go_on(self, tested: dict[str, Stratum], pooled: set[str], left: dict[str, Sample]) -> None:
        """Tests from now on, and learns only of the strata that are left."""
        self.tested, self._pooled, self.is_provisional, self._fallen = tested, pooled, False, False
        self._learning = Learning(self._settings)
        self._learning.samples = left
        if not left:
            self._look = None

    def state(self) -> DetectorState:
        """What `resume` goes on from."""
        return DetectorState(
            learning={name: sample.state() for name, sample in self.learning.items()},
            tested={name: stratum.state() for name, stratum in self.tested.items()},
            pooled=tuple(sorted(self._pooled)),
            together=self._together,
            target=self.target,
            look=self._look,
            began=self._learning.began,
            held=tuple((*each,) for each in self._learning.held),
            provisional=self.is_provisional,
            fallen=self._fallen,
            given=self.given,
        )

    def resume(self, state: DetectorState) -> None:
        """Goes on from the state of an earlier process."""
        self._learning.samples = {name: Sample.of(each) for name, each in state.learning.items()}
        self._learning.held = deque(HeldScore(*each) for each in state.held)
        self._learning.began = state.began
        if state.began is None and state.look is not None:  # a version before noted when learning ends alone
            self._learning.began = state.look - self._period
        self.tested = {name: Stratum.of(each) for name, each in state.tested.items()}
        self._pooled, self._look, self._together = set(state.pooled), state.look, state.together
        self.is_provisional, self._fallen = state.provisional, state.fallen


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
