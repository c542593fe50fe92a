"""Passing on: the destination gets what the sender sent, and the sender hears what the destination said."""

from __future__ import annotations

import asyncio
import gzip
import io
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import anyio
import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics, ScopeMetrics
from prometheus_client import CollectorRegistry

from tests.freeing import TEXT, is_freed_at_once
from tests.otlp import Collected, log, logs, span, traces
from tests.otlp_sink import Body, Sink
from tracescore.config import ForwardConfig, ReceiverConfig
from tracescore.exporters.relay.forward import Forwarder
from tracescore.net.listener import address_of, bind, serving
from tracescore.receiver.grpc import serving_grpc
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.intake import Intake

pytestmark = pytest.mark.anyio

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_METRICS = ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=[Metric(name="requests")])])
BODIES = {
    "traces": traces([span(1, name="rag", attrs={"k": "v"})]).SerializeToString(),
    "logs": logs([log(1, {"k": "v"})]).SerializeToString(),
    "metrics": ExportMetricsServiceRequest(resource_metrics=[_METRICS]).SerializeToString(),
}
LARGE = traces([span(1, attrs={"k": TEXT})]).SerializeToString()
METHODS = {
    signal: f"/opentelemetry.proto.collector.{package}.v1.{package.capitalize()}Service/Export"
    for signal, package in {"traces": "trace", "logs": "logs", "metrics": "metrics"}.items()
}
SIGNALS = pytest.mark.parametrize("signal", BODIES)


