"""What of an earlier process cannot be read costs that alone: the service starts, counts it and says so once."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import anyio
import orjson
import pytest
from prometheus_client import CollectorRegistry

from tests.otlp import raw_span, span, trace_id
from tests.results import NOW, relevancy, result
from tests.unit.test_spool import kept_back
from tracescore.config import Config, SpoolConfig, WebConfig
from tracescore.exporters import Continuing, Exporter
from tracescore.judge.epoch import Epochs
from tracescore.model import Result
from tracescore.pipeline import recovery
from tracescore.pipeline.budget import Budget
from tracescore.service import Service
from tracescore.spool.changes import Decided, Fact, Finished, Pieces, Totals, TraceRead, TracesRead
from tracescore.spool.schema import add_checksum
from tracescore.spool.state import Persisted, StateCodec

pytestmark = pytest.mark.anyio


class Judgeless:
    """Stands for judge and evaluators, which nothing is asked of here."""

    def __init__(self, epochs: Epochs | None) -> None:
        self.judge = SimpleNamespace(name="m", epochs=epochs)
        self.budget = Budget(Config(), CollectorRegistry(), lambda: NOW)

    def ready(self) -> bool:
        return True


def service(path: Path, epochs: Epochs | None = None, watchers: Sequence[Exporter] = (), keep: int = 100) -> Service:
    with patch("tracescore.service.Scorer", lambda *_: Judgeless(epochs)):
        return Service(Config(spool=SpoolConfig(path=str(path)), web=WebConfig(keep=keep)), lambda: NOW, watchers)


async def publish(to: Service, scored: Result) -> None:
    for exporter in to.exporters:
        await exporter.export(scored)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """The file of a process that has scored one answer with 0.5 and noted its totals."""
    before, scored = service(tmp_path / "spool"), result(relevancy(0.5), finished=NOW)
    before.spool.open()
    before.spool.start(lambda _: None)
    decided = Decided(scored.interaction.span_id, "complete", "done")
    trace = TraceRead(bytes.fromhex(scored.interaction.trace_id), 1, NOW, [decided])
    before.spool.note(TracesRead([trace], ()))
    before.ledger.read(scored.interaction)
    before.spool.note(Finished(scored, []))
    before.ledger.finished(scored)
    await publish(before, scored)
    before.spool.note(Totals(recovery.totals(before.journal._parts), 2, NOW, 0.0, 10))
    await before.spool.close()
    return tmp_path / "spool"


class Started:
    """What a service shows that began over a file."""

    def __init__(self, begun: Service) -> None:
        self._begun = begun

    def __call__(self, name: str, **labels: str) -> float:
        families = self._begun.registry.collect()
        found = [s for family in families for s in family.samples if s.name == f"tracescore_{name}"]
        return sum(sample.value for sample in found if labels.items() <= sample.labels.items())

    async def publish(self, scored: Result) -> None:
        await publish(self._begun, scored)


async def started(path: Path, epochs: Epochs | None = None) -> Started:
    begun = service(path, epochs)
    await begun.journal.resume(begun.reader)
    await begun.spool.close()
    return Started(begun)


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Totals as somebody's editor, or another version, left them."""
    with closing(sqlite3.connect(path)) as db, db:
        add_checksum(db)
        (text,) = db.execute("SELECT value FROM facts WHERE name = 'totals'").fetchone()
        document = orjson.loads(text)
        changed = change(document)
        db.execute("UPDATE facts SET value = ?", (orjson.dumps(document if changed is None else changed),))


