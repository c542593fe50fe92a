"""What `tracescore gold run` may be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gold_runs import runner, write_set
from tests.scripted import ScriptedJudge, ScriptedSession
from tracescore.cli.gold_checks import Checks
from tracescore.cli.gold_run import run
from tracescore.config import Config
from tracescore.config.gold import GoldConfig
from tracescore.errors import UsageError
from tracescore.evaluators.against_reference import ReferenceVerdict
from tracescore.gold.report import GoldReport, write
from tracescore.judge.operations import Vocabulary


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
        ([], "NEWEST", [], "--compare-with: PINNED, LAST or a report FILE.json expected; NEWEST cannot be read"),
    ],
)
def test_wrong_use_is_told_before_anything_is_asked(
    limits: list[str], against: str | None, reports: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Checks.of(limits, against, [Path(each) for each in reports], None)


# ---------------------------------------------------------------- checks

ANSWERS: dict[str, str] = {}


def answer(question: str) -> str:
    return ANSWERS.get(question, question)


async def made(
    tmp_path: Path, *, wrong: int = 0, judge: str = "scripted", items: int = 12, **checks: Any
) -> GoldReport:
    """A run of so many items of which so many are answered wrongly."""
    ANSWERS.clear()
    ANSWERS.update({f"q{number}": f"wrong {number}" for number in range(wrong)})
    file = write_set(tmp_path / "faq.jsonl", items)
    target = {"kind": "python", "callable": f"{__name__}:answer"}
    gold = GoldConfig.model_validate({"set": str(file), "store": str(tmp_path / "runs"), "target": target})
    no = {Vocabulary.RECALL: ["missed"], Vocabulary.SUPPORT: ["contradicted"]}
    asked = ScriptedJudge(ScriptedSession(verdicts=no))
    asked.name = judge
    return await run(Config(gold=gold), asked, [ReferenceVerdict()], Checks(**checks), lambda _: lambda: None)


@pytest.mark.anyio
async def test_a_limit_fails_where_the_mean_is_lower_or_was_not_measured(tmp_path: Path) -> None:
    checks = {"fail_under": (("factual", 0.75), ("answer_correctness", 0.76), ("faithfulness", 0.0))}
    report = await made(tmp_path, wrong=3, **checks)
    assert report.failures == (
        "answer_correctness: 0.750 is under 0.76",
        "faithfulness: not measured on 80% of the items; at least 0 was asked for",
    )


@pytest.mark.anyio
async def test_what_a_run_is_compared_with(tmp_path: Path) -> None:
    first = await made(tmp_path, compare_with="LAST")
    assert (first.failures, first.notes) == ((), ("compare-with: there is no good run before this one",))
    write(first, tmp_path / "first.json")
    runner_of = runner(tmp_path / "faq.jsonl", {"kind": "python", "callable": f"{__name__}:answer"})
    runner_of.store.refer("faq", runner_of.pinnable(None), at=1.0)

    for against in ("PINNED", "LAST", str(tmp_path / "first.json")):
        fell = await made(tmp_path, wrong=9, compare_with=against)
        assert fell.failures[0].startswith("compare-with answer_correctness: dropped from 1.000 to 0.250 (p 0.00")
        again = await made(tmp_path, compare_with=against)
        assert (again.failures, again.notes) == ((), ())

    other = await made(tmp_path, judge="another", compare_with="PINNED")
    assert other.failures == ("compare-with: PINNED has no item in common that this judge scored",)


@pytest.mark.anyio
@pytest.mark.parametrize(("items", "told"), [(7, False), (8, True)])
async def test_a_set_that_is_too_small_for_a_fall_to_be_told_says_so(tmp_path: Path, items: int, told: bool) -> None:
    await made(tmp_path, items=items)
    fell = await made(tmp_path, items=items, wrong=items, compare_with="LAST")
    assert bool(fell.failures) == told
    assert fell.notes == (
        () if told else ("compare-with: 7 items are too few to detect a drop; at least 8 must get worse",)
    )


@pytest.mark.anyio
async def test_a_fall_is_no_failure_where_nobody_asked_to_compare(tmp_path: Path) -> None:
    for wrong in (0, 0, 0, 9):
        report = await made(tmp_path, wrong=wrong)
    assert report.failures == ()
    assert report.comparison is not None
    assert report.comparison.changes["factual"].fell(0.02)
