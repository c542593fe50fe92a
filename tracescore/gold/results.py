"""What a gold run found: an outcome per item, and the estimates over them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from tracescore import formulas
from tracescore.exporters.prometheus.slices import LowestSlice, lowest_slice
from tracescore.formulas import gaffke_interval, weighted_mean
from tracescore.model import Measure, Score, Unscored

GoldMeasure = str
"""One of GOLD_MEASURES, or a measure of the user's own."""
GOLD_MEASURES: tuple[GoldMeasure, ...] = (
    "answer_correctness",
    "factual",
    "similarity",
    "reference_coverage",
    "answer_relevancy",
    "completeness",
    "faithfulness",
    "context_precision",
    "context_recall",
    "context_contradicted",
)
"""`factual`, `similarity` and `reference_coverage` (of its claims) are parts of answer_correctness;
`context_contradicted`, the share of the reference's claims that the passages contradict, is one of context_recall."""
_PARTS: Mapping[Measure, Mapping[str, GoldMeasure]] = {
    "answer_correctness": {"factual": "factual", "similarity": "similarity", "coverage": "reference_coverage"},
    "context_recall": {"contradicted": "context_contradicted"},
}
"""Details of a measure -> the measures they are here."""
COUNTS = ("tp", "fp", "fn")

GoldOutcome = Literal["scored", "unscored", "unanswered"]
"""How an item ends: correctness has a value; the app answered and the judge could not tell; the app did not answer."""
GOLD_OUTCOMES: tuple[GoldOutcome, ...] = get_args(GoldOutcome)
Trigger = Literal["schedule", "overdue", "release", "hand", "resumed", "again"]
"""Why a run began; `again`: the one before had no answer at all."""
RunState = Literal["running", "done", "failed", "cut"]


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What became of one item. `mark` tells whether it is still the same item; `values` has what could be measured.

    `reasons` says for each measure without a value why; `reason` and `detail` are of the item as a whole.
    """

    id: str
    mark: str
    question: str
    reference: str
    outcome: GoldOutcome
    tags: tuple[str, ...] = ()
    weight: float = 1.0
    answer: str | None = None
    contexts: tuple[str, ...] = ()
    trace_id: str = ""
    service: str = "unknown"
    release: str = "unknown"
    reason: str = ""
    detail: str = ""
    label: str = ""
    values: Mapping[GoldMeasure, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    """The version of each measure that the user defines: values of two versions are not compared."""
    claims: tuple[Mapping[str, Any], ...] = ()
    """The claims of answer and reference, with their verdicts."""


def values_of(evaluations: Iterable[Score | Unscored]) -> dict[GoldMeasure, float]:
    """Every number that the evaluations hold, by its name here."""
    values: dict[GoldMeasure, float] = {}
    for each in evaluations:
        if isinstance(each, Score):
            values[each.measure] = each.value
            parts = _PARTS.get(each.measure, {}).items()
            values |= {name: formulas.clip(each.details[part]) for part, name in parts if part in each.details}
    return values


def measured(outcomes: Iterable[ItemOutcome]) -> list[GoldMeasure]:
    """What has a value in any of the outcomes, those of tracescore first."""
    found = dict.fromkeys(measure for each in outcomes for measure in each.values)
    return [*(each for each in GOLD_MEASURES if each in found), *(each for each in found if each not in GOLD_MEASURES)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Weighted mean over the items that have a value, with its 95 % interval; `of` is how many could have had one."""

    mean: float
    lower: float
    upper: float
    scored: int
    of: int


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over a gold set. Times in Unix seconds; `finished` is 0 while it is running.

    `release` is the one that answered, or "mixed". `detail` says why it failed.
    """

    id: int
    gold_set: str
    hash: str
    size: int
    service: str
    release: str
    judge: str
    trigger: Trigger
    started: float
    epoch: int = 0
    finished: float = 0.0
    state: RunState = "running"
    detail: str = ""
    reference: bool = False
    outcomes: tuple[ItemOutcome, ...] = ()

    def count(self, outcome: GoldOutcome) -> int:
        """Items with this outcome."""
        return sum(each.outcome == outcome for each in self.outcomes)

    def claims(self) -> dict[str, float]:
        """Claims by verdict: right, wrong, and those of references that were missed."""
        return {name: math.fsum(each.counts.get(name, 0) for each in self.outcomes) for name in COUNTS}

    def estimates(self, min_scored: float, tag: str | None = None) -> dict[GoldMeasure, Estimate]:
        """Per measure, over all items or those with a tag; without those of which too few items are scored."""
        chosen = [each for each in self.outcomes if tag is None or tag in each.tags]
        found = ((measure, _estimate(measure, chosen)) for measure in measured(chosen))
        return {name: each for name, each in found if each is not None and each.scored >= min_scored * each.of}

    def tags(self) -> Iterator[str]:
        """The tags of its items, each once."""
        yield from dict.fromkeys(tag for each in self.outcomes for tag in each.tags)

    def reasons(self) -> dict[str, int]:
        """Why items have no correctness, most frequent first."""
        found = [each.reason for each in self.outcomes if each.outcome != "scored"]
        return {reason: found.count(reason) for reason in sorted(set(found), key=lambda r: (-found.count(r), r))}


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run, which itself comes without its outcomes: they hold texts, and are many.

    `by_tag` has those of the tags that most items carry, `lowest` the lowest of them by measure.
    """

    run: Run
    estimates: Mapping[GoldMeasure, Estimate]
    by_tag: Mapping[str, Mapping[GoldMeasure, Estimate]]
    items: Mapping[GoldOutcome, int]
    claims: Mapping[str, float]
    lowest: Mapping[GoldMeasure, LowestSlice] = field(default_factory=dict)


