"""Whatever is kept back of a request, the parts together are the request: nothing is lost, added or changed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from tests.otlp import SCOPE, attributes, span
from tracescore.exporters.relay.outbox import merged
from tracescore.net.wire import loads
from tracescore.otlp.json import traces_to_protobuf
from tracescore.otlp.partition import part

UNKNOWN = b"\xba\x3e\x03new"  # a field that no version of the protocol has had so far

spans = st.builds(
    lambda number, trace, name: span(number, trace=trace, attrs={"k": name}, name=name),
    st.integers(1, 6),
    st.integers(1, 3),
    st.text(st.characters(codec="utf-8"), max_size=4),
)
scopes = st.builds(
    lambda spans, url: ScopeSpans(scope=SCOPE, spans=spans, schema_url=url), st.lists(spans, max_size=4), st.text("ab")
)
groups = st.builds(
    lambda scopes, name: ResourceSpans(
        resource={"attributes": attributes({"service.name": name})}, scope_spans=scopes, schema_url=name
    ),
    st.lists(scopes, max_size=3),
    st.text("xy"),
)
requests = st.builds(lambda groups: ExportTraceServiceRequest(resource_spans=groups), st.lists(groups, max_size=3))
ids = st.sets(st.tuples(st.integers(1, 3), st.integers(1, 6)))


def as_bytes(wanted: set[tuple[int, int]]) -> set[tuple[bytes, bytes]]:
    return {(trace.to_bytes(16, "big"), number.to_bytes(8, "big")) for trace, number in wanted}


def flat(body: bytes) -> Counter[bytes]:
    """Every span with all that stands around it."""
    found: Counter[bytes] = Counter()
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in group.scope_spans:
            for each in scope.spans:
                around = (group.resource, group.schema_url, scope.scope, scope.schema_url, each)
                found[repr(around).encode()] += 1
    return found


@given(requests, ids)
def test_the_parts_of_a_protobuf_request_are_the_request(request: ExportTraceServiceRequest, wanted: Any) -> None:
    body = request.SerializeToString()
    rest, alone = part(body, as_bytes(wanted), json=False)
    assert flat(body) == flat((rest or b"") + merged([one.request for one in alone], json=False))
    for one in alone:
        assert one[:2] in as_bytes(wanted)
        assert flat(one.request).total() == 1
    kept = {(s.trace_id, s.span_id) for g in ExportTraceServiceRequest.FromString(rest or b"").resource_spans
            for c in g.scope_spans for s in c.spans}  # fmt: skip
    assert not kept & as_bytes(wanted)


@given(requests, ids)
def test_what_is_not_parted_stays_as_it_is(request: ExportTraceServiceRequest, wanted: Any) -> None:
    del wanted
    body = request.SerializeToString()
    rest, alone = part(body, set(), json=False)
    assert not alone
    assert rest == (body or None)


def test_fields_that_nobody_knows_stay_with_every_part() -> None:
    group = ResourceSpans.FromString(
        ResourceSpans(scope_spans=[ScopeSpans(spans=[span(1), span(2)])]).SerializeToString() + UNKNOWN
    )
    body = ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()
    rest, (one,) = part(body, as_bytes({(1, 1)}), json=False)
    assert rest is not None
    assert UNKNOWN in rest
    assert UNKNOWN in one.request


def json_span(trace: int, number: int, spelling: str, **more: Any) -> dict[str, Any]:
    names = ("traceId", "spanId") if spelling == "camel" else ("trace_id", "span_id")
    return {names[0]: f"{trace:032X}", names[1]: f"{number:016x}", **more}


def test_the_parts_of_a_json_request_are_the_request_in_either_spelling() -> None:
    first = {"scope": {"name": "s"}, "spans": [json_span(1, 1, "camel", odd=[1, None]), json_span(1, 2, "camel")]}
    other = {"spans": [json_span(1, 1, "snake", name="half a pair \ud83d")], "schema_url": "u"}
    document = {"resourceSpans": [{"resource": {"x": 1}, "scopeSpans": [first]}, {"scope_spans": [other]}], "more": 1}
    body = json.dumps(document).encode()
    rest, alone = part(body, as_bytes({(1, 1)}), json=True)
    assert rest is not None
    left = loads(rest)
    assert left == {
        "resourceSpans": [{"resource": {"x": 1}, "scopeSpans": [{**first, "spans": first["spans"][1:]}]}],
        "more": 1,
    }
    assert [loads(one.request) for one in alone] == [
        {"resourceSpans": [{"resource": {"x": 1}, "scopeSpans": [{**first, "spans": first["spans"][:1]}]}]},
        {"resourceSpans": [{"scope_spans": [other]}]},
    ]
    both = loads(merged([one.request for one in alone], json=True))
    assert len(both["resourceSpans"]) == 2


def test_a_null_in_the_other_spelling_hides_no_span() -> None:
    scopes = [{"spans": [json_span(1, 1, "camel"), json_span(1, 2, "camel")]}]
    body = orjson.dumps({"resourceSpans": None, "resource_spans": [{"scope_spans": scopes, "scopeSpans": None}]})
    rest, alone = part(body, as_bytes({(1, 1)}), json=True)
    assert flat(traces_to_protobuf(body)) == flat(
        traces_to_protobuf(rest or b"{}") + traces_to_protobuf(merged([one.request for one in alone], json=True))
    )


def test_nothing_is_left_of_a_json_request_of_which_all_is_kept_back() -> None:
    body = orjson.dumps({"resource_spans": [{"scopeSpans": [{"spans": [json_span(1, 1, "camel")]}]}]})
    rest, alone = part(body, as_bytes({(1, 1)}), json=True)
    assert rest is None
    assert len(alone) == 1


def test_spans_that_cannot_be_read_stay_as_they_are_beside_one_that_is_kept_back() -> None:
    body = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span(1), span(2, name="no text")])])]
    ).SerializeToString()
    body = body.replace(b"no text", b"\xff\xfe\x80text")
    rest, (one,) = part(body, as_bytes({(1, 1)}), json=False)
    assert one.request.endswith(span(1).SerializeToString())
    assert rest is not None
    assert rest.count(b"\xff\xfe\x80text") == body.count(b"\xff\xfe\x80text") == 1
    assert not part(body, as_bytes({(1, 1), (1, 2)}), json=False).rest