EDITS = {
    "untouched": (lambda _: None, 0),
    "a list": (lambda _: [], 1),
    "a number": (lambda _: 7, 1),
    "ledger: not there": (lambda t: t.pop("ledger") and None, 0),
    "ledger: null": (lambda t: t.update(ledger=None), 1),
    "ledger.read: a map": (lambda t: t["ledger"].update(read={}), 1),
    "ledger.read: words": (lambda t: t["ledger"]["read"][0].__setitem__(3, "one"), 1),
    "ledger.ended: rows too short": (lambda t: t["ledger"].update(ended=[["completeness", 1]]), 1),
    "ledger.lag: too few counts": (lambda t: t["ledger"]["lag"].update(counts=[1]), 1),
    "ledger: of a later version": (lambda t: t["ledger"].update(version=99), 1),
    "ledger: from before there were versions": (
        lambda t: (
            t["ledger"].update(version=None, read={"complete": 1}, ended=[["answer_relevancy", "scored", "", 1]])
            or t["ledger"].pop("version")
        ),
        0,
    ),
    "ledger.read: not a number": (lambda t: t["ledger"]["read"][0].__setitem__(3, float("nan")), 1),
    "ledger.ended: true for a count": (lambda t: t["ledger"]["ended"][0].__setitem__(4, True), 1),
    "prometheus: a list": (lambda t: t.update(prometheus=[]), 1),
    "prometheus.series: without sums": (lambda t: t["prometheus"]["table"]["series"][0].update(sums={}), 1),
    "prometheus.counters: too few": (lambda t: t["prometheus"].update(counters=[{}]), 1),
    "prometheus.counters: below 0": (lambda t: t["prometheus"]["counters"][0].update(completeness=-1), 1),
    "drift: empty": (lambda t: t.update(drift={}), 1),
    "drift.family: another shape": (lambda t: t["drift"]["family"].update(watched=[{}]), 1),
    "drift.family: another shape in what comes last": (lambda t: t["drift"]["family"].update(conversations=[1]), 1),
    "drift: of a later version": (lambda t: t["drift"].update(version=99), 1),
    "all of them": (lambda t: dict.fromkeys(t, "?"), 7),
}


@pytest.mark.parametrize(("change", "unreadable"), EDITS.values(), ids=EDITS.keys())
async def test_totals_of_another_shape_cost_no_start_and_no_figure(
    path: Path, change: Callable[[Any], object], unreadable: int, caplog: pytest.LogCaptureFixture
) -> None:
    edit(path, change)
    shown = await started(path)
    assert shown("spool_errors_total", reason="unreadable") == unreadable
    assert sum("event=spool_unreadable" in line for line in caplog.messages) == unreadable
    assert shown("interactions_total", state="complete") == 1
    assert shown("evaluations_total", measure="answer_relevancy", outcome="scored") == 1
    assert shown("answer_relevancy_weighted_score_total") == 0.5
    assert shown("answer_relevancy_score_count") == 1
    assert shown("drift_scores", detector="answer_relevancy", against="baseline") == 1


async def test_a_kept_back_span_whose_envelope_is_damaged_is_counted_and_the_others_go_on(path: Path) -> None:
    before = service(path)
    before.spool.open()
    before.spool.start(lambda _: None)
    before.spool.note(Pieces([], [], NOW, [kept_back(1), kept_back(2), kept_back(3)]))
    await before.spool.close()
    with closing(sqlite3.connect(path)) as db, db:
        add_checksum(db)
        broken = {1: b"[1", 2: b'["http", "/v1/traces", [], "no", ""]'}
        db.executemany(
            "UPDATE withheld SET envelope = ? WHERE span_id = ?",
            [(text, number.to_bytes(8, "big")) for number, text in broken.items()],
        )
    assert (await started(path))("spool_errors_total", reason="unreadable") == 2
    again = service(path)
    stored = again.spool.open()
    assert stored is not None
    assert [span for span, _ in stored.withheld()] == [kept_back(3)]
    stored._db.close()


@pytest.mark.parametrize("saved", [b"{bad", b"[]", b"{}", b'["x", "m", "p", "e", ""]', b"[3, 4]"])
async def test_an_epoch_of_the_judge_that_cannot_be_read_costs_no_start(path: Path, saved: bytes) -> None:
    before = service(path)
    before.spool.open()
    before.spool.start(lambda _: None)
    before.spool.note(Fact("judge epoch of m", saved))
    await before.spool.close()
    epochs = Epochs("m", "p", "e", {}, CollectorRegistry())
    assert (await started(path, epochs))("spool_errors_total", reason="unreadable") == 1
    assert (epochs.number, epochs.model) == (0, "")