_LEAST_ITEMS = 5
"""Scored items, as equally weighted ones, from which a tag can be the lowest."""
_TAGS = 50
"""Tags with figures of their own."""


def summary(run: Run, min_scored: float) -> Summary:
    """The figures of a run with outcomes."""
    frequent = [tag for tag, _ in Counter(tag for each in run.outcomes for tag in each.tags).most_common(_TAGS)]
    return Summary(
        run=replace(run, outcomes=()),
        estimates=run.estimates(min_scored),
        by_tag={tag: run.estimates(min_scored, tag) for tag in frequent},
        items={outcome: run.count(outcome) for outcome in GOLD_OUTCOMES},
        claims=run.claims(),
        lowest=_lowest(run, frequent),
    )


def _lowest(run: Run, tags: Sequence[str]) -> dict[GoldMeasure, LowestSlice]:
    """The tag with the lowest mean of each measure; its interval allows for all tags that were looked at."""
    found: dict[GoldMeasure, LowestSlice] = {}
    for measure in measured(run.outcomes):
        of_tags: dict[str, tuple[list[float], list[float]]] = {}
        for each in run.outcomes:
            if measure in each.values:
                for tag in set(tags).intersection(each.tags):
                    scores, weights = of_tags.setdefault(tag, ([], []))
                    scores.append(each.values[measure])
                    weights.append(each.weight)
        lowest = lowest_slice(of_tags, max((each.weight for each in run.outcomes), default=1.0), _LEAST_ITEMS)
        if lowest is not None:
            found[measure] = lowest
    return found


def _estimate(measure: GoldMeasure, outcomes: Sequence[ItemOutcome]) -> Estimate | None:
    known = [each for each in outcomes if measure in each.values]
    scores, weights = [each.values[measure] for each in known], [each.weight for each in known]
    mean = weighted_mean(scores, weights)
    if mean is None:
        return None
    lower, upper = gaffke_interval(scores, weights, max(weights))
    return Estimate(mean, min(lower, mean), max(upper, mean), len(known), len(outcomes))
