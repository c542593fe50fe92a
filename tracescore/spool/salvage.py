"""Copies what can be read of a spool into a new file: after damage, and where its tables are of an earlier version.

A row whose checksum is wrong is left out, and so is what stands on a page that SQLite cannot read; the rest goes on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracescore.spool import sqlite
from tracescore.spool.schema import KIND, TABLES, Table, add_checksum

_FARTHEST = 2.0**60
"""Steps over rows that cannot be read become longer and longer; their sum stays under 2**63, the largest number."""


@dataclass(slots=True)
class Salvaged:
    """Rows that were copied, and how many were not: damaged ones, and places where nothing could be read."""

    kept: int = 0
    lost: int = 0


def salvage(path: Path, into: Path, settings: tuple[str, ...]) -> Salvaged:
    """Fills a new file with what there is; sqlite3.Error when it cannot be written. The old one is not changed."""
    for leftover in (into, into.with_name(f"{into.name}-journal")):
        leftover.unlink(missing_ok=True)
    sqlite.claim(into, KIND)
    salvaged = Salvaged()
    with (
        closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as old,
        closing(sqlite3.connect(into, isolation_level=None)) as new,
    ):
        old.text_factory = lambda text: text.decode("utf-8", "replace")
        for db in (old, new):
            add_checksum(db)
        for setting in settings:
            new.execute(f"PRAGMA {setting}")
        with suppress(*sqlite.DAMAGED):
            old.execute("PRAGMA writable_schema = ON")  # a table that cannot be read costs no other one
        new.execute("BEGIN")
        sqlite.prepare(new, into, KIND)
        for name, now in TABLES.items():
            table = _as_it_was(old, name, now)
            places = ", ".join("?" * len(table.columns))
            copied = new.executemany(
                f"INSERT OR IGNORE INTO {name} ({table.names}) VALUES ({places})",  # noqa: S608
                _good(_rows(old, name, table, salvaged), salvaged),
            )
            salvaged.kept += copied.rowcount
        new.execute("COMMIT")
    return salvaged


def damaged_rows(db: sqlite3.Connection) -> int:
    """How many rows have a wrong checksum; sqlite3.DatabaseError when they cannot even be counted."""
    count = "SELECT count(*) FROM {} WHERE checksum IS NOT {}"
    return sum(db.execute(count.format(name, table.checksum)).fetchone()[0] for name, table in TABLES.items())


def _as_it_was(db: sqlite3.Connection, name: str, table: Table) -> Table:
    """The table without the columns that came with a later version than that of the file."""
    with suppress(*sqlite.DAMAGED):
        there = {row[1] for row in db.execute(f"PRAGMA table_info({name})")}
        table = table._replace(columns=tuple(c for c in table.columns if c.split()[0] in there) or table.columns)
    return table


def _good(rows: Iterator[tuple[Any, ...]], salvaged: Salvaged) -> Iterator[tuple[Any, ...]]:
    for good, *row in rows:
        if good:
            yield tuple(row)
        else:
            salvaged.lost += 1


def _rows(db: sqlite3.Connection, name: str, table: Table, salvaged: Salvaged) -> Iterator[tuple[Any, ...]]:
    """(whether the checksum is right, the columns) of each row that can be read."""
    try:
        db.execute(f"SELECT checksum FROM {name} LIMIT 0")  # noqa: S608
        good = f"checksum IS {table.checksum}"
    except sqlite.DAMAGED:
        good = "1"  # from before there were checksums
    select = f"SELECT {good}, {table.names}"
    if table.key:
        yield from _from_both_ends(db, name, table, select, salvaged)
    else:
        yield from _step_by_step(db, name, select, salvaged)


def _from_both_ends(
    db: sqlite3.Connection, name: str, table: Table, select: str, salvaged: Salvaged
) -> Iterator[tuple[Any, ...]]:
    """From the first row to what cannot be read, and from the last one back to it."""
    for order in ("ASC", "DESC"):
        by = ", ".join(f"{column} {order}" for column in table.key.split(", "))
        try:
            yield from db.execute(f"{select} FROM {name} ORDER BY {by}")
        except sqlite.DAMAGED:
            salvaged.lost += order == "ASC"
        else:
            return


def _step_by_step(db: sqlite3.Connection, name: str, select: str, salvaged: Salvaged) -> Iterator[tuple[Any, ...]]:
    """By the number of the row, which SQLite can go on from behind what cannot be read."""
    last, step = 0, 1.0
    while step < _FARTHEST:
        try:
            for *row, number in db.execute(f"{select}, rowid FROM {name} WHERE rowid > ? ORDER BY rowid", (last,)):
                yield tuple(row)
                last, step = number, 1.0
        except sqlite.DAMAGED:
            salvaged.lost += step == 1.0
            last, step = last + int(step), step * 1.3
        else:
            return
