"""Who moved, and which pattern it is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import numpy as np
import pytest

from tests.results import SettableClock, interaction
from tests.states import reread
from tracescore.config.drift import DETECTORS
from tracescore.drift.anchors import PASSES, Anchors, read_anchors, shift
from tracescore.drift.diagnosis import PATTERNS, diagnose
from tracescore.drift.observations import DetectorKind
from tracescore.errors import UsageError
from tracescore.model import Result, Score, Unscored

pytestmark = pytest.mark.anyio

KIND = DetectorKind("faithfulness", "baseline")


class Judge:
    """Scores an item about as it always does, `off` what it should be; may be away or slow."""

    def __init__(self, clock: SettableClock) -> None:
        self.clock, self.off, self.away, self.epoch = clock, 0.0, False, 0
        self.rng = np.random.default_rng(1)
        self.scored, self.at_once, self.most_at_once = 0, 0, 0
        self.passes = anyio.Event()
        self.hold: anyio.Event | None = None

    async def rescore(self, item) -> Result:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await (self.hold.wait() if self.hold else anyio.lowlevel.checkpoint())
        self.at_once -= 1
        self.scored += 1
        value = float(np.clip(0.7 + self.off + self.rng.normal(0, 0.1), 0, 1))
        told = Unscored("faithfulness", "judge_unreachable") if self.away else Score("faithfulness", value)
        return Result(item, (told,), "gpt", self.epoch, finished=self.clock())


class Rig:
    def __init__(self, items: int = 100) -> None:
        self.clock = SettableClock()
        self.judge = Judge(self.clock)
        self.items = [interaction(number) for number in range(items)]
        self.anchors = self.make()

    def make(self) -> Anchors:
        return Anchors(self.items, self.judge.rescore, self.clock, 300.0)

    @asynccontextmanager
    async def serving(self):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.anchors.serve)
            yield
            tasks.cancel_scope.cancel()

    async def until(self, passes: int) -> None:
        with anyio.fail_after(20):
            while self.anchors.passes < passes or self.anchors._running:
                await anyio.lowlevel.checkpoint()

    async def suspect(self) -> None:
        self.clock.now += 7_200
        self.anchors.request_pass(self.clock.now - 60)
        await self.until(self.anchors.passes + 1)

    def verdict(self, fall: float = 0.1) -> str:
        return self.anchors.verdict(KIND, self.clock.now - 60, self.clock.now - 1, fall)


@pytest.mark.parametrize(
    ("off", "fall", "items", "verdict"),
    [
        (0.0, 0.1, 100, "product"),
        (-0.1, 0.1, 100, "judge"),
        (-0.1, 0.5, 100, "unattributed"),  # the judge has moved, but by far not so far
        (+0.1, 0.1, 100, "product"),  # a judge that became milder explains no fall
        (0.0, 0.1, 20, "unattributed"),  # too few items to say that it has not moved
    ],
)
async def test_the_verdict_follows_from_what_the_items_score_now(off, fall, items, verdict) -> None:
    rig = Rig(items)
    async with rig.serving():
        await rig.until(PASSES)
        rig.judge.off = off
        await rig.suspect()
    assert rig.verdict(fall) == verdict


async def test_a_verdict_waits_for_the_items_and_no_longer_than_the_deadline() -> None:
    rig = Rig()
    async with rig.serving():
        await rig.until(PASSES)
    told = rig.clock.now
    assert rig.anchors.verdict(KIND, told - 60, told, 0.1) == "pending"
    rig.clock.now += 301
    assert rig.anchors.verdict(KIND, told - 60, told, 0.1) == "unattributed"


async def test_a_pass_from_before_the_change_says_nothing_about_it() -> None:
    rig = Rig()
    async with rig.serving():
        await rig.until(PASSES)
        await rig.suspect()
    rig.clock.now += 86_400
    assert rig.verdict() == "pending"


async def test_items_are_scored_again_only_when_that_can_tell_something_new() -> None:
    rig = Rig(10)
    async with rig.serving():
        await rig.until(PASSES)
        await rig.suspect()
        rig.anchors.request_pass(rig.clock.now - 3_600)  # that change was before the last pass
        rig.anchors.request_pass(rig.clock.now + 1)  # this one was after it, but the last pass is too recent
        await anyio.wait_all_tasks_blocked()
    assert rig.anchors.passes == PASSES + 1


async def test_few_are_scored_at_once() -> None:
    rig = Rig()
    async with rig.serving():
        await rig.until(PASSES)
    assert rig.judge.most_at_once <= 4


async def test_a_judge_that_is_away_gives_no_reference() -> None:
    rig = Rig(10)
    rig.judge.away = True
    async with rig.serving():
        await rig.until(1)
        await anyio.wait_all_tasks_blocked()
    assert rig.anchors.state().before == ()


async def test_another_epoch_has_another_reference() -> None:
    rig = Rig(40)
    async with rig.serving():
        await rig.until(PASSES)
        rig.judge.epoch, rig.judge.off = 1, -0.2
        await rig.suspect()
        await rig.until(2 * PASSES)
        await rig.suspect()
    assert rig.verdict() == "product"


async def test_references_outlive_a_restart_but_not_a_change_of_the_items() -> None:
    rig = Rig(40)
    async with rig.serving():
        await rig.until(PASSES)
    saved = reread(rig.anchors.state())
    again = rig.make()
    again.resume(saved)
    assert again.state() == rig.anchors.state()
    rig.items[0] = replace(rig.items[0], answer="Another one.")
    other = rig.make()
    other.resume(saved)
    assert other.state().before == ()


# ---------------------------------------------------------------- the test itself


@pytest.mark.parametrize(
    ("items", "t", "chance"), [(10, 3.2498, 0.01), (10, 2.2622, 0.05), (30, 2.7564, 0.01), (100, 2.6264, 0.01)]
)
def test_the_chance_is_that_of_students_t(items: int, t: float, chance: float) -> None:
    """Critical values from any table of the t distribution, for items - 1 degrees of freedom."""
    spread = np.resize([-1.0, 1.0], items)
    differences = spread - spread.mean()
    differences += t * differences.std(ddof=1) / items**0.5
    assert shift([0.0] * items, list(differences)).chance == pytest.approx(chance, rel=0.02)


def test_a_judge_that_always_says_the_same_has_moved_when_it_says_something_else() -> None:
    assert shift([0.5, 0.7], [0.5, 0.7]).chance == 1
    assert shift([0.5, 0.7], [0.4, 0.6]).chance == 0
    assert shift([0.5, None], [0.4, 0.6]) is None


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("", "at least 2 items expected, better 100; got 0"),
        ('{"question": "q", "answer": "a", "contexts": ["c"]}\nnot json', ":2: {question, contexts, answer} expected"),
        ('{"question": "q", "answer": "a", "contexts": "c"}', ":1: {question"),
        ('{"question": " ", "answer": "a", "contexts": []}', ":1: {question"),
        ("[]", ":1: {question"),
    ],
)
def test_a_file_that_is_no_list_of_anchors_is_refused_with_its_line(tmp_path: Path, lines: str, wrong: str) -> None:
    file = tmp_path / "anchors.jsonl"
    file.write_text(lines)
    with pytest.raises(UsageError) as refused:
        read_anchors(str(file))
    assert wrong in str(refused.value)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_anchors("/nowhere/anchors.jsonl")


# ---------------------------------------------------------------- patterns

ALL = set(DETECTORS)
THREE = ALL - {"context_precision"}
"""What is watched unless context_precision is measured."""
REST = {name: ALL - {name} for name in DETECTORS}


@pytest.mark.parametrize(
    ("moved", "flat", "more", "pattern"),
    [
        ([], ALL, {}, "none"),
        (["answer_relevancy"], REST["answer_relevancy"], {}, "prompting"),
        (["answer_relevancy"], {"completeness", "faithfulness"}, {}, "unclear"),
        (["answer_relevancy"], {"completeness", "faithfulness", "context_precision"}, {}, "prompting"),
        (["context_precision"], set(), {}, "retrieval"),
        (["context_precision", "faithfulness", "answered"], set(), {}, "retrieval"),
        (["faithfulness"], {"answer_relevancy", "context_precision"}, {}, "fabrication"),
        (["answer_relevancy"], {"completeness"}, {}, "unclear"),
        (["completeness"], {"answer_relevancy"}, {}, "truncation"),
        (["completeness_multipart"], {"answer_relevancy"}, {}, "truncation"),
        (["completeness", "completeness_multipart"], {"answer_relevancy"}, {}, "truncation"),
        (["completeness"], {"faithfulness"}, {}, "unclear"),
        (["faithfulness"], {"answer_relevancy"}, {}, "fabrication_or_retrieval"),
        (["faithfulness"], set(), {}, "unclear"),
        (["answered"], set(), {}, "abstaining"),
        (["answered", "faithfulness"], ALL, {}, "unclear"),
        (["completeness", "answer_relevancy"], {"faithfulness", "context_precision"}, {}, "prompting"),
        (["completeness_multipart", "answer_relevancy"], {"faithfulness", "context_precision"}, {}, "prompting"),
        (["completeness", "answer_relevancy"], {"faithfulness"}, {}, "unclear"),
        (["completeness", "answer_relevancy"], {"context_precision"}, {}, "unclear"),
        (["completeness", "answer_relevancy", "context_precision"], {"faithfulness"}, {}, "retrieval"),
        (["completeness", "answer_relevancy", "faithfulness"], {"context_precision"}, {}, "unclear"),
        (["faithfulness"], ALL, {"judge": True}, "judge"),
        ([], {"faithfulness"}, {"gold": "unmeasured"}, "stale_context"),
        ([], set(), {"gold": "unmeasured"}, "unclear"),
        ([], {"faithfulness"}, {"gold": "retriever_misses"}, "retriever_misses"),
        ([], {"faithfulness"}, {"gold": "truncation"}, "truncation"),
    ],
)
def test_a_pattern_is_what_moved_and_what_provably_did_not(moved, flat, more, pattern) -> None:
    assert diagnose(moved, flat, ALL, **({"judge": False} | more)) == pattern
    assert pattern in PATTERNS


@pytest.mark.parametrize(
    ("moved", "flat", "pattern"),
    [
        (["answer_relevancy"], {"completeness", "faithfulness"}, "prompting"),
        (["answer_relevancy", "completeness"], {"faithfulness", "answered"}, "unclear"),
        (["faithfulness"], {"answer_relevancy"}, "fabrication_or_retrieval"),
    ],
)
def test_without_context_precision_the_words_stay_what_they_were(moved, flat, pattern) -> None:
    assert diagnose(moved, flat, THREE, judge=False) == pattern


def test_what_is_not_measured_is_not_asked_about() -> None:
    assert diagnose(["answer_relevancy"], [], ["answer_relevancy", "answered"], judge=False) == "prompting"
