"""What is in a spool, and a copy of it, while the process that owns it goes on."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracescore.errors import UsageError
from tracescore.model import Result
from tracescore.spool.changes import Tables
from tracescore.spool.codec import decode
from tracescore.spool.schema import KIND, TABLES, add_checksum


@dataclass(slots=True)
class Look:
    """Counts what there is; `found` once it is committed."""

    found: dict[str, Any] = field(default_factory=dict)
    refusable: bool = True

    def write(self, tables: Tables, op: int) -> None:
        """Reads only."""
        del op
        self.found = stats(tables.db)


@dataclass(slots=True)
class Backup:
    """Copies the file to `path`, which must not be there; `error` says why that was not possible."""

    path: str
    error: str = ""
    refusable: bool = True

    def write(self, tables: Tables, op: int) -> None:
        """The copy is made behind the transaction."""
        del op
        tables.afterwards(self.copy)

    def copy(self, db: sqlite3.Connection) -> None:
        """Makes it, outside of any transaction."""
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # it holds what users wrote
            db.execute("VACUUM INTO ?", (self.path,))
        except (OSError, sqlite3.Error) as error:
            self.error = f"{self.path}: {getattr(error, 'strerror', None) or error}"


def stats(db: sqlite3.Connection) -> dict[str, Any]:
    """Rows of each table, interactions by what became of them, results with their texts, and the bytes in use."""
    ask = db.execute
    pages, free, size = (ask(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
    oldest = ask("SELECT min(at) FROM interactions WHERE fate = 'waiting'").fetchone()[0]
    return {
        "version": ask("PRAGMA user_version").fetchone()[0],
        "bytes_used": (pages - free) * size,
        "bytes_free": free * size,
        "rows": {name: ask(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES},  # noqa: S608 - ours
        "interactions": dict(ask("SELECT fate, count(*) FROM interactions GROUP BY fate ORDER BY fate").fetchall()),
        "oldest_waiting_unix_seconds": oldest,
        "results_with_texts": ask("SELECT count(*) FROM results WHERE full IS NOT NULL").fetchone()[0],
        "owed": dict(ask("SELECT exporter, count(*) FROM owed GROUP BY exporter ORDER BY exporter").fetchall()),
    }


def reading(path: Path) -> closing[sqlite3.Connection]:
    """A spool that no process has open, to be read; UsageError when it is in use, or none."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
    add_checksum(db)
    try:
        if db.execute("PRAGMA application_id").fetchone()[0] != KIND.application_id:
            raise UsageError(f"{path}: is not a spool of this version")
        db.execute("SELECT count(*) FROM results")
    except sqlite3.Error as error:
        db.close()
        raise UsageError(f"{path}: cannot be read: {error}") from None
    return closing(db)


def results(db: sqlite3.Connection) -> Iterator[Result]:
    """All results, in order, those with texts with them; one that is damaged is left out."""
    for text, full in db.execute("SELECT brief, full FROM results ORDER BY op"):
        try:
            yield decode(full or text)
        except ValueError:
            continue
