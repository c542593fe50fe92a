"""Answers of every kind that the issue of the embedded judge names, written before the judge was looked at.

What does not hold is listed, with why; so is what the judge publishes today.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from tests.benchmarks import behaviour
from tests.local_judge import NEEDS_MODEL
from tracescore.judge.embedded import RULES

pytestmark = NEEDS_MODEL

ROWS = {row["id"]: row for row in behaviour.written()}
BLIND = {
    "para-road": "a paraphrase without a content word in common but one",
    "para-staff": "a paraphrase by synonyms",
    "para-doctor": "a paraphrase by synonyms",
    "para-price": "a paraphrase by synonyms",
    "para-child": "a paraphrase by synonyms",
    "b-para-1": "a paraphrase by synonyms",
    "join-four": "clauses whose subject the passages leave out",
    "b-join-4": "clauses with another subject in the passages",
    "chatty-pool": "figures of speech: will set you back",
    "b-rel-1": "a noun alone for one of two parts",
}


@cache
def published() -> behaviour.Values:
    return behaviour.published(list(ROWS.values()))


def holds(expected: Mapping[str, Any], row: str) -> bool:
    measure = expected["measure"]
    value = published()[row][measure]
    if value is None:
        return bool(expected.get("unscored_ok"))
    low, high = expected.get("value_between", (expected.get("value_at_least", 0), 1))
    beside = [published()[expected[key]][measure] for key in ("above", "below") if key in expected]
    differs = [(value - other) * (1 if "above" in expected else -1) for other in beside if other is not None]
    by = expected.get("by", 0)
    return (
        low <= value <= high
        and value < expected.get("value_below", 2)
        and len(differs) == len(beside)
        and all(each >= by for each in differs)
    )


@pytest.mark.parametrize("row", [row for row in ROWS if row not in BLIND])
def test_what_was_written_before_the_judge_was_looked_at_holds(row: str) -> None:
    assert [each for each in ROWS[row]["expect"] if not holds(each, row)] == []


@pytest.mark.parametrize(("row", "why"), BLIND.items())
def test_a_known_blind_spot_is_still_one(row: str, why: str) -> None:
    assert not all(holds(each, row) for each in ROWS[row]["expect"]), f"no longer blind to {why}: take it off the list"


def test_a_judge_that_scores_otherwise_is_another_judge() -> None:
    moved = behaviour.moved(published(), behaviour.known())
    assert moved == [], "run python -m tests.benchmarks.behaviour"
    assert published().keys() == behaviour.known().keys(), "run python -m tests.benchmarks.behaviour"
    assert behaviour.number(behaviour.known()) == RULES, "run python -m tests.benchmarks.behaviour"
