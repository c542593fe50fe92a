"""SQLite files that only their owner can read, and that name their program and version."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tracescore.errors import UsageError

DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file may raise: SQLite quotes it in its messages, and Python takes these for UTF-8."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """One of the files there are. `setting` names it to people, `application_id` (31 bits) to programs.

    `schema` are statements, each ended by a semicolon; `version` is that of the tables they make.
    """

    setting: str
    application_id: int
    version: int
    schema: str
    earlier: tuple[int, ...] = ()
    """Versions that are read as well; opening the file turns it into the present one."""


def claim(path: Path, kind: FileKind) -> None:
    """Creates the file where there is none, for its owner alone: it will hold what users wrote. OSError, UsageError.

    A database of something else is refused, and it and what is no database have not been touched then.
    """
    untouched = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    state = None
    # There is none, or it is damaged or no database: that is found out when it is opened.
    with suppress(*DAMAGED), closing(sqlite3.connect(untouched, uri=True)) as db:
        state = _state(db, kind)
    if state == "foreign":
        raise _refusal(path, kind)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if state is not None:
        with suppress(PermissionError):  # somebody else's, who shares it
            path.chmod(0o600)


def prepare(db: sqlite3.Connection, path: Path | None, kind: FileKind) -> None:
    """Creates the tables in an empty file; UsageError when it is of another version, or something else.

    The transaction is the caller's.
    """
    state = _state(db, kind)
    if state == "foreign":
        raise _refusal(path, kind)
    if state == "empty":
        for statement in filter(str.strip, kind.schema.split(";")):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {kind.version}")
    if state != "ours":
        db.execute(f"PRAGMA application_id = {kind.application_id}")


def _state(db: sqlite3.Connection, kind: FileKind) -> Literal["empty", "ours", "unmarked", "foreign"]:
    """`unmarked`: ours from before files were marked with their kind."""
    version, application_id = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")
    )
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    if (version, application_id, tables) == (0, 0, set()):
        return "empty"
    known = version in (kind.version, *kind.earlier)
    if known and application_id == kind.application_id:
        return "ours"
    expected = set(re.findall(r"CREATE TABLE (\w+)", kind.schema))
    return "unmarked" if known and application_id == 0 and expected <= tables else "foreign"


def _refusal(path: Path | None, kind: FileKind) -> UsageError:
    return UsageError(f"{kind.setting}: {path} is of another version or program; name another file")
