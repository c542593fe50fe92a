"""The pieces of one trace, and what can be said of them at any moment in O(1)."""

from collections.abc import Iterator
from hashlib import blake2b

from opentelemetry.proto.trace.v1 import trace_pb2

from tracescore.model import ClosedBy, RawLog, RawSpan, RawTrace

PIECE_OVERHEAD = 300
"""Bytes a held span or log record takes beside its own: objects, ids and table entries, in CPython 3.11."""
TRACE_OVERHEAD = 800
"""Bytes a held trace takes beside its spans."""

NEVER = float("inf")


class HeldTrace:
    """The pieces of one trace, open or lately closed."""

    __slots__ = (
        "children", "closed_at", "first", "fresh", "last", "logs", "marked", "missing", "resource", "roots",
        "scheduled", "sender", "size", "spans", "trace_id",
    )  # fmt: skip

    def __init__(self, trace_id: bytes, sender: str = "") -> None:
        self.trace_id = trace_id
        self.sender = sender  # whose first piece it was
        self.spans: dict[bytes, RawSpan] = {}
        self.logs: dict[RawLog, None] = {}
        self.children: dict[bytes, int] = {}  # spans by the parent they name
        self.missing = 0  # parents named but not here
        self.roots = 0
        self.fresh = 0  # spans that have not been handed out
        self.marked = False
        self.size = TRACE_OVERHEAD
        self.resource = b""
        self.first = self.last = self.closed_at = 0.0
        self.scheduled = NEVER  # the entry of the heap that counts

    def add_span(self, span: RawSpan) -> bool:
        """Whether the span is news; a better version of a known span is."""
        known = self.spans.get(span.span_id)
        if known is None:
            self.fresh += 1
            if span.span_id in self.children:
                self.missing -= 1
        elif known == span or _rank(known) >= _rank(span):
            return False
        else:
            self.size -= len(known.span) + PIECE_OVERHEAD
            self._unlink(known.parent_span_id)
        self.spans[span.span_id] = span
        self._link(span.parent_span_id)
        self._weigh(len(span.span), span.resource, span.scope)
        return True

    def add_log(self, log: RawLog) -> bool:
        """Whether the log record is news."""
        if log in self.logs:
            return False
        self.logs[log] = None
        self._weigh(len(log.record), log.resource, log.scope)
        return True

    def complete(self) -> bool:
        """Whether, as far as its spans tell, none is missing."""
        return self.roots > 0 and self.missing == 0

    def trace(self, closed_by: ClosedBy) -> RawTrace:
        """All that is held, in an order that depends on nothing else."""
        spans = tuple([self.spans[span_id] for span_id in sorted(self.spans)])
        logs = tuple(sorted(self.logs, key=log_order)) if self.logs else ()
        return RawTrace(self.trace_id, spans, logs, closed_by)

    def ids(self) -> Iterator[int]:
        """64 bits for each piece: what is remembered of it in the end."""
        for span_id in self.spans:
            yield number(span_id)
        for log in self.logs:
            yield log_number(log)

    def _link(self, parent: bytes) -> None:
        if not parent:
            self.roots += 1
        elif parent in self.children:
            self.children[parent] += 1
        else:
            self.children[parent] = 1
            self.missing += parent not in self.spans

    def _unlink(self, parent: bytes) -> None:
        if not parent:
            self.roots -= 1
        elif self.children[parent] > 1:
            self.children[parent] -= 1
        else:
            del self.children[parent]
            self.missing -= parent not in self.spans

    def _weigh(self, content: int, resource: bytes, scope: bytes) -> None:
        """Adds a piece to the size; pieces of one request share their resource, and mostly come in a row."""
        self.size += content + PIECE_OVERHEAD
        if resource is not self.resource:
            self.resource = resource
            self.size += len(resource) + len(scope)


def number(span_id: bytes) -> int:
    """A span id as 64 bits."""
    return int.from_bytes(span_id, "big")


def log_number(log: RawLog) -> int:
    """64 bits for a log record, which has no id of its own."""
    return number(blake2b(b"".join(log_order(log)), digest_size=8).digest())


def log_order(log: RawLog) -> tuple[bytes, bytes, bytes]:
    """All there is to a log record, as a sorting key."""
    return log.record, log.scope, log.resource


def _rank(span: RawSpan) -> tuple[int, int, bytes, bytes, bytes]:
    """Orders spans of one id; see the module."""
    end = trace_pb2.Span.FromString(span.span).end_time_unix_nano
    return end, len(span.span), span.span, span.scope, span.resource
