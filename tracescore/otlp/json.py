"""OTLP/JSON -> the same request in protobuf.

JSON is turned into protobuf at the door, so that everything behind it knows one encoding. Written by a walk of its
own over the message descriptors: OTLP/JSON differs from the protobuf JSON mapping (ids are hex), and the library's
json_format takes 20 times as long. Unknown keys are ignored and null means absent, as OTLP asks of receivers. A field
that is there in both of its spellings is refused, since every reader would take another one of the two.
"""

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tracescore.errors import DecodeError
from tracescore.net import wire

MAX_DEPTH = 100
"""Nested messages; the limit of the protobuf parser, which reads the result."""

MOST_ELEMENTS = 100_000
"""The most elements of one list; more cost more work than they are worth."""

_HEX_FIELDS = ("trace_id", "span_id", "parent_span_id")

Encode = Callable[[Any, int], bytes]
"""(JSON value, depth) -> the wire bytes of a field, its tag included."""


def parse(body: bytes) -> Any:
    """The JSON document; DecodeError when it is none."""
    try:
        return wire.loads(body)
    except ValueError as error:
        raise DecodeError(f"body: JSON expected; {error}") from None


def is_logs(document: Any) -> bool:
    """Whether a document is a logs request, judged by its only key."""
    return isinstance(document, dict) and ("resourceLogs" in document or "resource_logs" in document)


def is_traces(document: Any) -> bool:
    """Whether a document is a traces request, judged by its only key."""
    return isinstance(document, dict) and ("resourceSpans" in document or "resource_spans" in document)


def traces_to_protobuf(body: bytes) -> bytes:
    """An ExportTraceServiceRequest in JSON, serialised as protobuf; DecodeError names the place that is wrong."""
    return traces_document_to_protobuf(parse(body))


def logs_to_protobuf(body: bytes) -> bytes:
    """An ExportLogsServiceRequest in JSON, serialised as protobuf; DecodeError names the place that is wrong."""
    return logs_document_to_protobuf(parse(body))


def traces_document_to_protobuf(document: Any) -> bytes:
    """The same for a document that is already parsed."""
    return _message(ExportTraceServiceRequest.DESCRIPTOR, document)


def logs_document_to_protobuf(document: Any) -> bytes:
    """The same for a document that is already parsed."""
    return _message(ExportLogsServiceRequest.DESCRIPTOR, document)


class _Wrong(ValueError):
    """A value that does not fit, with the path to it, collected from the inside out."""

    def __init__(self, what: str, path: str = "") -> None:
        self.what, self.path = what, path
        super().__init__(what)


def _message(descriptor: Descriptor, document: Any) -> bytes:
    try:
        return _fields(_table(descriptor), document, 0)
    except _Wrong as wrong:
        raise DecodeError(f"body{wrong.path}: {wrong.what}") from None


def _fields(table: Mapping[str, Encode], value: Any, depth: int) -> bytes:
    """The fields of one message, in the order of the document."""
    if not isinstance(value, dict):
        raise _Wrong(f"an object expected; got {_kind(value)}")
    if depth > MAX_DEPTH:
        raise _Wrong(f"more than {MAX_DEPTH} levels of nesting")
    parts = []
    for key, item in value.items():
        encode = table.get(key)
        if encode is not None and item is not None:
            try:
                parts.append(encode(item, depth))
            except _Wrong as wrong:
                raise _Wrong(wrong.what, f".{key}{wrong.path}") from None
    if not value.keys().isdisjoint(_camel):
        _refuse_both_spellings(table, value)
    return b"".join(parts)


def _refuse_both_spellings(table: Mapping[str, Encode], value: Mapping[str, Any]) -> None:
    for snake in value.keys() & _camel.keys() & table.keys():
        camel = _camel[snake]
        if value[snake] is not None and value.get(camel) is not None:
            raise _Wrong(f"one spelling expected; got {camel} and {snake}")


_camel: dict[str, str] = {}
"""Names of fields -> their spelling in JSON, where that is another one. Filled together with `_tables`."""
_tables: dict[str, dict[str, Encode]] = {}


def _table(descriptor: Descriptor) -> dict[str, Encode]:
    """JSON key, in both spellings -> encoder of the field. Made once per message type; a type may contain itself."""
    table = _tables.get(descriptor.full_name)
    if table is None:
        table = _tables[descriptor.full_name] = {}
        for field in descriptor.fields:
            encode = _encoder(field)
            if field.default_value == []:  # the mark of a repeated field in every version of protobuf
                encode = _repeated(encode)
            table[field.name] = table[field.json_name] = encode
            if field.json_name != field.name:
                _camel[field.name] = field.json_name
    return table


