"""What can happen, as changes to the tables of the spool. All that is queued is written in one transaction.

A change has a number, its place in the order of writing, and everything that is remembered of order is such a number:
the pieces of a trace up to its `read_op` have been read, those up to its `gone_op` are no longer in the assembly,
and the totals hold everything up to their own. Numbers go on after a restart.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Protocol

from tracescore.model import Interaction, RawLog, RawSpan, Result, State
from tracescore.net.wire import Withheld
from tracescore.spool.codec import brief, encode, encode_envelope

Disposition = Literal["waiting", "left_out", "queue_full", "known", "done", "lost"]
"""What became of an interaction when it was read: it waits for the judge, sampling left it out, too many waited
already, or it was a later reading of one that was known. `done` once its result is there; `lost` when it waited at
the start and could not be read from its pieces again."""

SPAN, LOG = 0, 1
REMEMBERED_SECONDS = 3600.0
"""How long the ids of finished traces are kept, which is how long the assembly remembers them."""
KEPT_ERASED = 31 * 86_400.0  # for so long late spans of an erased trace are known for such
MOST_RESULTS = 100_000
"""Results kept without their texts for the windows, however long these are."""
_TEXT_SHARE = 4
"""The texts of results that are only kept for the page take at most this part of the size, 1 / n."""


class Tables(Protocol):
    """What changes are written to."""

    db: sqlite3.Connection
    max_size: int
    texts: bool  # whether what users wrote is kept

    def origin(self, resource: bytes, scope: bytes) -> tuple[int, bytes]:
        """Number and digest of a resource and scope, which are stored once for many pieces."""
        ...

    def sweep_origins(self) -> None:
        """Deletes those that no piece has any more, when there may be many."""
        ...

    def afterwards(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Does something behind this transaction, outside of any; what it raises is lost."""
        ...


class Change(Protocol):
    """Something that happened."""

    @property
    def refusable(self) -> bool:
        """Whether whoever caused it is told when it cannot be written, rather than that it is tried again."""
        ...

    def write(self, tables: Tables, op: int) -> None:
        """Writes it as number `op`; the transaction is the caller's."""
        ...


@dataclass(frozen=True, slots=True)
class Pieces:
    """Spans and log records of admitted traces came `at` (Unix seconds). Those that are there change nothing.

    `withheld` are the spans of them that are kept back.
    """

    spans: Sequence[RawSpan]
    logs: Sequence[RawLog]
    at: float
    withheld: Sequence[Withheld] = ()
    sender: str = ""  # which is not kept
    refusable: bool = True

    def write(self, tables: Tables, op: int) -> None:
        """Adds the pieces; of two different spans with one id both are kept, and the assembly decides."""
        if not tables.texts:
            return
        rows = []
        for span in self.spans:
            origin, salt = tables.origin(span.resource, span.scope)
            ids = (span.trace_id, span.span_id, SPAN, _digest(span.span, salt))
            rows.append((op, self.at, *ids, span.parent_span_id, origin, span.span))
        for log in self.logs:
            origin, salt = tables.origin(log.resource, log.scope)
            ids = (log.trace_id, log.span_id, LOG, _digest(log.record, salt))
            rows.append((op, self.at, *ids, b"", origin, log.record))
        tables.db.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        tables.db.executemany(
            "INSERT OR IGNORE INTO withheld VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (*_key(each), self.at, each.parent_span_id, encode_envelope(each.envelope), each.request)
                for each in self.withheld
            ],
        )


def _digest(body: bytes, salt: bytes) -> int:
    return int.from_bytes(blake2b(body, digest_size=8, salt=salt).digest(), "big", signed=True)


@dataclass(frozen=True, slots=True)
class PassedOn:
    """The destination has taken spans that were kept back, or refused them for good."""

    spans: Sequence[Withheld]
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """They are kept no longer."""
        del op
        tables.db.executemany(
            "DELETE FROM withheld WHERE trace_id = ? AND span_id = ? AND digest = ?", map(_key, self.spans)
        )


