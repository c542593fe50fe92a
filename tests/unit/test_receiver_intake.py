"""Content encodings, room, and what the receiver counts."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from contextlib import suppress

import anyio
import pytest
from prometheus_client import CollectorRegistry

from tests.freeing import TEXT, is_freed_at_once
from tests.otlp import Collected, log, logs, span, trace_id, traces
from tracescore.config import ReceiverConfig
from tracescore.errors import SpoolError
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.inflate import inflate
from tracescore.receiver.intake import BODIES_IN_FLIGHT, Intake
from tracescore.receiver.refusals import Refused

pytestmark = pytest.mark.anyio

INFLATED = {
    "no encoding": (b"text", "", b"text"),
    "identity": (b"text", "identity", b"text"),
    "gzip": (gzip.compress(b"text"), "gzip", b"text"),
    "gzip under its old name": (gzip.compress(b"text"), "x-gzip", b"text"),
    "gzip of several members": (gzip.compress(b"te") + gzip.compress(b"xt"), "gzip", b"text"),
    "deflate": (zlib.compress(b"text"), "deflate", b"text"),
    "nothing, compressed": (gzip.compress(b""), "gzip", b""),
    "exactly the limit": (gzip.compress(bytes(100)), "gzip", bytes(100)),
}


@pytest.mark.parametrize(("body", "encoding", "wanted"), INFLATED.values(), ids=INFLATED)
async def test_bodies_are_inflated(body, encoding, wanted) -> None:
    assert inflate(body, encoding, 100) == wanted


REFUSED = {
    "above the limit": (bytes(101), "", "too_large", "body: at most 100 bytes expected; send smaller batches"),
    "inflated above the limit": (
        gzip.compress(bytes(101)),
        "gzip",
        "too_large",
        "body: at most 100 bytes expected; send smaller batches",
    ),
    "members that only together are above the limit": (
        gzip.compress(bytes(60)) * 2,
        "gzip",
        "too_large",
        "body: at most 100 bytes expected; send smaller batches",
    ),
    "another encoding": (
        b"",
        "br",
        "unsupported_encoding",
        "content encoding: one of gzip, deflate and identity expected",
    ),
    "no gzip": (b"text" * 5, "gzip", "malformed", "body: gzip data expected; got 20 other bytes"),
    "cut short": (
        gzip.compress(b"text")[:-1],
        "gzip",
        "malformed",
        "body: the gzip data ends too early, after 23 bytes",
    ),
    "nothing at all": (b"", "gzip", "malformed", "body: the gzip data ends too early, after 0 bytes"),
}


@pytest.mark.parametrize(("body", "encoding", "reason", "message"), REFUSED.values(), ids=REFUSED)
async def test_bodies_that_cannot_be_inflated_say_why(body, encoding, reason, message) -> None:
    with pytest.raises(Refused) as raised:
        inflate(body, encoding, 100)
    assert (raised.value.reason, str(raised.value)) == (reason, message)


async def test_a_request_is_acknowledged_only_after_the_sink_has_finished() -> None:
    class Slow(Collected):
        async def take(self, spans, logs, withheld, sender) -> None:
            await anyio.lowlevel.checkpoint()
            self.spans += spans

    sink = Slow()
    intake = Intake(ReceiverConfig(), sink, lambda _: True, CollectorRegistry())
    await intake.accept("http", "traces", traces([span(1)]).SerializeToString())
    assert len(sink.spans) == 1


async def test_only_admitted_pieces_reach_the_sink_and_all_are_counted() -> None:
    registry, sink = CollectorRegistry(), Collected()
    intake = Intake(ReceiverConfig(), sink, lambda one: one == trace_id(1), registry)
    await intake.accept("grpc", "traces", traces([span(1), span(1, trace=2), span(0)]).SerializeToString())
    await intake.accept("grpc", "logs", logs([log(1), log(2), log(0)]).SerializeToString())
    assert (len(sink.spans), len(sink.logs)) == (1, 1)
    counted = {
        sample.name: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.labels.get("protocol") == "grpc" and sample.value
        if sample.name.endswith("_total") and "signal" not in sample.labels
    }
    assert counted == {
        "tracescore_receiver_spans_total": 3,
        "tracescore_receiver_rejected_spans_total": 1,
        "tracescore_receiver_admitted_spans_total": 1,
        "tracescore_receiver_log_records_total": 3,
        "tracescore_receiver_admitted_log_records_total": 1,
    }


async def test_every_series_exists_before_the_first_request() -> None:
    registry = CollectorRegistry()
    Intake(ReceiverConfig(), Collected(), lambda _: True, registry)
    for wire in ("http", "grpc"):
        for reason in ("malformed", "too_large", "unsupported_type", "unsupported_encoding", "full", "failed"):
            labels = {"protocol": wire, "reason": reason}
            assert registry.get_sample_value("tracescore_receiver_refused_requests_total", labels) == 0
        for signal in ("traces", "logs", "metrics"):
            labels = {"protocol": wire, "signal": signal}
            assert registry.get_sample_value("tracescore_receiver_requests_total", labels) == 0


async def test_bodies_on_their_way_in_are_bounded_over_all_connections() -> None:
    limit = 1000
    settings = ReceiverConfig.model_validate({"max_request": f"{limit}B"})
    receiver = HttpReceiver(Intake(settings, Collected(), lambda _: True, CollectorRegistry()))
    scope = {"path": "/v1/traces", "method": "POST", "headers": [(b"content-type", b"application/x-protobuf")]}
    statuses, never = [], anyio.Event()

    async def request() -> None:
        chunks = [{"type": "http.request", "body": bytes(limit), "more_body": True}]

        async def receive():
            return chunks.pop() if chunks else await never.wait()

        async def send(message) -> None:
            statuses.append(message.get("status"))

        await receiver(scope, receive, send)

    async with anyio.create_task_group() as tasks:
        for _ in range(BODIES_IN_FLIGHT):
            tasks.start_soon(request)
        await anyio.wait_all_tasks_blocked()
        assert statuses == []
        await request()
        assert statuses[0] == 503
        tasks.cancel_scope.cancel()
    assert receiver._in_flight == 0


async def test_what_a_sink_refuses_later_is_freed_at_once() -> None:
    class Refusing(Collected):
        def take(self, spans, logs, withheld=(), sender="") -> asyncio.Future[None]:
            pending = asyncio.get_running_loop().create_future()
            pending.set_exception(SpoolError("the disk is full"))
            return pending

    intake = Intake(ReceiverConfig(), Refusing(), lambda _: True, CollectorRegistry())
    sent = traces([span(1, attrs={"k": TEXT})]).SerializeToString()

    async def call() -> None:
        with suppress(Refused):
            await intake.accept("http", "traces", sent)

    assert await is_freed_at_once(call)
