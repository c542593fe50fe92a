"""The runs of gold sets in an SQLite file, so that they outlast the process and `gold run` and `serve` share them.

Every call is one short transaction on a connection of its own and may be made from any thread; another process that
writes is waited for. Only one run is active at a time: the runner holds a lock on a file beside the store.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from tracescore.errors import UsageError
from tracescore.gold.results import ItemOutcome, Run, RunState
from tracescore.net.wire import dumps_utf8
from tracescore.spool import sqlite

_BUSY = 10.0
"""Seconds to wait for another process that writes."""
_ALWAYS_KEPT = 10
"""Runs of every gold set that stay, however old."""

_KIND = sqlite.FileKind(
    "gold.store",
    application_id=int.from_bytes(b"tscg", "big"),
    version=1,
    schema="""
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, gold_set TEXT NOT NULL, hash TEXT NOT NULL,
    size INTEGER NOT NULL, service TEXT NOT NULL, release TEXT NOT NULL, judge TEXT NOT NULL,
    trigger TEXT NOT NULL, started REAL NOT NULL, epoch INTEGER NOT NULL, finished REAL NOT NULL, state TEXT NOT NULL,
    detail TEXT NOT NULL, reference INTEGER NOT NULL);
CREATE INDEX of_set ON runs (gold_set, id);
CREATE TABLE outcomes (run INTEGER NOT NULL, item TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (run, item))
    WITHOUT ROWID;
CREATE TABLE releases (service TEXT NOT NULL, release TEXT NOT NULL, seen REAL NOT NULL, PRIMARY KEY (service, release))
    WITHOUT ROWID;
