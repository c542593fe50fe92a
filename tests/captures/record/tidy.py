"""Takes the machine out of recorded bodies: host, process and paths get fixed values; all else stays as exported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .sink import Body

REQUESTS = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}
_FIXED: dict[str, str | int] = {
    "host.name": "host-1",
    "host.id": "0" * 32,
    "process.pid": 1,
    "process.parent_pid": 1,
    "process.owner": "app",
    "process.command": "app",
    "process.command_line": "app",
    "process.executable.path": "python",
    "process.runtime.description": "python",
    "service.instance.id": "app-1",
}
_DROPPED = re.compile(r"^(host\.arch|os\.|process\.command_args|telemetry\.distro)")


def tidied(body: Body, places: Sequence[str]) -> Body:
    """The body without the machine; `places` are directories whose names are cut out of all texts."""
    if body.form == "json":
        text = json.dumps(_plain(json.loads(body.data), places), ensure_ascii=False, indent=None)
        return Body(body.kind, body.form, text.encode())
    request = REQUESTS[body.kind].FromString(body.data)
    for block in request.resource_spans if body.kind == "traces" else ():
        for span in (span for scope in block.scope_spans for span in scope.spans):
            if span.status.message:  # some put a traceback there
                span.status.message = _cut(span.status.message, places)
    for value in values(request):
        _fix(value)
        for text in strings(value):
            text.string_value = _cut(text.string_value, places)
    return Body(body.kind, body.form, request.SerializeToString())


def values(message: Message) -> Iterator[Message]:
    """Every KeyValue below a message, and log bodies as they are (AnyValue)."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if isinstance(value, Message) else value:
            if part.DESCRIPTOR.name in {"KeyValue", "AnyValue"}:
                yield part
            else:
                yield from values(part)


def strings(value: Any) -> Iterator[Any]:
    """The AnyValues below a KeyValue or AnyValue that hold a string."""
    value = value.value if value.DESCRIPTOR.name == "KeyValue" else value
    kind = value.WhichOneof("value")
    if kind == "string_value":
        yield value
    elif kind == "array_value":
        for each in value.array_value.values:
            yield from strings(each)
    elif kind == "kvlist_value":
        for each in value.kvlist_value.values:
            yield from strings(each)


def _fix(value: Any) -> None:
    if value.DESCRIPTOR.name != "KeyValue":
        return
    fixed = _FIXED.get(value.key, "x" if _DROPPED.match(value.key) else None)
    if isinstance(fixed, int):
        value.value.int_value = fixed
    elif fixed is not None:
        value.value.string_value = fixed


def _cut(text: str, places: Iterable[str]) -> str:
    for place in places:
        text = text.replace(place, "/app")
    text = re.sub(r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:8000", text)
    return re.sub(r"/[\w./+-]*?/((?:site|dist)-packages|lib/python3[.\d]*|node_modules)/", r"\1/", text)


def _plain(thing: Any, places: Sequence[str]) -> Any:
    if isinstance(thing, list):
        return [_plain(each, places) for each in thing]
    if isinstance(thing, str):
        return _cut(thing, places)
    if not isinstance(thing, dict):
        return thing
    key = thing.get("key")
    fixed = _FIXED.get(key, "x" if _DROPPED.match(str(key)) else None)
    if fixed is not None and "value" in thing:
        return {"key": key, "value": {"stringValue": str(fixed)}}
    return {name: _plain(each, places) for name, each in thing.items()}
