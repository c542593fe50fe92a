"""What a spool knows, read without opening it: for a look beside the process that owns the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from tracescore.errors import UsageError
from tracescore.spool.changes import TOTALS
from tracescore.spool.schema import KIND, TABLES, add_checksum
from tracescore.spool.sqlite import DAMAGED


def totals(path: Path) -> dict[str, Any]:
    """The totals of each part by its name, as they were when the file was last tidied up; empty without any.

    Nothing is written, and no lock is taken: the owner of the file holds one for as long as it runs. What stands only
    in the log beside the file is not read. UsageError for what is not a spool of this version.
    """
    if not path.is_file():
        raise UsageError(f"--spool: {path}: the file of a spool expected, as spool.path names it")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            add_checksum(db)
            kind, version = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
            if kind not in (0, KIND.application_id) or version not in (KIND.version, *KIND.earlier):
                raise UsageError(f"--spool: {path} is of another version or program")
            right = f" AND checksum = {TABLES['facts'].checksum}" if version == KIND.version else ""
            row = db.execute(f"SELECT value FROM facts WHERE name = ?{right}", (TOTALS,)).fetchone()  # noqa: S608 - ours
            found = orjson.loads(row[0]) if row else {}
    except (*DAMAGED, ValueError) as error:
        raise UsageError(f"--spool: {path} cannot be read ({type(error).__name__}): no spool, or try again") from None
    return found if isinstance(found, dict) else {}
