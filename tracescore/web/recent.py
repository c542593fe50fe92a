"""The last results, kept in memory with their texts cut to a budget, and the figures the page draws from them."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tracescore.exporters.prometheus.slices import LowestSlice, SliceMean, lowest_slice, slice_means
from tracescore.model import MEASURES, Clock, Evaluation, Measure, Result, Score

LONGEST_TEXT = 20_000
"""Characters kept of one text: more than anyone reads on a page."""
RESULT_BUDGET = 64_000
"""Characters kept of one result, so that the page's memory is bounded by `keep` times this."""
MOST_TEXTS = 100
"""Passages, turns, and items of one evaluation that are kept."""


_SLICES_SHOWN = 10
_CUT = "more characters not kept here]"


class _Budget:
    def __init__(self, characters: int) -> None:
        self._left = characters

    def cut(self, text: str) -> str:
        """As much of `text` as still fits, saying so when that is not all."""
        fits = min(LONGEST_TEXT, self._left)
        self._left -= min(len(text), fits)
        return text if len(text) <= fits else f"{text[:fits]} … [{len(text) - fits} {_CUT}"


def is_cut(text: str) -> bool:
    """Whether a text that was kept is not all there was."""
    return text.endswith(_CUT)


def _cut_evaluation(evaluation: Evaluation, budget: _Budget) -> Evaluation:
    items = evaluation.items[:MOST_TEXTS]
    cut = (replace(item, text=budget.cut(item.text), quote=budget.cut(item.quote)) for item in items)
    return replace(evaluation, items=tuple(cut))


@dataclass(frozen=True, slots=True)
class RecentResult:
    """A result whose texts fit the budget, and how many passages were left out altogether."""

    result: Result
    contexts_left_out: int


def shorten(result: Result) -> RecentResult:
    """`result` with question and answer first in line for the budget, then the evidence, passages and history."""
    budget, told = _Budget(RESULT_BUDGET), result.interaction
    interaction = replace(
        told,
        question=None if told.question is None else budget.cut(told.question),
        answer=None if told.answer is None else budget.cut(told.answer),
        attributes={},
    )
    evaluations = tuple(_cut_evaluation(evaluation, budget) for evaluation in result.evaluations)
    interaction = replace(
        interaction,
        contexts=tuple(budget.cut(context) for context in told.contexts[:MOST_TEXTS]),
        documents=told.documents[:MOST_TEXTS],
        history=tuple(replace(turn, text=budget.cut(turn.text)) for turn in told.history[-MOST_TEXTS:]),
    )
    left_out = max(0, len(told.contexts) - MOST_TEXTS)
    return RecentResult(replace(result, interaction=interaction, evaluations=evaluations), left_out)


@dataclass(frozen=True, slots=True, order=True)
class ScoreGroup:
    """What one mean is a mean of. `from_prompt`: faithfulness to the rendered prompt, which is one apart."""

    service: str
    judge: str
    epoch: int
    from_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Mean:
    """Weighted mean of the `count` scores of one population, and its 95 % interval."""

    of: ScoreGroup
    value: float
    lower: float
    upper: float
    count: int


@dataclass(frozen=True, slots=True)
class Scored:
    """One score and the result it stands in."""

    score: Score
    result: Result


class Recent:
    """At most `keep` results, newest last. The same result delivered again replaces its former self.

    With an age (seconds), results that ended earlier are not shown, and leave when a new one comes.
    """

    def __init__(self, keep: int, clock: Clock, age: float | None = None) -> None:
        self._keep, self._clock, self._age = keep, clock, age
        self._kept: OrderedDict[tuple[str, str, int], RecentResult] = OrderedDict()

    def add(self, result: Result) -> None:
        """Keeps `result`; the oldest one goes when there are too many."""
        key = (result.interaction.key, result.judge, result.epoch)
        self._kept.pop(key, None)
        self._kept[key] = shorten(result)
        if len(self._kept) > self._keep:
            self._kept.popitem(last=False)
        self._expire()

    def forget(self, trace_ids: Collection[str]) -> int:
        """Forgets the results of these traces; how many there were."""
        gone = [key for key, kept in self._kept.items() if kept.result.interaction.trace_id in trace_ids]
        for key in gone:
            del self._kept[key]
        return len(gone)

    def _expire(self) -> None:
        if self._age is not None:
            since = self._clock() - self._age
            for key in [key for key, kept in self._kept.items() if kept.result.ended < since]:
                del self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)

    def of_trace(self, trace_id: str) -> list[RecentResult]:
        """What is kept of one trace, in order of time."""
        self._expire()
        found = [kept for kept in self._kept.values() if kept.result.interaction.trace_id == trace_id]
        return sorted(found, key=lambda kept: kept.result.interaction.end_unix_nano)

    def results(self, service: str | None = None) -> list[Result]:
        """Results newest first, of one service or of all."""
        self._expire()
        kept = (kept.result for kept in reversed(self._kept.values()))
        return [result for result in kept if service is None or result.interaction.service == service]

    def services(self) -> list[str]:
        """The services that anything is kept of, in order of the alphabet."""
        return sorted({kept.result.interaction.service for kept in self._kept.values()})