CREATE TABLE pins (gold_set TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
""",
)
_COLUMNS = (
    "gold_set hash size service release judge trigger started epoch finished state detail reference".split()  # noqa: SIM905
)
_READER = TypeAdapter(ItemOutcome)


class Store:
    """The file at `path`; None keeps everything in memory. UsageError from any call: the file cannot be used."""

    def __init__(self, path: Path | None) -> None:
        """Opens or creates it, readable by its owner alone. UsageError: it cannot be used."""
        self.path = path
        self._lock = threading.Lock()
        self._memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None) if not path else None
        try:
            if path is not None:
                sqlite.claim(path, _KIND)
            with self._begin() as db:
                sqlite.prepare(db, path, _KIND)
        except OSError as error:
            raise UsageError(f"gold.store: {path} cannot be opened: {error.strerror}; name a file there") from None

    @contextmanager
    def _begin(self, mode: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """A transaction; what it changed stays only when the block ends well. Those that only read are deferred."""
        with self._lock:
            db = self._memory or sqlite3.connect(str(self.path), timeout=_BUSY, isolation_level=None)
            try:
                db.execute("PRAGMA secure_delete = ON")
                db.execute(f"BEGIN {mode}")
                yield db
                db.execute("COMMIT")
            except sqlite3.Error as error:
                raise UsageError(f"gold.store: {self.path} cannot be used: {error}; name another file") from None
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if db is not self._memory:
                    db.close()

    @contextmanager
    def only_runner(self) -> Iterator[bool]:
        """Whether nobody else is running any gold set of this store, while the block lasts."""
        if self.path is None:
            yield True
            return
        try:
            handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UsageError(f"gold.store: {self.path}.lock cannot be opened: {error.strerror}") from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    def begin(self, run: Run) -> Run:
        """Notes a run that starts; returns it with its number."""
        with self._begin() as db:
            values = [getattr(run, name) for name in _COLUMNS]
            marks = ", ".join("?" * len(_COLUMNS))
            done = db.execute(f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})", values)  # noqa: S608
            return replace(run, id=done.lastrowid or 0)

    def add(self, run: Run, outcome: ItemOutcome) -> None:
        """Notes what became of an item; what is noted of it already is replaced."""
        content = dumps_utf8(outcome)
        with self._begin() as db:
            db.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)", (run.id, outcome.id, content))

    def end(self, run: Run) -> None:
        """Notes how a run ended."""
        with self._begin() as db:
            db.execute(
                "UPDATE runs SET service = ?, release = ?, epoch = ?, finished = ?, state = ?, detail = ? WHERE id = ?",
                (run.service, run.release, run.epoch, run.finished, run.state, run.detail, run.id),
            )

    def refer(self, gold_set: str, runs: Sequence[Run], *, at: float | None = None) -> None:
        """Makes `runs` the reference of their set, in place of those before; `at`: a person pinned them then."""
        with self._begin() as db:
            db.execute("UPDATE runs SET reference = 0 WHERE gold_set = ?", (gold_set,))
            for run in runs:
                db.execute("UPDATE runs SET reference = 1 WHERE id = ?", (run.id,))
            if at is not None:
                db.execute("INSERT OR REPLACE INTO pins VALUES (?, ?)", (gold_set, at))

    def add_releases(self, seen: Iterable[tuple[str, str, float]]) -> None:
        """Notes service, release, and when it was seen first (Unix seconds)."""
        with self._begin() as db:
            db.executemany("INSERT OR IGNORE INTO releases VALUES (?, ?, ?)", seen)

    def erase(self, trace_ids: Iterable[str]) -> int:
        """Deletes the outcomes of these traces, and overwrites them; how many there were."""
        where = "WHERE json_extract(CAST(content AS TEXT), '$.trace_id') = ?"
        with self._begin() as db:
            return sum(db.execute(f"DELETE FROM outcomes {where}", (each,)).rowcount for each in trace_ids)  # noqa: S608

    def forget_texts(self, gold_set: str, before: float) -> None:
        """Deletes the questions and answers of runs that began earlier, but for those that are the reference."""
        with self._begin() as db:
            db.execute(
                "DELETE FROM outcomes WHERE run IN "
                "(SELECT id FROM runs WHERE gold_set = ? AND started < ? AND NOT reference)",
                (gold_set, before),
            )

    def forget(self, gold_set: str, before: float, releases: int) -> None:
        """Deletes runs that began earlier, but for references and the last few, and what is known of old releases.

        Of each service as many of the newest stay as `releases` says.
        """
        with self._begin() as db:
            db.execute(
                "DELETE FROM runs WHERE gold_set = ? AND started < ? AND NOT reference AND id NOT IN "
                "(SELECT id FROM runs WHERE gold_set = ? ORDER BY id DESC LIMIT ?)",
                (gold_set, before, gold_set, _ALWAYS_KEPT),
            )
            db.execute("DELETE FROM outcomes WHERE run NOT IN (SELECT id FROM runs)")
            db.execute(
                "DELETE FROM releases WHERE (service, release) IN (SELECT service, release FROM (SELECT service, "
                "release, row_number() OVER (PARTITION BY service ORDER BY seen DESC) AS nth FROM releases) "
                "WHERE nth > ?)",
                (releases,),
            )

    def runs(self, gold_set: str, state: RunState | None = None) -> list[Run]:
        """Its runs without their outcomes, newest first."""
        where, values = ("AND state = ?", [state]) if state else ("", [])
        with self._begin("DEFERRED") as db:
            rows = db.execute(
                f"SELECT id, {', '.join(_COLUMNS)} FROM runs WHERE gold_set = ? {where} ORDER BY id DESC",  # noqa: S608
                [gold_set, *values],
            ).fetchall()
        return [_run(row) for row in rows]

    def whole(self, run: Run) -> Run:
        """The run with its outcomes, in order of their ids."""
        with self._begin("DEFERRED") as db:
            rows = db.execute("SELECT content FROM outcomes WHERE run = ? ORDER BY item", (run.id,)).fetchall()
        try:
            return replace(run, outcomes=tuple(_READER.validate_json(content) for (content,) in rows))
        except ValueError:
            raise UsageError(
                f"gold.store: run {run.id} in {self.path} cannot be read: it is damaged; name another file"
            ) from None

    def histories(self, runs: Sequence[Run]) -> dict[tuple[str, str], dict[int, float | None]]:
        """By item (its id and mark) what it got in each of `runs`; None: it was asked and has no score.

        What counts is the factual part of correctness, or correctness where there is none.
        """
        marks, lead = ", ".join("?" * len(runs)), "json_extract(found.text, '$.values.factual')"
        found: dict[tuple[str, str], dict[int, float | None]] = {}
        with self._begin("DEFERRED") as db:
            rows = db.execute(
                f"SELECT run, item, json_extract(found.text, '$.mark'), coalesce({lead}, "  # noqa: S608
                "json_extract(found.text, '$.values.answer_correctness')) FROM (SELECT run, item, "
                f"CAST(content AS TEXT) AS text FROM outcomes WHERE run IN ({marks})) AS found",
                [run.id for run in runs],
            )
            for run, item, mark, value in rows:
                found.setdefault((item, mark), {})[run] = value
        return found

    def pinned_by_hand(self, gold_set: str) -> bool:
        """Whether a person chose the reference."""
        with self._begin("DEFERRED") as db:
            return db.execute("SELECT 1 FROM pins WHERE gold_set = ?", (gold_set,)).fetchone() is not None

    def releases(self, service: str) -> list[str]:
        """The releases of a service that were seen, oldest first."""
        with self._begin("DEFERRED") as db:
            rows = db.execute("SELECT release FROM releases WHERE service = ? ORDER BY seen", (service,)).fetchall()
        return [release for (release,) in rows]

    def version(self) -> tuple[Any, ...]:
        """Changes whenever a run began or ended or the reference changed, in whichever process."""
        with self._begin("DEFERRED") as db:
            found = db.execute("SELECT max(id), max(finished), total(reference * id), count(*) FROM runs").fetchone()
        return tuple(found)


def _run(row: tuple[Any, ...]) -> Run:
    values = dict(zip(("id", *_COLUMNS), row, strict=True))
    return Run(**values | {"reference": bool(values["reference"])})