def _key(span: Withheld) -> tuple[bytes, bytes, int]:
    """A span that came for two tenants is kept back, and passed on, for each."""
    return span.trace_id, span.span_id, _digest(encode_envelope(span.envelope) + span.request, b"")


@dataclass(frozen=True, slots=True)
class Decided:
    """An interaction that was read, and what is to become of it."""

    span_id: str
    state: State
    disposition: Disposition
    weight: float = 1.0
    rule: str = "default"
    app: tuple[str, str] = ("", "")  # service, environment


@dataclass(frozen=True, slots=True)
class TraceRead:
    """A trace that was read from its pieces up to `op`; `closed_at` in Unix seconds."""

    trace_id: bytes
    op: int
    closed_at: float
    interactions: Sequence[Decided]


@dataclass(frozen=True, slots=True)
class Gone:
    """The pieces of a trace up to `op` have left the assembly, which remembers their ids from `at` on."""

    trace_id: bytes
    op: int
    at: float
    ids: array[int]


@dataclass(frozen=True, slots=True)
class TracesRead:
    """Traces that were read, and traces that left the assembly.

    `fresh` are the new interactions of them, as sampling wants them: for the memory, as the file has their pieces.
    """

    traces: Sequence[TraceRead]
    gone: Sequence[Gone]
    fresh: Sequence[tuple[Interaction, Disposition]] = ()
    users: Sequence[tuple[str, bytes]] = ()  # the digest of a user's name, and a trace of theirs
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """Adds interactions; pieces that nothing needs any more go."""
        tables.db.executemany(
            "INSERT OR IGNORE INTO facts VALUES (?, ?, x'')",
            [(f"user {user} {trace_id.hex()}", op) for user, trace_id in self.users],
        )
        rows = [
            (trace.trace_id, i.span_id, i.state, i.disposition, i.weight, i.rule, trace.op, op, trace.closed_at, *i.app)
            for trace in self.traces
            for i in trace.interactions
        ]
        tables.db.executemany(
            "INSERT INTO traces (trace_id, read_op, closed_at) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET read_op = excluded.read_op, closed_at = excluded.closed_at",
            [(trace.trace_id, trace.op, trace.closed_at) for trace in self.traces],
        )
        tables.db.executemany(
            "INSERT INTO interactions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET state = excluded.state, at = excluded.at",
            rows,
        )
        tables.db.executemany(
            "INSERT INTO traces (trace_id, gone_op, gone_at, ids) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET gone_op = excluded.gone_op, gone_at = excluded.gone_at, ids = excluded.ids",
            [(gone.trace_id, gone.op, gone.at, gone.ids.tobytes()) for gone in self.gone],
        )
        _release(tables.db, [gone.trace_id for gone in self.gone])


def _release(db: sqlite3.Connection, trace_ids: Sequence[bytes]) -> None:
    """Deletes the pieces that have left the assembly and that no waiting interaction has to be read from again."""
    db.executemany(
        "DELETE FROM pieces WHERE trace_id = ?1 AND op <= (SELECT gone_op FROM traces WHERE trace_id = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM interactions WHERE trace_id = ?1 AND fate = 'waiting')",
        [(trace_id,) for trace_id in trace_ids],
    )


@dataclass(frozen=True, slots=True)
class Lost:
    """A waiting interaction cannot be read again, after a change of the configuration or damage to the file."""

    trace_id: bytes
    span_id: str
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """It waits no longer."""
        tables.db.execute(
            "UPDATE interactions SET fate = 'lost', op = ? WHERE trace_id = ? AND span_id = ?",
            (op, self.trace_id, self.span_id),
        )
        _release(tables.db, [self.trace_id])


@dataclass(frozen=True, slots=True)
class Finished:
    """An interaction has its result, which the exporters named in `owed` are to deliver."""

    result: Result
    owed: Sequence[str]
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """Adds the result; the interaction waits no longer."""
        result, interaction = self.result, self.result.interaction
        trace_id = bytes.fromhex(interaction.trace_id)
        full = encode(result) if tables.texts else None
        tables.db.execute("INSERT INTO results VALUES (?, ?, ?, ?)", (op, result.ended, encode(brief(result)), full))
        tables.db.executemany(
            "INSERT OR REPLACE INTO owed VALUES (?, ?, ?)", [(name, key_of(result), op) for name in self.owed]
        )
        tables.db.execute(
            "UPDATE interactions SET fate = 'done' WHERE trace_id = ? AND span_id = ?", (trace_id, interaction.span_id)
        )
        _release(tables.db, [trace_id])


