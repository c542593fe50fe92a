"""One request of traces -> the spans that are kept back, each as a request of its own, and the rest.

What is taken apart here goes over the wire again later: nothing of it may change, whatever tracescore itself knows
of it. So both encodings are parted as they are, with all the fields that nobody here reads.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from tracescore.net.wire import dumps, loads
from tracescore.otlp.split import Request, SpanIds

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
    """With spans as bytes: they stay as they are, also those that nobody could read."""
    request, alone = Request.FromString(body), []
    groups = list(request.groups)
    del request.groups[:]
    for group in groups:
        scopes = list(group.scopes)
        del group.scopes[:]
        stay = []
        for scope in scopes:
            spans = list(scope.records)
            del scope.records[:]
            left = []
            for span in spans:
                if (ids := _ids_protobuf(span))[:2] in wanted:
                    one = Request(groups=[group])
                    one.groups[0].scopes.append(scope)
                    one.groups[0].scopes[0].records.append(span)
                    alone.append(Alone(*ids, one.SerializeToString()))
                else:
                    left.append(span)
            if left or not spans:
                stay.append((scope, left))
        for scope, left in stay:
            scope.records.extend(left)
            group.scopes.append(scope)
        if stay or not scopes:
            request.groups.append(group)
    return Parted(request.SerializeToString() if request.groups else None, alone)


def _ids_protobuf(span: bytes) -> tuple[bytes, bytes, bytes]:
    """Trace, span and parent id; empty ones where it cannot be read."""
    try:
        ids = SpanIds.FromString(span)
    except DecodeError:
        return b"", b"", b""
    return ids.trace_id, ids.span_id, ids.parent_span_id


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
                if (ids := (_id(span, "traceId", "trace_id"), _id(span, "spanId", "span_id"))) in wanted:
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
    """The key of a repeated field as this sender spells it, and what it holds; both spellings were refused before."""
    key = next((key for key in keys if item.get(key)), keys[0])
    return key, item.get(key) or []


def _id(span: dict[str, Any], *keys: str) -> bytes:
    return bytes.fromhex(next((span[key] for key in keys if span.get(key)), ""))
