"""The SQLite file of the spool: opening it, writing to it, and what to do when it is damaged."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, count
from pathlib import Path
from typing import Literal, get_args

from tracescore.errors import UsageError
from tracescore.spool import sqlite
from tracescore.spool.changes import Change
from tracescore.spool.salvage import Salvaged, damaged_rows, salvage
from tracescore.spool.schema import KIND, add_checksum

_log = logging.getLogger("tracescore.spool")

_PAGE = 16_384
"""Bytes: with spans of some KB, an insert and its delete cost a sixth less CPU than in pages of 4 or 8 KiB."""
_SETTINGS = (
    "locking_mode = EXCLUSIVE",
    f"page_size = {_PAGE}",
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = FAST",
    "wal_autocheckpoint = 256",  # 4 MiB of log beside the file, so that the two together are about as large as said
)
_SWEEP_EVERY = 1_000
"""Origins added after which unused ones are looked for."""

Trouble = Literal["full", "io", "damaged", "defect", "unreadable"]
"""The disk is full or does not work, the file is damaged, the program is wrong, one stored result cannot be read."""
TROUBLES: tuple[Trouble, ...] = get_args(Trouble)

_USABLE: frozenset[Trouble] = frozenset({"full", "io"})
"""Trouble with a file that may be all right."""


class File:
    """One open file. Used by one thread at a time; `db` is for reading at the start."""

    def __init__(self, path: Path, max_size: int, *, texts: bool = True) -> None:
        """Opens or creates the file, readable by its owner alone. A damaged one is moved aside.

        Without `texts` nothing that users wrote is kept in it.

        UsageError when it cannot be opened, is in use by another process, or is something else.
        """
        self.path, self.max_size, self.texts = path, max_size, texts
        self.used = 0
        """Bytes in use; the file may be larger, as it does not shrink."""
        self.was_damaged = False
        self.damaged_rows = 0
        self._broken = False
        """Whether the file was shut to be mended and is not open again: then the next write mends it."""
        self._origins: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        self._added = 0
        self._afterwards: list[Callable[[sqlite3.Connection], None]] = []
        try:
            self._open()
        except sqlite.DAMAGED as error:
            if trouble(error) in _USABLE:
                raise UsageError(_refusal(path, error)) from None
            self.was_damaged = True
            self._mend_at_start()
        except OSError as error:
            raise UsageError(f"spool.path: {path} cannot be opened: {error.strerror}; name a file there") from None

    def write(self, changes: Sequence[tuple[int, Change]]) -> None:
        """All the changes, with their numbers, or none; they are on the disk when this returns. sqlite3.Error."""
        if self._broken:
            self.mend()
        self.db.execute("BEGIN IMMEDIATE")
        try:
            for op, change in changes:
                change.write(self, op)
            self.db.execute("COMMIT")
        except BaseException:
            self._origins.clear()  # some may have been of this transaction
            self._afterwards.clear()
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")
            raise
        while self._afterwards:
            with suppress(sqlite3.Error):
                self._afterwards.pop()(self.db)
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

    def afterwards(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """See `Tables.afterwards`."""
        self._origins.clear()  # it may have deleted some
        self._afterwards.append(work)

    def last_op(self) -> int:
        """The highest number of a change that anything is known of."""
        columns = ("pieces.op", "traces.read_op", "traces.gone_op", "interactions.op", "results.op", "facts.op")
        tables = [(column.partition(".")[0], column) for column in columns]
        highest = [self.db.execute(f"SELECT max({column}) FROM {table}").fetchone()[0] for table, column in tables]  # noqa: S608
        return max(op or 0 for op in highest)

    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.stat().st_size for file in _files(self.path) if file.exists())

    def mend(self) -> None:
        """Goes on with what can be read of a damaged file, or an empty one; sqlite3.Error or OSError without room.

        The damaged file is kept under a name of its own.
        """
        self._broken = True
        self._shut()
        salvaged = self._salvage()
        aside = _unused(self.path)
        if salvaged.kept:
            self._replace(aside)
            detail = "tracescore goes on with what it can read"
        else:
            _fresh(self.path).unlink(missing_ok=True)
            for file, name in zip(_files(self.path), _files(aside), strict=True):
                with suppress(FileNotFoundError):
                    file.replace(name)
            salvaged.lost, detail = 0, "its contents are lost; tracescore starts an empty one"
        self._open()
        self._broken = False
        self.damaged_rows += salvaged.lost
        shown = (salvaged.kept, salvaged.lost, aside, detail)
        _log.error('event=spool_damaged rows_kept=%d rows_lost=%d moved_to="%s" detail="%s"', *shown)

    def _mend_at_start(self) -> None:
        try:
            self.mend()
        except (*sqlite.DAMAGED, OSError) as error:
            why = f"{self.path} is damaged, and tracescore cannot save the readable part beside it: {error}"
            raise UsageError(f"spool.path: {why}; make room there, or name another file") from None

    def _salvage(self) -> Salvaged:
        """Into a file beside; nothing when this one cannot be opened at all."""
        try:
            return salvage(self.path, _fresh(self.path), (f"page_size = {_PAGE}",))
        except sqlite.DAMAGED as error:
            if trouble(error) in _USABLE:
                raise
            return Salvaged()

    def _replace(self, aside: Path | None = None) -> None:
        """Puts the file beside in the place of this one, which is kept as `aside`; at each moment one is there."""
        if aside is not None:
            try:
                aside.hardlink_to(self.path)
            except OSError:  # not every file system has links
                shutil.copyfile(self.path, aside)
        for log in _files(self.path)[1:]:  # of the old file: SQLite would take it for one of the new file
            log.unlink(missing_ok=True)
        _fresh(self.path).replace(self.path)

    def _shut(self) -> None:
        if hasattr(self, "db"):
            with suppress(*sqlite.DAMAGED):
                self.db.close()
        self._origins.clear()

    def close(self) -> None:
        """Leaves one complete file."""
        self.db.close()

    def _open(self) -> None:
        sqlite.claim(self.path, KIND)
        self.db = self._connected()
        if self.db.execute("PRAGMA user_version").fetchone()[0] != KIND.version:
            self._shut()
            self._take_over()
            self.db = self._connected()
        self._measure()

    def _take_over(self) -> None:
        """Rewrites a file of an earlier version; one of which not all can be read is kept as a damaged one is."""
        salvaged = self._salvage()
        aside = _unused(self.path) if salvaged.lost else None
        self._replace(aside)
        if aside is not None:
            self.was_damaged = True
            self.damaged_rows += salvaged.lost
            shown = (salvaged.kept, salvaged.lost, aside)
            _log.error('event=spool_damaged rows_kept=%d rows_lost=%d moved_to="%s"', *shown)

    def _connected(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        add_checksum(db)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            db.execute(f"PRAGMA {setting}")
        db.execute("BEGIN IMMEDIATE")  # takes the lock
        sqlite.prepare(db, self.path, KIND)
        db.execute("COMMIT")
        if db.execute("PRAGMA user_version").fetchone()[0] == KIND.version and (
            db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok" or damaged_rows(db)
        ):
            error = sqlite3.DatabaseError("the check at the start failed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    def _measure(self) -> None:
        ask = self.db.execute
        pages, free = (ask(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        self.used = (pages - free) * ask("PRAGMA page_size").fetchone()[0]


def trouble(error: BaseException) -> Trouble:
    """What kind of trouble an error tells of."""
    if isinstance(error, UnicodeDecodeError):
        return "damaged"
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


def _refusal(path: Path, error: Exception) -> str:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return f"spool.path: another process uses {path}; give each process its own file"
    return f"spool.path: {path} cannot be used: {error}"


def _unused(path: Path) -> Path:
    """A name for a damaged file that no earlier one has."""
    names = (path.with_name(f"{path.name}.damaged{number}") for number in chain([""], (f"-{n}" for n in count(2))))
    return next(name for name in names if not any(file.exists() for file in _files(name)))


def _fresh(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _files(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _salt(resource: bytes, scope: bytes) -> bytes:
    return blake2b(b"%d %b%b" % (len(resource), resource, scope), digest_size=16).digest()
