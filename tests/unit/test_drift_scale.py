"""Which scores may be held against each other."""

from __future__ import annotations

import pytest

from tests.results import result
from tracescore.drift.scale import Scale, next_scale
from tracescore.model import EVALUATOR_VERSION as NOW

OURS = Scale("embedded-v2", 0, NOW)

KNOWN: dict[str, tuple[Scale | None, bool]] = {
    "nothing": (None, True),
    "the same": (OURS, True),
    "a later epoch": (OURS._replace(epoch=1), False),
    "another judge of a later epoch": (OURS._replace(judge="gpt", epoch=1), True),
    "evaluators of another version in a later epoch": (OURS._replace(epoch=1, version=NOW - 1), True),
}


@pytest.mark.parametrize(("known", "goes_on"), KNOWN.values(), ids=KNOWN.keys())
def test_only_a_result_of_an_epoch_that_is_over_says_nothing(known: Scale | None, goes_on: bool) -> None:
    assert next_scale(known, result()) == (OURS if goes_on else None)
