"""The file of answers that were drawn for people to label, and of their labels (SQLite).

A label is on the disk before anybody is thanked for it. The text of an answer goes when its label comes.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracescore.errors import UsageError
from tracescore.spool import sqlite

_KIND = sqlite.FileKind(
    "drift.labels.path",
    application_id=int.from_bytes(b"tscl", "big"),
    version=1,
    schema="""
CREATE TABLE answers (
    id TEXT PRIMARY KEY, at REAL NOT NULL, judge TEXT NOT NULL, epoch INTEGER NOT NULL, facts TEXT NOT NULL,
    told TEXT, labels TEXT
) WITHOUT ROWID;
CREATE INDEX waiting ON answers (at) WHERE told IS NOT NULL;
""",
)
"""Values are JSON by the standard library: of what a judge wrote, not all is UTF-8."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An answer that was drawn. `id` says nothing about its scores, so it may give the order of labelling.

    `at` is when the interaction ended (Unix seconds), `facts` what stays, `shown` what is shown to people (None once
    they have decided), `labels` what they say by measure (None before that, empty: they cannot tell). An answer that
    somebody chose has no probability of being drawn.
    """

    id: str
    at: float
    judge: str
    epoch: int
    facts: Mapping[str, Any]
    shown: Mapping[str, Any] | None = None
    labels: Mapping[str, Any] | None = None

    @property
    def by_chance(self) -> bool:
        """Whether chance drew it: only then does its label say something of the answers that nobody labelled."""
        return self.facts["pi_label"] is not None


class LabelStore:
    """One open file, used by one thread at a time."""

    def __init__(self, path: str) -> None:
        """Opens or creates it, readable by its owner alone. UsageError when that cannot be done."""
        try:
            sqlite.claim(Path(path), _KIND)
            self._db = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            self._prepare(path)
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"drift.labels.path: {path} cannot be used: {why}; name a file of its own there") from None

    def _prepare(self, path: str) -> None:
        for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute("BEGIN IMMEDIATE")  # takes the lock, so that a second process fails at once
        sqlite.prepare(self._db, Path(path), _KIND)
        self._db.execute("COMMIT")

    def draw(self, drawn: Drawn, most: int) -> None:
        """Lets an answer wait, once. Those of another judge or epoch leave, and the oldest beyond `most`.

        sqlite3.Error when it cannot be written.
        """
        row = (drawn.id, drawn.at, drawn.judge, drawn.epoch, json.dumps(drawn.facts), json.dumps(drawn.shown))
        surplus = "SELECT id FROM answers WHERE told IS NOT NULL ORDER BY at DESC LIMIT -1 OFFSET ?"
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
            of_another = "DELETE FROM answers WHERE told IS NOT NULL AND (judge, epoch) != (?, ?)"
            self._db.execute(of_another, (drawn.judge, drawn.epoch))
            self._db.execute(f"DELETE FROM answers WHERE id IN ({surplus})", (most,))  # noqa: S608 - no text from outside
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def keep(self, chosen: Drawn) -> None:
        """Keeps an answer that somebody chose and labelled, in the place of their former label.

        sqlite3.Error when it cannot be written.
        """
        row = (chosen.id, chosen.at, chosen.judge, chosen.epoch, json.dumps(chosen.facts), json.dumps(chosen.labels))
        self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, NULL, ?)", row)

    def next(self) -> Drawn | None:
        """The answer that is to be labelled next: in the order of ids, so in none that has to do with scores."""
        rows = self._rows("WHERE told IS NOT NULL ORDER BY id LIMIT 1")
        return rows[0] if rows else None

    def waiting(self, drawn_id: str) -> Drawn | None:
        """An answer that waits for its label; None when it does not (any more)."""
        rows = self._rows("WHERE told IS NOT NULL AND id = ?", drawn_id)
        return rows[0] if rows else None

    def decide(self, drawn_id: str, labels: Mapping[str, Any]) -> bool:
        """Keeps what people say of an answer that waits, and forgets its text; False when it does not wait.

        sqlite3.Error when it cannot be written.
        """
        change = "UPDATE answers SET labels = ?, told = NULL WHERE id = ? AND told IS NOT NULL"
        return self._db.execute(change, (json.dumps(labels), drawn_id)).rowcount > 0

    def decided(self) -> list[Drawn]:
        """All answers that people have decided on, the oldest first."""
        return self._rows("WHERE told IS NULL ORDER BY at")

    def erase(self, trace_ids: frozenset[str]) -> int:
        """Deletes the answers of these traces, and their labels, from the file and its log; how many there were."""
        where = "WHERE json_extract(facts, '$.trace_id') = ?"
        deleted = sum(self._db.execute(f"DELETE FROM answers {where}", (each,)).rowcount for each in trace_ids)  # noqa: S608
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return deleted

    def count_waiting(self) -> int:
        """How many wait."""
        return int(self._db.execute("SELECT count(*) FROM answers WHERE told IS NOT NULL").fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def _rows(self, where: str, *values: object) -> list[Drawn]:
        columns = "SELECT id, at, judge, epoch, facts, told, labels FROM answers "
        return [
            Drawn(*row[:4], *(None if text is None else json.loads(text) for text in row[4:]))
            for row in self._db.execute(columns + where, values)
        ]
