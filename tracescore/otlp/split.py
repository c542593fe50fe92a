"""Export request bodies -> raw spans and log records by trace id, without looking inside them.

Reading every attribute from Python costs 15 times what the parser itself does, and nine traces in ten may not be
admitted. So requests are parsed with a reduced message in which a Span or LogRecord stays bytes; the trace id is
taken from the first bytes of a span, where every exporter puts it, and only spans of admitted traces are looked
at further. Traces and logs use the same field numbers down to the single record, so one reduced message reads both.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tracescore.errors import DecodeError
from tracescore.model import RawLog, RawSpan
from tracescore.otlp.bounds import (
    LOG,
    RESOURCE,
    SCOPE,
    SPAN,
    UNLIMITED,
    RequestLimits,
    check,
    fits,
    too_many,
)

Admits = Callable[[bytes], bool]
"""Whether the trace of these 16 bytes is wanted. Pure: the same answer for the same id."""

_TRACE_ID = b"\n\x10"
"""Field 1 with 16 bytes: how nearly every span begins. Where the trace id comes later, the parser finds it."""

_Parsed = TypeVar("_Parsed", bound=message.Message)


@dataclass(frozen=True, slots=True)
class Split:
    """What one request held.

    `spans` or `logs` are those of admitted traces. `received` counts all that came, `rejected` those of them that
    are not well-formed or have no usable ids; a span of a trace that is not admitted is only checked for its
    trace id.
    """

    received: int
    rejected: int
    spans: list[RawSpan] = field(default_factory=list)
    logs: list[RawLog] = field(default_factory=list)


SplitSteps = Generator[None, None, Split]
"""Splits a request piece by piece, with a chance for everything else in between; returns the split at the end."""

_STEP, _LONG = 256, 2**14
"""Records in a step: some milliseconds. One with more bytes is a step by itself."""


def split_traces(body: bytes, admits: Admits) -> Split:
    """Splits a serialised ExportTraceServiceRequest at once; DecodeError when it is none."""
    return _at_once(traces_in_steps(body, admits))


def split_logs(body: bytes, admits: Admits) -> Split:
    """Splits a serialised ExportLogsServiceRequest at once; DecodeError when it is none."""
    return _at_once(logs_in_steps(body, admits))


def _at_once(steps: SplitSteps) -> Split:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            split: Split = done.value
            return split


def traces_in_steps(body: bytes, admits: Admits, limits: RequestLimits = UNLIMITED) -> SplitSteps:
    """Splits a serialised ExportTraceServiceRequest; DecodeError when it is none, TooMany when it is too much.

    A span without a trace id or span id is rejected: this is also what a logs request looks like from here.
    """
    spans: list[RawSpan] = []
    received = rejected = 0
    last: bytes | None = None
    trace_id, verdict = b"", None
    traces: set[bytes] = set()
    if limits is not UNLIMITED:
        yield from check(body, limits)
    for resource, scope, records in _groups(body, limits):
        yield
        received += len(records)
        if not (yield from _sound(resource, scope)):
            rejected += len(records)
            continue
        for record in records:
            head = record[:18]
            if head != last:  # spans of one trace mostly stand together
                plain = head.startswith(_TRACE_ID)
                last, trace_id = (head, head[2:]) if plain else (None, _trace_id(SpanIds, record))
                verdict = admits(trace_id) if _is_id(trace_id, 16) else None
                _count(traces, trace_id, verdict, limits)
            if verdict is False:
                continue
            fit = len(record) <= _LONG or (yield from fits(record, SPAN))
            span = _parsed(Span, record) if verdict and fit else None
            if span is None or span.trace_id != trace_id or not _is_id(span.span_id, 8):
                rejected += 1
                continue
            parent = span.parent_span_id
            # Some exporters write the parent of a root as zeros.
            spans.append(RawSpan(trace_id, span.span_id, parent if any(parent) else b"", resource, scope, record))
    return Split(received, rejected, spans=spans)


def logs_in_steps(body: bytes, admits: Admits, limits: RequestLimits = UNLIMITED) -> SplitSteps:
    """Splits a serialised ExportLogsServiceRequest; DecodeError when it is none, TooMany when it is too much.

    A record without a trace id belongs to no trace: it is counted and ignored, not rejected.
    """
    logs: list[RawLog] = []
    received = rejected = 0
    traces: set[bytes] = set()
    if limits is not UNLIMITED:
        yield from check(body, limits)
    for resource, scope, records in _groups(body, limits):
        yield
        received += len(records)
        if not (yield from _sound(resource, scope)):
            rejected += len(records)
            continue
        for record in records:
            trace_id = _trace_id(_LogId, record)
            valid = _is_id(trace_id, 16)
            if not any(trace_id) or (valid and not admits(trace_id)):
                continue
            _count(traces, trace_id, valid, limits)
            fit = len(record) <= _LONG or (yield from fits(record, LOG))
            log = _parsed(LogRecord, record) if valid and fit else None
            if log is None:
                rejected += 1
                continue
            # A log record of a trace need not name a span.
            span_id = log.span_id if _is_id(log.span_id, 8) else b""
            logs.append(RawLog(trace_id, span_id, resource, scope, record))
    return Split(received, rejected, logs=logs)


def _count(traces: set[bytes], trace_id: bytes, verdict: bool | None, limits: RequestLimits) -> None:
    if verdict:
        traces.add(trace_id)
        if len(traces) > limits.traces:
            raise too_many("traces", limits.traces)


def _groups(body: bytes, limits: RequestLimits) -> Iterator[tuple[bytes, bytes, Any]]:
    """(resource, scope, some of their records) of a request, all still bytes."""
    try:
        request: Any = Request.FromString(body)
    except message.DecodeError:
        raise DecodeError(f"body: an OTLP export request in protobuf expected; got {len(body)} other bytes") from None
    if sum(len(scoped.records) for group in request.groups for scoped in group.scopes) > limits.records:
        raise too_many("spans or log records", limits.records)
    for group in request.groups:
        resource = group.resource
        for scoped in group.scopes:
            scope, records = scoped.scope, scoped.records
            for at in range(0, max(1, len(records)), _STEP):
                yield resource, scope, records[at : at + _STEP]


def _sound(resource: bytes, scope: bytes) -> Generator[None, None, bool]:
    """Whether both parse, without which no span under them can be read."""
    for piece, layout in ((resource, RESOURCE), (scope, SCOPE)):
        if len(piece) > _LONG and not (yield from fits(piece, layout)):
            return False
    try:
        Resource.FromString(resource)
        InstrumentationScope.FromString(scope)
    except message.DecodeError:
        return False
    return True


def _parsed(kind: type[_Parsed], record: bytes) -> _Parsed | None:
    """A span or log record parsed in full, so that decoding it later finds no surprise; None when that fails."""
    try:
        return kind.FromString(record)
    except message.DecodeError:
        return None


def _is_id(value: bytes, length: int) -> bool:
    return len(value) == length and any(value)


def _trace_id(reduced: type[Any], piece: bytes) -> bytes:
    """The trace id wherever it stands in a piece; no valid id when the piece does not parse."""
    try:
        trace_id: bytes = reduced.FromString(piece).trace_id
    except message.DecodeError:
        return b"?"
    return trace_id


_FieldType = descriptor_pb2.FieldDescriptorProto


def _reduced_messages() -> Iterator[type[Any]]:
    """Message classes that read OTLP requests only as deep as needed.

    Field numbers are those of ExportTraceServiceRequest, ResourceSpans, ScopeSpans and Span, which are also those
    of the corresponding messages for logs, but for the trace id of a LogRecord.
    """
    layout: dict[str, list[tuple[str, int, bool, str]]] = {
        "Request": [("groups", 1, True, "Group")],
        "Group": [("resource", 1, False, ""), ("scopes", 2, True, "Scoped")],
        "Scoped": [("scope", 1, False, ""), ("records", 2, True, "")],
        "SpanIds": [("trace_id", 1, False, ""), ("span_id", 2, False, ""), ("parent_span_id", 4, False, "")],
        "LogId": [("trace_id", 9, False, "")],
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="tracescore/receiver/reduced.proto", package="tracescore.receiver", syntax="proto3"
    )
    for name, fields in layout.items():
        reduced = file.message_type.add(name=name)
        for field_name, number, repeated, type_name in fields:
            reduced.field.add(
                name=field_name,
                number=number,
                label=_FieldType.LABEL_REPEATED if repeated else _FieldType.LABEL_OPTIONAL,
                type=_FieldType.TYPE_MESSAGE if type_name else _FieldType.TYPE_BYTES,
                type_name=f".tracescore.receiver.{type_name}" if type_name else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    for name in ("Request", "SpanIds", "LogId"):
        yield message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tracescore.receiver.{name}"))


Request, SpanIds, _LogId = _reduced_messages()
"""Request: `groups` of `resource` and `scopes`, these of `scope` and `records`, all bytes; what else there is stays in
them as unknown fields. SpanIds: the ids of a record that is a span."""
