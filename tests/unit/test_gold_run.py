"""One run at a time: what becomes of every item, of runs that are cut, and what later ones are compared with."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.app_server import Answer, AppServer, app_server
from tests.gold_runs import evaluate, run, runner, write_set
from tests.results import NOW, SettableClock, interaction
from tracescore.config.gold import GoldConfig, PythonTargetConfig
from tracescore.errors import ConfigError, UsageError
from tracescore.gold.items import GoldItem
from tracescore.gold.results import Run, summary
from tracescore.gold.runner import GoldRunner
from tracescore.gold.store import Store
from tracescore.gold.targets import Target
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Interaction, Result

pytestmark = pytest.mark.anyio

ECHO = {"kind": "python", "callable": "tests.unit.test_gold_run:echo"}
BROKEN = {"kind": "python", "callable": "tests.unit.test_gold_run:broken"}
WRONG: set[str] = set()
"""Questions that the app answers wrongly."""
UNSCORED: set[str] = set()


def echo(question: str) -> str:
    return "unscored: judge_timeout" if question in UNSCORED else "no" if question in WRONG else question


def broken(_question: str) -> str:
    raise OSError


@pytest.fixture(autouse=True)
def right() -> Iterator[None]:
    WRONG.clear()
    UNSCORED.clear()
    yield
    WRONG.clear()
    UNSCORED.clear()


@pytest.fixture
def app() -> Iterator[AppServer]:
    with app_server() as running:
        yield running


def http(app: AppServer) -> dict[str, Any]:
    return {"kind": "http", "url": app.url}


async def made(of: GoldRunner) -> Run:
    done = await of.run("hand")
    await of.close()
    assert done is not None
    return done


# ---------------------------------------------------------------- outcomes


@pytest.mark.parametrize(("settings", "service"), [({"service": "shop"}, "shop"), ({}, "unknown")])
async def test_items_are_of_the_service_that_the_settings_name_where_answers_do_not_tell(
    tmp_path: Path, settings: dict[str, str], service: str
) -> None:
    done = await made(runner(write_set(tmp_path / "s.jsonl", 3), ECHO, **settings))
    failed = await made(runner(write_set(tmp_path / "s.jsonl", 3), BROKEN, **settings))
    assert {each.outcome for each in failed.outcomes} == {"unanswered"}
    assert {each.service for each in (done, failed, *done.outcomes, *failed.outcomes)} == {service}


async def test_every_item_has_an_outcome_and_what_was_not_measured_is_no_number(tmp_path: Path) -> None:
    WRONG.update({"q1", "q2"})
    UNSCORED.add("q3")
    done = await made(runner(write_set(tmp_path / "s.jsonl", 10), ECHO))
    assert [len(done.outcomes), done.count("scored"), done.count("unscored")] == [10, 9, 1]
    assert (done.state, done.epoch, done.reasons()) == ("done", 1, {"judge_timeout": 1})
    factual = done.estimates(0.8)["factual"]
    assert (factual.mean, factual.scored, factual.of) == (pytest.approx(7 / 9), 9, 10)
    assert factual.lower < factual.mean < factual.upper


async def test_weights_of_items_count_in_the_mean_and_tags_have_means_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        '{"question": "q0", "reference": "q0", "weight": 3, "tags": ["a", "b"]}\n'
        '{"question": "q1", "reference": "q1", "tags": ["b"]}\n'
    )
    WRONG.add("q1")
    done = await made(runner(file, ECHO))
    assert done.estimates(1)["factual"].mean == 0.75
    assert {tag: done.estimates(1, tag)["factual"].mean for tag in done.tags()} == {"a": 1.0, "b": 0.75}


@pytest.mark.parametrize(("unscored", "state"), [(2, "done"), (3, "failed")])
async def test_a_run_of_which_too_little_is_scored_has_failed(tmp_path: Path, unscored: int, state: str) -> None:
    UNSCORED.update(f"q{number}" for number in range(unscored))
    of = runner(write_set(tmp_path / "s.jsonl", 10), ECHO)
    done = await made(of)
    assert done.state == state
    assert bool(of.findings.latest) == (state == "done")
    if state == "failed":
        assert done.detail == "7 of 10 items scored, 80% needed: judge_timeout 3"


@pytest.mark.parametrize("answer", [Answer(b"<html>"), Answer({"reply": "x"}), Answer(status=404)])
async def test_a_target_that_cannot_work_is_found_before_the_set_is_asked(
    tmp_path: Path, app: AppServer, answer: Answer
) -> None:
    app.otherwise = answer
    done = await made(runner(write_set(tmp_path / "s.jsonl", 50), http(app)))
    assert done.state == "failed"
    assert len(app.asked) == 2
    assert done.detail == done.outcomes[0].detail != ""


async def test_one_question_that_the_app_cannot_answer_does_not_stop_the_rest(tmp_path: Path, app: AppServer) -> None:
    app.queue.append(Answer(status=400))
    done = await made(runner(write_set(tmp_path / "s.jsonl", 10), http(app)))
    assert (done.state, done.count("unanswered"), len(app.asked)) == ("done", 1, 10)


async def test_what_may_pass_is_tried_again_in_a_trace_of_its_own(tmp_path: Path, app: AppServer) -> None:
    app.queue.extend(
        [Answer(status=503, headers={"Retry-After": "0"}), Answer(status=429, headers={"Retry-After": "0"})]
    )
    done = await made(runner(write_set(tmp_path / "s.jsonl", 1), http(app), retries=2))
    assert done.count("scored") == 1
    assert len({asked.headers["traceparent"] for asked in app.asked}) == 3


async def test_so_many_questions_are_asked_side_by_side_and_no_more(tmp_path: Path) -> None:
    of = runner(write_set(tmp_path / "s.jsonl", 9), ECHO, concurrency=3)
    now, most, together = 0, 0, anyio.Event()

    async def crowded(interaction: Interaction) -> Result:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if most == 3:
            together.set()
        if interaction.question != of.gold_set.items[0].question:  # the first is asked alone, to see whether it works
            await together.wait()
        now -= 1
        return await evaluate(interaction)

    of._executor = replace(of._executor, evaluate=crowded)
    done = await made(of)
    assert (most, done.count("scored")) == (3, 9)


async def test_a_defect_costs_one_item(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of = runner(write_set(tmp_path / "s.jsonl", 10), ECHO)

    async def defective(interaction: Interaction) -> Result:
        if interaction.question == "q4":
            raise KeyError("secret")
        return await evaluate(interaction)

    of._executor = replace(of._executor, evaluate=defective)
    done = await made(of)
    assert (done.state, done.reasons()) == ("done", {"internal_error": 1})
    assert "event=defect error=KeyError" in caplog.text
    assert "secret" not in caplog.text


# ---------------------------------------------------------------- one runner, and runs that were cut


class Cut(BaseException):
    """The process ends here."""


class Until:
    """A target that ends the run after some answers."""

    def __init__(self, target: Target, answers: int) -> None:
        self._target, self.left = target, answers
        self.asked: list[str] = []

    async def ask(self, item: GoldItem, trace_id: str) -> Interaction:
        if self.left == 0:
            raise Cut
        self.left -= 1
        self.asked.append(item.id)
        return await self._target.ask(item, trace_id)

    async def close(self) -> None:
        """Nothing to release."""


async def cut(of: GoldRunner, answers: int) -> list[str]:
    until = Until(of.target, answers)
    of._executor = replace(of._executor, target=until)
    with pytest.raises(BaseExceptionGroup):
        await of.run("schedule")
    return until.asked


async def test_a_run_that_was_cut_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    file = write_set(tmp_path / "s.jsonl", 8)
    first = await cut(runner(file, ECHO, concurrency=1, release="1"), 5)
    later = runner(file, ECHO, concurrency=1, release="1")
    rest = Until(later.target, 100)
    later._executor = replace(later._executor, target=rest)
    done = await made(later)
    assert sorted(first + rest.asked) == [f"i{number:02}" for number in range(8)]
    assert (done.state, done.trigger, len(done.outcomes)) == ("done", "schedule", 8)
    assert [each.state for each in later.findings.recent] == ["done"]


@pytest.mark.parametrize("changed", ["set", "release", "unknown release", "age"])
async def test_a_run_of_another_set_release_or_day_is_not_gone_on_with(tmp_path: Path, changed: str) -> None:
    file = write_set(tmp_path / "s.jsonl", 8)
    releases = {"release": ("1", "2"), "unknown release": (None, None)}.get(changed, ("1", "1"))
    await cut(runner(file, ECHO, release=releases[0]), 5)
    if changed == "set":
        write_set(file, 8, tags=["x"], required=["y"])
    clock = SettableClock(NOW + 90_000 if changed == "age" else NOW)
    later = runner(file, ECHO, clock, release=releases[1])
    done = await made(later)
    assert (done.count("scored"), done.trigger) == (8, "hand")
    assert [each.state for each in later.findings.recent] == ["done", "cut"]


HOLDING = """
import sys
from pathlib import Path
from tracescore.gold.store import Store
with Store(Path(sys.argv[1])).only_runner() as alone:
    print(alone, flush=True)
    sys.stdin.read()
