"""The interactions that a reader chose, in the order and the groups asked for.

Everything here is cut into steps of one result, for `runtime.in_slices`: ten thousand interactions with long texts
take longer than the event loop may wait.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracescore.model import Measure, Result
from tracescore.web.choice import FACETS, Choice, facet_of, fold, score_of
from tracescore.web.recent import ScoreGroup, in_order

MOST_OPTIONS = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """The scores of one measure: weighted mean, lowest, highest, standard deviation (0 for one), and how many."""

    mean: float
    lowest: float
    highest: float
    deviation: float
    count: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """One question of a service, however often it was asked, as one judge in one epoch scored it.

    `results` are the newest first; all of them stand against retrieved passages, or all against the rendered prompt.
    """

    of: ScoreGroup
    results: Sequence[Result]
    spreads: Mapping[Measure, Spread]

    @property
    def newest(self) -> Result:
        """The one that was asked last."""
        return self.results[0]


def chosen(results: Sequence[Result], choice: Choice) -> Generator[None, None, list[Result]]:
    """The results (newest first) that the choice shows, sorted as it says; the steps of it."""
    found = []
    for result in results:
        if choice.shows(result):
            found.append(result)
        yield
    return _in_order(found, choice.given.get("sort", "newest"))


def _in_order(results: list[Result], sort: str) -> list[Result]:
    if sort in ("newest", "oldest"):
        return sorted(results, key=lambda result: result.ended, reverse=sort == "newest")
    if sort == "question":
        return sorted(results, key=lambda result: fold((result.interaction.question or "")[:200]))
    measure, sign = _measure_of(sort)
    return sorted(results, key=lambda result: _last_if_none(score_of(result, measure), sign))


def _measure_of(sort: str) -> tuple[Measure, float]:
    name = sort.removeprefix("-")
    return name, -1.0 if sort.startswith("-") else 1.0


def _last_if_none(value: float | None, sign: float) -> float:
    return math.inf if value is None else sign * value


def grouped(results: Sequence[Result], sort: str | None) -> Generator[None, None, list[Repeated]]:
    """The results in groups of one question each; the steps of it.

    In the order of `sort`, or without it the most asked first.
    """
    groups: dict[tuple[str, ScoreGroup], list[Result]] = {}
    for result in results:
        told = result.interaction
        of = ScoreGroup(told.service, result.judge, result.epoch, told.context_source == "prompt")
        question = " ".join(fold(told.question or "").split())
        groups.setdefault((question, of), []).append(result)
        yield
    found = []
    for (_, of), members in groups.items():
        members.sort(key=lambda result: result.ended, reverse=True)
        tried = in_order({each.measure for member in members for each in member.evaluations})
        spreads = {m: spread for m in tried if (spread := _spread(members, m)) is not None}
        found.append(Repeated(of, members, spreads))
        yield
    return _groups_in_order(found, sort)


def _spread(members: Iterable[Result], measure: Measure) -> Spread | None:
    known = [(score, each.interaction.weight) for each in members if (score := score_of(each, measure)) is not None]
    if not known:
        return None
    values = [score for score, _ in known]
    total = math.fsum(weight for _, weight in known)
    mean = math.fsum(score * weight for score, weight in known) / total
    middle = math.fsum(values) / len(values)
    squares = math.fsum((value - middle) ** 2 for value in values)
    deviation = math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return Spread(min(max(mean, min(values)), max(values)), min(values), max(values), deviation, len(values))


def _groups_in_order(groups: list[Repeated], sort: str | None) -> list[Repeated]:
    if sort is None:
        return sorted(groups, key=lambda group: (-len(group.results), -group.newest.ended))
    if sort in ("newest", "oldest"):
        return sorted(groups, key=lambda group: group.newest.ended, reverse=sort == "newest")
    if sort == "question":
        return sorted(groups, key=lambda group: fold((group.newest.interaction.question or "")[:200]))
    measure, sign = _measure_of(sort)

    def mean(group: Repeated) -> float | None:
        spread = group.spreads.get(measure)
        return None if spread is None else spread.mean

    return sorted(groups, key=lambda group: _last_if_none(mean(group), sign))


@dataclass(frozen=True, slots=True)
class Options:
    """What there is to choose: the values of each facet, and the measures, in the order of the model."""

    values: Mapping[str, Sequence[str]]
    measures: Sequence[Measure]


def options(results: Sequence[Result]) -> Generator[None, None, Options]:
    """What the results offer; of a facet with more than MOST_OPTIONS values the most frequent. The steps of it."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    measures: set[Measure] = set()
    for result in results:
        for name, count in counts.items():
            if (value := facet_of(result, name)) is not None:
                count[value] += 1
        measures.update(evaluation.measure for evaluation in result.evaluations)
        yield
    values = {name: sorted(value for value, _ in count.most_common(MOST_OPTIONS)) for name, count in counts.items()}
    return Options(values, in_order(measures))
