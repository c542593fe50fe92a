"""Raw spans and log records -> decoded ones: the expensive step, done once per trace when it is complete."""

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf import message
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from tracescore.errors import DecodeError
from tracescore.model import (
    Attributes,
    AttributeValue,
    LogRecord,
    RawLog,
    RawSpan,
    RawTrace,
    Span,
    SpanEvent,
    Trace,
)

_Parsed = TypeVar("_Parsed", bound=message.Message)


def decode(raw: RawTrace) -> Trace:
    """Decodes every span and log record of a trace.

    Spans come out in order of (start, span id), logs in order of time. Raises DecodeError when a piece does not
    parse, which those that `split_traces` and `split_logs` kept always do.
    """
    shared = _Shared()
    spans = [_span(piece, shared) for piece in raw.spans]
    logs = [_log(piece, shared) for piece in raw.logs]
    return Trace(
        trace_id=raw.trace_id.hex(),
        spans=tuple(sorted(spans, key=lambda span: (span.start_unix_nano, span.span_id))),
        logs=tuple(sorted(logs, key=lambda log: log.time_unix_nano)),
    )


class _Shared:
    """Resources and scopes of a trace: few, and on every span, so each is decoded once."""

    def __init__(self) -> None:
        self._resources: dict[bytes, Attributes] = {}
        self._scopes: dict[bytes, tuple[str, str]] = {}

    def resource(self, raw: bytes) -> Attributes:
        if raw not in self._resources:
            self._resources[raw] = _attributes(_parse(resource_pb2.Resource, raw).attributes)
        return self._resources[raw]

    def scope(self, raw: bytes) -> tuple[str, str]:
        """Name and version."""
        if raw not in self._scopes:
            scope = _parse(common_pb2.InstrumentationScope, raw)
            self._scopes[raw] = scope.name, scope.version
        return self._scopes[raw]


def _span(raw: RawSpan, shared: _Shared) -> Span:
    span = _parse(trace_pb2.Span, raw.span)
    scope_name, scope_version = shared.scope(raw.scope)
    return Span(
        trace_id=raw.trace_id.hex(),
        span_id=raw.span_id.hex(),
        parent_span_id=raw.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start_unix_nano=span.start_time_unix_nano,
        end_unix_nano=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        events=tuple(SpanEvent(each.name, each.time_unix_nano, _attributes(each.attributes)) for each in span.events),
        resource=shared.resource(raw.resource),
        scope_name=scope_name,
        is_error=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        dropped_attributes=span.dropped_attributes_count,
        scope_version=scope_version,
    )


def _log(raw: RawLog, shared: _Shared) -> LogRecord:
    record = _parse(logs_pb2.LogRecord, raw.record)
    attributes = _attributes(record.attributes)
    return LogRecord(
        trace_id=raw.trace_id.hex(),
        span_id=raw.span_id.hex(),
        event_name=record.event_name or str(attributes.get("event.name") or ""),
        time_unix_nano=record.time_unix_nano or record.observed_time_unix_nano,
        body=_value(record.body),
        attributes=attributes,
        resource=shared.resource(raw.resource),
        scope_name=shared.scope(raw.scope)[0],
    )


def _attributes(pairs: Iterable[common_pb2.KeyValue]) -> dict[str, AttributeValue]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: common_pb2.AnyValue) -> AttributeValue:
    """A Python value; None for an empty one, and for the string index, which has no meaning in these signals."""
    if text := value.string_value:  # as most are; asking for the kind first takes a quarter longer
        return text
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    if kind == "array_value":
        return [_value(element) for element in value.array_value.values]
    return None if kind is None or kind == "string_value_strindex" else getattr(value, kind)


def _parse(kind: type[_Parsed], raw: bytes) -> _Parsed:
    try:
        return kind.FromString(raw)
    except message.DecodeError as error:
        raise DecodeError(f"{kind.DESCRIPTOR.name}: {len(raw)} bytes do not parse: {error}") from None
