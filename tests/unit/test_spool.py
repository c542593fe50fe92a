"""The spool's file: what is on the disk, what goes, and what becomes of a disk or a file that does not work."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import threading
from array import array
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.otlp import RESOURCE, log, raw_log, raw_span, span, trace_id
from tests.results import NOW, relevancy, result
from tracescore.errors import SpoolError, UsageError
from tracescore.model import Item, Message, Score, Unscored
from tracescore.net.wire import Envelope, Withheld
from tracescore.spool import MemorySpool
from tracescore.spool.changes import (
    Decided,
    Delivered,
    Fact,
    Finished,
    Gone,
    Lost,
    Owing,
    PassedOn,
    Pieces,
    Totals,
    TraceRead,
    TracesRead,
    key_of,
)
from tracescore.spool.codec import brief, decode, encode
from tracescore.spool.file import File
from tracescore.spool.schema import TABLES, add_checksum
from tracescore.spool.stored import Stored
from tracescore.spool.writer import FileSpool

pytestmark = pytest.mark.anyio
SIZE = 2**30


class Rig:
    def __init__(self, path: Path, max_size: int = SIZE, *, texts: bool = True) -> None:
        self.path, self.registry = path, CollectorRegistry()
        self.spool = FileSpool(path, max_size, self.registry, texts=texts)
        self.effects: list[str] = []
        self._names: dict[int, str] = {}

    def start(self) -> Stored:
        stored = self.spool.open()
        self.spool.start(lambda change: self.effects.append(self._names.pop(id(change), "")))
        return stored

    async def commit(self, change: Any, name: str = "") -> None:
        self._names[id(change)] = name
        await self.spool.commit(change)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tracescore_spool_{name}", labels)

    def limit(self, pages: int) -> None:
        """The disk has no more than so many pages; SQLite says the same as when it is full."""
        assert self.spool._file is not None
        self.spool._file.db.execute(f"PRAGMA max_page_count = {pages}")

    async def until(self, name: str, wanted: float, **labels: str) -> None:
        for _ in range(500):
            if self.value(name, **labels) == wanted:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(name)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "spool")
    yield made
    await made.spool.close()


def pieces(number: int = 1, trace: int = 1, size: int = 10, at: float = NOW) -> Pieces:
    return Pieces([raw_span(span(number, 0, trace, name="n" * size))], [], at)


def reopened(path: Path) -> tuple[File, Stored]:
    file = File(path, SIZE)
    return file, Stored(file.db, lambda: None)


# ---------------------------------------------------------------- pieces


async def test_pieces_come_back_as_they_came_with_the_time_they_came(rig: Rig) -> None:
    rig.start()
    spans = [raw_span(span(1, trace=1)), raw_span(span(2, 1, trace=1)), raw_span(span(1, trace=2))]
    logs = [raw_log(log(1, time_unix_nano=1)), raw_log(log(1, time_unix_nano=2))]
    await rig.commit(Pieces(spans, logs, NOW))
    await rig.commit(Pieces([raw_span(span(3, 1, trace=1))], [], NOW + 5))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    first, second = stored.requests()
    assert (first.spans, first.logs, first.at) == (spans, logs, NOW)
    assert (len(second.spans), second.at) == (1, NOW + 5)
    assert first.spans[0].resource is first.spans[1].resource, "what is shared is shared again"
    assert file.db.execute("SELECT count(*) FROM origins").fetchone() == (1,)
    file.close()


async def test_a_request_sent_again_changes_nothing_and_another_version_of_a_span_is_kept(rig: Rig) -> None:
    rig.start()
    for _ in range(3):
        await rig.commit(pieces())
    await rig.commit(pieces(size=11))
    other = raw_span(span(1, name="n" * 10))._replace(resource=RESOURCE.SerializeToString() + b"\x10\x01")
    await rig.commit(Pieces([other], [], NOW))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert sum(len(held.spans) for held in stored.requests()) == 3
    file.close()


def kept_back(number: int, tenant: str = "one") -> Withheld:
    headers = ((b"x-tenant", tenant.encode()), (b"odd-bin", b"\xff\x00"))
    envelope = Envelope("grpc", "/Export", headers, json=False, encoding="gzip")
    return Withheld(trace_id(1), number.to_bytes(8, "big"), b"", envelope, b"request %d" % number)


async def test_spans_kept_back_come_back_with_their_envelopes_until_they_were_passed_on(rig: Rig) -> None:
    rig.start()
    first, second, third = kept_back(1), kept_back(2, "two"), kept_back(3)
    await rig.commit(Pieces([], [], NOW, [first, second]))
    await rig.commit(Pieces([], [], NOW + 5, [first, third]))
    await rig.commit(PassedOn([second]))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert list(stored.withheld()) == [(first, NOW), (third, NOW + 5)]
    file.close()


async def test_a_span_kept_back_for_two_tenants_stays_for_the_one_it_was_not_passed_on_to(rig: Rig) -> None:
    rig.start()
    await rig.commit(Pieces([], [], NOW, [kept_back(1), kept_back(1, "two")]))
    await rig.commit(PassedOn([kept_back(1)]))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert list(stored.withheld()) == [(kept_back(1, "two"), NOW)]
    file.close()


async def test_totals_that_cannot_be_read_are_none_and_everything_kept_counts_anew(rig: Rig) -> None:
    rig.start()
    await rig.commit(Finished(result(relevancy(0.5)), []))
    await rig.commit(Totals(b"{bad", 1, NOW, 0.0, 10))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert stored.totals == {}
    assert [past.counted for past in stored.results()] == [False]
    file.close()


async def test_what_is_owed_to_an_exporter_that_is_there_no_more_is_forgotten(rig: Rig) -> None:
    rig.start()
    await rig.commit(Finished(result(relevancy(0.5)), ["otlp", "phoenix"]))
    await rig.commit(Owing(["otlp", "hold"]))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert [past.owed for past in stored.results()] == [{"otlp"}]
    file.close()


async def test_pieces_stay_until_nothing_needs_them(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces())
    done = result(relevancy(0.5), number=1)
    waiting = Decided(done.interaction.span_id, "complete", "waiting", 2.0)
    await rig.commit(TracesRead([TraceRead(trace_id(1), 1, NOW, [waiting])], []))
    await rig.commit(TracesRead([], [Gone(trace_id(1), 1, NOW, array("Q", [1]))]))
    assert count(rig, "pieces") == 1, "the interaction still waits for the judge"
    await rig.commit(pieces(number=2))
    await rig.commit(Finished(done, []))
    assert count(rig, "pieces") == 1, "what came after the trace was let go is another trace"
    await rig.commit(TracesRead([TraceRead(trace_id(1), 4, NOW, [])], [Gone(trace_id(1), 4, NOW, array("Q", [1, 2]))]))
    assert count(rig, "pieces") == 0


async def test_an_interaction_that_waits_is_read_from_what_it_was_read_from(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces(1))
    await rig.commit(
        TracesRead([TraceRead(trace_id(1), 1, NOW, [Decided("a", "complete", "waiting", 4.0, "beta")])], [])
    )
    await rig.commit(pieces(2))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    (known,) = stored.interactions()
    assert (known.span_id, known.state, known.disposition, known.weight, known.rule) == (
        "a",
        "complete",
        "waiting",
        4.0,
        "beta",
    )
    assert len(stored.pieces_of(known).spans) == 1
    assert [len(held.spans) for held in stored.closed()] == [1]
    assert [len(held.spans) for held in stored.requests()] == [1]
    file.close()


@pytest.mark.parametrize("damaged", [False, True])
async def test_a_file_from_before_services_were_noted_goes_on_without_those_rows_that_are_damaged(
    rig: Rig, damaged: bool
) -> None:
    rig.start()
    await rig.commit(pieces(1))
    decided = [Decided(span_id, "complete", "waiting", 4.0, "beta", ("shop", "prod")) for span_id in ("a", "b")]
    await rig.commit(TracesRead([TraceRead(trace_id(1), 1, NOW, decided)], []))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    assert {(known.service, known.environment) for known in stored.interactions()} == {("shop", "prod")}
    file.close()
    before = TABLES["interactions"]._replace(columns=TABLES["interactions"].columns[:-2])
    with closing(sqlite3.connect(rig.path)) as db, db:
        add_checksum(db)
        db.execute("ALTER TABLE interactions RENAME TO now")
        db.execute(before.create("interactions"))
        db.execute(f"INSERT INTO interactions ({before.names}) SELECT {before.names} FROM now")
        db.execute("DROP TABLE now")
        db.execute("PRAGMA user_version = 2")
    if damaged:
        content = rig.path.read_bytes()
        assert content.count(b"completewaiting") == 2
        rig.path.write_bytes(content.replace(b"completewaiting", b"completewaitinh", 1))
    file, stored = reopened(rig.path)
    assert file.damaged_rows == damaged
    known = list(stored.interactions())
    assert {(each.weight, each.rule, each.service, each.environment) for each in known} == {(4.0, "beta", "", "")}
    assert len(known) == 2 - damaged
    assert len(list(stored.requests())) + len(list(stored.closed())) == 1
    file.close()


def count(rig: Rig, table: str) -> int:
    assert rig.spool._file is not None
    return int(rig.spool._file.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_a_lost_interaction_ends_and_lets_its_pieces_go(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces())
    await rig.commit(TracesRead([TraceRead(trace_id(1), 1, NOW, [Decided("a", "complete", "waiting")])], []))
    await rig.commit(TracesRead([], [Gone(trace_id(1), 1, NOW, array("Q"))]))
    await rig.commit(Lost(trace_id(1), "a"))
    assert count(rig, "pieces") == 0


# ---------------------------------------------------------------- results


async def test_results_keep_their_texts_for_the_page_and_their_numbers_for_the_window(rig: Rig) -> None:
    rig.start()
    for number in range(1, 7):
        await rig.commit(Finished(result(relevancy(0.5), number=number, ended=NOW - 600 * (6 - number)), ["otlp"]))
        await rig.commit(Delivered("otlp", key_of(result(number=number))))
    await rig.commit(Totals(b"{}", 12, NOW, NOW - 1500, keep=2))
    kept = Stored(rig.spool._file.db, lambda: None).results()  # type: ignore[union-attr]
    assert [(int(past.result.interaction.trace_id, 16), past.whole) for past in kept] == [
        (4, False),
        (5, True),
        (6, True),
    ]


async def test_texts_go_once_they_are_older_than_they_may_be_kept(rig: Rig) -> None:
    rig.start()
    for number in (1, 2):
        await rig.commit(Finished(result(relevancy(0.5), number=number, ended=NOW - 100 * number), []))
    await rig.commit(Totals(b"{}", 2, NOW, NOW - 1500, keep=100, texts_since=NOW - 150))
    kept = Stored(rig.spool._file.db, lambda: None).results()  # type: ignore[union-attr]
    assert [past.whole for past in kept] == [True, False]


async def test_without_texts_the_file_holds_figures_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "spool", texts=False)
    rig.start()
    await rig.commit(pieces(size=100))
    await rig.commit(Pieces([], [], NOW, [kept_back(1)]))
    await rig.commit(Finished(result(relevancy(0.5), question="Whose knee?"), ["otlp"]))
    await rig.spool.close()
    file, stored = reopened(rig.path)
    (past,) = stored.results()
    assert (past.whole, past.owed, past.result.interaction.question) == (False, frozenset({"otlp"}), None)
    assert list(stored.requests()) == list(stored.withheld()) == []
    file.close()
    assert not {name for name in (b"Whose knee", b"nnnnnnn") if name in rig.path.read_bytes()}


async def test_what_is_owed_or_not_in_the_totals_is_kept_whole(rig: Rig) -> None:
    rig.start()
    for number in (1, 2, 3):
        await rig.commit(
            Finished(result(relevancy(0.5), number=number, ended=NOW - 9000), ["otlp"] if number == 1 else [])
        )
    await rig.commit(Totals(b"{}", 2, NOW, NOW - 10, keep=0))
    kept = list(Stored(rig.spool._file.db, lambda: None).results())  # type: ignore[union-attr]
    assert [(past.owed, past.counted, past.whole) for past in kept] == [
        (frozenset({"otlp"}), True, True),
        (frozenset(), False, True),
    ]


async def test_texts_for_the_page_never_take_the_room_of_what_must_be_kept(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "spool", max_size=2**22)
    rig.start()
    for number in range(1, 101):
        texts = {"question": "q" * 50_000, "number": number}
        await rig.commit(Finished(result(relevancy(0.5), **texts), []))
    assert not rig.spool.room()
    await rig.commit(Totals(b"{}", 100, NOW, NOW - 1500, keep=1000))
    assert rig.spool.room()
    assert rig.spool._file.used < 2**21  # type: ignore[union-attr]
    await rig.spool.close()


async def test_what_is_remembered_of_finished_traces_is_bounded_in_time(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces(trace=1))
    await rig.commit(pieces(trace=2))
    read = [
        TraceRead(trace_id(n), 2, NOW, [Decided("a", "complete", "waiting" if n == 1 else "left_out")]) for n in (1, 2)
    ]
    await rig.commit(TracesRead(read, []))
    await rig.commit(TracesRead([], [Gone(trace_id(n), 3, NOW, array("Q", [n])) for n in (1, 2)]))
    await rig.commit(Totals(b"{}", 4, NOW + 3000, NOW, keep=1))
    assert (count(rig, "traces"), count(rig, "interactions")) == (2, 2)
    await rig.commit(Totals(b"{}", 5, NOW + 3601, NOW, keep=1))
    assert (count(rig, "traces"), count(rig, "interactions")) == (1, 1), "only the one that waits is left"


texts = st.text(st.characters(), max_size=20)


@given(texts, texts, st.floats(0, 1), st.lists(texts, max_size=3))
def test_a_result_is_the_same_after_it_was_written(
    question: str, quote: str, value: float, contexts: list[str]
) -> None:
    clean = {"question": question.encode("utf-8", "replace").decode(), "contexts": tuple(contexts)}
    item = Item("claim", "text", "supported", quote.encode("utf-8", "replace").decode(), 0.5)
    evaluations = (
        Score("faithfulness", value, items=(item,), details={"contradicted": 1.0}),
        Unscored("completeness", "judge_incomplete", "d", 0.1, 0.9),
    )
    contexts = [text.encode("utf-8", "replace").decode() for text in contexts]
    made = result(*evaluations, **(clean | {"contexts": tuple(contexts)}), unusable=frozenset({"answer"}),
                  history=(Message("user", "hi"),), slices={"route": "/a"})  # fmt: skip
    assert decode(encode(made)) == made


def test_without_its_texts_a_result_holds_nothing_that_users_wrote() -> None:
    words = {"question": "secret", "answer": "secret", "reference": "secret", "contexts": ("secret",)}
    items = (Item("claim", "secret", "supported", "secret"),)
    made = result(Score("faithfulness", 0.5, items=items), history=(Message("user", "secret"),), **words)
    assert b"secret" in encode(made)
    assert b"secret" not in encode(brief(made))
    assert [score.value for score in decode(encode(brief(made))).scores()] == [0.5]


def test_half_a_surrogate_pair_does_not_cost_the_result() -> None:
    assert decode(encode(result(relevancy(0.5), question="a\ud800b"))).interaction.question == "a?b"


# ---------------------------------------------------------------- the order of effects


async def test_changes_take_effect_in_order_and_only_once_they_are_on_the_disk(rig: Rig) -> None:
    rig.start()
    waiting = [asyncio.ensure_future(rig.commit(pieces(number), str(number))) for number in range(1, 40)]
    await asyncio.gather(*waiting)
    assert rig.effects == [str(number) for number in range(1, 40)]
    assert rig.spool.applied == 39
    assert (rig.value("commits_total") or 99) < 39, "changes that wait together are committed together"
    assert rig.value("commit_duration_seconds_count") == rig.value("commits_total")


async def test_a_change_takes_effect_in_its_place_though_nobody_waits_for_it_any_more(rig: Rig) -> None:
    rig.start()
    gone = asyncio.ensure_future(rig.commit(pieces(1), "1"))
    await asyncio.sleep(0)
    gone.cancel()
    await rig.commit(pieces(2), "2")
    assert rig.effects == ["1", "2"]


async def test_numbers_go_on_after_a_restart(rig: Rig, tmp_path: Path) -> None:
    rig.start()
    await rig.commit(pieces())
    await rig.commit(Totals(b"{}", 1, NOW, NOW, keep=1))
    await rig.spool.close()
    again = Rig(rig.path)
    again.start()
    assert again.spool.applied == 1
    await again.commit(pieces(2))
    assert again.spool.applied == 2
    await again.spool.close()


async def test_a_change_that_cannot_be_written_does_not_take_the_others_with_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        refusable = False

        def write(self, tables: Any, op: int) -> None:
            raise ValueError("broken")

    rig.start()
    done = await asyncio.gather(
        rig.commit(pieces(1), "1"), rig.commit(Broken(), "broken"), rig.commit(pieces(2), "2"), return_exceptions=True
    )
    assert isinstance(done[1], SpoolError)
    assert rig.effects == ["1", "2"]
    assert rig.spool.room()
    assert rig.value("errors_total", reason="defect")
    assert "event=defect change=Broken error=ValueError" in caplog.text


async def test_without_a_path_changes_take_effect_at_once_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    spool, effects = MemorySpool(), []
    with caplog.at_level("INFO"):
        assert spool.open() is None
    spool.start(effects.append)
    change = pieces()
    await spool.commit(change)
    assert (effects, spool.room()) == ([change], True)
    assert "event=memory_only" in caplog.text


# ---------------------------------------------------------------- the file


async def test_only_the_owner_can_read_the_file(rig: Rig) -> None:
    rig.path.touch(0o644)
    old = os.umask(0)
    try:
        rig.start()
        await rig.commit(pieces())
    finally:
        os.umask(old)
    for file in rig.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


async def test_a_file_in_use_is_refused_in_one_line(rig: Rig) -> None:
    rig.start()
    with pytest.raises(UsageError, match="another process uses"):
        Rig(rig.path).spool.open()


@pytest.mark.parametrize("path", ["no/such/folder/spool", "."])
async def test_a_path_that_cannot_be_opened_is_refused_in_one_line(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError, match=r"^spool.path: .* cannot be opened: .*; name a file there$"):
        Rig(tmp_path / path).spool.open()


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "theirs") as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()
    with pytest.raises(UsageError, match="of another version or program"):
        Rig(tmp_path / "theirs").spool.open()


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def scribble(file: Path) -> None:
    with file.open("r+b") as opened:
        for offset in range(8192, file.stat().st_size, 8192):
            opened.seek(offset)
            opened.write(os.urandom(512))


def tear_off(file: Path, size: int) -> None:
    os.truncate(file, file.stat().st_size - size)


DAMAGE = {
    "not a database": lambda file: file.write_bytes(b"This is no database. " * 1000),
    "cut in half": cut_in_half,
    "scribbled over": scribble,
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_of_a_damaged_file_what_can_be_read_goes_on_and_it_is_kept_aside(
    rig: Rig, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig.start()
    for number in range(1, 60):
        await rig.commit(pieces(number, size=2000))
    await rig.spool.close()
    DAMAGE[damage](rig.path)
    again = Rig(rig.path)
    assert len(list(again.start().requests())) < 59
    await again.commit(pieces(), "works")
    assert again.effects == ["works"]
    assert again.value("errors_total", reason="damaged") == 1
    assert rig.path.with_name("spool.damaged").exists()
    assert "event=spool_damaged" in caplog.text
    await again.spool.close()


async def test_a_newest_page_that_cannot_be_read_costs_what_stands_on_it(rig: Rig) -> None:
    rig.start()
    for number in range(1, 60):
        await rig.commit(pieces(number, size=2000))
    await rig.spool.close()
    content = bytearray(rig.path.read_bytes())
    page, (root,) = int.from_bytes(content[16:18], "big"), _root(rig.path)
    newest = int.from_bytes(content[(root - 1) * page + 8 :][:4], "big")
    content[(newest - 1) * page : newest * page] = bytes(page)
    rig.path.write_bytes(content)
    again = Rig(rig.path)
    assert 0 < len(list(again.start().requests())) < 59
    await again.spool.close()


def _root(path: Path) -> tuple[int]:
    """The number of the first page of the pieces."""
    with closing(sqlite3.connect(path)) as db:
        add_checksum(db)
        row: tuple[int] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'pieces'").fetchone()
        return row


async def test_a_damaged_file_for_whose_copy_there_was_no_room_is_mended_once_there_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.start()
    await rig.commit(Fact("a", b"1"))
    written, salvaged = File.write, File._salvage
    full, corrupt = sqlite3.OperationalError("full"), sqlite3.DatabaseError("malformed")
    full.sqlite_errorcode, corrupt.sqlite_errorcode = sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT
    failures = {"write": [corrupt], "salvage": [full]}

    def write(self: File, changes: Any) -> None:
        if failures["write"]:
            raise failures["write"].pop()
        written(self, changes)

    def salvage(self: File) -> Any:
        if failures["salvage"]:
            raise failures["salvage"].pop()
        return salvaged(self)

    monkeypatch.setattr(File, "write", write)
    monkeypatch.setattr(File, "_salvage", salvage)
    await rig.commit(Fact("result", b"2"), "written")
    assert rig.effects[-1] == "written"
    await rig.spool.close()
    again = Rig(rig.path)
    stored = again.start()
    assert [stored.fact(name) for name in ("a", "result")] == [b"1", b"2"]
    await again.spool.close()


def flip(path: Path, text: bytes) -> None:
    """Turns one bit of a text over where it stands last."""
    content = bytearray(path.read_bytes())
    content[content.rindex(text)] ^= 1
    path.write_bytes(content)


async def test_one_flipped_bit_costs_its_row_and_no_other(rig: Rig) -> None:
    rig.start()
    for number in range(1, 6):
        await rig.commit(pieces(number, trace=number, size=500))
        await rig.commit(Fact(f"fact {number}", b"value %d" % number))
    await rig.spool.close()
    flip(rig.path, b"value 3")
    flip(rig.path, raw_span(span(2, 0, 2, name="n" * 500)).span)
    again = Rig(rig.path)
    stored = again.start()
    assert [held.spans[0].trace_id[-1] for held in stored.requests()] == [1, 3, 4, 5]
    facts = [stored.fact(f"fact {number}") for number in range(1, 6)]
    assert facts == [b"value 1", b"value 2", None, b"value 4", b"value 5"]
    assert again.value("damaged_rows_total") == 2
    await again.spool.close()


async def test_damage_to_the_latest_totals_leaves_those_before_them(rig: Rig) -> None:
    rig.start()
    for op in (1, 2):
        await rig.commit(Totals(b'{"ledger": "totals %d"}' % op, op, NOW, NOW - 3600, 10))
    await rig.spool.close()
    flip(rig.path, b"totals 2")
    again = Rig(rig.path)
    assert again.start().totals == {"ledger": "totals 1"}
    await again.spool.close()


async def test_a_name_in_the_schema_that_is_damaged_costs_no_row(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces())
    await rig.spool.close()
    rig.path.write_bytes(rig.path.read_bytes().replace(b"UNIQUE INDEX piece", b"UNIQUE INDEX \x85iece"))
    again = Rig(rig.path)
    assert len(list(again.start().requests())) == 1
    await again.spool.close()


async def test_no_damaged_file_takes_the_place_of_an_earlier_one(rig: Rig) -> None:
    for text in (b"first", b"second", b"third"):
        rig.path.write_bytes(text * 1000)
        File(rig.path, SIZE).close()
    kept = [rig.path.with_name(f"spool.damaged{number}").read_bytes()[:5] for number in ("", "-2", "-3")]
    assert kept == [b"first", b"secon", b"third"]


async def test_a_disk_that_answers_no_more_is_told_after_some_seconds(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracescore.spool.writer._STUCK", 0.2)
    rig.start()
    await rig.commit(pieces())
    assert not rig.spool.stuck()
    go_on, write = threading.Event(), File.write

    def frozen(file: File, changes: Any) -> None:
        go_on.wait()
        write(file, changes)

    monkeypatch.setattr(File, "write", frozen)
    waiting = asyncio.ensure_future(rig.commit(pieces(2)))
    while not rig.spool.stuck():  # noqa: ASYNC110 - the clock tells nobody
        await asyncio.sleep(0.01)
    go_on.set()
    await waiting
    assert not rig.spool.stuck()


async def test_a_file_that_is_damaged_at_work_is_replaced_and_what_must_be_written_is(rig: Rig) -> None:
    rig.start()
    await rig.commit(pieces())
    rig.spool._file.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[union-attr]
    scribble(rig.path)
    rig.spool._file.db.execute("PRAGMA shrink_memory")  # type: ignore[union-attr]
    await asyncio.wait_for(rig.commit(Finished(result(relevancy(0.5)), []), "result"), 20)
    assert rig.effects == ["", "result"]
    assert rig.value("errors_total", reason="damaged") == 1
    assert rig.spool.room()


@pytest.mark.parametrize("torn", [1, 5000, 17_000])
async def test_a_torn_tail_costs_no_more_than_what_was_never_acknowledged(rig: Rig, tmp_path: Path, torn: int) -> None:
    rig.start()
    for number in range(1, 6):
        await rig.commit(pieces(number, size=20_000))
    copy = tmp_path / "copy"
    for suffix in ("", "-wal"):
        shutil.copy(f"{rig.path}{suffix}", f"{copy}{suffix}")
    tear_off(Path(f"{copy}-wal"), torn)
    file, stored = reopened(copy)
    assert not file.was_damaged
    assert sum(len(held.spans) for held in stored.requests()) == 4
    file.close()


# ---------------------------------------------------------------- no room


async def test_at_its_full_size_it_has_no_room_but_results_are_still_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "spool", max_size=2**20)
    rig.start()
    number = 0
    while rig.spool.room():
        number += 1
        await rig.commit(pieces(number, size=50_000))
    await rig.commit(Finished(result(relevancy(0.5)), []), "result")
    assert rig.effects[-1] == "result"
    await rig.commit(TracesRead([], [Gone(trace_id(1), number, NOW, array("Q"))]))
    assert rig.spool.room(), "what is deleted is room again"
    await rig.spool.close()


async def test_while_the_disk_is_full_senders_wait_and_results_are_written_later(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.start()
    await rig.commit(pieces(1))
    rig.limit(1)
    with pytest.raises(SpoolError):
        await rig.commit(pieces(2, size=50_000))
    assert not rig.spool.room()
    assert rig.value("writable") == 0
    late = asyncio.ensure_future(rig.commit(Finished(result(relevancy(0.5), question="q" * 50_000), []), "late"))
    await rig.until("errors_total", 2, reason="full")
    assert not late.done()
    rig.limit(10_000)
    await asyncio.wait_for(late, 10)
    assert rig.effects == ["", "late"]
    assert rig.spool.room()
    assert rig.value("writable") == 1
    assert next(line.split()[0] for line in caplog.messages if "spool" in line) == "event=spool_full"


async def test_a_disk_that_has_room_again_is_found_out_without_anybody_asking(rig: Rig) -> None:
    rig.start()
    rig.limit(1)
    with pytest.raises(SpoolError):
        await rig.commit(pieces(2, size=200_000))
    rig.limit(10_000)
    await rig.until("writable", 1)


async def test_the_end_does_not_wait_for_ever_for_a_disk_that_stays_full(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tracescore.spool.writer._LAST_ATTEMPTS", 0.1)
    rig.start()
    rig.limit(1)
    rig.spool.note(Fact("f", b"x" * 200_000))
    await asyncio.wait_for(rig.spool.close(), 10)
    assert "event=spool_given_up changes=1" in caplog.text
