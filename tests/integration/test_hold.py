"""Spans kept back: who waits for what, how long, and what they carry when they go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from tests.otlp import raw_span, span, trace_id, traces
from tests.otlp_sink import Sink
from tests.results import NOW, relevancy, result
from tracescore.config import ForwardConfig
from tracescore.exporters.relay.forward import Forwarder
from tracescore.exporters.relay.hold import Hold
from tracescore.model import Result, Unscored
from tracescore.net.wire import Envelope
from tracescore.otlp.partition import part

pytestmark = pytest.mark.anyio
HEADERS = ((b"content-type", b"application/x-protobuf"), (b"x-tenant", b"one"), (b"content-encoding", b"gzip"))
HTTP = Envelope("http", "/v1/traces", HEADERS, json=False, encoding="gzip")
GRPC = Envelope(
    "grpc",
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    ((b"x-tenant", b"one"), (b"note-bin", b"\xff\x00")),
    json=False,
    encoding="",
)
JSON = Envelope("http", "/v1/traces?a=b", ((b"content-type", b"application/json"),), json=True, encoding="")
DEADLINE = 30.0


class Rig:
    """What keeps spans back, with a clock of its own and a real destination."""

    def __init__(self, sink: Sink, **settings: Any) -> None:
        self.now, self.registry = NOW, CollectorRegistry()
        forward = ForwardConfig.model_validate({"http": sink.http, "grpc": sink.grpc, "attach": "hold", **settings})
        self.forwarder = Forwarder(forward, self.registry)
        self.hold = Hold(forward, self.forwarder, lambda span: b"gen_ai." in span.span, self.registry, lambda: self.now)

    def settled(self) -> list[str]:
        return [each.interaction.key for each in self.hold.take_settled()]

    def take(self, *numbers: int, envelope: Envelope = HTTP, trace: int = 1, **fields: Any) -> None:
        for number in numbers:
            body = traces([span(number, trace=trace, name=f"span {number}", **fields)]).SerializeToString()
            self.keep(body, envelope)

    def keep(self, body: bytes, envelope: Envelope) -> None:
        wanted = {(trace_id(trace), number.to_bytes(8, "big")) for trace in range(1, 9) for number in range(1, 9)}
        self.hold.take(self.hold.withheld(envelope, part(body, wanted, json=envelope.json).alone), self.now)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tracescore_exporters_forward_{name}", labels)


@asynccontextmanager
async def rig_of(sink: Sink, **settings: Any) -> AsyncIterator[Rig]:
    rig = Rig(sink, **settings)
    try:
        yield rig
    finally:
        await rig.hold.close()
        await rig.forwarder.close()


@pytest.fixture
async def rig(sink: Sink) -> AsyncIterator[Rig]:
    async with rig_of(sink) as made:
        yield made


def about(number: int, trace: int = 1, *evaluations: Any) -> Result:
    scored = evaluations or (relevancy(0.25), Unscored("faithfulness", "judge_timeout"))
    return result(*scored, trace_id=trace_id(trace).hex(), span_id=f"{number:016x}")


@pytest.mark.parametrize("envelope", [HTTP, GRPC], ids=["http", "grpc"])
async def test_a_span_goes_on_with_its_scores_in_it(sink: Sink, rig: Rig, envelope: Envelope) -> None:
    rig.take(1, envelope=envelope, attrs={"k": "v"})
    await rig.hold.export(about(1))
    (arrived,) = (await sink.awaited(spans=1)).spans
    assert arrived["name"] == "span 1"
    assert arrived["attributes"] == {
        "k": "v",
        "tracescore.judge": "embedded-v2",
        "tracescore.epoch": 0,
        "tracescore.answer_relevancy": 0.25,
        "tracescore.faithfulness.error": "judge_timeout",
    }
    (request,) = sink.received().requests
    assert request["headers"]["x-tenant"] == "one"
    await rig.hold.close()
    assert [each.span_id for each in rig.hold.take_passed_on()] == [span(1).span_id]
    assert rig.settled() == [about(1).interaction.key]
    assert rig.value("attached_results_total", outcome="in_time") == 1
    assert rig.value("released_spans_total", reason="scored") == rig.value("delivered_spans_total") == 1
    assert rig.value("held_spans") == rig.value("held_bytes") == rig.value("outgoing_spans") == 0


@pytest.mark.parametrize("name", ["authorization", "Cookie", "x-api-key", "signoz-access-token", "x-honeycomb-team"])
@pytest.mark.parametrize("envelope", [HTTP, GRPC], ids=["http", "grpc"])
async def test_what_a_sender_is_let_in_by_is_never_kept(
    sink: Sink, monkeypatch, caplog, envelope: Envelope, name: str
) -> None:
    monkeypatch.setenv("OURS", "ours")
    secret = envelope._replace(headers=(*envelope.headers, (name.encode(), b"theirs")))
    async with rig_of(sink) as without:
        assert without.hold.holds(envelope)
        assert not without.hold.holds(secret)
        assert not without.hold.holds(secret)
        (said,) = [record.getMessage() for record in caplog.records if "event=spans_not_held" in record.getMessage()]
        assert "theirs" not in said
    async with rig_of(sink, headers={name: {"env": "OURS"}}) as rig:
        assert rig.hold.holds(secret)
        body = traces([span(1, name="span 1")]).SerializeToString()
        (kept,) = rig.hold.withheld(secret, part(body, {(trace_id(1), span(1).span_id)}, json=False).alone)
        assert not any(b"theirs" in value for _, value in kept.envelope.headers)
        rig.hold.take([kept], rig.now)
        await rig.hold.export(about(1))
        await sink.awaited(spans=1)
        (request,) = sink.received().requests
        assert request["headers"][name.lower()] == "ours"


async def test_a_span_that_came_as_json_goes_on_as_json(sink: Sink, rig: Rig) -> None:
    known = {"key": "tracescore.answer_relevancy", "value": {"doubleValue": 0.9}}
    sent = {"traceId": f"{1:032x}", "spanId": f"{1:016x}", "odd": [None], "attributes": [known, {"key": "k"}]}
    rig.keep(orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [sent]}]}]}), JSON)
    await rig.hold.export(about(1, 1, relevancy(0.25)))
    await sink.awaited(requests=1)
    (body,) = sink.bodies()
    (arrived,) = orjson.loads(body.content)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert arrived.pop("attributes") == [
        {"key": "k"},
        {"key": "tracescore.judge", "value": {"stringValue": "embedded-v2"}},
        {"key": "tracescore.epoch", "value": {"intValue": "0"}},
        {"key": "tracescore.answer_relevancy", "value": {"doubleValue": 0.25}},
    ]
    del sent["attributes"]
    assert arrived == sent


async def test_scores_that_were_there_are_replaced(sink: Sink, rig: Rig) -> None:
    rig.take(1, attrs={"tracescore.answer_relevancy": "made up", "tracescore.note": "stays"})
    await rig.hold.export(about(1))
    (arrived,) = (await sink.awaited(spans=1)).spans
    assert arrived["attributes"]["tracescore.answer_relevancy"] == 0.25
    assert arrived["attributes"]["tracescore.note"] == "stays"


async def test_once_the_trace_was_read_only_the_spans_to_be_scored_are_kept(sink: Sink, rig: Rig) -> None:
    rig.take(1, 2, 3)
    rig.take(4, trace=2)
    rig.hold.read(trace_id(1), {f"{2:016x}"})
    arrived = (await sink.awaited(spans=2)).spans
    assert {each["name"] for each in arrived} == {"span 1", "span 3"}
    assert rig.value("held_spans") == 2
    assert rig.value("released_spans_total", reason="no_target") == 2


async def test_nothing_is_kept_longer_than_the_deadline_and_its_scores_are_late(sink: Sink, rig: Rig) -> None:
    rig.take(1)
    rig.now += DEADLINE - 1
    rig.take(2)
    rig.hold.tick()
    assert rig.value("held_spans") == 2
    rig.now += 1
    rig.hold.tick()
    (arrived,) = (await sink.awaited(spans=1)).spans
    assert arrived["name"] == "span 1"
    assert rig.value("released_spans_total", reason="deadline") == 1
    await rig.hold.export(about(1))
    assert rig.value("attached_results_total", outcome="late") == 1
    assert rig.settled() == [about(1).interaction.key]


async def test_a_clock_that_is_set_back_keeps_nothing_longer(sink: Sink, rig: Rig) -> None:
    rig.take(1)
    rig.now -= 3_600
    rig.take(2)
    rig.hold.tick()
    assert [each["name"] for each in (await sink.awaited(spans=1)).spans] == ["span 1"]
    assert rig.value("held_spans") == 1


async def test_a_span_that_is_sent_again_is_kept_once_and_another_version_of_it_too(sink: Sink, rig: Rig) -> None:
    rig.take(1, attrs={"k": "v"})
    rig.take(1, attrs={"k": "v"})
    rig.take(1, attrs={"k": "w"})
    assert rig.value("held_spans") == 2
    await rig.hold.export(about(1))
    arrived = (await sink.awaited(spans=2)).spans
    assert {each["attributes"]["k"] for each in arrived} == {"v", "w"}
    assert all(each["attributes"]["tracescore.answer_relevancy"] == 0.25 for each in arrived)


async def test_envelopes_are_never_merged(sink: Sink, rig: Rig) -> None:
    other = HTTP._replace(headers=(*HEADERS[::2], (b"x-tenant", b"two")))
    longer = HTTP._replace(headers=(*HEADERS, (b"content-length", b"9")))
    for number, envelope in enumerate((HTTP, other, longer), 1):
        rig.take(number, envelope=envelope)
    rig.hold.read(trace_id(1), set())
    received = await sink.awaited(spans=3)
    assert sorted(request["headers"]["x-tenant"] for request in received.requests) == ["one", "two"]


@pytest.mark.parametrize("envelope", [HTTP, GRPC], ids=["http", "grpc"])
async def test_a_destination_that_cannot_take_them_gets_them_later(sink: Sink, rig: Rig, envelope: Envelope) -> None:
    sink.script("traces", times=2, status=503, retry_after=0)
    rig.take(1, envelope=envelope)
    rig.hold.read(trace_id(1), set())
    received = await sink.awaited(spans=1)
    assert len(received.requests) == 3
    await rig.hold.close()
    assert len(rig.hold.take_passed_on()) == 1


async def test_what_is_refused_for_good_is_counted_and_given_up(sink: Sink, rig: Rig) -> None:
    sink.script("traces", times=1, status=400)
    rig.take(1)
    rig.hold.read(trace_id(1), set())
    await sink.awaited(requests=1)
    await rig.hold.close()
    assert rig.value("dropped_spans_total", reason="refused") == 1
    assert len(rig.hold.take_passed_on()) == 1


async def test_a_span_that_is_refused_takes_no_other_with_it(sink: Sink, rig: Rig) -> None:
    sink.script("traces", times=2, status=400)  # all three together, then the first of them
    for number in (1, 2, 3):
        rig.take(1, trace=number)
        rig.hold.read(trace_id(number), set())
    arrived = (await sink.awaited(spans=2)).spans
    assert [each["trace_id"] for each in arrived] == [trace_id(2).hex(), trace_id(3).hex()]
    await rig.hold.close()
    assert rig.value("dropped_spans_total", reason="refused") == 1
    assert rig.value("delivered_spans_total") == 2
    assert len(rig.hold.take_passed_on()) == 3


async def test_a_message_that_is_too_large_for_grpc_does_not_block_those_behind_it(sink: Sink, rig: Rig) -> None:
    sink.script("traces", times=1, status=429)
    rig.take(1, envelope=GRPC)
    rig.hold.read(trace_id(1), set())
    await sink.awaited(requests=1)
    rig.take(2, trace=2, envelope=GRPC)
    rig.hold.read(trace_id(2), set())
    assert [each["name"] for each in (await sink.awaited(spans=1)).spans] == ["span 2"]
    assert rig.value("dropped_spans_total", reason="refused") == 1


async def test_what_the_destination_does_not_take_counts_as_kept_back(sink: Sink) -> None:
    async with rig_of(sink, http="http://127.0.0.1:9", max_held="1MiB") as rig:
        rig.take(1, attrs={"k": "x" * 2**20})
        rig.hold.read(trace_id(1), set())
        assert rig.value("held_bytes") == 0
        assert not rig.hold.wanted([raw_span(span(2, attrs={"gen_ai.system": "x"}))])


async def test_at_the_end_what_was_let_go_is_taken_and_the_rest_stays_in_the_spool(sink: Sink) -> None:
    async with rig_of(sink) as rig:
        rig.take(1, 2)
        rig.hold.read(trace_id(1), {f"{2:016x}"})
    assert [each["name"] for each in (await sink.awaited(spans=1)).spans] == ["span 1"]
    assert [each.span_id for each in rig.hold.take_passed_on()] == [span(1).span_id]
    async with rig_of(sink, http="http://127.0.0.1:9") as rig:
        rig.take(3)
        rig.hold.read(trace_id(1), set())
    assert rig.hold.take_passed_on() == []


async def test_spans_of_a_convention_and_those_above_them_are_kept_and_only_while_there_is_room(sink: Sink) -> None:
    genai = {"gen_ai.system": "x"}
    async with rig_of(sink, max_held="1MiB") as rig:
        model, chain, root = span(1, 2, attrs=genai), span(2, 3), span(3)
        beside, elsewhere = span(4, 3), span(2, trace=2)
        request = [raw_span(each) for each in (beside, model, elsewhere, chain, root)]
        assert rig.hold.wanted(request) == {(each.trace_id, each.span_id) for each in (model, chain, root)}
        rig.take(1, parent=2)
        assert rig.hold.wanted([raw_span(chain), raw_span(root)]) == {(s.trace_id, s.span_id) for s in (chain, root)}
        rig.hold.read(trace_id(1), set())
        assert not rig.hold.wanted([raw_span(chain)])
        rig.take(5, attrs={"k": "x" * 2**20})
        assert not rig.hold.wanted([raw_span(model)])
