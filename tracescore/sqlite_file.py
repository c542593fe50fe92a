"""SQLite files of ours: made for their owner alone, and told from those of other programs and versions."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


def create(path: Path) -> None:
    """Creates the file where there is none, for its owner alone: it will hold what users wrote. OSError."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def prepare(db: sqlite3.Connection, schema: str, version: int) -> bool:
    """Creates the tables in an empty file; False when it is of another version, or of another program.

    `schema` are statements, each ended by a semicolon; the transaction is the caller's.
    """
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found == version:
        return True
    if found or db.execute("SELECT 1 FROM sqlite_schema").fetchone():
        return False
    for statement in filter(str.strip, schema.split(";")):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")
    return True
