"""Which pattern the changes of a service make: what has moved, and what provably has not."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple, get_args

from tracescore.config.drift import DETECTORS
from tracescore.drift.baseline import Sums
from tracescore.drift.detector import Detector
from tracescore.drift.observations import Name

Pattern = Literal[
    "none",
    "judge",
    "prompting",
    "truncation",
    "retrieval",
    "fabrication",
    "fabrication_or_retrieval",
    "stale_context",
    "retriever_misses",
    "abstaining",
    "unclear",
]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

GoldCause = Literal["stale_context", "retriever_misses", "truncation", "unclear", "unmeasured"]
"""Why answers to a gold set have become less correct; `unmeasured` where nothing tells what its passages say."""

ADVICE: Mapping[Pattern, str] = {
    "none": "tracescore sees no change.",
    "judge": "The judge scores the anchors lower than before: check its model, prompts and provider, not the app.",
    "prompting": "Answers miss the question, but keep to passages that are right: check the prompt.",
    "truncation": "Answers are to the point but leave parts out: check output limits, and prompts that stop early.",
    "retrieval": "Passages that a right answer needs rank lower or are lost: check the retriever and its index.",
    "fabrication": "Answers claim what their passages do not say, and retrieval is as before: check the model.",
    "fabrication_or_retrieval": "Answers claim what their passages do not say: check retrieval, then the model.",
    "stale_context": "Answers keep to their passages and are still wrong: check how fresh the passages are.",
    "retriever_misses": "The passages lack what right answers need: check the index, and how many you retrieve.",
    "abstaining": "More answers evade the question: check for retrieval that finds nothing, and guard rails.",
    "unclear": "Several measures moved, or too few scores rule the others out: read the lowest interactions first.",
}
"""Pattern -> what it means and where to look."""
LEARNING = "tracescore still learns what is normal; until then it compares with targets only."

_SIDE = 1.645
"""Normal quantile of .95: an interval of 90 % inside the tolerance is two one-sided tests at 5 % (Schuirmann, 1987)."""


SIDE_OF_95 = 1.96
"""Normal quantile of .975: of an interval for people."""


class Difference(NamedTuple):
    """Now less the baseline, and its interval."""

    mean: float
    low: float
    high: float

    def within(self, tolerance: float) -> bool:
        """Whether it is shown to be no larger than the tolerance, in either direction."""
        return -tolerance <= self.low and self.high <= tolerance


def difference(detector: Detector, since: float, side: float = _SIDE, *, from_given: bool = False) -> Difference | None:
    """Scores since an hour (Unix seconds; seven days back at most) less their baseline; None where there are none.

    The interval is of 90 %, or what the normal quantile `side` makes it. Strata are put together by the weight of
    their scores. Each counts one made-up score at either end, so that a few equal scores prove nothing. References
    that were given stand for baselines where `from_given` says so.
    """
    parts = [(each.since(since), each.baseline) for each in detector.tested.values()]
    parts = [(sums, baseline) for sums, baseline in parts if sums.scores and (baseline.scores or from_given)]
    weight = sum(sums.weight for sums, _ in parts)
    if weight <= 0:
        return None
    mean = sum(sums.weight / weight * sums.total / sums.scores for sums, _ in parts)
    square = sum((sums.weight / weight) ** 2 * (_variance(sums, base.mean) + base.error**2) for sums, base in parts)
    half = side * math.sqrt(square)
    return Difference(mean, mean - half, mean + half)


def _variance(sums: Sums, baseline: float) -> float:
    """The variance of the mean of the scores."""
    n = sums.scores + 2
    ends = baseline**2 + (1 - baseline) ** 2
    mean = sums.total / sums.scores
    return max(0.0, (sums.squares + ends) / n - mean**2 * sums.scores / n) / n


_ALL: frozenset[Name] = frozenset(("answer_relevancy", "completeness", "faithfulness", "answered", "context_precision"))


class _Rule(NamedTuple):
    """What may have moved, at least one of it and nothing else, and what must provably not have, where it is watched.

    `needs` must have moved, and `watches` must be watched.
    """

    moved: frozenset[Name]
    flat: frozenset[Name]
    needs: frozenset[Name] = frozenset()
    watches: frozenset[Name] = frozenset()


_CONTEXT: frozenset[Name] = frozenset(("context_precision",))
_RELEVANCY: frozenset[Name] = frozenset(("answer_relevancy",))
_COMPLETE: frozenset[Name] = frozenset(("completeness", "completeness_multipart"))
_FAITHFUL: frozenset[Name] = frozenset(("faithfulness",))
_RULES: tuple[tuple[Pattern, _Rule], ...] = (
    ("retrieval", _Rule(_ALL | _COMPLETE, frozenset(), needs=_CONTEXT)),
    ("prompting", _Rule(_RELEVANCY, _ALL - {"answer_relevancy", "answered"})),
    # An answer to another question leaves out all parts of this one: that its passages were right, retrieval must show.
    ("prompting", _Rule(_RELEVANCY | _COMPLETE, _CONTEXT | _FAITHFUL, needs=_RELEVANCY, watches=_CONTEXT)),
    ("truncation", _Rule(_COMPLETE, _RELEVANCY)),
    ("fabrication", _Rule(_FAITHFUL, _CONTEXT | _RELEVANCY, watches=_CONTEXT)),
    ("fabrication_or_retrieval", _Rule(_FAITHFUL, _RELEVANCY)),
    ("abstaining", _Rule(frozenset(("answered",)), frozenset())),
)
"""The first that fits is the pattern."""


def diagnose(
    moved: Collection[Name],
    flat: Collection[Name],
    watched: Iterable[Name],
    *,
    judge: bool,
    gold: GoldCause | None = None,
) -> Pattern:
    """The one pattern that fits. `watched` is what is measured at all: nothing is asked of the rest.

    `judge`: it was the judge that moved. `gold`: why answers to the gold set have become less correct, if they have.
    """
    moved = [name for name in moved if name in DETECTORS] or moved  # a measure of the user's own fits no pattern
    if judge:
        return "judge"
    if gold and not moved:
        return _by_gold(gold, flat)
    if not moved:
        return "none"
    known = set(watched)
    for pattern, rule in _RULES:
        fits = rule.needs <= set(moved) <= rule.moved and rule.watches <= known
        if fits and rule.flat & known <= set(flat):
            return pattern
    return "unclear"


def _by_gold(gold: GoldCause, flat: Collection[Name]) -> Pattern:
    """What a fall on the gold set says while live traffic, which has no references, looks as before."""
    if gold != "unmeasured":
        return gold
    return "stale_context" if "faithfulness" in flat else "unclear"
