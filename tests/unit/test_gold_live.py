"""Answers to gold questions that come as live traffic are found, and chance is not taken for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.gold_runs import runner, write_set
from tests.web_results import result
from tracescore.gold.live import LiveAnswers, leaked, mark
from tracescore.gold.runner import GoldRunner
from tracescore.model import Interaction


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("30 days.", " 30\n days. ", True),
        ("30 days.", "14 days.", False),
        (None, "  ", True),
        ("\ud800", "\ud800", True),
    ],
)
def test_answers_are_compared_whatever_their_spacing(one: str | None, other: str, same: bool) -> None:
    assert (mark(one) == mark(other)) == same


def test_a_blank_answer_is_never_found() -> None:
    live = LiveAnswers()
    live.add([None, " ", "yes"])
    assert live.count([mark("yes"), mark("no"), mark("")]) == 1


@pytest.mark.parametrize(("live", "answers", "told"), [(0, 1, False), (1, 1, True), (6, 12, False), (7, 12, True)])
def test_only_more_than_half_of_the_answers_are_evidence(live: int, answers: int, told: bool) -> None:
    assert leaked(live, answers) == told


def answered(name: str) -> Interaction:
    return result(answer=name).interaction


def answer(question: str) -> str:
    return question


@pytest.mark.anyio
@pytest.mark.parametrize("during", [True, False])
async def test_the_service_warns_once_when_most_answers_of_its_run_came_as_live_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, during: bool
) -> None:
    caplog.set_level(logging.WARNING, "tracescore.gold")
    gold = runner(write_set(tmp_path / "faq.jsonl", 4), {"kind": "python", "callable": f"{__name__}:answer"})

    def live(*names: str) -> None:
        for name in names:
            gold.live.add([name])
            gold.observe([answered(name)])

    async def run(gold: GoldRunner) -> None:
        assert (await gold.run("hand")) is not None

    live("q0", "q1")
    await run(gold)
    assert "gold_counted_as_live" not in caplog.text
    if during:
        live("q2", "q3")
    else:
        gold.live.add(["q2"])
        await run(gold)
    told = [record.getMessage() for record in caplog.records if "gold_counted_as_live" in record.getMessage()]
    assert len(told) == 1
    assert "answers=3 of=4" in told[0]
    assert not json.dumps(told).count("q0")
