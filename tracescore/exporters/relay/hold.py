"""`attach: hold`: spans that may get scores are kept back until they have them, and go on with the scores in them.

A span is kept back until its trace has been read. Then the spans to which scores will be attached are kept on until
they are scored, and all others go. None is kept longer than the deadline, whatever becomes of its trace: then its
scores come late, as evaluation spans only. What is kept back was acknowledged, so the spool has it, and it leaves the
spool when the destination has taken it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Literal, get_args

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from prometheus_client import CollectorRegistry, Gauge

from tracescore.config import ForwardConfig
from tracescore.exporters.kinds import Delivering
from tracescore.exporters.otlp.messages import attributes, target_attributes
from tracescore.exporters.prometheus.families import from_zero
from tracescore.exporters.relay.forward import Forwarder
from tracescore.exporters.relay.outbox import Outbox
from tracescore.model import Clock, RawSpan, Result
from tracescore.net.retry import REAL_TIME, Timing
from tracescore.net.wire import Envelope, Withheld, dumps, loads

Released = Literal["scored", "no_target", "deadline"]
"""It has its scores; nothing will be attached to it; its time was over."""

_log = logging.getLogger("tracescore.exporters")

_SAY_EVERY = 60.0
_OVERHEAD = 500
"""Bytes that a span kept back takes beside its request."""


class Hold(Delivering):
    """What is kept back, by trace, and how it goes on. An exporter: results release the spans they are about."""

    name = "hold"

    def __init__(
        self,
        settings: ForwardConfig,
        forwarder: Forwarder,
        marked: Callable[[RawSpan], bool],
        registry: CollectorRegistry,
        clock: Clock,
        timing: Timing = REAL_TIME,
    ) -> None:
        """`marked` tells whether a span may be one to which scores are attached."""
        super().__init__(durable=True)
        self._settings, self._forwarder, self._marked, self._clock = settings, forwarder, marked, clock
        self._since: dict[Withheld, float] = {}  # in that order
        self._traces: dict[bytes, set[Withheld]] = {}
        self._parents: dict[bytes, set[bytes]] = {}  # of spans that are kept back, by trace
        self._bytes, self._said = 0, float("-inf")
        self._outbox = Outbox(forwarder.deliver, registry, timing)
        self._passed_on: list[Withheld] = []
        prefix = "tracescore_exporters_forward"
        for name, about, read in (
            ("held_spans", "Spans held until they have scores.", lambda: len(self._since)),
            (
                "held_bytes",
                "Bytes of held spans; at exporters.forward.max_held further spans go on without scores.",
                lambda: self._bytes,
            ),
        ):
            Gauge(f"{prefix}_{name}", about, registry=registry).set_function(read)
        about = "Held spans that tracescore released, by reason."
        self._released = from_zero(registry, f"{prefix}_released_spans", about, "reason", get_args(Released))
        about = "Results whose span was still held (in_time), or had gone on or never arrived (late)."
        self._attached = from_zero(registry, f"{prefix}_attached_results", about, "outcome", ("in_time", "late"))

    def wanted(self, spans: Iterable[RawSpan]) -> set[tuple[bytes, bytes]]:
        """Trace id and span id of those that are to be kept back: they may get scores, and there is room for them.

        What was let go and not yet taken needs room as well, or a destination that is away would fill the memory.
        These are the spans of a convention and those above them, which end, and so come, after them.
        """
        found: set[tuple[bytes, bytes]] = set()
        parents: set[tuple[bytes, bytes]] = set()
        room = self._bytes + self._outbox.size < self._settings.max_held
        for span in spans if room else ():
            ids = span.trace_id, span.span_id
            if ids in parents or span.span_id in self._parents.get(span.trace_id, ()) or self._marked(span):
                found.add(ids)
                parents.add((span.trace_id, span.parent_span_id))
        return found

    def holds(self, envelope: Envelope) -> bool:
        """Whether spans of such a request may be kept: not where that takes credentials that are not kept."""
        if self._forwarder.can_wait(envelope.headers):
            return True
        now = self._clock()
        if abs(now - self._said) > _SAY_EVERY:
            self._said = now
            detail = "their sender has credentials, which are never stored; scores follow as evaluation spans"
            advice = "set exporters.forward.headers to what the destination lets tracescore in by"
            _log.warning('event=spans_not_held detail="%s" advice="%s"', detail, advice)
        return False

    def withheld(self, envelope: Envelope, alone: Iterable[tuple[bytes, bytes, bytes, bytes]]) -> list[Withheld]:
        """The spans as they are kept: `alone` are trace, span and parent id, and a request that holds that span."""
        envelope = envelope._replace(headers=tuple(self._forwarder.lasting(envelope.headers)))
        return [Withheld(trace, span, parent, envelope, request) for trace, span, parent, request in alone]

    def take(self, spans: Sequence[Withheld], at: float) -> None:
        """Keeps spans back from `at` (Unix seconds) on; those it has already change nothing."""
        for span in spans:
            if span not in self._since:
                self._since[span] = at
                self._traces.setdefault(span.trace_id, set()).add(span)
                self._parents.setdefault(span.trace_id, set()).add(span.parent_span_id)
                self._bytes += _size(span)

    def read(self, trace_id: bytes, targets: Collection[str]) -> None:
        """The trace was read; what is not among `targets` (span ids in hex) goes on."""
        wanted = set(map(bytes.fromhex, targets))
        for span in [span for span in self._traces.get(trace_id, ()) if span.span_id not in wanted]:
            self._release(span, "no_target", span.request)

    def tick(self) -> None:
        """Lets go what was kept back for too long, or since a moment that the clock was set back from."""
        now, deadline = self._clock(), self._settings.deadline
        while self._since:
            span, since = next(iter(self._since.items()))
            if abs(now - since) < deadline:
                return
            self._release(span, "deadline", span.request)

    async def export(self, result: Result) -> None:
        """Attaches the scores to the span they are about and lets it go."""
        trace_id, span_id = (bytes.fromhex(each) for each in (result.interaction.trace_id, result.interaction.span_id))
        versions = [span for span in self._traces.get(trace_id, ()) if span.span_id == span_id]
        self._attached.labels("in_time" if versions else "late").inc()
        if not versions:
            self.settled(result)
            return
        scores = attributes(target_attributes(result))
        for span in versions:
            last = span is versions[-1]
            self._release(span, "scored", attach(span, scores), partial(self.settled, result) if last else None)

    async def close(self) -> None:
        """Waits a few seconds for what was let go; the spool keeps the rest for the next process."""
        await self._outbox.close()

    def take_passed_on(self) -> list[Withheld]:
        """The spans that the destination has taken, or refused for good, since the last call."""
        passed_on, self._passed_on = self._passed_on, []
        return passed_on

    def _release(
        self, span: Withheld, reason: Released, request: bytes, then: Callable[[], None] | None = None
    ) -> None:
        del self._since[span]
        of_trace = self._traces[span.trace_id]
        of_trace.remove(span)
        if not of_trace:
            del self._traces[span.trace_id], self._parents[span.trace_id]
        self._bytes -= _size(span)
        self._released.labels(reason).inc()

        def end() -> None:
            self._passed_on.append(span)
            if then is not None:
                then()

        self._outbox.put(span.envelope, request, end)


def attach(span: Withheld, scores: Sequence[KeyValue]) -> bytes:
    """The request of a span with attributes added to the span; those of the same keys are replaced."""
    add = _attach_json if span.envelope.json else _attach_protobuf
    return add(span.request, scores, {score.key for score in scores})


def _attach_protobuf(request: bytes, scores: Sequence[KeyValue], keys: Collection[str]) -> bytes:
    message = ExportTraceServiceRequest.FromString(request)
    span = message.resource_spans[0].scope_spans[0].spans[0]
    kept = [attribute for attribute in span.attributes if attribute.key not in keys]
    del span.attributes[:]
    span.attributes.extend([*kept, *scores])
    return message.SerializeToString()


def _attach_json(request: bytes, scores: Sequence[KeyValue], keys: Collection[str]) -> bytes:
    document = loads(request)
    span = _only(_only(_only(document)))
    kept = [attribute for attribute in span.get("attributes") or () if attribute.get("key") not in keys]
    span["attributes"] = [*kept, *map(MessageToDict, scores)]
    return dumps(document)


def _only(message: dict[str, Any]) -> dict[str, Any]:
    """The one element of the one repeated message in an OTLP/JSON message that holds a single span."""
    (element,) = next(each for key, each in message.items() if key in _REPEATED)
    found: dict[str, Any] = element
    return found


_REPEATED = ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans")


def _size(span: Withheld) -> int:
    return len(span.request) + _OVERHEAD
