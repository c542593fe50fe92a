"""OTLP/JSON as exporters write it, and what is said of JSON that is none."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.otlp import attributes
from tracescore.errors import DecodeError
from tracescore.otlp.json import MAX_DEPTH, logs_to_protobuf, traces_to_protobuf


def read_span(span: Any):
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    return ExportTraceServiceRequest.FromString(traces_to_protobuf(body)).resource_spans[0].scope_spans[0].spans[0]


def read_value(value: Any):
    return read_span({"attributes": [{"key": "k", "value": value}]}).attributes[0].value


def test_ids_are_hexadecimal_in_either_case() -> None:
    span = read_span({"traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "b7ad6b7169203331", "parentSpanId": ""})
    assert span.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert span.span_id.hex() == "b7ad6b7169203331"
    assert span.parent_span_id == b""


@pytest.mark.parametrize("start", ["startTimeUnixNano", "start_time_unix_nano"])
@pytest.mark.parametrize("time", [1796000620951000000, "1796000620951000000"])
def test_64_bit_numbers_may_be_strings_and_keys_may_be_in_snake_case(start, time) -> None:
    assert read_span({start: time}).start_time_unix_nano == 1796000620951000000


@pytest.mark.parametrize("kind", [3, "3", "SPAN_KIND_CLIENT"])
def test_enums_are_numbers_or_names(kind) -> None:
    assert read_span({"kind": kind}).kind == 3


VALUES = {
    "string": ({"stringValue": "é😀"}, "é😀"),
    "snake case": ({"string_value": "x"}, "x"),
    "bool": ({"boolValue": False}, False),
    "int": ({"intValue": -5}, -5),
    "int as string": ({"intValue": "-9223372036854775808"}, -(2**63)),
    "int as a whole float": ({"intValue": 3.0}, 3),
    "double": ({"doubleValue": 0.25}, 0.25),
    "double without a fraction": ({"doubleValue": 2}, 2.0),
    "double as string": ({"doubleValue": "1e3"}, 1000.0),
    "infinity": ({"doubleValue": "-Infinity"}, -math.inf),
    "bytes": ({"bytesValue": "+/8="}, b"\xfb\xff"),
    "bytes for URLs, without padding": ({"bytesValue": "-_8"}, b"\xfb\xff"),
    "array": ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, ["a", 1]),
    "empty array": ({"arrayValue": {}}, []),
    "map": ({"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}),
    "nothing": ({}, None),
    "null": ({"stringValue": None}, None),
    "unknown kind": ({"dateValue": "x"}, None),
}


@pytest.mark.parametrize(("value", "wanted"), VALUES.values(), ids=VALUES)
def test_values(value, wanted) -> None:
    assert read_value(value) == attributes({"k": wanted})[0].value


def test_not_a_number_is_a_string() -> None:
    assert math.isnan(read_value({"doubleValue": "NaN"}).double_value)


def test_unknown_keys_and_nulls_are_ignored() -> None:
    span = read_span({"name": "x", "invented": {"deep": [1]}, "events": None, "status": {"code": 2, "colour": "red"}})
    assert (span.name, span.status.code) == ("x", 2)


BOTH = {
    "groups": ({"resourceSpans": [], "resource_spans": [{}]}, "body: one spelling expected; got resourceSpans"),
    "scopes": ({"resourceSpans": [{"scopeSpans": [{}], "scope_spans": [{}]}]}, "body.resourceSpans[0]: one spelling"),
    "an id": (
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "00", "trace_id": "01"}]}]}]},
        "got traceId and trace_id",
    ),
}


@pytest.mark.parametrize(("document", "said"), BOTH.values(), ids=BOTH.keys())
def test_a_field_in_both_spellings_is_refused_as_nobody_can_tell_which_is_meant(document: Any, said: str) -> None:
    with pytest.raises(DecodeError, match=re.escape(said)):
        traces_to_protobuf(json.dumps(document).encode())


def test_a_null_beside_the_other_spelling_is_absent() -> None:
    span = read_span({"traceId": None, "trace_id": "00", "startTimeUnixNano": 5, "start_time_unix_nano": None})
    assert (span.trace_id, span.start_time_unix_nano) == (b"\x00", 5)


def test_log_records() -> None:
    record = {"timeUnixNano": "5", "severityNumber": "SEVERITY_NUMBER_INFO", "body": {"stringValue": "hi"}}
    record |= {"traceId": "1" * 32, "spanId": "2" * 16, "eventName": "gen_ai.choice"}
    body = json.dumps({"resource_logs": [{"scope_logs": [{"log_records": [record]}]}]}).encode()
    got = ExportLogsServiceRequest.FromString(logs_to_protobuf(body)).resource_logs[0].scope_logs[0].log_records[0]
    assert (got.time_unix_nano, got.severity_number, got.body.string_value) == (5, 9, "hi")
    assert (got.trace_id.hex(), got.span_id.hex(), got.event_name) == ("1" * 32, "2" * 16, "gen_ai.choice")


def test_half_a_character_does_not_cost_the_request() -> None:
    body = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "cut \\ud83d"}]}]}]}'  # as JavaScript cuts strings
    request = ExportTraceServiceRequest.FromString(traces_to_protobuf(body))
    assert request.resource_spans[0].scope_spans[0].spans[0].name == "cut ?"


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def test_nesting_is_limited_to_what_the_parser_reads() -> None:
    assert read_value(nested(45)).ByteSize() > 0
    with pytest.raises(DecodeError, match=f"more than {MAX_DEPTH} levels of nesting"):
        read_value(nested(300))


SPAN = "body.resourceSpans[0].scopeSpans[0].spans[0]"
WRONG = {
    "id that is not hexadecimal": ({"traceId": "xyz"}, ".traceId: an id in hexadecimal digits expected; got a string"),
    "id that is a number": ({"spanId": 5}, ".spanId: an id in hexadecimal digits expected; got a number"),
    "text that is a number": ({"name": 5}, ".name: a string expected; got a number"),
    "time that is text": (
        {"endTimeUnixNano": "soon"},
        f".endTimeUnixNano: a whole number in [0, {2**64 - 1}] expected; got a string",
    ),
    "time before time": (
        {"endTimeUnixNano": -1},
        f".endTimeUnixNano: a whole number in [0, {2**64 - 1}] expected; got a number",
    ),
    "count with a fraction": (
        {"droppedEventsCount": 1.5},
        f".droppedEventsCount: a whole number in [0, {2**32 - 1}] expected; got a number",
    ),
    "count that is true": (
        {"droppedEventsCount": True},
        f".droppedEventsCount: a whole number in [0, {2**32 - 1}] expected; got true",
    ),
    "flag that is text": (
        {"attributes": [{"key": "k", "value": {"boolValue": "yes"}}]},
        ".attributes[0].value.boolValue: true or false expected; got a string",
    ),
    "double that is text": (
        {"attributes": [{"key": "k"}, {"key": "k", "value": {"doubleValue": "much"}}]},
        ".attributes[1].value.doubleValue: a number expected; got a string",
    ),
    "bytes that are no base64": (
        {"attributes": [{"key": "k", "value": {"bytesValue": "?"}}]},
        ".attributes[0].value.bytesValue: base64 expected; got a string",
    ),
    "unknown enum name": (
        {"kind": "BIG"},
        f".kind: a whole number in [{-(2**31)}, {2**31 - 1}] expected; got a string",
    ),
    "list that is none": ({"attributes": {"k": "v"}}, ".attributes: a list expected; got an object"),
    "message that is none": ({"attributes": [None]}, ".attributes[0]: an object expected; got null"),
}


@pytest.mark.parametrize(("span", "text"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_named_by_its_place_without_its_text(span, text) -> None:
    with pytest.raises(DecodeError) as raised:
        read_span(span)
    assert str(raised.value) == SPAN + text


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"a": "\\ud83d', b"[" * 100_000])
def test_what_is_no_json_is_a_decode_error(body) -> None:
    with pytest.raises(DecodeError, match="body: JSON expected"):
        traces_to_protobuf(body)


def test_a_number_beyond_every_range_is_refused_and_not_a_defect() -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":%s, "name":"\\ud83d"}]}]}]}' % (b"9" * 400)
    with pytest.raises(DecodeError):
        traces_to_protobuf(body)
