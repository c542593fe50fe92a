"""Whatever the bytes: an answer or a DecodeError, and the same content in both encodings."""

from __future__ import annotations

import base64
import contextlib
import gzip

import orjson
from google.protobuf.json_format import MessageToDict
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from tests.otlp import attributes, logs, span, traces
from tests.otlp import log as log_record
from tracescore.errors import DecodeError
from tracescore.model import RawLog, RawSpan, RawTrace
from tracescore.otlp.decode import decode
from tracescore.otlp.json import logs_to_protobuf, traces_to_protobuf
from tracescore.otlp.split import split_logs, split_traces
from tracescore.receiver.inflate import inflate
from tracescore.receiver.refusals import Refused

TRACE_KINDS = (ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span, Status)
LOG_KINDS = (ExportLogsServiceRequest, ResourceLogs, ScopeLogs, LogRecord)

texts = st.text(max_size=8)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts, st.binary(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
attribute_sets = st.dictionaries(texts, values, max_size=4)
times = st.integers(0, 2**64 - 1)
spans = st.builds(
    lambda number, parent, attrs, **fields: span(number, parent, attrs=attrs, **fields),
    st.integers(1, 5),
    st.integers(0, 5),
    attribute_sets,
    name=texts,
    kind=st.integers(0, 5),
    start_time_unix_nano=times,
    end_time_unix_nano=times,
    trace_state=texts,
    flags=st.integers(0, 2**32 - 1),
    dropped_attributes_count=st.integers(0, 2**32 - 1),
    status=st.builds(Status, code=st.integers(0, 2), message=texts),
    events=st.lists(
        st.builds(lambda name, attrs: Span.Event(name=name, attributes=attributes(attrs)), texts, attribute_sets),
        max_size=2,
    ),
    links=st.lists(
        st.builds(lambda one: Span.Link(trace_id=one, span_id=one[:8]), st.binary(min_size=16, max_size=16))
    ),
)
requests = st.lists(spans, max_size=4).map(traces)


def damaged(request: bytes):
    """Requests with some bytes changed, removed or added: closer to the truth than plain noise."""
    return st.builds(
        lambda at, noise, cut: request[:at] + noise + request[at + cut :],
        st.integers(0, len(request)),
        st.binary(max_size=4),
        st.integers(0, 4),
    )


ONE_TRACE = traces([span(1, attrs={"k": {"a": [1, "x"]}}), span(2, 1, name="n")]).SerializeToString()
ONE_LOG = logs([log_record(1, attrs={"k": "v"}, body={"string_value": "hello"})]).SerializeToString()
noise = st.one_of(st.binary(max_size=64), damaged(ONE_TRACE), damaged(ONE_LOG))


@given(noise)
@example(ONE_TRACE)
@example(ONE_LOG)
def test_bytes_are_split_and_decoded_or_are_a_decode_error(body) -> None:
    for split in (split_traces, split_logs):
        try:
            got = split(body, lambda _: True)
        except DecodeError:
            continue
        assert 0 <= got.rejected <= got.received
        assert len(got.spans) + len(got.logs) + got.rejected <= got.received
        decode(RawTrace(b"", tuple(got.spans), tuple(got.logs), "quiet"))  # what is kept can be decoded


@given(noise, noise, noise)
def test_decoding_any_bytes_raises_nothing_but_a_decode_error(piece, resource, scope) -> None:
    for spans_, logs_ in (
        ((RawSpan(b"", b"", b"", resource, scope, piece),), ()),
        ((), (RawLog(b"", b"", resource, scope, piece),)),
    ):
        with contextlib.suppress(DecodeError):
            decode(RawTrace(b"", spans_, logs_, "quiet"))


keys = st.sampled_from(
    sorted(
        {
            field.json_name
            for kind in (*TRACE_KINDS, *LOG_KINDS, AnyValue, KeyValue, Resource)
            for field in kind.DESCRIPTOR.fields
        }
    )
)
json_documents = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


@given(st.one_of(st.binary(max_size=32), json_documents.map(lambda one: str(one).encode()), json_documents))
def test_any_json_is_converted_or_is_a_decode_error(document) -> None:
    try:
        body = document if isinstance(document, bytes) else orjson.dumps(document)
    except orjson.JSONEncodeError:  # a number beyond 64 bits
        return
    for convert, split in ((traces_to_protobuf, split_traces), (logs_to_protobuf, split_logs)):
        with contextlib.suppress(DecodeError):
            split(convert(body), lambda _: True)


def hex_ids(node):
    """The protobuf JSON mapping -> OTLP/JSON."""
    if isinstance(node, list):
        return [hex_ids(element) for element in node]
    if not isinstance(node, dict):
        return node
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64decode(item).hex() if key in ids else hex_ids(item) for key, item in node.items()}


@given(requests, st.booleans(), st.booleans())
def test_json_and_protobuf_say_the_same(request, snake_case, enum_numbers) -> None:
    document = MessageToDict(request, preserving_proto_field_name=False, use_integers_for_enums=enum_numbers)
    document = hex_ids(document)
    if snake_case:
        document = snake_keys(document)
    assert ExportTraceServiceRequest.FromString(traces_to_protobuf(orjson.dumps(document))) == request


def snake_keys(node):
    if isinstance(node, list):
        return [snake_keys(element) for element in node]
    if not isinstance(node, dict):
        return node
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake_keys(item) for key, item in node.items()}


@given(requests, st.integers(0, 2**128 - 1))
def test_every_span_is_kept_rejected_or_not_admitted(request, limit) -> None:
    split = split_traces(request.SerializeToString(), lambda one: int.from_bytes(one, "big") < limit)
    sent = [one for group in request.resource_spans for scoped in group.scope_spans for one in scoped.spans]
    assert split.received == len(sent)
    assert split.rejected == 0
    assert [Span.FromString(raw.span) for raw in split.spans] == [one for one in sent if limit > 1]


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "", "br"]), st.integers(0, 100))
def test_inflating_never_gives_more_than_the_limit(body, encoding, limit) -> None:
    for sent in (
        body,
        gzip.compress(body, mtime=0),
        gzip.compress(body, mtime=0)[:-3],
        gzip.compress(body, mtime=0) * 2,
    ):
        try:
            got = inflate(sent, encoding, limit)
        except Refused:
            continue
        assert len(got) <= limit
        if encoding == "gzip" and sent == gzip.compress(body, mtime=0):
            assert got == body
