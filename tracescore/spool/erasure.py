"""Takes everything out of the spool that was written of some traces, so that nothing of it is left in the file."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tracescore.model import Result
from tracescore.spool.changes import Tables
from tracescore.spool.codec import brief, decode, encode

ERASED, USER = "erased ", "user "
"""Beginnings of the names of facts: a trace that was erased; a trace of a user, by the digest of their name."""


def digest_of_user(salt: str, user: str) -> str:
    """What is kept of a user's name: it finds their traces, and does not tell who they are."""
    return hashlib.blake2b(user.encode(errors="replace"), digest_size=12, key=salt.encode()[:64]).hexdigest()


def anonymous(result: Result) -> Result:
    """The figures of a result, which counters and windows need, without anything that anybody said."""
    bare = brief(result)
    return replace(bare, interaction=replace(bare.interaction, conversation_id="", slices={}, attributes={}))


@dataclass(slots=True)
class Erase:
    """Erases the traces `known`, those of a conversation, and those of a user (by digest).

    Once it is committed `known` holds all of them. Results that are counted but not yet old keep their figures.
    """

    known: set[bytes]
    at: float
    conversation: str = ""
    user: str = ""
    results: int = 0
    pieces: int = 0
    refusable: bool = field(default=True)

    def write(self, tables: Tables, op: int) -> None:
        """Finds and deletes; the file is rewritten behind it, so that no free page holds what was deleted."""
        db = tables.db
        if self.user:
            like = f"{USER}{self.user} %"
            rows = db.execute("SELECT name FROM facts WHERE name LIKE ?", (like,)).fetchall()
            self.known |= {bytes.fromhex(name.rpartition(" ")[2]) for (name,) in rows}
            db.execute("DELETE FROM facts WHERE name LIKE ?", (like,))
        self.results = self.pieces = 0
        found = [(number, result) for number, result in self._candidates(tables) if self._meant(result)]
        self.known |= {bytes.fromhex(result.interaction.trace_id) for _, result in found}
        for number, result in found:
            bare = encode(anonymous(result))
            db.execute("UPDATE results SET full = NULL, brief = ? WHERE op = ?", (bare, number))
            self.results += 1
        for trace_id in self.known:
            self.pieces += db.execute("DELETE FROM pieces WHERE trace_id = ?", (trace_id,)).rowcount
            db.execute(
                "UPDATE interactions SET fate = 'lost', op = ? WHERE trace_id = ? AND fate = 'waiting'", (op, trace_id)
            )
            name = f"{ERASED}{trace_id.hex()}"
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (name, op, str(self.at).encode()))
            db.execute("DELETE FROM facts WHERE name LIKE ?", (f"{USER}% {trace_id.hex()}",))
        db.execute("DELETE FROM origins WHERE id NOT IN (SELECT origin FROM pieces)")
        tables.afterwards(_rewrite)

    def _candidates(self, tables: Tables) -> Iterable[tuple[int, Result]]:
        for number, text, full in tables.db.execute("SELECT op, brief, full FROM results").fetchall():
            try:
                yield number, decode(text)
            except ValueError:  # damaged, and of nobody knows whom
                if full is not None:
                    tables.db.execute("UPDATE results SET full = NULL WHERE op = ?", (number,))

    def _meant(self, result: Result) -> bool:
        told = result.interaction
        if self.conversation and told.conversation_id == self.conversation:
            return True
        return bytes.fromhex(told.trace_id) in self.known


def _rewrite(db: sqlite3.Connection) -> None:
    """What was deleted stands in free pages and in the log until they are used again: not after this."""
    with suppress(sqlite3.Error):  # without room for a copy, at least the log goes
        db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
