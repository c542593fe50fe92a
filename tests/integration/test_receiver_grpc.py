"""The gRPC receiver on a real port, with raw calls and with the exporter of opentelemetry-python."""

from __future__ import annotations

import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace.export import SpanExportResult
from prometheus_client import CollectorRegistry

from tests.freeing import TEXT, is_freed_at_once
from tests.otlp import Collected, log, logs, sdk_span, span, traces
from tracescore.config import ReceiverConfig
from tracescore.errors import ListenError
from tracescore.receiver.grpc import serving_grpc
from tracescore.receiver.intake import BODIES_IN_FLIGHT, Intake

SERVICE = "opentelemetry.proto.collector.{0}.v1.{1}Service"
TRACES = f"/{SERVICE.format('trace', 'Trace')}/Export"
LOGS = f"/{SERVICE.format('logs', 'Logs')}/Export"
METRICS = f"/{SERVICE.format('metrics', 'Metrics')}/Export"
LIMIT = 2**20
ONE_SPAN = traces([span(1)]).SerializeToString()
pytestmark = pytest.mark.anyio


class Receiving:
    """A receiver on a free port, and a channel to it."""

    def __init__(self, sink: Collected, registry: CollectorRegistry, address: str, channel: grpc.aio.Channel) -> None:
        self.sink, self.registry, self.address, self.channel = sink, registry, address, channel

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tracescore_receiver_{name}", {"protocol": "grpc"} | labels)

    async def call(self, method: str, body: bytes, compression=None) -> bytes:
        return await self.channel.unary_unary(method)(body, compression=compression, timeout=10)

    async def refusal(self, method: str, body: bytes, compression=None) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self.call(method, body, compression)
        return raised.value


