"""What of an earlier process cannot be read costs that alone: the service starts, counts it and says so once."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW, relevancy, result
from tests.unit.test_spool import kept_back
from tracescore.config import Config, SpoolConfig
from tracescore.judge.epoch import Epochs
from tracescore.model import Result
from tracescore.pipeline import recovery
from tracescore.service import Service
from tracescore.spool.changes import Decided, Fact, Finished, Pieces, Reading, Totals, TraceRead

pytestmark = pytest.mark.anyio


class Judgeless:
    """Stands for judge and evaluators, which nothing is asked of here."""

    def __init__(self, *_: object) -> None:
        """Nothing to build."""


def service(path: Path) -> Service:
    with patch("tracescore.service.Scorer", Judgeless):
        return Service(Config(spool=SpoolConfig(path=str(path))), lambda: NOW)


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """The file of a process that has scored one answer with 0.5 and noted its totals."""
    before, scored = service(tmp_path / "spool"), result(relevancy(0.5), finished=NOW)
    before.spool.open()
    before.spool.start()
    decided = Decided(scored.interaction.span_id, "complete", "done")
    trace = TraceRead(bytes.fromhex(scored.interaction.trace_id), 1, NOW, [decided])
    before.spool.note(Reading([trace], ()))
    before.ledger.read(scored.interaction)
    before.spool.note(Finished(scored, []))
    before.ledger.finished(scored)
    await before._publish(scored)
    before.spool.note(Totals(recovery.totals(before.ledger, before.exporters), 2, NOW, 0.0, 10))
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
        await self._begun._publish(scored)


async def started(path: Path, epochs: Epochs | None = None) -> Started:
    begun = service(path)
    await begun.keeper.resume(epochs, begun._reread, begun.pending.put)
    await begun.spool.close()
    return Started(begun)


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Totals as somebody's editor, or another version, left them."""
    with closing(sqlite3.connect(path)) as db, db:
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
    "ledger.read: a list": (lambda t: t["ledger"].update(read=[]), 1),
    "ledger.read: words": (lambda t: t["ledger"].update(read={"complete": "one"}), 1),
    "ledger.ended: rows too short": (lambda t: t["ledger"].update(ended=[["completeness", 1]]), 1),
    "ledger.lag: too few counts": (lambda t: t["ledger"]["lag"].update(counts=[1]), 1),
    "ledger: of a later version": (lambda t: t["ledger"].update(version=99), 1),
    "ledger: from before there were versions": (lambda t: t["ledger"].pop("version") and None, 0),
    "ledger.read: not a number": (lambda t: t["ledger"]["read"].update(complete=float("nan")), 1),
    "ledger.ended: true for a count": (lambda t: t["ledger"]["ended"][0].__setitem__(3, True), 1),
    "prometheus: a list": (lambda t: t.update(prometheus=[]), 1),
    "prometheus.series: without sums": (lambda t: t["prometheus"]["series"][0].update(sums={}), 1),
    "prometheus.counters: too few": (lambda t: t["prometheus"].update(counters=[{}]), 1),
    "prometheus.counters: below 0": (lambda t: t["prometheus"]["counters"][0].update(completeness=-1), 1),
    "drift: empty": (lambda t: t.update(drift={}), 1),
    "drift.family: another shape": (lambda t: t["drift"]["family"].update(watched=[{}]), 1),
    "drift.family: another shape in what comes last": (lambda t: t["drift"]["family"].update(conversations=[1]), 1),
    "drift: of a later version": (lambda t: t["drift"].update(version=99), 1),
    "all of them": (lambda t: dict.fromkeys(t, "?"), 3),
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
    before.spool.start()
    before.spool.note(Pieces([], [], NOW, [kept_back(1), kept_back(2), kept_back(3)]))
    await before.spool.close()
    with closing(sqlite3.connect(path)) as db, db:
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
    before.spool.start()
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
    before.spool.start()
    if noted:
        before.ledger.finished(scored)
        await before._publish(scored)
        before.spool.note(Totals(recovery.totals(before.ledger, before.exporters), 2, NOW, 0.0, 10))
    else:
        before.spool.note(Finished(scored, []))
    before.spool.note(Fact("judge epoch of embedded-v1", b"{bad"))
    await before.spool.close()
    epochs = Epochs("embedded-v1", "p", "e", {}, CollectorRegistry())
    shown = await started(tmp_path / "spool", epochs)
    assert epochs.number == 4
    assert 'event=spool_unreadable what="judge epoch" detail="epoch 4 begins"' in caplog.text
    await shown.publish(dataclasses.replace(scored, epoch=epochs.number))
    assert shown("drift_scores", detector="answer_relevancy", against="baseline") == 1
    again = Epochs("embedded-v1", "p", "e", {}, CollectorRegistry())
    assert (await started(tmp_path / "spool", again))("spool_errors_total", reason="unreadable") == 0
    assert again.number == 4
