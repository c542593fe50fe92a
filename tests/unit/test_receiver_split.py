"""Which pieces of a request are kept, counted and rejected."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.otlp import RESOURCE, SCOPE, log, logs, span, trace_id, traces
from tracescore.errors import DecodeError
from tracescore.otlp.split import split_logs, split_traces


def everything(_: bytes) -> bool:
    return True


def with_raw_spans(*spans: bytes) -> bytes:
    """A request whose spans are these bytes, well-formed or not."""

    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    return field(1, field(2, b"".join(field(2, one) for one in spans)))


def test_a_kept_span_has_its_ids_and_the_bytes_of_the_request() -> None:
    sent = span(2, parent=1, trace=3, attrs={"key": "value"})
    (raw,) = split_traces(traces([sent]).SerializeToString(), everything).spans
    assert (raw.trace_id, raw.span_id, raw.parent_span_id) == (sent.trace_id, sent.span_id, sent.parent_span_id)
    assert Span.FromString(raw.span) == sent
    assert raw.resource == RESOURCE.SerializeToString()
    assert raw.scope == SCOPE.SerializeToString()


def test_only_spans_of_admitted_traces_are_kept_and_each_id_is_asked_once_in_a_row() -> None:
    asked = []
    body = traces([span(1, trace=1), span(2, trace=1), span(1, trace=2), span(3, trace=1)]).SerializeToString()
    split = split_traces(body, lambda one: asked.append(one) or one == trace_id(1))
    assert [raw.span_id[-1] for raw in split.spans] == [1, 2, 3]
    assert (split.received, split.rejected) == (4, 0)
    assert asked == [trace_id(1), trace_id(2), trace_id(1)]


def test_spans_of_several_resources_keep_their_own() -> None:
    other = Resource(dropped_attributes_count=7)
    request = ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(resource=RESOURCE, scope_spans=[ScopeSpans(spans=[span(1)]), ScopeSpans(scope=SCOPE)]),
            ResourceSpans(resource=other, scope_spans=[ScopeSpans(scope=SCOPE, spans=[span(2)])]),
        ]
    )
    first, second = split_traces(request.SerializeToString(), everything).spans
    assert (first.resource, first.scope) == (RESOURCE.SerializeToString(), b"")
    assert (second.resource, second.scope) == (other.SerializeToString(), SCOPE.SerializeToString())


def test_an_empty_request_is_a_request() -> None:
    assert split_traces(b"", everything).received == split_logs(b"", everything).received == 0


def test_a_parent_of_zeros_is_a_root() -> None:
    sent = Span(trace_id=trace_id(1), span_id=bytes([1] * 8), parent_span_id=bytes(8))
    (raw,) = split_traces(traces([sent]).SerializeToString(), everything).spans
    assert raw.parent_span_id == b""


IDS = span(1).SerializeToString()
REJECTED = {
    "no trace id": Span(span_id=bytes([1] * 8)).SerializeToString(),
    "a trace id of zeros": Span(trace_id=bytes(16), span_id=bytes([1] * 8)).SerializeToString(),
    "a short trace id": Span(trace_id=b"12345678", span_id=bytes([1] * 8)).SerializeToString(),
    "a trace id cut off": b"\n\x10" + b"1234",
    "no span id": Span(trace_id=trace_id(1)).SerializeToString(),
    "a span id of zeros": Span(trace_id=trace_id(1), span_id=bytes(8)).SerializeToString(),
    "a long span id": Span(trace_id=trace_id(1), span_id=bytes([1] * 9)).SerializeToString(),
    "two trace ids": IDS + Span(trace_id=trace_id(2)).SerializeToString(),
    "attributes that do not parse": IDS + b"\x4a\x02\x0a\x7f",
    "a name that is not UTF-8": IDS + b"\x2a\x01\xff",
    "nothing at all": b"",
}


@pytest.mark.parametrize("bad", REJECTED.values(), ids=REJECTED)
def test_a_span_that_cannot_be_read_is_rejected_alone(bad: bytes) -> None:
    split = split_traces(with_raw_spans(bad, span(9).SerializeToString()), everything)
    assert [raw.span_id[-1] for raw in split.spans] == [9]
    assert (split.received, split.rejected) == (2, 1)


def test_the_trace_id_is_found_wherever_it_stands() -> None:
    late = b"\x2a\x04name" + IDS  # an exporter that writes the name first
    (raw,) = split_traces(with_raw_spans(late), everything).spans
    assert (raw.trace_id, raw.span_id) == (span(1).trace_id, span(1).span_id)


def test_pieces_under_a_resource_that_does_not_parse_are_rejected() -> None:
    body = b"\x0a\x0c" + b"\x0a\x02\x0a\x7f" + b"\x12\x06" + b"\x12\x00" * 3
    split = split_traces(body, everything)
    assert (split.spans, split.received, split.rejected) == ([], 3, 3)
    split = split_logs(body, everything)
    assert (split.logs, split.received, split.rejected) == ([], 3, 3)


def test_log_records_go_by_trace_and_those_without_are_ignored() -> None:
    sent = [log(1), log(2), log(trace=0), log(1, span_id=bytes([5] * 8)), log(1, span_id=b"short")]
    split = split_logs(logs(sent).SerializeToString(), lambda one: one == trace_id(1))
    assert [raw.span_id for raw in split.logs] == [b"", bytes([5] * 8), b""]
    assert (split.received, split.rejected) == (5, 0)


@pytest.mark.parametrize("split", [split_traces, split_logs])
@pytest.mark.parametrize("body", [b"\x0a", b"not protobuf", b"\x0a\x02\x12\x05"])
def test_a_body_that_is_no_request_is_a_decode_error_without_its_text(split, body) -> None:
    with pytest.raises(DecodeError) as raised:
        split(body, everything)
    assert str(raised.value) == f"body: an OTLP export request in protobuf expected; got {len(body)} other bytes"