@pytest.mark.parametrize("noted", [True, False], ids=["in the totals alone", "in a result after them"])
async def test_after_an_epoch_that_cannot_be_read_comes_a_later_one_than_any_score_is_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, noted: bool
) -> None:
    before, scored = service(tmp_path / "spool"), dataclasses.replace(result(relevancy(0.5)), epoch=3)
    before.spool.open()
    before.spool.start(lambda _: None)
    if noted:
        before.ledger.finished(scored)
        await publish(before, scored)
        before.spool.note(Totals(recovery.totals(before.journal._parts), 2, NOW, 0.0, 10))
    else:
        before.spool.note(Finished(scored, []))
    before.spool.note(Fact("judge epoch of embedded-v2", b"{bad"))
    await before.spool.close()
    epochs = Epochs("embedded-v2", "p", "e", {}, CollectorRegistry())
    shown = await started(tmp_path / "spool", epochs)
    assert epochs.number == 4
    assert 'event=spool_unreadable what="judge epoch" detail="epoch 4 begins"' in caplog.text
    await shown.publish(dataclasses.replace(scored, epoch=epochs.number))
    assert shown("drift_scores", detector="answer_relevancy", against="baseline") == 1
    again = Epochs("embedded-v2", "p", "e", {}, CollectorRegistry())
    assert (await started(tmp_path / "spool", again))("spool_errors_total", reason="unreadable") == 0
    assert again.number == 4


FAULTS: dict[str, Callable[[Service, Callable[..., Any]], None]] = {
    "the ledger": lambda begun, fault: setattr(begun.ledger, "finished", fault),
    "an exporter": lambda begun, fault: setattr(begun.exporters[0], "export", fault),
}


@pytest.mark.parametrize("break_it", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_while_a_result_is_published_does_not_keep_the_file_from_being_tidied_up(
    tmp_path: Path, break_it: Callable[[Service, Callable[..., Any]], None]
) -> None:
    begun = service(tmp_path / "spool", keep=5)
    await begun.journal.resume(begun.reader)
    untouched = begun.ledger.finished, begun.exporters[0].export

    def fault(_: Result) -> None:
        begun.ledger.finished, begun.exporters[0].export = untouched  # type: ignore[method-assign]
        raise ZeroDivisionError

    break_it(begun, fault)
    for number in range(1, 31):
        await begun.evaluating._publish(result(relevancy(0.5), number=number))
    shown = Started(begun)
    assert shown("service_errors_total") == 1
    await begun.journal.close()
    with closing(sqlite3.connect(tmp_path / "spool")) as db:
        assert db.execute("SELECT count(full) FROM results").fetchone() == (5,), "the page keeps no more"
        assert db.execute("SELECT count(*) FROM facts WHERE name = 'totals'").fetchone() == (1,)


class Slow:
    """Never comes to an end with a result."""

    def __init__(self) -> None:
        self.given = anyio.Event()

    async def export(self, result: Result) -> None:
        del result
        self.given.set()
        await anyio.sleep_forever()

    async def close(self) -> None:
        """Nothing to release."""


async def test_a_result_whose_publishing_was_cut_short_is_counted_by_the_next_process(tmp_path: Path) -> None:
    slow = Slow()
    begun = service(tmp_path / "spool", watchers=[slow])
    begun.exporters.insert(0, begun.exporters.pop())  # before all others
    await begun.journal.resume(begun.reader)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begun.evaluating._publish, result(relevancy(0.5)))
        await slow.given.wait()
        tasks.cancel_scope.cancel()
    await begun.journal.close()
    shown = await started(tmp_path / "spool")
    assert shown("evaluations_total", measure="answer_relevancy", outcome="scored") == 1
    assert shown("answer_relevancy_weighted_score_total") == 0.5, "no totals without it were noted"


