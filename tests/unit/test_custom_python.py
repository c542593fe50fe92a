"""Functions of the user's own: what they may return, and that whatever they do costs the one interaction alone."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.scripted import interaction
from tests.servers import wait
from tracescore.config import PythonMeasureConfig
from tracescore.errors import UsageError
from tracescore.evaluators.custom import PythonMeasure
from tracescore.model import Message, Score, Unscored
from tracescore.runtime import gather

pytestmark = pytest.mark.anyio

FOLDER = str(Path(__file__).parent / "data")
WANTED = "a number in [0, 1], a bool, None or (value, reason) expected"


@asynccontextmanager
async def measuring(function: str = "told", **settings: object) -> AsyncIterator[PythonMeasure]:
    given = {"reads": ("answer",), "timeout": "1s", "version": 1, "folder": FOLDER} | settings
    chosen = PythonMeasureConfig(kind="python", callable=f"own_checks:{function}", **given)
    measure = PythonMeasure("evaluators.custom.own", "own", chosen)
    try:
        yield measure
    finally:
        await measure.close()
        await measure.close()


async def ask(measure: PythonMeasure, answer: str) -> Score | Unscored:
    return await measure.evaluate(interaction(answer=answer), None)


@pytest.mark.parametrize("in_process", [False, True])
async def test_a_function_gets_what_it_reads_by_keyword_and_may_be_async(in_process) -> None:
    async with measuring("cites_a_source", reads=("answer", "contexts"), in_process=in_process) as measure:
        score = await ask(measure, "Yes [1].")
    assert (score.value, score.items[0].text) == (1.0, "of 1")
    async with measuring("later", in_process=in_process) as measure:
        assert (await ask(measure, "12345")).value == 0.5


async def test_a_process_that_ends_while_nobody_asks_it_costs_nobody_anything() -> None:
    async with measuring(workers=1) as measure:
        assert (await ask(measure, "leaves a bomb")).value == 1
        (idle,) = measure._workers._idle
        with anyio.fail_after(10):
            await idle._process.wait()
        assert (await ask(measure, "well")).value == 1


async def test_history_comes_as_turns() -> None:
    async with measuring("told", reads=("question", "answer", "history", "contexts")) as measure:
        asked = interaction(answer="well", history=(Message("user", "Before?"),))
        assert (await measure.evaluate(asked, None)).value == 1
        assert measure.texts(asked)["history"] == [{"role": "user", "text": "Before?"}]


async def test_whatever_a_function_returns_or_does_is_a_score_or_says_why_there_is_none(caplog, capfd) -> None:
    """In one process after the other; none of it reaches the log, the output or another interaction."""
    caplog.set_level(logging.DEBUG)
    values = {"well": 1, "yes": 1, "numpy": 0.5, "forks": 0.25}
    killed = "no value within 1 s; its process was killed"
    details = {
        "hangs": killed,
        "holds the lock": killed,
        "exits": "the function raised SystemExit (own_checks.py:35)",
        "is gone": "the function ended its process",
        "raises": "the function raised ValueError (own_checks.py:49)",
        "closes everything": "the function ended its process",
        "NaN": f"{WANTED}; got nan",
        "too much": f"{WANTED}; got 1.01",
        "far too much": f"{WANTED}; got inf",
        "a text": f"{WANTED}; got str",
        "three": f"{WANTED}; got tuple",
    }
    async with measuring(workers=1) as measure:
        for answer, value in values.items():
            assert (await ask(measure, answer)).value == value, answer
        for answer, detail in details.items():
            found = await ask(measure, answer)
            assert (found.reason, found.detail) == ("internal_error", detail), answer
            assert (await ask(measure, "well")).value == 1, f"after {answer}"
        assert (await ask(measure, "interrupts")).detail.startswith("the function raised KeyboardInterrupt")
        long = await ask(measure, "long")
        assert long.value == 0.5
        assert len(long.items[0].text) == 1_000
        nothing = [await ask(measure, each) for each in ("none", "none, and why")]
    assert [(each.reason, each.outcome, each.detail) for each in nothing] == [
        ("not_applicable", "skipped", ""),
        ("not_applicable", "skipped", "no link in it"),
    ]
    assert "SECRET" not in caplog.text + "".join(capfd.readouterr())
    assert sum("event=custom_measure_failed" in line for line in caplog.text.splitlines()) == 1  # in a minute


async def test_what_a_function_has_started_ends_with_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with measuring() as measure:
        assert (await ask(measure, "starts others")).reason == "internal_error"
    started = int((tmp_path / "own_checks.pid").read_text())
    wait(lambda: not _lives(started), "it outlives the function")


def _lives(pid: int) -> bool:
    """A process whose parent has gone is over when nobody has collected it yet."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_a_call_that_hangs_costs_itself_alone() -> None:
    async with measuring(workers=1, timeout="500ms") as measure:
        answers = ["well", "hangs", *["well"] * 6]
        found = await gather([partial(ask, measure, answer) for answer in answers])
    assert [isinstance(each, Score) for each in found] == [answer == "well" for answer in answers]


async def test_nobody_waits_behind_a_function_that_hangs_again_and_again() -> None:
    """Else every interaction, and all else that is measured of it, would wait ten times as long as a call may take."""
    async with measuring(workers=1, timeout="200ms") as measure:
        for _ in range(3):
            await ask(measure, "hangs")
        begun = time.monotonic()
        found = await gather([partial(ask, measure, "hangs") for _ in range(8)])
        took = time.monotonic() - begun
        assert (await ask(measure, "well")).value == 1  # a free process is tried, and it helps
        assert (await ask(measure, "well")).value == 1
    assert sum("no process was free" in each.detail for each in found) == 7
    assert took < 3


async def test_in_this_process_a_call_has_the_same_time_and_costs_itself_alone() -> None:
    async with measuring(in_process=True, timeout="200ms") as measure:
        for answer, detail in {
            "exits": "the function raised SystemExit (own_checks.py:35)",
            "raises": "the function raised ValueError (own_checks.py:49)",
            "NaN": f"{WANTED}; got nan",
        }.items():
            assert (await ask(measure, answer)).detail == detail
        assert (await ask(measure, "well")).value == 1


@pytest.mark.parametrize("in_process", [False, True])
@pytest.mark.parametrize(
    ("name", "reads", "said"),
    [
        ("nowhere:f", ("answer",), "nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("own_checks:nothing", ("answer",), "own_checks has no function nothing"),
        (
            "own_checks:cites_a_source",
            ("answer",),
            (
                "own_checks:cites_a_source cannot be called with answer by keyword: missing a required argument: "
                "'contexts'"
            ),
        ),
    ],
)
async def test_a_function_that_cannot_be_called_is_refused_at_the_start(in_process, name, reads, said) -> None:
    chosen = {"callable": name, "reads": reads, "in_process": in_process, "folder": FOLDER, "version": 1}
    with pytest.raises(UsageError) as refused:
        PythonMeasure("evaluators.custom.own", "own", PythonMeasureConfig(kind="python", **chosen))
    assert str(refused.value) == f"evaluators.custom.own.callable: {said}"


async def test_another_declared_version_or_function_is_another_version_of_the_measure() -> None:
    versions = set()
    given = ({}, {"version": 2}, {"function": "later"}, {"function": "told", "reads": ("answer", "question")})
    for settings in given:
        async with measuring(in_process=True, **settings) as measure:
            assert measure.judge == "python:own"
            versions.add(measure.version)
    assert len(versions) == len(given)
