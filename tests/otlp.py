"""Builds OTLP requests for tests, small and in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from tracescore.model import RawLog, RawSpan
from tracescore.net.wire import Withheld


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big") if number else b""


def value(of: Any) -> AnyValue:
    if isinstance(of, AnyValue):
        return of
    if isinstance(of, bool):
        return AnyValue(bool_value=of)
    if isinstance(of, int):
        return AnyValue(int_value=of)
    if isinstance(of, float):
        return AnyValue(double_value=of)
    if isinstance(of, bytes):
        return AnyValue(bytes_value=of)
    if isinstance(of, dict):
        return AnyValue(kvlist_value=KeyValueList(values=attributes(of)))
    if isinstance(of, list):
        return AnyValue(array_value=ArrayValue(values=[value(element) for element in of]))
    return AnyValue() if of is None else AnyValue(string_value=of)


def attributes(of: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value(item)) for key, item in of.items()]


def span(number: int, parent: int = 0, trace: int = 1, attrs: Mapping[str, Any] | None = None, **fields: Any) -> Span:
    return Span(
        trace_id=trace_id(trace),
        span_id=span_id(number),
        parent_span_id=span_id(parent),
        attributes=attributes(attrs or {}),
        **fields,
    )


def log(trace: int = 1, attrs: Mapping[str, Any] | None = None, **fields: Any) -> LogRecord:
    return LogRecord(trace_id=trace_id(trace) if trace else b"", attributes=attributes(attrs or {}), **fields)


RESOURCE = Resource(attributes=attributes({"service.name": "shop"}))
SCOPE = InstrumentationScope(name="scope")


def traces(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    scoped = ScopeSpans(scope=SCOPE, spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=RESOURCE, scope_spans=[scoped])])


def logs(records: Iterable[LogRecord]) -> ExportLogsServiceRequest:
    scoped = ScopeLogs(scope=SCOPE, log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=RESOURCE, scope_logs=[scoped])])


def raw_span(of: Span) -> RawSpan:
    resource, scope = RESOURCE.SerializeToString(), SCOPE.SerializeToString()
    return RawSpan(of.trace_id, of.span_id, of.parent_span_id, resource, scope, of.SerializeToString())


def raw_log(of: LogRecord) -> RawLog:
    resource, scope = RESOURCE.SerializeToString(), SCOPE.SerializeToString()
    return RawLog(of.trace_id, of.span_id, resource, scope, of.SerializeToString())


def sdk_span(name: str) -> ReadableSpan:
    """An ended span of opentelemetry-python, for its exporters."""
    started = TracerProvider(shutdown_on_exit=False).get_tracer("tests").start_span(name)
    started.end()
    assert isinstance(started, ReadableSpan)
    return started


class Collected:
    """A sink that keeps what it is given; it has no room the next `refuse` times it is asked."""

    def __init__(self) -> None:
        self.spans: list[RawSpan] = []
        self.logs: list[RawLog] = []
        self.withheld: list[Withheld] = []
        self.senders: set[str] = set()
        self.greedy: set[str] = set()
        self.refuse = 0
        self.broken = False

    def room(self) -> bool:
        self.refuse -= 1
        return self.refuse < 0

    def fair(self, sender: str) -> bool:
        return sender not in self.greedy

    async def take(
        self, spans: Iterable[RawSpan], logs: Iterable[RawLog], withheld: Iterable[Withheld] = (), sender: str = ""
    ) -> None:
        self.senders.add(sender)
        self.withheld += withheld
        if self.broken:
            raise OSError("disk full")
        self.spans += spans
        self.logs += logs
