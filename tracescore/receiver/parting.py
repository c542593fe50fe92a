"""One request of traces -> the spans that are kept back, each as a request of its own, and the rest.

What is taken apart here goes over the wire again later: nothing of it may change, whatever tracescore itself knows
of it. So both encodings are parted as they are, with all the fields that nobody here reads.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracescore.wire import dumps, loads

Ids = tuple[bytes, bytes]
"""Trace id and span id."""


class Alone(NamedTuple):
    """A span with its ids, as the request that would hold it alone."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    request: bytes


class Parted(NamedTuple):
    """`alone`: the wanted spans. `rest`: the request without them, None when nothing is left of it."""

    rest: bytes | None
    alone: list[Alone]


def part(body: bytes, wanted: Collection[Ids], *, json: bool) -> Parted:
    """Parts an ExportTraceServiceRequest that has been read without an error."""
    return _part_json(body, wanted) if json else _part_protobuf(body, wanted)


def _part_protobuf(body: bytes, wanted: Collection[Ids]) -> Parted:
    request, alone = ExportTraceServiceRequest.FromString(body), []
    groups = list(request.resource_spans)
    del request.resource_spans[:]
    for group in groups:
        scopes = list(group.scope_spans)
        del group.scope_spans[:]
        stay = []
        for scope in scopes:
            spans = list(scope.spans)
            del scope.spans[:]
            for span in spans:
                if (span.trace_id, span.span_id) in wanted:
                    one = ExportTraceServiceRequest(resource_spans=[group])
                    one.resource_spans[0].scope_spans.append(scope)
                    one.resource_spans[0].scope_spans[0].spans.append(span)
                    alone.append(Alone(span.trace_id, span.span_id, span.parent_span_id, one.SerializeToString()))
            left = [span for span in spans if (span.trace_id, span.span_id) not in wanted]
            if left or not spans:
                stay.append((scope, left))
        for scope, left in stay:
            scope.spans.extend(left)
            group.scope_spans.append(scope)
        if stay or not scopes:
            request.resource_spans.append(group)
    return Parted(request.SerializeToString() if request.resource_spans else None, alone)


def _part_json(body: bytes, wanted: Collection[Ids]) -> Parted:
    document, alone = loads(body), []
    groups_key, groups = _listed(document, "resourceSpans", "resource_spans")
    kept_groups = []
    for group in groups:
        scopes_key, scopes = _listed(group, "scopeSpans", "scope_spans")
        kept_scopes = []
        for scope in scopes:
            spans_key, spans = _listed(scope, "spans")
            left = []
            for span in spans:
                if (ids := _ids(span)) in wanted:
                    one = {**group, scopes_key: [{**scope, spans_key: [span]}]}
                    alone.append(Alone(*ids, _id(span, "parentSpanId", "parent_span_id"), dumps({groups_key: [one]})))
                else:
                    left.append(span)
            if left or not spans:
                kept_scopes.append({**scope, spans_key: left})
        if kept_scopes or not scopes:
            kept_groups.append({**group, scopes_key: kept_scopes})
    return Parted(dumps({**document, groups_key: kept_groups}) if kept_groups else None, alone)


def _listed(item: dict[str, Any], *keys: str) -> tuple[str, list[Any]]:
    """The key of a repeated field as this sender spells it, and what it holds."""
    key = next((key for key in keys if item.get(key)), keys[0])
    return key, item.get(key) or []


def _ids(span: dict[str, Any]) -> Ids:
    return _id(span, "traceId", "trace_id"), _id(span, "spanId", "span_id")


def _id(span: dict[str, Any], *keys: str) -> bytes:
    return bytes.fromhex(next((span[key] for key in keys if span.get(key)), ""))