async def test_a_waiting_trace_that_cannot_be_read_again_is_lost_and_counted_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = service(tmp_path / "spool")
    before.spool.open()
    before.spool.start(lambda _: None)
    rag = {"openinference.span.kind": "CHAIN", "input.value": "How do I reset it?", "output.value": "Choose Forgot."}
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "The link resets it."}
    tops = [raw_span(span(1, 0, trace, rag)) for trace in (1, 2, 3, 4)]
    below = [raw_span(span(2, 1, trace, found)) for trace in (1, 2, 3, 4)]
    tops[:2] = [each._replace(span=b"\xff no span") for each in tops[:2]]
    before.spool.note(Pieces([*tops, *below], [], NOW))
    waiting = Decided(tops[0].span_id.hex(), "complete", "waiting")
    read = [TraceRead(each.trace_id, 1, NOW, [waiting]) for each in tops]
    before.spool.note(TracesRead(read, ()))
    await before.spool.close()
    begun = service(tmp_path / "spool")
    await begun.journal.resume(begun.reader)
    await begun.spool.close()
    shown = Started(begun)
    again = [begun.queue.take_now() for _ in range(3)]
    assert [each and each.trace_id for each in again] == [f"{3:032x}", f"{4:032x}", None]
    assert shown("service_errors_total", stage="interactions") == 2
    assert shown("evaluations_total", measure="completeness", outcome="shed", reason="shutdown") == 2
    assert shown("evaluations_pending", measure="completeness") == 2
    assert sum("event=defect" in line for line in caplog.messages) == 1, "said once"
    assert (await started(tmp_path / "spool"))("service_errors_total") == 0, "it is not tried again at every start"


@dataclasses.dataclass(frozen=True, slots=True)
class NoState(Persisted):
    """Nothing."""


class Raising(Continuing):
    """Can take nothing up again."""

    name, codec = "raising", StateCodec(NoState)

    async def export(self, result: Result) -> None:
        del result
        raise ZeroDivisionError

    def state(self) -> NoState:
        return NoState()

    def resume(self, state: NoState) -> None:
        """Takes nothing up."""

    def refill(self, result: Result) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize("known", [True, False], ids=["refilled", "shown what its totals do not hold"])
async def test_an_exporter_that_raises_at_a_restart_misses_what_it_cannot_take_and_the_others_miss_nothing(
    path: Path, known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    edit(path, lambda totals: totals | {"raising": {}} if known else totals)
    before = service(path)
    before.spool.open()
    before.spool.start(lambda _: None)
    for number in (2, 3):
        before.spool.note(Finished(result(relevancy(0.5), number=number), []))
    await before.spool.close()
    begun = service(path, watchers=[Raising()])
    begun.exporters.insert(0, begun.exporters.pop())  # before all others
    await begun.journal.resume(begun.reader)
    await begun.spool.close()
    shown = Started(begun)
    assert shown("service_errors_total", stage="exporters") == 3
    assert sum("event=defect" in line for line in caplog.messages) == 1, "said once"
    assert shown("evaluations_total", measure="answer_relevancy", outcome="scored") == 3
    assert shown("answer_relevancy_weighted_score_total") == 1.5


@pytest.mark.parametrize(("waits", "left"), [(False, set()), (True, {2})], ids=["nothing waits", "one waits"])
async def test_spans_kept_back_of_a_trace_that_was_read_go_on_at_a_restart_but_for_those_that_will_be_scored(
    tmp_path: Path, waits: bool, left: set[int]
) -> None:
    before = service(tmp_path / "spool")
    before.spool.open()
    before.spool.start(lambda _: None)
    before.spool.note(Pieces([raw_span(span(number)) for number in (1, 2)], [], NOW, [kept_back(1), kept_back(2)]))
    decided = [Decided(f"{2:016x}", "complete", "waiting")] if waits else []
    before.spool.note(TracesRead([TraceRead(trace_id(1), 1, NOW, decided)], ()))
    await before.spool.close()
    again = service(tmp_path / "spool")
    stored, released = again.spool.open(), dict[bytes, set[str]]()
    assert stored is not None
    hold = SimpleNamespace(take=lambda *_: None, read=released.__setitem__)
    parts = dataclasses.replace(again.journal._parts, hold=hold)
    recovery_of = recovery.Recovery(stored, parts, (), again.journal._defects)
    recovery_of.resume_assembly(await recovery_of.resume_counts())
    assert released == {trace_id(1): {f"{number:016x}" for number in left}}
    stored._db.close()
