"""The SQLite file of the spool: opening it, writing to it, and what to do when it is damaged."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Literal, get_args

from tracescore.errors import UsageError
from tracescore.spool import sqlite
from tracescore.spool.changes import Change

_log = logging.getLogger("tracescore.spool")

_PAGE = 16_384
"""Bytes: with spans of some KB, an insert and its delete cost a sixth less CPU than in pages of 4 or 8 KiB."""
_SETTINGS = (
    "locking_mode = EXCLUSIVE",
    f"page_size = {_PAGE}",
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 256",  # 4 MiB of log beside the file, so that the two together are about as large as said
)
_SWEEP_EVERY = 1_000
"""Origins added after which unused ones are looked for."""

Trouble = Literal["full", "io", "damaged", "defect", "unreadable"]
"""The disk is full or does not work, the file is damaged, the program is wrong, one stored result cannot be read."""
TROUBLES: tuple[Trouble, ...] = get_args(Trouble)

_KIND = sqlite.FileKind(
    "spool.path",
    application_id=int.from_bytes(b"tscs", "big"),
    version=1,
    schema="""
CREATE TABLE origins (id INTEGER PRIMARY KEY, resource BLOB NOT NULL, scope BLOB NOT NULL);
CREATE TABLE pieces (
    op INTEGER NOT NULL, at REAL NOT NULL, trace_id BLOB NOT NULL, span_id BLOB NOT NULL, kind INTEGER NOT NULL,
    digest INTEGER NOT NULL, parent_span_id BLOB NOT NULL, origin INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE UNIQUE INDEX piece ON pieces (trace_id, span_id, kind, digest);
CREATE TABLE withheld (
    trace_id BLOB NOT NULL, span_id BLOB NOT NULL, digest INTEGER NOT NULL, at REAL NOT NULL,
    parent_span_id BLOB NOT NULL, envelope BLOB NOT NULL, request BLOB NOT NULL, PRIMARY KEY (trace_id, span_id, digest)
);
CREATE TABLE traces (
    trace_id BLOB PRIMARY KEY, read_op INTEGER NOT NULL DEFAULT 0, closed_at REAL NOT NULL DEFAULT 0,
    gone_op INTEGER NOT NULL DEFAULT 0, gone_at REAL NOT NULL DEFAULT 0, ids BLOB NOT NULL DEFAULT x''
) WITHOUT ROWID;
CREATE TABLE interactions (
    trace_id BLOB NOT NULL, span_id TEXT NOT NULL, state TEXT NOT NULL, fate TEXT NOT NULL, weight REAL NOT NULL,
    rule TEXT NOT NULL, read_op INTEGER NOT NULL, op INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (trace_id, span_id)
) WITHOUT ROWID;
CREATE TABLE results (op INTEGER PRIMARY KEY, at REAL NOT NULL, brief BLOB NOT NULL, full BLOB);
CREATE INDEX with_text ON results (op) WHERE full IS NOT NULL;
CREATE TABLE owed (exporter TEXT NOT NULL, key TEXT NOT NULL, op INTEGER NOT NULL, PRIMARY KEY (exporter, key))
    WITHOUT ROWID;
CREATE INDEX owing ON owed (op);
CREATE TABLE facts (name TEXT PRIMARY KEY, op INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
""",
)


class File:
    """One open file. Used by one thread at a time; `db` is for reading at the start."""

    def __init__(self, path: Path, max_size: int) -> None:
        """Opens or creates the file, readable by its owner alone. A damaged one is moved aside.

        UsageError when it cannot be opened, is in use by another process, or is something else.
        """
        self.path, self.max_size = path, max_size
        self.used = 0
        """Bytes in use; the file may be larger, as it does not shrink."""
        self.was_damaged = False
        self._origins: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        self._added = 0
        try:
            self.db = self._opened()
        except sqlite3.DatabaseError as error:
            if trouble(error) != "damaged":
                raise UsageError(_refusal(path, error)) from None
            self.was_damaged = True
            self.start_afresh()
        except OSError as error:
            raise UsageError(f"spool.path: {path} cannot be opened: {error.strerror}; name a file there") from None

    def write(self, changes: Sequence[tuple[int, Change]]) -> None:
        """All the changes, with their numbers, or none; they are on the disk when this returns. sqlite3.Error."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            for op, change in changes:
                change.write(self, op)
            self.db.execute("COMMIT")
        except BaseException:
            self._origins.clear()  # some may have been of this transaction
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            raise
        self._measure()

    def origin(self, resource: bytes, scope: bytes) -> tuple[int, bytes]:
        """See `Tables.origin`. The same content may get a second number after a while, which does no harm."""
        known = self._origins.get((resource, scope))
        if known is None:
            row = self.db.execute("INSERT INTO origins (resource, scope) VALUES (?, ?)", (resource, scope))
            known = self._origins[resource, scope] = (row.lastrowid or 0, _salt(resource, scope))
            self._added += 1
        return known

    def sweep_origins(self) -> None:
        """See `Tables.sweep_origins`."""
        if self._added >= _SWEEP_EVERY:
            self.db.execute("DELETE FROM origins WHERE id NOT IN (SELECT origin FROM pieces)")
            self._origins.clear()
            self._added = 0

    def last_op(self) -> int:
        """The highest number of a change that anything is known of."""
        columns = ("pieces.op", "traces.read_op", "traces.gone_op", "interactions.op", "results.op", "facts.op")
        tables = [(column.partition(".")[0], column) for column in columns]
        highest = [self.db.execute(f"SELECT max({column}) FROM {table}").fetchone()[0] for table, column in tables]  # noqa: S608
        return max(op or 0 for op in highest)

    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.stat().st_size for file in _files(self.path) if file.exists())

    def start_afresh(self) -> None:
        """Moves the file aside, in place of one that was moved before, and begins an empty one."""
        if hasattr(self, "db"):
            self.db.close()
        for file in _files(self.path):
            with suppress(FileNotFoundError):
                file.replace(file.with_name(file.name.replace(self.path.name, f"{self.path.name}.damaged")))
        self._origins.clear()
        self.db = self._opened()
        _log.error(
            'event=spool_damaged moved_to="%s.damaged" detail="what it held is lost; an empty one is begun"', self.path
        )

    def close(self) -> None:
        """Leaves one complete file."""
        self.db.close()

    def _opened(self) -> sqlite3.Connection:
        sqlite.claim(self.path, _KIND)
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        self.db = db
        self._measure()
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        db.execute("BEGIN IMMEDIATE")  # takes the lock
        sqlite.prepare(db, self.path, _KIND)
        db.execute("COMMIT")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            error = sqlite3.DatabaseError("the check at the start failed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    def _measure(self) -> None:
        ask = self.db.execute
        pages, free = (ask(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        self.used = (pages - free) * ask("PRAGMA page_size").fetchone()[0]


def trouble(error: BaseException) -> Trouble:
    """What kind of trouble an error tells of."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return "io" if isinstance(error, OSError) else "defect"
    return _BY_CODE.get(code & 0xFF, "defect")


_BY_CODE: dict[int, Trouble] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_CANTOPEN: "io",
    sqlite3.SQLITE_READONLY: "io",
    sqlite3.SQLITE_BUSY: "io",
    sqlite3.SQLITE_LOCKED: "io",
    sqlite3.SQLITE_PERM: "io",
    sqlite3.SQLITE_AUTH: "io",
    sqlite3.SQLITE_NOMEM: "io",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
}


def _refusal(path: Path, error: sqlite3.DatabaseError) -> str:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return f"spool.path: {path} is in use by another process; give every process a file of its own"
    return f"spool.path: {path} cannot be used: {error}"


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _salt(resource: bytes, scope: bytes) -> bytes:
    return blake2b(b"%d %b%b" % (len(resource), resource, scope), digest_size=16).digest()