@asynccontextmanager
async def receiving(sink: Collected | None = None, patience: float = 10.0) -> AsyncIterator[Receiving]:
    sink, registry = sink or Collected(), CollectorRegistry()
    settings = ReceiverConfig.model_validate({"max_request": f"{LIMIT}B", "retry_after": "1s"})
    async with (
        serving_grpc(Intake(settings, sink, lambda _: True, registry), "127.0.0.1:0", patience) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield Receiving(sink, registry, address, channel)


@pytest.fixture
async def receiver():
    async with receiving() as running:
        yield running


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_spans_arrive_whatever_the_compression(receiver, compression) -> None:
    body = traces([span(1, attrs={"text": "words " * 100})]).SerializeToString()  # worth compressing
    assert await receiver.call(TRACES, body, compression) == b""
    assert [s.span_id for s in receiver.sink.spans] == [span(1).span_id]
    assert receiver.value("spans_total") == receiver.value("admitted_spans_total") == 1


async def test_logs_arrive_and_metrics_are_counted(receiver) -> None:
    await receiver.call(LOGS, logs([log()]).SerializeToString())
    await receiver.call(METRICS, b"anything")
    assert len(receiver.sink.logs) == receiver.value("log_records_total") == 1
    assert receiver.value("requests_total", signal="metrics") == 1


async def test_spans_without_ids_are_a_partial_success(receiver) -> None:
    answer = await receiver.call(TRACES, traces([span(1), span(0)]).SerializeToString())
    assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 1


async def test_bytes_that_are_no_request_are_an_invalid_argument(receiver) -> None:
    refusal = await receiver.refusal(TRACES, b"\x0a")
    assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert receiver.value("refused_requests_total", reason="malformed") == 1


async def test_other_methods_are_unimplemented(receiver) -> None:
    refusal = await receiver.refusal("/opentelemetry.proto.collector.profiles.v1.ProfilesService/Export", b"")
    assert refusal.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("size", [LIMIT + 1, 2**26], ids=["just above", "a bomb"])
@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_too_large_is_resource_exhausted_without_retry_info(receiver, compression, size) -> None:
    refusal = await receiver.refusal(TRACES, bytes(size), compression)
    assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not [key for key, _ in refusal.trailing_metadata() if key.endswith("-bin")]
    if compression:
        assert receiver.value("refused_requests_total", reason="too_large") == 1


async def test_a_refused_request_leaves_nothing_that_only_the_garbage_collector_could_find(receiver) -> None:
    gc.disable()
    try:
        assert (await receiver.refusal(TRACES, b"\xff")).code() is grpc.StatusCode.INVALID_ARGUMENT
        assert not [each for each in gc.get_objects() if type(each) is grpc.aio.AbortError]
    finally:
        gc.enable()


@pytest.mark.parametrize("body", [traces([span(1, attrs={"k": TEXT})]).SerializeToString(), b"\xff" + TEXT.encode()])
async def test_a_request_that_was_answered_is_freed_at_once(receiver, body: bytes) -> None:
    async def call() -> None:
        with suppress(grpc.aio.AioRpcError):
            await receiver.call(TRACES, body)
        receiver.sink.spans.clear()

    assert await is_freed_at_once(call)


async def test_calls_that_send_nothing_take_nobodys_place(receiver) -> None:
    silent = [receiver.channel.stream_unary(TRACES)() for _ in range(2 * BODIES_IN_FLIGHT - 1)]
    for call in silent:
        await call.wait_for_connection()
    assert await receiver.call(TRACES, ONE_SPAN) == b""
    async with grpc.aio.insecure_channel(receiver.address, options=[("grpc.use_local_subchannel_pool", 1)]) as other:
        assert await other.unary_unary(TRACES)(ONE_SPAN, timeout=5) == b""
    assert len(receiver.sink.spans) == 2
    for call in silent:
        call.cancel()
        assert await call.code() is grpc.StatusCode.CANCELLED


async def test_messages_that_are_too_much_at_once_are_resource_exhausted_with_retry_info() -> None:
    class Stuck(Collected):
        def __init__(self) -> None:
            super().__init__()
            self.go_on = anyio.Event()

        async def take(self, spans, logs, withheld, sender) -> None:
            await self.go_on.wait()
            self.spans += spans

    large = traces([span(1, attrs={"text": "x" * (LIMIT - 500)})]).SerializeToString()
    sink, ended = Stuck(), []
    async with receiving(sink) as receiver, anyio.create_task_group() as tasks:

        async def export() -> None:
            call = receiver.channel.unary_unary(TRACES)(large)
            ended.append((await call.code(), "google.rpc.retryinfo-bin" in dict(await call.trailing_metadata())))
            sink.go_on.set()

        for _ in range(BODIES_IN_FLIGHT + 2):
            tasks.start_soon(export)
    assert ended[0] == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
    assert len(sink.spans) >= BODIES_IN_FLIGHT
    assert receiver.value("refused_requests_total", reason="crowded") == BODIES_IN_FLIGHT + 2 - len(sink.spans)


async def test_a_message_that_does_not_come_in_is_unavailable_with_retry_info() -> None:
    async with receiving(patience=0.1) as receiver:
        for _ in range(BODIES_IN_FLIGHT + 1):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await receiver.channel.stream_unary(TRACES)()
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "google.rpc.retryinfo-bin" in dict(raised.value.trailing_metadata())
        assert receiver.value("refused_requests_total", reason="slow") == BODIES_IN_FLIGHT + 1
        assert await receiver.call(TRACES, ONE_SPAN) == b""


async def test_a_call_without_a_message_is_an_invalid_argument(receiver) -> None:
    call = receiver.channel.stream_unary(TRACES)()
    await call.done_writing()
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_full_budget_is_unavailable_with_retry_info_in_both_places(receiver) -> None:
    receiver.sink.refuse = 1
    refusal = await receiver.refusal(TRACES, ONE_SPAN)
    trailers = dict(refusal.trailing_metadata())
    assert refusal.code() is grpc.StatusCode.UNAVAILABLE
    assert RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"]).retry_delay.ToMilliseconds() == 1000
    status, inside = Status.FromString(trailers["grpc-status-details-bin"]), RetryInfo()
    assert status.code == 14
    assert status.details[0].Unpack(inside)
    assert inside.retry_delay.ToMilliseconds() == 1000
    assert receiver.value("refused_requests_total", reason="full") == 1


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_the_real_exporter_delivers_its_spans(receiver, compression) -> None:
    exporter = OTLPSpanExporter(receiver.address, insecure=True, compression=compression)
    sent = sdk_span("chat")
    assert await anyio.to_thread.run_sync(exporter.export, [sent]) is SpanExportResult.SUCCESS
    assert [s.span_id for s in receiver.sink.spans] == [sent.context.span_id.to_bytes(8, "big")]
    exporter.shutdown()


async def test_the_real_exporter_comes_back_after_unavailable(receiver) -> None:
    receiver.sink.refuse = 1
    exporter = OTLPSpanExporter(receiver.address, insecure=True)
    assert await anyio.to_thread.run_sync(exporter.export, [sdk_span("chat")]) is SpanExportResult.SUCCESS
    assert len(receiver.sink.spans) == 1
    assert receiver.value("refused_requests_total", reason="full") == 1
    exporter.shutdown()


async def test_a_taken_port_is_one_line_that_names_the_setting() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        intake = Intake(ReceiverConfig(), Collected(), lambda _: True, CollectorRegistry())
        with pytest.raises(ListenError) as raised:
            async with serving_grpc(intake, address):
                pass
    assert str(raised.value) == (
        f"receiver.grpc.listen: cannot listen on {address}: Address already in use; "
        "another tracescore or a collector may use it: stop that one or set another address"
    )


async def test_two_receivers_never_share_a_port(receiver) -> None:
    intake = Intake(ReceiverConfig(), Collected(), lambda _: True, CollectorRegistry())
    with pytest.raises(ListenError):
        async with serving_grpc(intake, receiver.address):
            pass


async def test_a_request_in_flight_at_shutdown_is_answered() -> None:
    class Slow(Collected):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.go_on = anyio.Event(), anyio.Event()

        async def take(self, spans, logs, withheld, sender) -> None:
            self.asked.set()
            await self.go_on.wait()
            self.spans += spans

    sink, answers = Slow(), []
    intake = Intake(ReceiverConfig(), sink, lambda _: True, CollectorRegistry())
    async with anyio.create_task_group() as tasks, serving_grpc(intake, "127.0.0.1:0") as address:
        channel = grpc.aio.insecure_channel(address)

        async def export() -> None:
            answers.append(await channel.unary_unary(TRACES)(ONE_SPAN))

        tasks.start_soon(export)
        await sink.asked.wait()
        tasks.start_soon(_set_soon, sink.go_on)
    assert answers == [b""]
    assert len(sink.spans) == 1
    await channel.close()


async def _set_soon(event: anyio.Event) -> None:
    await anyio.lowlevel.checkpoint()  # so that the shutdown begins first
    event.set()
