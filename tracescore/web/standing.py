"""How a measure of a service stands, in a word and a sentence: the one place that decides it.

What the detectors report comes first, as alerts follow them; then the target, then whether there are scores enough.
So no page calls steady what it marks as low.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from tracescore.drift.weighted_sums import LEAST
from tracescore.drift.words import DetectorStateName
from tracescore.model import Reason
from tracescore.web.advice import FIXES
from tracescore.web.glossary import REASON_MEANINGS
from tracescore.web.lines import ScoreMean

Standing = Literal["falling", "below target", "not measured", "learning", "good"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""The most urgent first."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a measure: its mean over the time shown, its target, and what the detectors of it say.

    `missing` is the commonest reason why there is no score.
    """

    mean: ScoreMean | None = None
    target: float | None = None
    against_normal: Collection[DetectorStateName] = ()
    against_target: DetectorStateName | None = None
    missing: Reason | None = None


@dataclass(frozen=True, slots=True)
class StandingVerdict:
    """The word, why, and what to do where something is to be done. `urgency`: 0 is the most urgent."""

    word: Standing
    why: str
    fix: str = ""
    sure: bool = True

    @property
    def brief(self) -> str:
        """Word and reason in one."""
        return f"{self.word} {self.why}" if self.word == "below target" else f"{self.word}: {self.why}"

    @property
    def urgency(self) -> float:
        """What may be chance comes after what is sure."""
        return STANDINGS.index(self.word) + (0 if self.sure else 0.5)


def decide(facts: Facts) -> StandingVerdict:
    """How a measure stands."""
    mean, target = facts.mean, facts.target
    if "changed" in facts.against_normal:
        return StandingVerdict("falling", "lower than normal")
    if facts.against_target == "changed":
        return StandingVerdict("below target", "(reported by its detector)" if target is None else f"{target:g}")
    if mean is None:
        return _not_measured(facts.missing)
    if mean.upper is None:
        return StandingVerdict("learning", f"{min(mean.effective, LEAST - 1):.0f} of {LEAST} scores")
    if target is not None and mean.value < target:
        sure = mean.upper < target
        chance = "" if sure else "; may be chance"
        return StandingVerdict("below target", f"{target:g}{chance}", sure=sure)
    return _unmoved(facts)


def _not_measured(reason: Reason | None) -> StandingVerdict:
    if reason is None:
        return StandingVerdict("not measured", "no score in this time")
    return StandingVerdict("not measured", REASON_MEANINGS[reason], FIXES[reason])


def _unmoved(facts: Facts) -> StandingVerdict:
    """What is not known to be low."""
    above = "" if facts.target is None else f"target {facts.target:g}"
    if "suspected" in facts.against_normal:
        return StandingVerdict("good", "a drop is possible; too little evidence yet", sure=False)
    if facts.target is None and facts.against_normal and set(facts.against_normal) <= {"learning"}:
        return StandingVerdict("learning", "what is normal is not known yet")
    if "paused" in facts.against_normal:
        return StandingVerdict("good", f"{above}; detectors paused" if above else "detectors paused")
    return StandingVerdict("good", above or "no drop")
