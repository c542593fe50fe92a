"""A run held against others over the same items, pair by pair.

The reference is the mean of (up to) three runs of an accepted release, because the last run alone lets a slow fall
pass and calls chance a fall. Compared is only what can be: the same items, scored by the same judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum, log2

from tracescore.drift.diagnosis import GoldCause
from tracescore.formulas import mcnemar_p, sign_flip_p
from tracescore.gold.results import GoldMeasure, ItemOutcome, Run, measured

REFERENCE_RUNS = 3
P_LIMIT = 0.005
"""One-sided; with the tolerance, what makes a fall of a mean news."""
FEWEST = ceil(-log2(P_LIMIT))
"""Items that all have to get worse for that: of n signs, all are the same by chance in one case of 2 to the n."""
RIGHT = 0.5
"""From this value of the factual part (or else of correctness) on, an answer counts as right for flips."""


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """How one measure changed over the `pairs` items that both sides have: means, difference, and its one-sided ps."""

    before: float
    after: float
    difference: float
    p: float
    rise_p: float
    pairs: int

    def fell(self, tolerance: float) -> bool:
        """Whether it is a fall, rather than chance or nothing worth mentioning."""
        return self.p < P_LIMIT and self.difference < -tolerance

    def rose(self, tolerance: float) -> bool:
        """Whether it is a rise, by the same rule."""
        return self.rise_p < P_LIMIT and self.difference > tolerance


@dataclass(frozen=True, slots=True)
class Flip:
    """An item that changed sides."""

    item: ItemOutcome
    before: float
    after: float

    @property
    def worse(self) -> bool:
        """It was right before."""
        return self.after < self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """`name` says with what. `flips` are the items that changed sides, those that got worse first."""

    name: str
    runs: int
    changes: Mapping[GoldMeasure, MeasureChange]
    flips: tuple[Flip, ...]

    @property
    def flip_p(self) -> float:
        """Exact McNemar test, one-sided."""
        worse = sum(flip.worse for flip in self.flips)
        return mcnemar_p(worse, len(self.flips) - worse)

    def fell(self, measure: GoldMeasure, tolerance: float) -> bool:
        """Whether the measure, where both sides have it, has fallen."""
        return measure in self.changes and self.changes[measure].fell(tolerance)

    def cause(self, tolerance: float) -> GoldCause | None:
        """Why answers have become less correct, from what else has moved on the same items; None where they have not.

        A stale passage contradicts the reference, one that is missing leaves it unsupported, and where the passages
        are as good as before the answers leave out what they say.
        """
        if not (self.fell("factual", tolerance) or self.fell("answer_correctness", tolerance)):
            return None
        if "context_recall" not in self.changes:
            return "unmeasured"
        if self.fell("faithfulness", tolerance):
            return "unclear"
        if self.changes["context_contradicted"].rose(tolerance):
            return "stale_context"
        if self.fell("context_recall", tolerance):
            return "retriever_misses"
        return "truncation" if self.fell("completeness", tolerance) else "unclear"


def compare(run: Run, references: Sequence[Run], name: str) -> Comparison | None:
    """`run` against the mean of `references` (all with outcomes); None when they have no scored item in common.

    Runs of another judge are left out: two judges' numbers say nothing about the app.
    """
    same = [each for each in references if each.judge == run.judge and each.id != run.id]
    changes: dict[GoldMeasure, MeasureChange] = {}
    for measure in measured(run.outcomes):
        pairs = list(_pairs(run, same, measure))
        if pairs:
            changes[measure] = _change(pairs)
    lead: GoldMeasure = "factual" if "factual" in changes else "answer_correctness"
    if lead not in changes:
        return None
    flips = [Flip(item, old, new) for item, old, new in _pairs(run, same, lead) if (old >= RIGHT) != (new >= RIGHT)]
    flips.sort(key=lambda flip: flip.after - flip.before)
    return Comparison(name, len(same), changes, tuple(flips))


def _pairs(run: Run, references: Sequence[Run], measure: GoldMeasure) -> Iterator[tuple[ItemOutcome, float, float]]:
    """(item, value before, value now) for the items that are still the same."""
    before: dict[tuple[str, ...], list[float]] = {}
    for reference in references:
        for each in reference.outcomes:
            if measure in each.values:
                before.setdefault(_same(each, measure), []).append(each.values[measure])
    for each in run.outcomes:
        known = before.get(_same(each, measure))
        if known and measure in each.values:
            yield each, fsum(known) / len(known), each.values[measure]


def _same(item: ItemOutcome, measure: GoldMeasure) -> tuple[str, ...]:
    """What two values must share to be compared."""
    return item.id, item.mark, item.versions.get(measure, "")


def _change(pairs: Sequence[tuple[ItemOutcome, float, float]]) -> MeasureChange:
    weights = [item.weight for item, _, _ in pairs]
    total = fsum(weights)
    before = fsum(item.weight * old for item, old, _ in pairs) / total
    after = fsum(item.weight * new for item, _, new in pairs) / total
    # Means of three carry rounding errors that would count as differences.
    differences = [round(new - old, 9) for _, old, new in pairs]
    fall_p, rise_p = sign_flip_p(differences, weights), sign_flip_p([-each for each in differences], weights)
    return MeasureChange(before, after, after - before, fall_p, rise_p, len(pairs))
