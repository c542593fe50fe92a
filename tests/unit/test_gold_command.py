"""What `tracescore gold run` may be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracescore.errors import UsageError
from tracescore.gold_command import Checks


def test_a_limit_without_a_measure_is_of_the_factual_part() -> None:
    checks = Checks.of(["0.8", "faithfulness=1"], "LAST", [Path("a.md"), Path("b.xml")], None)
    assert checks.fail_under == (("factual", 0.8), ("faithfulness", 1.0))


@pytest.mark.parametrize(
    ("limits", "against", "reports", "words"),
    [
        (["speed=1"], None, [], "--fail-under: MEASURE=VALUE expected, with VALUE from 0 to 1; got 'speed=1'"),
        (["80"], None, [], "got '80'; measures: answer_correctness, factual"),
        (["factual="], None, [], "got 'factual='"),
        (["nan"], None, [], "got 'nan'"),
        ([], None, ["out.html"], r"--report: a name ending in \.md, \.json, \.xml expected; got 'out\.html'"),
        ([], "NEWEST", [], "--compare-with: NEWEST cannot be read"),
    ],
)
def test_wrong_use_is_told_before_anything_is_asked(
    limits: list[str], against: str | None, reports: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Checks.of(limits, against, [Path(each) for each in reports], None)
