"""What an earlier process left in the file, in the form in which it is taken up again."""

from __future__ import annotations

import logging
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from tracescore.model import RawLog, RawSpan, Result, State
from tracescore.net.wire import Withheld
from tracescore.spool.changes import SPAN, TOTALS, TOTALS_BEFORE, Disposition
from tracescore.spool.codec import decode, decode_envelope

_log = logging.getLogger("tracescore.spool")


@dataclass(slots=True)
class Held:
    """Pieces of a trace, or of several; `at` is when they came or when the trace was closed."""

    at: float
    spans: list[RawSpan] = field(default_factory=list)
    logs: list[RawLog] = field(default_factory=list)


class Known(NamedTuple):
    """An interaction that was read; `counted` when the totals know of it. `read_op` says from which pieces.

    Service and environment are empty where a version before noted it.
    """

    trace_id: bytes
    span_id: str
    state: State
    disposition: Disposition
    weight: float
    rule: str
    read_op: int
    at: float
    service: str
    environment: str
    counted: bool


class Past(NamedTuple):
    """A result; `counted` when the totals know of it, `whole` when it has its texts, `owed` to these exporters."""

    result: Result
    counted: bool
    whole: bool
    owed: frozenset[str]


_PIECES = (
    "SELECT p.op, p.at, p.kind, p.trace_id, p.span_id, p.parent_span_id, o.resource, o.scope, p.body, t.closed_at "
    "FROM pieces p JOIN origins o ON o.id = p.origin LEFT JOIN traces t ON t.trace_id = p.trace_id "
)
COUNTED_ANEW = "counters begin with what the results here tell"
_READ = "coalesce(t.read_op, 0)"
_GONE = "coalesce(t.gone_op, 0)"


class Stored:
    """Reads the tables, which nobody changes meanwhile."""

    def __init__(self, db: sqlite3.Connection, unreadable: Callable[[], None]) -> None:
        """`unreadable` is told of everything here that cannot be read."""
        self._db, self._unreadable = db, unreadable
        latest = "SELECT op, value FROM facts WHERE name IN (?, ?) ORDER BY op DESC LIMIT 1"
        row = db.execute(latest, (TOTALS, TOTALS_BEFORE)).fetchone()
        self.totals: dict[str, Any] = {}
        """Those of each part, by its name."""
        self._counted_up_to = 0
        if row:
            self._read_totals(*row)

    def _read_totals(self, op: int, text: bytes) -> None:
        try:
            totals = orjson.loads(text)
        except ValueError:
            totals = None
        if isinstance(totals, dict):
            self.totals, self._counted_up_to = totals, op
        else:
            self.unreadable("totals", COUNTED_ANEW)

    def unreadable(self, what: str, detail: str) -> None:
        """Counts and says that something here cannot be read, and what that means."""
        self._unreadable()
        _log.error('event=spool_unreadable what="%s" detail="%s"', what, detail)

    def erased(self) -> set[bytes]:
        """Traces of which nothing more is to be taken in."""
        rows = self._db.execute("SELECT name FROM facts WHERE name LIKE 'erased %'")
        return {bytes.fromhex(name.rpartition(" ")[2]) for (name,) in rows}

    def fact(self, name: str) -> bytes | None:
        """A named value."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def interactions(self) -> Iterator[Known]:
        """Those that are remembered, the longest known first."""
        columns = "trace_id, span_id, state, fate, weight, rule, read_op, at, service, environment, op"
        for row in self._db.execute(f"SELECT {columns} FROM interactions ORDER BY at, trace_id, span_id"):  # noqa: S608
            yield Known._make((*row[:-1], row[-1] <= self._counted_up_to))

    def results(self) -> Iterator[Past]:
        """Those that are kept, in order."""
        owed: dict[int, set[str]] = {}
        for name, op in self._db.execute("SELECT exporter, op FROM owed"):
            owed.setdefault(op, set()).add(name)
        for op, brief, full in self._db.execute("SELECT op, brief, full FROM results ORDER BY op"):
            try:
                result = decode(full or brief)
            except ValueError:
                self.unreadable(f"result {op}", "it is left out")
            else:
                yield Past(result, op <= self._counted_up_to, full is not None, frozenset(owed.get(op, ())))

    def requests(self) -> Iterator[Held]:
        """Pieces that have not been read, by the request that brought them, in order."""
        rows = self._db.execute(f"{_PIECES} WHERE p.op > max({_READ}, {_GONE}) ORDER BY p.op, p.rowid")
        for _, group in groupby(rows, key=lambda row: row[0]):
            yield _held(list(group), at=1)

    def closed(self) -> Iterator[Held]:
        """Traces that have been read and are still in the assembly, in order of closing."""
        rows = self._db.execute(
            f"{_PIECES} WHERE p.op > {_GONE} AND p.op <= {_READ} ORDER BY t.closed_at, p.trace_id, p.rowid"
        )
        for _, group in groupby(rows, key=lambda row: row[3]):
            yield _held(list(group), at=9)

    def withheld(self) -> Iterator[tuple[Withheld, float]]:
        """Spans that are kept back, and since when, the longest kept first."""
        rows = self._db.execute(
            "SELECT at, trace_id, span_id, parent_span_id, envelope, request FROM withheld ORDER BY at, rowid"
        )
        for at, *ids, envelope, request in rows:
            try:
                came = decode_envelope(envelope)
            except ValueError:
                self.unreadable(f"span kept back of trace {ids[0].hex()}", "it cannot be passed on")
            else:
                yield Withheld._make((*ids, came, request)), at

    def gone(self) -> Iterator[tuple[bytes, float, array[int]]]:
        """(trace id, since when, ids of its pieces) of traces of which no more is known, the longest known first."""
        rows = self._db.execute("SELECT trace_id, gone_at, ids FROM traces WHERE gone_op > 0 ORDER BY gone_at")
        for trace_id, at, ids in rows:
            yield trace_id, at, array("Q", ids)

    def pieces_of(self, known: Known) -> Held:
        """What the interaction was read from."""
        rows = self._db.execute(
            f"{_PIECES} WHERE p.trace_id = ? AND p.op <= ? AND (p.op > {_GONE} OR ? <= {_GONE})",
            (known.trace_id, known.read_op, known.read_op),
        )
        return _held(rows.fetchall(), at=9)


def _held(rows: list[tuple[Any, ...]], at: int) -> Held:
    """`at`: the column of the time."""
    held = Held(rows[0][at] or 0.0 if rows else 0.0)
    shared: dict[bytes, bytes] = {}  # one object for each content, as when they came
    for _, _, kind, trace_id, span_id, parent, *origin, body, _ in rows:
        resource, scope = (shared.setdefault(each, each) for each in origin)
        if kind == SPAN:
            held.spans.append(RawSpan(trace_id, span_id, parent, resource, scope, body))
        else:
            held.logs.append(RawLog(trace_id, span_id, resource, scope, body))
    return held
