"""How far the judge is from people, and the mean that people would give: from labels and the judge's own scores.

Labels count towards a mean only when it is known how likely each answer was to be drawn: answers that somebody
picked because they looked bad say nothing about the others.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tracescore.drift.weighted_sums import WeightedSums
from tracescore.formulas import MeanEstimate, agreement, corrected_mean, judge_difference
from tracescore.model import Measure

LEAST_LABELS = 100
"""Effective labels below which there is no corrected mean."""
ANSWERS: Mapping[Measure, Mapping[str, float]] = {
    "answer_relevancy": {"relevant": 1.0, "partly": 0.5, "off_topic": 0.0},
    "completeness": {"covered": 1.0, "partial": 0.5, "missing": 0.0},
    "faithfulness": {"supported": 1.0, "not_supported": 0.0},
}
"""What people may say, of the whole answer for relevancy, else of each part or claim, and what it counts."""
JUDGED: Mapping[Measure, tuple[str, ...]] = {
    "completeness": ("covered", "partial", "missing"),
    "faithfulness": ("supported", "contradicted", "not_found"),
}
"""Measures of several verdicts, and what the judge may say of each."""
_AGREES = {"contradicted": "not_supported", "not_found": "not_supported"}
"""People are not asked why a claim is not supported."""


class LabelGroup(NamedTuple):
    """What is estimated apart: a measure of a service by a judge in one epoch."""

    measure: Measure
    judge: str = ""
    epoch: int = 0
    service: str = ""
    environment: str = ""
    context_source: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A score by the judge and what people say of the same answer; None for a probability that is not known."""

    score: float
    label: float
    judged: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    pi_score: float | None = None
    pi_label: float | None = None

    @property
    def weight(self) -> float | None:
        """1 / probability of being labelled, as far as that was left to chance."""
        known = self.pi_score is not None and self.pi_label is not None
        return 1 / (self.pi_score * self.pi_label) if known else None  # type: ignore[operator]


@dataclass(slots=True)
class GroupScores:
    """What is known of one group: labels, and sums over the scores of the same time that nobody labelled."""

    labels: list[Label] = field(default_factory=list)
    unlabelled: WeightedSums = field(default_factory=WeightedSums)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the labels of a group say.

    `judge` is the judge's mean on the labelled answers, `people` that of the labels, `difference` judge - people.
    `corrected` is the mean over all answers that people would give; None with the reason in `why_not`. `agreement`
    is over verdicts, and `confusion` counts them by (judge, people); None and empty for a measure without verdicts.
    """

    labels: int
    judge: float
    people: float
    difference: MeanEstimate
    corrected: MeanEstimate | None
    why_not: str
    agreement: MeanEstimate | None
    confusion: Mapping[tuple[str, str], int]


def without(sums: WeightedSums, labels: Iterable[Label]) -> WeightedSums:
    """The sums less the scores of these labels; nothing where they cannot all have been in the sums."""
    for each in labels:
        sums = sums.plus(each.score, 1 / (each.pi_score or 1.0), -1)
    return sums if sums.weight > 0 and min(sums) >= 0 else WeightedSums()


def calibrate(sample: GroupScores) -> Calibration | None:
    """What the labels of a group say; None without a label.

    Labels of unknown probability count where judge and people are compared, equally; not towards the corrected mean.
    """
    if not sample.labels:
        return None
    drawn = [each for each in sample.labels if each.weight is not None]
    compared = drawn or sample.labels
    weights = [each.weight or 1.0 for each in compared]
    scores, labels = [each.score for each in compared], [each.label for each in compared]
    total = math.fsum(weights)
    corrected, why_not = _corrected(drawn, sample.unlabelled)
    return Calibration(
        len(compared),
        math.fsum(w * s for w, s in zip(weights, scores, strict=True)) / total,
        math.fsum(w * y for w, y in zip(weights, labels, strict=True)) / total,
        judge_difference(labels, scores, weights),
        corrected,
        why_not,
        _agreement(compared, weights),
        Counter(pair for each in compared for pair in zip(each.judged, each.labelled, strict=True)),
    )


def _corrected(drawn: Sequence[Label], unlabelled: WeightedSums) -> tuple[MeanEstimate | None, str]:
    if not drawn:
        return None, "the labels lack pi_score and pi_label, the probabilities of being drawn"
    weights = [each.weight or 1.0 for each in drawn]
    columns = [each.label for each in drawn], [each.score for each in drawn], weights
    known = corrected_mean(*columns, unlabelled.mean_and_variance)
    if known.effective_count < LEAST_LABELS - 1e-6:  # a sum of rounded weights
        return None, f"{known.effective_count:.0f} effective labels of the {LEAST_LABELS} needed"
    return known, ""


def _agreement(labels: Sequence[Label], weights: Sequence[float]) -> MeanEstimate | None:
    rows = [
        (sum(_AGREES.get(said, said) == other for said, other in zip(each.judged, each.labelled, strict=True)), each, w)
        for each, w in zip(labels, weights, strict=True)
        if each.judged
    ]
    if not rows:
        return None
    return agreement([row[0] for row in rows], [len(row[1].judged) for row in rows], [row[2] for row in rows])