class Passing:
    """A receiver that passes on, and clients of both its protocols."""

    def __init__(self, collected: Collected, registry: CollectorRegistry, http: str, channel: grpc.aio.Channel) -> None:
        self.collected, self.registry, self.http, self.channel = collected, registry, http, channel
        self.session = aiohttp.ClientSession(skip_auto_headers=("content-type",))

    async def post(
        self, signal: str, body: bytes | io.BytesIO, media_type: str = PROTOBUF, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        given = {"content-type": media_type} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(f"{self.http}/v1/{signal}", data=body, headers=given) as response:
            got = {name.lower(): value for name, value in response.headers.items()}
            return response.status, got, await response.read()

    async def call(self, signal: str, body: bytes, **options: Any) -> bytes:
        return await self.channel.unary_unary(METHODS[signal])(body, **{"timeout": 10, **options})

    async def refusal(self, signal: str, body: bytes, **options: Any) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self.call(signal, body, **options)
        return raised.value

    def outcome(self, protocol: str, outcome: str) -> float | None:
        labels = {"protocol": protocol, "outcome": outcome}
        return self.registry.get_sample_value("tracescore_exporters_forward_requests_total", labels)

    def unscored(self, protocol: str, reason: str) -> float | None:
        labels = {"protocol": protocol, "reason": reason}
        return self.registry.get_sample_value("tracescore_receiver_unscored_requests_total", labels)


@asynccontextmanager
async def passing(**destination: Any) -> AsyncIterator[Passing]:
    registry, collected = CollectorRegistry(), Collected()
    forwarder = Forwarder(ForwardConfig.model_validate(destination), registry)
    settings = ReceiverConfig.model_validate({"max_request": "1MiB", "retry_after": "3s"})
    intake = Intake(settings, collected, lambda _: True, registry, forwarder)
    bound = bind("127.0.0.1:0", "receiver.http.listen")
    async with (
        serving(HttpReceiver(intake), bound),
        serving_grpc(intake, "127.0.0.1:0") as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        made = Passing(collected, registry, f"http://{address_of(bound)}", channel)
        try:
            yield made
        finally:
            await made.session.close()
            await forwarder.close()


@pytest.fixture
async def through(sink: Sink) -> AsyncIterator[Passing]:
    async with passing(http=sink.http, grpc=sink.grpc) as made:
        yield made


@SIGNALS
@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_over_http_the_body_arrives_byte_by_byte_and_is_taken_in_too(
    sink: Sink, through: Passing, signal: str, encoding: str
) -> None:
    body = BODIES[signal]
    headers = {"content_encoding": "gzip"} if encoding else {}
    status, _, answer = await through.post(signal, gzip.compress(body) if encoding else body, **headers)
    assert (status, answer) == (200, b"")
    assert sink.bodies() == [Body(signal, "http", PROTOBUF, body)]
    (request,) = sink.received().requests
    assert request["headers"].get("content-encoding", "") == encoding
    assert len(through.collected.spans) == (signal == "traces")
    assert len(through.collected.logs) == (signal == "logs")
    assert through.outcome("http", "accepted") == 1


async def test_a_span_that_comes_round_is_refused_over_both_protocols_and_counted(sink: Sink, through: Passing) -> None:
    for _ in range(2):
        assert (await through.post("traces", BODIES["traces"]))[0] == 200
    assert (await through.post("traces", BODIES["traces"]))[0] == 508
    assert (await through.refusal("traces", BODIES["traces"])).code() is grpc.StatusCode.FAILED_PRECONDITION
    assert len(sink.bodies()) == 2
    refused = "tracescore_receiver_refused_requests_total"
    for protocol in ("http", "grpc"):
        assert through.registry.get_sample_value(refused, {"protocol": protocol, "reason": "loop"}) == 1


async def test_the_address_with_the_path_of_traces_is_that_of_the_destination_too(sink: Sink) -> None:
    async with passing(http=f"{sink.http}/v1/traces") as through:
        assert (await through.post("logs", BODIES["logs"]))[0] == 200
    assert sink.bodies() == [Body("logs", "http", PROTOBUF, BODIES["logs"])]


@SIGNALS
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_over_grpc_the_message_arrives_and_is_taken_in_too(
    sink: Sink, through: Passing, signal: str, compression: grpc.Compression
) -> None:
    assert await through.call(signal, BODIES[signal], compression=compression) == b""
    assert sink.bodies() == [Body(signal, "grpc", "", BODIES[signal])]
    assert len(through.collected.spans) == (signal == "traces")
    assert len(through.collected.logs) == (signal == "logs")
    assert through.outcome("grpc", "accepted") == 1


async def test_json_stays_json(sink: Sink, through: Passing) -> None:
    ids = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}
    spans = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{{"traceId": "{ids["traceId"]}"'.encode()
    body = spans + f', "spanId": "{ids["spanId"]}", "name": "rag"}}]}}]}}]}}'.encode()
    status, headers, answer = await through.post("traces", body, f"{JSON}; charset=utf-8")
    assert (status, headers["content-type"], answer) == (200, JSON, b"{}")
    assert sink.bodies() == [Body("traces", "http", f"{JSON}; charset=utf-8", body)]
    assert len(through.collected.spans) == 1


async def test_tenant_and_credentials_go_along_and_nothing_of_the_connection(sink: Sink, through: Passing) -> None:
    given = {"authorization": "Bearer t", "x-scope-orgid": "acme", "user-agent": "app/1"}
    async with through.session.post(
        f"{through.http}/v1/traces",
        data=BODIES["traces"],
        headers={**given, "content-type": PROTOBUF, "connection": "x-hop", "x-hop": "1", "cookie": "a=b"},
    ) as response:
        assert response.status == 200
    await through.call("traces", BODIES["traces"], metadata=tuple((k, v) for k, v in given.items() if k[0] != "u"))
    over_http, over_grpc = (request["headers"] for request in sink.received().requests)
    assert given.items() <= over_http.items()
    assert over_http["cookie"] == "a=b"
    assert "x-hop" not in over_http
    assert (over_grpc["authorization"], over_grpc["x-scope-orgid"]) == ("Bearer t", "acme")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 503, 504])
async def test_the_sender_gets_the_status_of_the_destination(sink: Sink, through: Passing, status: int) -> None:
    sink.script("traces", times=2, status=status, retry_after=7)
    got, headers, _ = await through.post("traces", BODIES["traces"])
    assert (got, headers["retry-after"]) == (status, "7")
    error = await through.refusal("traces", BODIES["traces"])
    code = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "UNIMPLEMENTED", 429: "RESOURCE_EXHAUSTED"}
    code |= {503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
    assert (error.code().name, error.details()) == (code[status], "scripted")
    assert _retry_seconds(error) == 7
    outcome = "again" if status >= 429 else "refused"
    assert (through.outcome("http", outcome), through.outcome("grpc", outcome)) == (1, 1)


def _retry_seconds(error: grpc.aio.AioRpcError) -> int:
    packed = dict(error.trailing_metadata() or ())["grpc-status-details-bin"]
    info = RetryInfo()
    assert isinstance(packed, bytes)
    (detail,) = Status.FromString(packed).details
    assert detail.Unpack(info)
    return info.retry_delay.seconds


async def test_a_partial_success_reaches_the_sender(sink: Sink, through: Passing) -> None:
    sink.script("traces", times=2, status=200, rejected=3)
    _, _, answer = await through.post("traces", BODIES["traces"])
    for reply in (answer, await through.call("traces", BODIES["traces"])):
        assert ExportTraceServiceResponse.FromString(reply).partial_success.rejected_spans == 3


@pytest.fixture
def nobody() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


async def test_while_the_destination_is_away_the_sender_is_told_to_come_back(nobody: str) -> None:
    async with passing(http=nobody, grpc=nobody) as away:
        status, headers, _ = await away.post("traces", BODIES["traces"])
        assert (status, headers["retry-after"]) == (503, "3")
        error = await away.refusal("traces", BODIES["traces"])
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert _retry_seconds(error) == 3
        assert (away.outcome("http", "unreachable"), away.outcome("grpc", "unreachable")) == (1, 1)


@asynccontextmanager
async def cutting_its_answers() -> AsyncIterator[str]:
    """A destination that goes away in the middle of what it says."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("wire", ["http", "grpc"])
async def test_a_request_that_reached_nobody_is_freed_at_once(nobody: str, wire: str) -> None:
    async with passing(http=nobody, grpc=nobody) as away:

        async def call() -> None:
            if wire == "http":
                assert (await away.post("traces", LARGE))[0] == 503
            else:
                with suppress(grpc.aio.AioRpcError):
                    await away.call("traces", LARGE)
            away.collected.spans.clear()

        assert await is_freed_at_once(call)


async def test_a_request_whose_answer_was_cut_is_freed_at_once() -> None:
    async with cutting_its_answers() as destination, passing(http=destination) as through:

        async def call() -> None:
            assert (await through.post("traces", LARGE))[0] == 503
            through.collected.spans.clear()

        assert await is_freed_at_once(call)


async def test_a_destination_that_does_not_answer_in_time_is_one_that_is_away(sink: Sink) -> None:
    async with passing(http=sink.http, grpc=sink.grpc, timeout="200ms") as slow:
        sink.script("traces", times=2, status=200, delay=5.0)
        started = time.monotonic()
        status, headers, _ = await slow.post("traces", BODIES["traces"])
        assert (status, headers["retry-after"]) == (503, "3")
        error = await slow.refusal("traces", BODIES["traces"])
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - started < 5


async def test_the_deadline_of_the_sender_is_the_destinations_too(sink: Sink, through: Passing) -> None:
    sink.script("traces", times=1, status=200, delay=1.0)
    error = await through.refusal("traces", BODIES["traces"], timeout=0.2)
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    for _ in range(100):
        if through.outcome("grpc", "unreachable"):
            return
        await anyio.sleep(0.02)  # a counter is all that shows it
    pytest.fail("not counted")


async def test_what_scoring_has_no_room_for_or_cannot_read_is_passed_on_all_the_same(
    sink: Sink, through: Passing
) -> None:
    through.collected.refuse = 2
    assert (await through.post("traces", BODIES["traces"]))[0] == 200
    assert await through.call("traces", BODIES["traces"]) == b""
    through.collected.broken = True
    assert (await through.post("traces", traces([span(5, trace=5)]).SerializeToString()))[0] == 200
    through.collected.broken = False
    assert (await through.post("traces", b"[]", JSON))[0] == 200
    assert [len(sink.bodies()), len(through.collected.spans)] == [4, 0]
    assert (through.unscored("http", "full"), through.unscored("grpc", "full")) == (1, 1)
    assert (through.unscored("http", "failed"), through.unscored("http", "malformed")) == (1, 1)


async def test_a_body_above_the_limit_is_refused_before_it_is_passed_on(sink: Sink, through: Passing) -> None:
    assert (await through.post("traces", io.BytesIO(b"x" * (2**20 + 1))))[0] == 413
    bomb = await through.refusal("traces", bytes(2**20 + 1), compression=grpc.Compression.Gzip)
    assert bomb.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert sink.received().requests == []


async def test_a_protocol_without_a_destination_is_refused_for_good(sink: Sink) -> None:
    async with passing(http=sink.http) as over_http, passing(grpc=sink.grpc) as over_grpc:
        error = await over_http.refusal("traces", BODIES["traces"])
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert "exporters.forward.grpc is not set" in str(error.details())
        assert (await over_grpc.post("traces", BODIES["traces"]))[0] == 501
        assert (await over_http.post("traces", BODIES["traces"]))[0] == 200
        assert await over_grpc.call("traces", BODIES["traces"]) == b""


async def test_a_path_in_the_address_and_a_query_are_kept(sink: Sink) -> None:
    async with passing(http=f"{sink.http}/otlp/") as made:
        url = f"{made.http}/v1/traces?tenant=a%20b"
        response = await made.session.post(url, data=BODIES["traces"], headers={"content-type": PROTOBUF})
        assert response.status == 200
        response.release()
    assert len(sink.bodies()) == 1


async def test_too_much_at_once_is_told_to_come_back(sink: Sink, through: Passing, monkeypatch) -> None:
    monkeypatch.setattr("tracescore.exporters.relay.forward.MAX_IN_FLIGHT", 0)
    sink.script("traces", times=1, status=200, delay=0.5)
    statuses: list[int] = []

    async def one() -> None:
        statuses.append((await through.post("traces", BODIES["traces"]))[0])

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
    assert sorted(statuses) == [200, 503, 503]
    assert len(sink.bodies()) == 1
