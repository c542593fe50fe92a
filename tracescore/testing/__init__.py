"""`assert_scores`: scores as a check in the tests of an app."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tracescore.errors import UsageError
from tracescore.formulas import gaffke_interval
from tracescore.model import MEASURES
from tracescore.scoring import RowSource, Settings, config_of, score
from tracescore.scoring.results import MeanScore, ScoredCase, ScoredCases

_SHOWN = 3
"""The worst rows that a failure shows."""
_LONGEST = 80
_MOST_ROWS = 100_000


def assert_scores(
    rows: RowSource | ScoredCases, *, confident: bool = False, config: Settings | None = None, **least: float
) -> ScoredCases:
    """Scores the rows and raises AssertionError when the mean of a measure is less than it should be.

    `assert_scores(rows, faithfulness=0.9, completeness=0.7)`. With `confident`, the lower limit of the mean's 95 %
    interval must reach it: few rows cannot show that, and the failure says how many it takes. A row without a value
    counts in no mean, but a measure without any value fails. Returns the scores. UsageError for wrong use.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    settings = config_of(config)
    known = [*MEASURES, *settings.evaluators.custom, *(rows.means if isinstance(rows, ScoredCases) else ())]
    unknown = [name for name in least if name not in known]
    if unknown or not least:
        got = f"got {unknown[0]}" if unknown else "got none"
        raise UsageError(
            f"assert_scores: a measure with its least mean expected, of {', '.join(dict.fromkeys(known))}; {got}"
        )
    wrong = [f"{name}={limit}" for name, limit in least.items() if not 0 <= limit <= 1]
    if wrong:
        raise UsageError(f"assert_scores: a number from 0 to 1 expected; got {wrong[0]}")
    scores = rows if isinstance(rows, ScoredCases) else score(rows, measures=least, config=settings)
    failures = [line for name, limit in least.items() for line in _failure(scores, name, limit, confident=confident)]
    if failures:
        raise AssertionError("\n".join(failures))
    return scores


def _failure(scores: ScoredCases, measure: str, least: float, *, confident: bool) -> Iterator[str]:
    """The lines that say what is wrong with one measure; none when nothing is."""
    mean = MeanScore.of(scores.of(measure))
    if mean.count and (mean.lower if confident else mean.value) >= least:
        return
    yield f"{measure}: {_compared(mean, least, confident=confident)}"
    if confident and mean.value >= least:
        values = [each.value for each in scores.of(measure) if each.value is not None]
        yield f"  {rows_needed(values, least)}"
    without = ", ".join(f"{count} {reason}" for reason, count in mean.without.items())
    if without:
        yield f"  rows without a value: {without}"
    yield from _worst(scores, measure)


def _compared(mean: MeanScore, least: float, *, confident: bool) -> str:
    if not mean.count:
        return f"no row has a value; at least {least:g} expected"
    interval = f"95 % interval {mean.lower:.3f} to {mean.upper:.3f}, {mean.count} rows"
    if confident:
        return f"lower limit {mean.lower:.3f} of the mean {mean.value:.3f} is below {least:g} ({interval})"
    return f"mean {mean.value:.3f} is below {least:g} ({interval})"


def rows_needed(values: list[float], least: float) -> str:
    """How many rows like these it takes until the lower limit of the mean's 95 % interval reaches `least`."""
    ordered = np.sort(values)

    def reaches(count: int) -> bool:
        alike = ordered[np.arange(count) * len(ordered) // count]
        return gaffke_interval(alike, np.ones(count), 1.0)[0] >= least

    low, high = len(values), 2 * len(values)
    while not reaches(high):
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            return f"the mean is too close to {least:g}: more than {_MOST_ROWS:,} rows like these are needed"
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return f"about {high} rows like these are needed to be confident of {least:g}; there are {len(values)}"


def _worst(scores: ScoredCases, measure: str) -> Iterator[str]:
    """The rows with the lowest values, each with what counted against it."""
    scored = [case for case in scores if case.scores[measure].value is not None]
    for case in sorted(scored, key=lambda each: _value(each, measure))[:_SHOWN]:
        name = f"{case.case.id}: " if case.case.id else ""
        yield f"  {_value(case, measure):.3f}  {name}{_short(case.case.question)}"
        yield f"         answered: {_short(case.case.answer)}"
        for item in case.scores[measure].items:
            if item.kind != "question" and item.credit is not None and item.credit < 1:
                yield f"         {item.kind} {item.verdict}: {_short(item.text)}"


def _value(case: ScoredCase, measure: str) -> float:
    value = case.scores[measure].value
    return math.inf if value is None else value


def _short(text: str | None) -> str:
    line = " ".join((text or "-").split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