def _encoder(field: FieldDescriptor) -> Encode:
    """The encoder of one value of a field."""
    wire_type, write = _SCALARS.get(field.type, (2, _text))
    tag = _varint(field.number << 3 | wire_type)
    if field.message_type is not None:
        table = _table(field.message_type)
        return lambda value, depth: _sized(tag, _fields(table, value, depth + 1))
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}
        return lambda value, _: tag + _enum(value, numbers)
    if field.type == FieldDescriptor.TYPE_BYTES:
        write = _hex if field.name in _HEX_FIELDS else _base64
    if wire_type == 2:
        return lambda value, _: _sized(tag, write(value))
    return lambda value, _: tag + write(value)


def _repeated(encode: Encode) -> Encode:
    def encode_all(values: Any, depth: int) -> bytes:
        if not isinstance(values, list):
            raise _Wrong(f"a list expected; got {_kind(values)}")
        if len(values) > MOST_ELEMENTS:
            raise _Wrong(f"at most {MOST_ELEMENTS} elements expected; got {len(values)}")
        parts = []
        for index, value in enumerate(values):
            try:
                parts.append(encode(value, depth))
            except _Wrong as wrong:
                raise _Wrong(wrong.what, f"[{index}]{wrong.path}") from None
        return b"".join(parts)

    return encode_all


def _varint(number: int) -> bytes:
    """Base-128 varint of a number >= 0."""
    if number < 0x80:
        return _BYTE[number]
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_BYTE = [bytes((number,)) for number in range(0x80)]


def _sized(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _Wrong(f"a string expected; got {_kind(value)}")
    return value.encode("utf-8", "replace")


def _hex(value: Any) -> bytes:
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise _Wrong(f"an id in hexadecimal digits expected; got {_kind(value)}") from None


def _base64(value: Any) -> bytes:
    """Standard or URL-safe alphabet, with or without padding, as the protobuf JSON mapping accepts it."""
    try:
        text = value.replace("-", "+").replace("_", "/").rstrip("=")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (AttributeError, ValueError):
        raise _Wrong(f"base64 expected; got {_kind(value)}") from None


def _bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise _Wrong(f"true or false expected; got {_kind(value)}")
    return _BYTE[value]


def _double(value: Any) -> bytes:
    """A number, or one written as a string: NaN, Infinity and -Infinity have no other spelling in JSON."""
    try:
        return struct.pack("<d", float(value))
    except (TypeError, ValueError, OverflowError):
        raise _Wrong(f"a number expected; got {_kind(value)}") from None


def _integer(value: Any, low: int, high: int) -> int:
    """A whole number in [low, high], written as a number or, since JSON has no 64-bit integers, as a string."""
    if isinstance(value, str):
        whole = _DECIMAL.fullmatch(value) is not None
    else:
        whole = isinstance(value, int) and not isinstance(value, bool)
        whole = whole or (isinstance(value, float) and value.is_integer())
    if not whole or not low <= int(value) <= high:
        raise _Wrong(f"a whole number in [{low}, {high}] expected; got {_kind(value)}")
    return int(value)


_DECIMAL = re.compile(r"-?[0-9]{1,20}")


def _enum(value: Any, numbers: Mapping[str, int]) -> bytes:
    if isinstance(value, str) and value in numbers:
        return _varint(numbers[value])
    return _signed(_integer(value, -(2**31), 2**31 - 1))


def _signed(number: int) -> bytes:
    return _varint(number & 0xFFFFFFFFFFFFFFFF)


def _kind(value: Any) -> str:
    """What was got, without quoting user text."""
    if isinstance(value, bool | None):
        return json.dumps(value)
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]


_SCALARS: dict[int, tuple[int, Callable[[Any], bytes]]] = {
    FieldDescriptor.TYPE_BOOL: (0, _bool),
    FieldDescriptor.TYPE_INT32: (0, lambda value: _signed(_integer(value, -(2**31), 2**31 - 1))),
    FieldDescriptor.TYPE_INT64: (0, lambda value: _signed(_integer(value, -(2**63), 2**63 - 1))),
    FieldDescriptor.TYPE_UINT32: (0, lambda value: _varint(_integer(value, 0, 2**32 - 1))),
    FieldDescriptor.TYPE_ENUM: (0, _bool),
    FieldDescriptor.TYPE_DOUBLE: (1, _double),
    FieldDescriptor.TYPE_FIXED64: (1, lambda value: struct.pack("<Q", _integer(value, 0, 2**64 - 1))),
    FieldDescriptor.TYPE_FIXED32: (5, lambda value: struct.pack("<I", _integer(value, 0, 2**32 - 1))),
}
"""Field type -> wire type and encoder; strings, bytes and messages are of wire type 2."""