def in_order(measures: Collection[Measure]) -> list[Measure]:
    """Those of tracescore in their order, then those of the user's own by name."""
    return [*(each for each in MEASURES if each in measures), *sorted(set(measures).difference(MEASURES))]


def scored(results: Iterable[Result], measure: Measure) -> list[Scored]:
    """Every score of one measure, in the order of the results."""
    return [Scored(score, result) for result in results for score in result.scores() if score.measure == measure]


def means(scores: Iterable[Scored], max_weight: float) -> list[Mean]:
    """One weighted mean per population, in order of service and judge; scores of two of them never meet.

    `max_weight` bounds the weights that the sampling gives.
    """
    groups: dict[ScoreGroup, list[Scored]] = {}
    for one in scores:
        groups.setdefault(_population(one), []).append(one)
    return [_mean(of, members, max_weight) for of, members in sorted(groups.items())]


def _mean(of: ScoreGroup, members: Sequence[Scored], max_weight: float) -> Mean:
    whole = slice_means({"": observations(members)}, max_weight, 0)[0]
    return Mean(of, whole.mean, whole.lower, whole.upper, len(members))


def observations(members: Iterable[Scored]) -> tuple[list[float], list[float]]:
    """Scores and weights of which each is one observation: a conversation is one, as its answers resemble each other.

    Its score is the weighted mean of its scores, its weight the sum of theirs, as in the windows of the metrics.
    """
    sums: dict[object, tuple[float, float]] = {}
    for number, one in enumerate(members):
        interaction = one.result.interaction
        key = interaction.conversation_id or number
        weight, total = sums.get(key, (0.0, 0.0))
        sums[key] = weight + interaction.weight, total + interaction.weight * one.score.value
    return [min(1.0, total / weight) for weight, total in sums.values()], [weight for weight, _ in sums.values()]


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slices of one population by one key, the lowest first, and the lowest as one of all that were looked at."""

    of: ScoreGroup
    key: str
    slices: Sequence[SliceMean]
    lowest: LowestSlice


def sliced(scores: Iterable[Scored], max_weight: float, min_count: float) -> list[Sliced]:
    """Wherever there are two or more slices with `min_count` effective scores."""
    groups: dict[tuple[ScoreGroup, str], dict[str, list[Scored]]] = {}
    for one in scores:
        for key, value in one.result.interaction.slices.items():
            groups.setdefault((_population(one), key), {}).setdefault(value, []).append(one)
    found = []
    for (of, key), members in sorted(groups.items()):
        known = {value: observations(each) for value, each in members.items()}
        lowest = lowest_slice(known, max_weight, min_count)
        if lowest is not None:
            found.append(Sliced(of, key, slice_means(known, max_weight, min_count, _SLICES_SHOWN), lowest))
    return found


def _population(one: Scored) -> ScoreGroup:
    from_prompt = one.score.measure == "faithfulness" and one.result.interaction.context_source == "prompt"
    judge, epoch, _ = one.result.judge_of(one.score.measure)
    return ScoreGroup(one.result.interaction.service, judge, epoch, from_prompt)


def worst(scores: Iterable[Scored], most: int) -> list[Scored]:
    """The lowest scores first; of equal ones, the order given."""
    return sorted(scores, key=lambda one: one.score.value)[:most]
