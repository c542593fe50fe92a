"""The tables of the spool. Each row has a checksum of its own, which SQLite computes whenever the row is written.

SQLite finds damage to its pages, and none to what stands on them: a disk that turns one bit over would change a score,
and nobody would know.
"""

from __future__ import annotations

import sqlite3
import zlib
from typing import NamedTuple

from tracescore.spool import sqlite

CHECKSUM = "row_checksum"


class Table(NamedTuple):
    """A table: its columns, each with its type, and its key where that is not the number of the row."""

    columns: tuple[str, ...]
    key: str = ""

    @property
    def names(self) -> str:
        """The columns that are written."""
        return ", ".join(column.split()[0] for column in self.columns)

    @property
    def checksum(self) -> str:
        """What `checksum` of a row has to be."""
        return f"{CHECKSUM}({', '.join(f'CAST({column.split()[0]} AS BLOB)' for column in self.columns)})"

    def create(self, name: str) -> str:
        """The statement that makes it."""
        checksum = f"checksum INTEGER NOT NULL AS ({self.checksum}) STORED"
        key = (f"PRIMARY KEY ({self.key})",) if self.key else ()
        return f"CREATE TABLE {name} ({', '.join((*self.columns, checksum, *key))}){' WITHOUT ROWID' * bool(key)};\n"


TABLES = {
    "origins": Table(("id INTEGER PRIMARY KEY", "resource BLOB NOT NULL", "scope BLOB NOT NULL")),
    "pieces": Table(
        (
            "op INTEGER NOT NULL",
            "at REAL NOT NULL",
            "trace_id BLOB NOT NULL",
            "span_id BLOB NOT NULL",
            "kind INTEGER NOT NULL",
            "digest INTEGER NOT NULL",
            "parent_span_id BLOB NOT NULL",
            "origin INTEGER NOT NULL",
            "body BLOB NOT NULL",
        )
    ),
    "withheld": Table(
        (
            "trace_id BLOB NOT NULL",
            "span_id BLOB NOT NULL",
            "digest INTEGER NOT NULL",
            "at REAL NOT NULL",
            "parent_span_id BLOB NOT NULL",
            "envelope BLOB NOT NULL",
            "request BLOB NOT NULL",
        )
    ),
    "traces": Table(
        (
            "trace_id BLOB NOT NULL",
            "read_op INTEGER NOT NULL DEFAULT 0",
            "closed_at REAL NOT NULL DEFAULT 0",
            "gone_op INTEGER NOT NULL DEFAULT 0",
            "gone_at REAL NOT NULL DEFAULT 0",
            "ids BLOB NOT NULL DEFAULT x''",
        ),
        "trace_id",
    ),
    "interactions": Table(
        (
            "trace_id BLOB NOT NULL",
            "span_id TEXT NOT NULL",
            "state TEXT NOT NULL",
            "fate TEXT NOT NULL",
            "weight REAL NOT NULL",
            "rule TEXT NOT NULL",
            "read_op INTEGER NOT NULL",
            "op INTEGER NOT NULL",
            "at REAL NOT NULL",
            "service TEXT NOT NULL DEFAULT ''",
            "environment TEXT NOT NULL DEFAULT ''",
        ),
        "trace_id, span_id",
    ),
    "results": Table(("op INTEGER PRIMARY KEY", "at REAL NOT NULL", "brief BLOB NOT NULL", "full BLOB")),
    "owed": Table(("exporter TEXT NOT NULL", "key TEXT NOT NULL", "op INTEGER NOT NULL"), "exporter, key"),
    "facts": Table(("name TEXT NOT NULL", "op INTEGER NOT NULL", "value BLOB NOT NULL"), "name"),
}

_INDEXES = """
CREATE UNIQUE INDEX piece ON pieces (trace_id, span_id, kind, digest);
CREATE UNIQUE INDEX kept_back ON withheld (trace_id, span_id, digest);
CREATE INDEX with_text ON results (op) WHERE full IS NOT NULL;
CREATE INDEX owing ON owed (op);
"""

KIND = sqlite.FileKind(
    "spool.path",
    application_id=int.from_bytes(b"tscs", "big"),
    version=3,
    schema="".join(table.create(name) for name, table in TABLES.items()) + _INDEXES,
    earlier=(1, 2),  # without checksums; without the service of an interaction
)


def add_checksum(db: sqlite3.Connection) -> None:
    """Teaches a connection to compute checksums, without which it can only read."""
    db.create_function(CHECKSUM, -1, _checksum, deterministic=True)


def _checksum(*values: bytes | None) -> int:
    total = 0
    for value in values:
        total = zlib.crc32(b"-" if value is None else b"%d:%b" % (len(value), value), total)
    return total