"""


def test_no_two_processes_run_a_set_of_one_store_at_once(tmp_path: Path) -> None:
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO)
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "runs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert anyio.run(of.run, "hand") is None
        other.kill()
    assert anyio.run(made, of).state == "done"


async def test_a_set_that_broke_while_the_service_runs_is_refused_and_the_old_results_stay(tmp_path: Path) -> None:
    file = write_set(tmp_path / "s.jsonl")
    of = runner(file, ECHO)
    await made(of)
    file.write_text("{broken\n")
    with pytest.raises(ConfigError, match=r"s\.jsonl:1: is not JSON"):
        await of.run("hand")
    assert len(of.findings.latest) == 1


def test_a_store_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("this is no database, and long enough to be seen as none")
    with pytest.raises(UsageError, match=r"gold\.store: .*file cannot be used: file is not a database"):
        Store(tmp_path / "file")
    with pytest.raises(UsageError, match=r"gold\.store: .* cannot be opened: No such file or directory"):
        Store(tmp_path / "nowhere" / "file")


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs")) as db:
        db.execute("CREATE TABLE theirs (a)")
        with pytest.raises(UsageError, match=r"gold\.store: .*theirs is of another version or program"):
            Store(tmp_path / "theirs")
        assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]


async def test_a_store_whose_results_are_damaged_is_one_line(tmp_path: Path) -> None:
    file = write_set(tmp_path / "s.jsonl")
    await runner(file, ECHO).run("hand")
    with closing(sqlite3.connect(tmp_path / "runs")) as db, db:
        db.execute("UPDATE outcomes SET content = x'7b7b'")
    with pytest.raises(UsageError, match=r"gold\.store: run 1 in .* cannot be read"):
        runner(file, ECHO)


async def test_a_store_that_breaks_while_the_service_runs_ends_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracescore.gold.runner._LOOK_EVERY", 0.01)
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO)
    (tmp_path / "runs").write_bytes(b"no database " * 1_000)
    looked, looks = anyio.Event(), iter(range(5))
    version, loop = of.store.version, asyncio.get_running_loop()

    def look() -> tuple[Any, ...]:
        if next(looks, None) is None:
            loop.call_soon_threadsafe(looked.set)
        return version()

    monkeypatch.setattr(of.store, "version", look)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(of.keep_running, anyio.Event())
        with anyio.fail_after(30):
            await looked.wait()
        tasks.cancel_scope.cancel()
    assert caplog.text.count("event=gold_store_failed") == 1


def test_only_the_owner_can_read_the_store(tmp_path: Path) -> None:
    Store(tmp_path / "runs")
    assert (tmp_path / "runs").stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- the reference


def test_of_the_releases_that_were_seen_the_newest_of_each_service_are_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    store.add_releases(("shop", f"{number}", NOW + number) for number in range(5))
    store.add_releases([("shop", "0", NOW + 9), ("quiet", "1", NOW - 9)])
    assert store.releases("shop") == ["0", "1", "2", "3", "4"]
    store.forget("faq", NOW, releases=3)
    assert store.releases("shop") == ["2", "3", "4"]
    assert store.releases("quiet") == ["1"]


@pytest.mark.parametrize("fails", [False, True], ids=["written", "not written at first"])
async def test_releases_that_are_seen_while_others_are_written_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO, clock := SettableClock(), service="shop")
    write = of.store.add_releases

    def see(*releases: int) -> None:
        for each in releases:
            clock.now += 1
            of.observe([interaction(service="shop", release=f"{each:04}")])

    def slowly(seen: Iterable[tuple[str, str, float]]) -> None:
        see(1_000, 1_001)
        monkeypatch.setattr(of.store, "add_releases", write)
        if fails:
            raise UsageError("full")
        write(seen)

    see(*range(1_000))  # as many as are remembered
    monkeypatch.setattr(of.store, "add_releases", slowly)
    with pytest.raises(UsageError) if fails else nullcontext():
        await of.refresh()
    await of.refresh()
    first = 2 if fails else 0
    assert of.store.releases("shop") == [f"{each:04}" for each in range(first, 1_002)]


@pytest.mark.parametrize(("on_release", "told"), [(True, 1), (False, 0)])
async def test_a_new_release_is_told_once_and_only_where_it_is_a_reason_to_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, on_release: bool, told: int
) -> None:
    caplog.set_level("INFO")
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO, service="shop", on_release=on_release)
    of.observe(interaction(service="shop", release=f"{number}") for number in range(3))
    assert caplog.text.count("event=new_release") == told
    assert of.schedule.release == "2"


async def test_the_first_three_runs_of_the_first_release_are_the_reference_until_a_person_pins(tmp_path: Path) -> None:
    file, clock = write_set(tmp_path / "s.jsonl"), SettableClock()
    first = runner(file, ECHO, clock, release="1")
    for _ in range(2):
        await made(first)
    second = runner(file, ECHO, clock, release="2")
    runs = [await made(second) for _ in range(4)]
    assert {each.release for each in second.references()} == {"1"}
    assert len(second.references()) == 2
    assert second.compared(runs[-1]) is not None

    second.store.refer(second.name, second.pinnable(None), at=NOW)
    assert [each.id for each in second.references()] == [each.id for each in reversed(runs[1:])]
    await made(runner(file, ECHO, clock, release="3"))
    assert {each.release for each in second.references()} == {"2"}


async def test_a_run_of_the_reference_is_not_compared_with_itself(tmp_path: Path) -> None:
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO)
    for _ in range(3):
        await made(of)
        assert of.findings.comparison is None
    await made(of)
    assert of.findings.comparison is not None


async def test_a_set_of_other_questions_begins_a_reference_of_its_own(tmp_path: Path) -> None:
    file = write_set(tmp_path / "s.jsonl")
    await made(runner(file, ECHO))
    file.write_text('{"question": "new", "reference": "new"}\n')
    of = runner(file, ECHO)
    done = await made(of)
    assert [each.id for each in of.references()] == [done.id]


async def test_old_runs_go_but_for_the_last_few_and_the_reference(tmp_path: Path) -> None:
    clock = SettableClock()
    of = runner(write_set(tmp_path / "s.jsonl", 1), ECHO, clock, keep="10d")
    runs = [await made(of) for _ in range(15)]
    clock.now += 11 * 86_400
    last = await made(of)
    kept = [each.id for each in of.store.runs(of.name)]
    assert kept == [last.id, *[each.id for each in runs[:5:-1]], *[each.id for each in runs[2::-1]]]
    assert [each.run.id for each in of.findings.latest] == [last.id]


async def test_results_are_there_for_the_next_process_and_those_of_another_one_are_noticed(tmp_path: Path) -> None:
    file = write_set(tmp_path / "s.jsonl")
    here = runner(file, ECHO)
    there = runner(file, ECHO)
    done = await made(there)
    await here.refresh()
    assert here.findings.latest == (summary(replace(done, reference=True), 0.8),)
    assert runner(file, ECHO).findings.latest == here.findings.latest


async def test_without_a_file_results_live_as_long_as_the_process(tmp_path: Path) -> None:
    of = runner(write_set(tmp_path / "s.jsonl"), ECHO, store=None)
    done = await made(of)
    assert of.store_path is None
    assert of.findings.latest == (summary(replace(done, reference=True), 0.8),)


def test_without_a_store_of_its_own_results_lie_beside_the_spool(tmp_path: Path) -> None:
    settings = GoldConfig(
        set=str(write_set(tmp_path / "s.jsonl")), target=PythonTargetConfig(kind="python", callable="json:dumps")
    )
    of = GoldRunner(settings, str(tmp_path / "spool"), GoldTraceIds("salt"), "judge", evaluate)
    assert of.store_path == tmp_path / "spool.gold"


def test_texts_that_utf8_does_not_know_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    begun = store.begin(run([], state="running"))
    odd = run([1.0]).outcomes[0]
    store.add(begun, replace(odd, answer="half \ud800 a pair"))
    assert store.whole(begun).outcomes[0].answer == "half ? a pair"
