"""Spans -> complete traces: a state machine over raw spans, with the clock given and no timers of its own.

OTLP has no end-of-trace mark. A trace is closed, and handed out by `due`, when

- its root came, no span's parent is missing, and nothing new came for `idle` (`complete`);
- nothing new came for `orphan_idle` (`quiet`: a root that is sampled out or lives elsewhere never comes);
- `max_wait` has passed since its first piece (`max_wait`);
- it alone fills a quarter of the byte budget (`evicted`), so that one endless trace never stops all others;
- the service ends (`shutdown`, by `flush`).

What comes after closing is either a repeat, which changes nothing, or news: then the trace opens again and is
handed out once more, with all its spans. For that its spans are kept for another `orphan_idle`. The budget counts
them too, and the oldest go first; only traces that are still open make `room` say no. Later their ids are remembered,
for an hour or 100,000 traces, whichever is less, within an eighth of the budget: a repeat is still recognised, while
news makes a trace of the new spans alone. An evicted trace goes straight to this last state.

Of two different spans with one id the one that ended later is kept, then the larger, then the larger by bytes: a
choice that does not depend on the order of arrival. Log records are one and the same when all their bytes are.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from itertools import islice

from prometheus_client import CollectorRegistry, Gauge

from tracescore.assembly.held import NEVER, HeldTrace, log_number, number
from tracescore.assembly.markers import patterns
from tracescore.assembly.memory import Memory, contains
from tracescore.assembly.metrics import AssemblyMetrics
from tracescore.config import AssemblyConfig
from tracescore.model import Clock, ClosedBy, RawLog, RawSpan, RawTrace

_AT_ONCE = 500
"""Traces that are closed, or let go, before everybody else has a turn: some milliseconds."""


class Assembly:
    """Collects pieces by trace and says which traces are ready; see the module for the rules.

    `markers` are beginnings of attribute keys, scope names and event names, of which at least one occurs in every
    trace worth reading; a trace without any is dropped and counted. With no markers given, none is dropped.
    """

    def __init__(
        self, settings: AssemblyConfig, markers: tuple[bytes, ...], registry: CollectorRegistry, clock: Clock
    ) -> None:
        self._settings, self._patterns, self._clock = settings, patterns(markers), clock
        self._gone: list[tuple[bytes, array[int]]] = []
        self._metrics = AssemblyMetrics(registry)
        self._open: dict[bytes, HeldTrace] = {}
        self._closed: OrderedDict[bytes, HeldTrace] = OrderedDict()  # in order of closing
        self._memory = Memory(settings.max_held // 8, self._metrics.evictions["ids"])
        self._ready: list[RawTrace] = []
        self.behind = False
        """Whether the last call of `due` or `flush` left something that is ready."""
        self._heap: list[tuple[float, bytes]] = []  # when to look at an open trace
        self._open_bytes = self._closed_bytes = self._unmarked = 0
        self._bytes_of = Counter[str]()  # of the open ones, by sender
        for name, meaning, read in (
            ("open_traces", "Traces that wait for more spans.", lambda: len(self._open)),
            (
                "open_bytes",
                "Bytes of spans in open traces; at assembly.max_held tracescore asks senders to come back later.",
                lambda: self._open_bytes,
            ),
            ("kept_traces", "Closed traces kept in case late spans arrive.", lambda: len(self._closed)),
            ("kept_bytes", "Bytes of spans in kept traces.", lambda: self._closed_bytes),
            (
                "remembered_traces",
                "Closed traces of which tracescore remembers only the ids.",
                lambda: len(self._memory),
            ),
        ):
            Gauge(f"tracescore_assembly_{name}", meaning, registry=registry).set_function(read)

    @property
    def unmarked(self) -> int:
        """Traces dropped so far because no GenAI marker turned up in them."""
        return self._unmarked

    @property
    def open_traces(self) -> int:
        """Traces that wait for more spans."""
        return len(self._open)

    def room(self) -> bool:
        """Whether more may come: the open traces are within the budget."""
        return self._open_bytes < self._settings.max_held

    def fair(self, sender: str) -> bool:
        """Whether more may come from this sender: from half of the budget on none holds more than half of it."""
        half = self._settings.max_held // 2
        return self._open_bytes < half or self._bytes_of[sender] < half or not sender

    def marked(self, span: RawSpan) -> bool:
        """Whether a GenAI convention left a marker on the span or its scope."""
        return not self._patterns or any(each.search(span.span) or each.search(span.scope) for each in self._patterns)

    def take(self, spans: Sequence[RawSpan], logs: Sequence[RawLog], sender: str = "") -> None:
        """Adds pieces. Never refuses: the caller asks for `room` and `fair` before it acknowledges them."""
        self._metrics.count_pieces(len(spans), len(logs), *self._add_pieces(spans, logs, self._clock(), sender))

    def resume(self, spans: Sequence[RawSpan], logs: Sequence[RawLog], at: float) -> None:
        """Adds pieces that an earlier process took `at` (Unix seconds), counted them and closed no trace with them.

        No time of an earlier process is in the future here, though the clock may have been set back since.
        """
        self._metrics.waiting.inc(self._add_pieces(spans, logs, min(at, self._clock()))[0])

    def resume_closed(self, spans: Sequence[RawSpan], logs: Sequence[RawLog], closed_at: float) -> None:
        """Adds the pieces of one trace that an earlier process closed and handed out; oldest traces first."""
        held = HeldTrace((spans[0] if spans else logs[0]).trace_id)
        self._add(held, spans, logs)
        held.fresh, held.marked, held.closed_at = 0, True, min(closed_at, self._clock())
        self._closed[held.trace_id] = held
        self._closed_bytes += held.size

    def resume_gone(self, trace_id: bytes, ids: array[int], at: float) -> None:
        """Remembers the pieces of a trace that an earlier process let go `at`; oldest traces first."""
        self._memory.resume(trace_id, ids, min(at, self._clock()))

    def _add_pieces(
        self, spans: Sequence[RawSpan], logs: Sequence[RawLog], now: float, sender: str = ""
    ) -> tuple[int, int]:
        """Adds pieces; how many of the spans and of the log records were new."""
        new_spans = new_logs = 0
        traces: dict[bytes, tuple[list[RawSpan], list[RawLog]]] = {}
        for span in spans:
            traces.setdefault(span.trace_id, ([], []))[0].append(span)
        for log in logs:
            traces.setdefault(log.trace_id, ([], []))[1].append(log)
        for trace_id, pieces in traces.items():
            held = self._open.get(trace_id) or self._closed.get(trace_id) or HeldTrace(trace_id, sender)
            size, fresh, lines = held.size, held.fresh, len(held.logs)
            held.marked = held.marked or self._has_marker(*pieces)
            if self._add(held, *pieces):
                new_spans += held.fresh - fresh
                new_logs += len(held.logs) - lines
                self._keep_open(held, size, now)
            elif trace_id not in self._open and trace_id not in self._closed:
                self._note_gone(trace_id)  # nothing but repeats of what was let go before
        while self._closed and self._open_bytes + self._closed_bytes > self._settings.max_held:
            self._forget_oldest(now)
            self._metrics.evictions["spans"].inc()
        return new_spans, new_logs

    def due(self) -> list[RawTrace]:
        """Closes some of what is ready and returns it; `behind` tells whether there is more."""
        now, looked = self._clock(), 0
        while self._heap and self._heap[0][0] <= now and looked < _AT_ONCE:
            at, trace_id = heapq.heappop(self._heap)
            held = self._open.get(trace_id)
            if held is None or held.scheduled != at:
                continue  # closed, or rescheduled to an earlier time, since
            looked += 1
            held.scheduled = NEVER
            deadline, closed_by = self._deadline(held)
            if deadline <= now:
                self._close(held, closed_by, now)
            else:
                self._schedule(held)
        forgotten = 0
        while forgotten < _AT_ONCE and self._outlived(now):
            self._forget_oldest(now)
            forgotten += 1
        self.behind = _AT_ONCE in (looked, forgotten)
        self._memory.expire(now)
        return self._take_ready()

    def due_in(self) -> float:
        """Seconds for which `due` has nothing to do, whatever pieces come meanwhile; but for traces that are evicted.

        What comes now is ready after `idle` at the earliest, or what else is shorter.
        """
        settings, now = self._settings, self._clock()
        at = self._heap[0][0] if self._heap else NEVER
        if self._closed:
            at = min(at, next(iter(self._closed.values())).closed_at + settings.orphan_idle)
        return max(0.0, min(at - now, settings.idle, settings.orphan_idle, settings.max_wait))

    def _outlived(self, now: float) -> bool:
        """Whether the trace that was closed first has been kept long enough."""
        return bool(self._closed) and next(iter(self._closed.values())).closed_at + self._settings.orphan_idle <= now

    def take_gone(self) -> list[tuple[bytes, array[int]]]:
        """The traces whose spans were let go since the last call, each with the ids remembered of its pieces."""
        gone, self._gone = self._gone, []
        return gone

    def held(self) -> list[RawTrace]:
        """All traces whose spans are here, open or lately closed."""
        return [each.trace("shutdown") for each in (*self._open.values(), *self._closed.values())]

    def erase(self, trace_ids: Collection[bytes]) -> None:
        """Drops all spans of these traces, unread; they count as evicted."""
        now = self._clock()
        for trace_id in trace_ids:
            held = self._open.get(trace_id)
            if held is not None:
                held.marked = False
                self._close(held, "evicted", now)
            closed = self._closed.pop(trace_id, None)
            if closed is not None:
                self._closed_bytes -= closed.size
                self._memory.add(closed, now)

    def flush(self) -> list[RawTrace]:
        """Closes some of what is open, as at shutdown, and returns it; `behind` tells whether there is more."""
        now = self._clock()
        for held in list(islice(self._open.values(), _AT_ONCE)):
            self._close(held, "shutdown", now)
        self.behind = bool(self._open)
        return self._take_ready()

    def _add(self, held: HeldTrace, spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> bool:
        """Adds pieces to their trace; whether there was news."""
        read = self._memory.ids(held.trace_id)
        news = False
        for span in spans:
            if not read or span.span_id in held.spans or not contains(read, number(span.span_id)):
                news |= held.add_span(span)
        for log in logs:
            if not read or log in held.logs or not contains(read, log_number(log)):
                news |= held.add_log(log)
        return news

    def _keep_open(self, held: HeldTrace, size: int, now: float) -> None:
        """Puts a trace that got news among the open ones; `size` is what it had before."""
        if held.trace_id in self._open:
            self._grow(held, held.size - size)
        else:
            if self._closed.pop(held.trace_id, None):
                self._closed_bytes -= size
                self._metrics.reopened.inc()
            self._open[held.trace_id] = held
            self._grow(held, held.size)
            held.first = now
        held.last = now
        if held.size > self._settings.max_held // 4:
            self._close(held, "evicted", now)
        else:
            self._schedule(held)

    def _grow(self, held: HeldTrace, by: int) -> None:
        self._open_bytes += by
        if held.sender:
            self._bytes_of[held.sender] += by
            if not self._bytes_of[held.sender]:
                del self._bytes_of[held.sender]

    def _deadline(self, held: HeldTrace) -> tuple[float, ClosedBy]:
        """When the trace is closed if nothing more comes, and as what."""
        complete = held.complete()
        quiet = held.last + (self._settings.idle if complete else self._settings.orphan_idle)
        cap = held.first + self._settings.max_wait
        return (cap, "max_wait") if cap < quiet else (quiet, "complete" if complete else "quiet")

    def _schedule(self, held: HeldTrace) -> None:
        """Sees to it that `due` looks at the trace no later than its deadline.

        A deadline that has moved back costs nothing here: the entry there is looked at first and renewed.
        """
        at = self._deadline(held)[0]
        if at < held.scheduled:
            held.scheduled = at
            heapq.heappush(self._heap, (at, held.trace_id))

    def _close(self, held: HeldTrace, closed_by: ClosedBy, now: float) -> None:
        del self._open[held.trace_id]
        self._grow(held, -held.size)
        held.scheduled = NEVER
        self._metrics.closed_as(closed_by, held.fresh, held.marked)
        held.fresh = 0
        if held.marked:
            self._ready.append(held.trace(closed_by))
        else:
            self._unmarked += 1
        if closed_by == "evicted":
            self._memory.add(held, now)
            self._note_gone(held.trace_id)
        else:
            held.closed_at = now
            self._closed[held.trace_id] = held
            self._closed_bytes += held.size

    def _has_marker(self, spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> bool:
        """One search over all pieces joined: for small spans the calls would cost more than the search."""
        scopes = {span.scope for span in spans} | {log.scope for log in logs}
        text = b"\n".join([*scopes, *(span.span for span in spans), *(log.record for log in logs)])
        return not self._patterns or any(pattern.search(text) for pattern in self._patterns)

    def _forget_oldest(self, now: float) -> None:
        """Lets the spans of the trace go that was closed first, and remembers their ids."""
        _, held = self._closed.popitem(last=False)
        self._closed_bytes -= held.size
        self._memory.add(held, now)
        self._note_gone(held.trace_id)

    def _note_gone(self, trace_id: bytes) -> None:
        self._gone.append((trace_id, self._memory.ids(trace_id)))

    def _take_ready(self) -> list[RawTrace]:
        ready, self._ready = self._ready, []
        return ready


def assemble(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> RawTrace:
    """The trace that all pieces of one trace make, in whatever order they are given."""
    held = HeldTrace((spans[0] if spans else logs[0]).trace_id)
    for span in spans:
        held.add_span(span)
    for log in logs:
        held.add_log(log)
    return held.trace("complete")