def key_of(result: Result) -> str:
    """Names a result among those that are to be delivered."""
    return f"{result.interaction.key}/{result.epoch}/{result.judge}"


@dataclass(frozen=True, slots=True)
class Delivered:
    """An exporter has brought a result to its end."""

    exporter: str
    key: str
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """It will not be delivered again."""
        del op
        tables.db.execute("DELETE FROM owed WHERE exporter = ? AND key = ?", (self.exporter, self.key))


@dataclass(frozen=True, slots=True)
class Owing:
    """These are the exporters that there are: what is owed to others will never be delivered."""

    exporters: Sequence[str]
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """It is owed no longer."""
        del op
        places = ", ".join("?" * len(self.exporters))
        tables.db.execute(f"DELETE FROM owed WHERE exporter NOT IN ({places})", self.exporters)  # noqa: S608


@dataclass(frozen=True, slots=True)
class Fact:
    """One named value replaces another."""

    name: str
    value: bytes
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """Keeps the value."""
        tables.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (self.name, op, self.value))


TOTALS, TOTALS_BEFORE = "totals", "totals before"
"""The latest totals and those before them, which are as good should damage cost the latest."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What all counters showed when everything up to change `op` had been counted. Time to tidy up, too.

    The newest `keep` results keep their texts, unless they ended before `texts_since`; figures of interactions that
    ended after `since` are kept.
    """

    value: bytes
    op: int
    now: float
    since: float
    keep: int
    texts_since: float = float("-inf")
    refusable: bool = False

    def write(self, tables: Tables, op: int) -> None:
        """Keeps the totals and deletes what has become too old."""
        del op
        db, settled = tables.db, "op <= ?1 AND op NOT IN (SELECT op FROM owed)"
        db.execute(
            "INSERT OR REPLACE INTO facts SELECT ?, op, value FROM facts WHERE name = ?", (TOTALS_BEFORE, TOTALS)
        )
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (TOTALS, self.op, self.value))
        db.execute(
            f"UPDATE results SET full = NULL WHERE {settled} AND op IN (SELECT op FROM (SELECT op,"  # noqa: S608
            " row_number() OVER newest AS place, sum(length(full)) OVER newest AS size FROM results"
            " WHERE full IS NOT NULL WINDOW newest AS (ORDER BY op DESC)) WHERE place > ?2 OR size > ?3)",
            (self.op, self.keep, tables.max_size // _TEXT_SHARE),
        )
        db.execute(f"UPDATE results SET full = NULL WHERE {settled} AND at <= ?2", (self.op, self.texts_since))  # noqa: S608
        db.execute(
            "DELETE FROM facts WHERE (name LIKE 'user %' AND op < (SELECT min(op) FROM results)) "
            "OR (name LIKE 'erased %' AND CAST(CAST(value AS TEXT) AS REAL) < ?)",
            (self.now - KEPT_ERASED,),
        )
        db.execute(
            f"DELETE FROM results WHERE full IS NULL AND {settled} AND (at <= ?2 OR op <= (SELECT op FROM results"  # noqa: S608
            " ORDER BY op DESC LIMIT 1 OFFSET ?3))",
            (self.op, self.since, MOST_RESULTS),
        )
        for table, at in (("interactions", "at"), ("traces", "max(closed_at, gone_at)")):
            db.execute(
                f"DELETE FROM {table} WHERE {at} < ? AND NOT EXISTS "  # noqa: S608
                f"(SELECT 1 FROM pieces WHERE pieces.trace_id = {table}.trace_id)",
                (self.now - REMEMBERED_SECONDS,),
            )
        tables.sweep_origins()
