"""What comes out of the bytes of a span or log record, and how files of them are read."""

from __future__ import annotations

import dataclasses
import json

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from tests.otlp import attributes, log, logs, raw_log, raw_span, span, traces
from tracescore.errors import DecodeError, UsageError
from tracescore.model import RawTrace, SpanEvent
from tracescore.otlp.decode import decode
from tracescore.otlp.files import read_file


def decoded(*spans, logs=()):
    raw = RawTrace(spans[0].trace_id if spans else logs[0].trace_id, tuple(map(raw_span, spans)), (), "quiet")
    return decode(dataclasses.replace(raw, logs=tuple(map(raw_log, logs))))


def test_every_field_of_a_span() -> None:
    sent = span(
        2,
        parent=1,
        trace=3,
        name="chat",
        kind=ProtoSpan.SPAN_KIND_CLIENT,
        start_time_unix_nano=10,
        end_time_unix_nano=20,
        events=[
            ProtoSpan.Event(name="e", time_unix_nano=15, attributes=attributes({"k": 1}), dropped_attributes_count=2)
        ],
        status=Status(code=Status.STATUS_CODE_ERROR, message="broken"),
        dropped_attributes_count=4,
        dropped_events_count=5,
        flags=0x301,
    )
    trace = decoded(sent)
    (got,) = trace.spans
    assert trace.trace_id == sent.trace_id.hex()
    assert (got.trace_id, got.span_id, got.parent_span_id) == (trace.trace_id, "0" * 15 + "2", "0" * 15 + "1")
    assert (got.name, got.kind, got.start_unix_nano, got.end_unix_nano) == ("chat", 3, 10, 20)
    assert got.events == (SpanEvent("e", 15, {"k": 1}),)
    assert (got.is_error, got.dropped_attributes) == (True, 4)
    assert (dict(got.resource), got.scope_name) == ({"service.name": "shop"}, "scope")


VALUES = [
    "text",
    "",
    True,
    7,
    -(2**63),
    1.5,
    b"bytes",
    None,
    [],
    ["a", 1, None, [True]],
    {},
    {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_every_kind_of_value_comes_back_as_python(value) -> None:
    got = decoded(span(1, attrs={"key": value})).spans[0].attributes["key"]
    assert (got, type(got)) == (value, type(value))


def test_a_string_index_has_no_meaning_here_and_reads_as_none() -> None:
    assert decoded(span(1, attrs={"key": AnyValue(string_value_strindex=3)})).spans[0].attributes == {"key": None}


@pytest.mark.parametrize(("code", "is_error"), [(0, False), (1, False), (2, True)])
def test_only_status_error_is_an_error(code, is_error) -> None:
    assert decoded(span(1, status=Status(code=code))).spans[0].is_error is is_error


def test_spans_are_in_order_of_start_then_id_and_logs_in_order_of_time() -> None:
    spans = [span(number, start_time_unix_nano=start) for number, start in ((3, 1), (2, 2), (1, 2), (4, 0))]
    records = [log(time_unix_nano=time) for time in (3, 1, 2)]
    trace = decoded(*spans, logs=records)
    assert [int(one.span_id) for one in trace.spans] == [4, 3, 1, 2]
    assert [one.time_unix_nano for one in trace.logs] == [1, 2, 3]


LOG_NAMES = {
    "the field": (log(event_name="a"), "a"),
    "the attribute": (log(attrs={"event.name": "b"}), "b"),
    "both": (log(event_name="a", attrs={"event.name": "b"}), "a"),
    "neither": (log(), ""),
}


@pytest.mark.parametrize(("record", "name"), LOG_NAMES.values(), ids=LOG_NAMES)
def test_the_event_name_is_the_field_or_else_the_attribute(record, name) -> None:
    assert decoded(logs=[record]).logs[0].event_name == name


def test_every_field_of_a_log_record() -> None:
    sent = log(3, body={"kvlist_value": {"values": attributes({"content": "hi"})}}, observed_time_unix_nano=9)
    sent.span_id = bytes([1] * 8)
    (got,) = decoded(logs=[sent]).logs
    assert (got.trace_id, got.span_id) == (sent.trace_id.hex(), "01" * 8)
    assert got.body == {"content": "hi"}
    assert got.time_unix_nano == 9, "where the time itself was not set"
    assert (dict(got.resource), got.scope_name) == ({"service.name": "shop"}, "scope")


@pytest.mark.parametrize("part", ["span", "resource", "scope"])
def test_a_piece_that_does_not_parse_is_a_decode_error(part) -> None:
    broken = raw_span(span(1))._replace(**{part: b"\x0a\x7f"})
    with pytest.raises(DecodeError, match="2 bytes do not parse"):
        decode(RawTrace(broken.trace_id, (broken,), (), "quiet"))


# ---------------------------------------------------------------- files

TRACES_JSON = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1" * 32, "spanId": "2" * 16}]}]}]}
LOGS_JSON = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "1" * 32}]}]}]}
FILES = {
    "a.pb": (traces([span(1), span(2)]).SerializeToString(), 2, 0),
    "a.logs.pb": (logs([log(), log(trace=0)]).SerializeToString(), 0, 1),
    "logs by content.pb": (logs([log(time_unix_nano=1)]).SerializeToString(), 0, 1),
    "a.traces.json": (json.dumps(TRACES_JSON, indent=1).encode(), 1, 0),
    "a.logs.json": (json.dumps(LOGS_JSON).encode(), 0, 1),
    "logs by content.json": (json.dumps(LOGS_JSON).encode(), 0, 1),
    "one request a line.json": (f"{json.dumps(TRACES_JSON)}\n\n{json.dumps(LOGS_JSON)}\n".encode(), 1, 1),
    "empty.pb": (b"", 0, 0),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_its_spans_and_log_records(tmp_path, name) -> None:
    content, spans, records = FILES[name]
    (tmp_path / name).write_bytes(content)
    got_spans, got_logs = read_file(tmp_path / name)
    assert (len(got_spans), len(got_logs)) == (spans, records)


WRONG = {
    "a.txt": (b"", UsageError, "a file named .pb (OTLP protobuf) or .json (OTLP JSON) expected"),
    "missing.pb": (None, UsageError, "cannot be read: No such file or directory"),
    "a.pb": (b"\x0a", DecodeError, "body: an OTLP export request in protobuf expected; got 1 other bytes"),
    "b.pb": (
        traces([span(0)]).SerializeToString(),
        DecodeError,
        "none of its 1 records is a span or log record with valid ids",
    ),
    "a.json": (b'{"resourceSpans": 1}', DecodeError, "body.resourceSpans: a list expected; got a number"),
    "b.json": (b'{"a": }', DecodeError, "body: JSON expected; "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_be_read_is_one_line_that_begins_with_its_name(tmp_path, name) -> None:
    content, error, text = WRONG[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error) as raised:
        read_file(tmp_path / name)
    assert str(raised.value).startswith(f"{tmp_path / name}: {text}")
