"""The HTTP receiver behind a real server and a real socket."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace.export import SpanExportResult
from prometheus_client import CollectorRegistry

from tests.otlp import Collected, log, logs, sdk_span, span, traces
from tracescore.config import ReceiverConfig
from tracescore.net.listener import address_of, bind, serving
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.intake import BODIES_IN_FLIGHT, PATIENCE, Intake

PROTOBUF, JSON = "application/x-protobuf", "application/json"
ONE_SPAN = traces([span(1)]).SerializeToString()
pytestmark = pytest.mark.anyio


class Receiving:
    """A receiver on a free port, and a client for it."""

    def __init__(self, intake: Intake, sink: Collected, registry: CollectorRegistry, address: str) -> None:
        self.intake, self.sink, self.registry, self.address = intake, sink, registry, address

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tracescore_receiver_{name}", {"protocol": "http"} | labels)

    async def post(self, path: str, body: bytes, content_type: str | None = PROTOBUF, method="POST", **headers: str):
        """(status, headers, body) of one request on a connection of its own."""
        lines = [f"{method} {path} HTTP/1.1", "host: test", f"content-length: {len(body)}"]
        lines += [f"content-type: {content_type}"] if content_type else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return await self.exchange("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def exchange(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        host, port = self.address.split(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(request)
            answers = BufferedByteReceiveStream(stream)
            head = await answers.receive_until(b"\r\n\r\n", 2**16)
            status, *lines = head.decode().lower().split("\r\n")
            fields = dict(line.split(": ", 1) for line in lines)
            return int(status.split()[1]), fields, await answers.receive_exactly(int(fields["content-length"]))


@asynccontextmanager
async def receiving(
    max_request: int = 2**20, retry_after: float = 1.0, patience: float = PATIENCE
) -> AsyncIterator[Receiving]:
    sink, registry = Collected(), CollectorRegistry()
    settings = ReceiverConfig.model_validate({"max_request": f"{max_request}B", "retry_after": f"{retry_after}s"})
    intake = Intake(settings, sink, lambda _: True, registry)
    bound = bind("127.0.0.1:0", "receiver.http.listen")
    async with serving(HttpReceiver(intake, patience), bound):
        yield Receiving(intake, sink, registry, address_of(bound))


@pytest.fixture
async def receiver():
    async with receiving() as running:
        yield running


# ---------------------------------------------------------------- what is accepted


@pytest.mark.parametrize("compress", [None, gzip.compress, zlib.compress], ids=["identity", "gzip", "deflate"])
async def test_protobuf_spans_arrive_whatever_the_content_encoding(receiver, compress) -> None:
    headers = {} if compress is None else {"content_encoding": "GZIP" if compress is gzip.compress else "deflate"}
    body = ONE_SPAN if compress is None else compress(ONE_SPAN)
    status, fields, answer = await receiver.post("/v1/traces", body, **headers)
    assert (status, fields["content-type"], answer) == (200, PROTOBUF, b"")
    assert [s.span_id for s in receiver.sink.spans] == [span(1).span_id]
    assert receiver.value("spans_total") == receiver.value("admitted_spans_total") == 1


async def test_json_is_answered_in_json_and_its_content_type_may_have_parameters(receiver) -> None:
    record = {"traceId": "1" * 32, "body": {"stringValue": "hello"}}
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    status, fields, answer = await receiver.post("/v1/logs", body, "Application/JSON; charset=utf-8")
    assert (status, fields["content-type"], json.loads(answer)) == (200, JSON, {})
    assert [record.trace_id.hex() for record in receiver.sink.logs] == ["1" * 32]
    assert receiver.value("log_records_total") == 1


async def test_a_chunked_body_is_read_to_its_end(receiver) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (ONE_SPAN[:9], ONE_SPAN[9:]))
    head = f"POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-type: {PROTOBUF}\r\n"
    status, *_ = await receiver.exchange(f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n")
    assert status == 200
    assert len(receiver.sink.spans) == 1


async def test_metrics_are_accepted_counted_and_thrown_away(receiver) -> None:
    status, _, answer = await receiver.post("/v1/metrics", b"anything")
    assert (status, answer) == (200, b"")
    assert receiver.value("requests_total", signal="metrics") == 1


# ---------------------------------------------------------------- partial success


async def test_spans_without_ids_are_a_partial_success_in_the_encoding_of_the_request(receiver) -> None:
    good, bad = span(1), span(0)
    status, _, answer = await receiver.post("/v1/traces", traces([good, bad, bad]).SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (status, partial.rejected_spans, "2 do not parse" in partial.error_message) == (200, 2, True)

    body = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}'
    status, _, answer = await receiver.post("/v1/traces", body, JSON)
    assert (status, json.loads(answer)["partialSuccess"]["rejectedSpans"]) == (200, "1")
    assert receiver.value("rejected_spans_total") == 3
    assert len(receiver.sink.spans) == 1


async def test_a_logs_request_on_the_traces_path_is_rejected_span_by_span(receiver) -> None:
    body = logs([log(body={"string_value": "text"}, time_unix_nano=7), log()]).SerializeToString()
    _, _, answer = await receiver.post("/v1/traces", body)
    assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 2
    assert not receiver.sink.spans


async def test_a_log_record_with_a_broken_trace_id_is_a_partial_success_one_without_is_not(receiver) -> None:
    body = logs([log(trace=0), log().__class__(trace_id=b"short")]).SerializeToString()
    _, _, answer = await receiver.post("/v1/logs", body)
    assert ExportLogsServiceResponse.FromString(answer).partial_success.rejected_log_records == 1
    assert receiver.value("log_records_total") == 2


# ---------------------------------------------------------------- what is refused

REFUSALS = {
    "bytes that are no protobuf": ({"path": "/v1/traces", "body": b"\x0a"}, 400, "malformed"),
    "text that is no JSON": ({"path": "/v1/traces", "body": b"{", "content_type": JSON}, 400, "malformed"),
    "JSON of another shape": ({"path": "/v1/logs", "body": b"[]", "content_type": JSON}, 400, "malformed"),
    "gzip that is none": ({"path": "/v1/logs", "body": b"\x0a\x00", "content_encoding": "gzip"}, 400, "malformed"),
    "gzip cut short": (
        {"path": "/v1/traces", "body": gzip.compress(ONE_SPAN)[:-6], "content_encoding": "gzip"},
        400,
        "malformed",
    ),
    "a body above the limit": ({"path": "/v1/traces", "body": bytes(2**20 + 1)}, 413, "too_large"),
    "a small body that inflates far above the limit": (
        {"path": "/v1/traces", "body": gzip.compress(bytes(2**28), 9), "content_encoding": "gzip"},
        413,
        "too_large",
    ),
    "another content type": (
        {"path": "/v1/traces", "body": b"", "content_type": "text/plain"},
        415,
        "unsupported_type",
    ),
    "no content type": ({"path": "/v1/traces", "body": b"", "content_type": None}, 415, "unsupported_type"),
    "another content encoding": (
        {"path": "/v1/traces", "body": b"", "content_encoding": "zstd"},
        415,
        "unsupported_encoding",
    ),
}


@pytest.mark.parametrize(("request_", "status", "reason"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_has_its_status_a_body_that_says_why_and_is_counted(receiver, request_, status, reason) -> None:
    got, fields, body = await receiver.post(**request_)
    assert got == status
    if request_.get("content_type") == JSON:
        assert fields["content-type"] == JSON
        assert set(json.loads(body)) == {"code", "message"}
    else:
        assert Status.FromString(body).message
    assert receiver.value("refused_requests_total", reason=reason) == 1
    assert not receiver.sink.spans


async def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_long(receiver) -> None:
    head = f"POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-type: {PROTOBUF}\r\n"
    chunk = b"100000\r\n" + bytes(2**20) + b"\r\n"  # exactly the limit, so the second is too much; there is no end
    status, *_ = await receiver.exchange(f"{head}transfer-encoding: chunked\r\n\r\n".encode() + chunk + chunk)
    assert status == 413


async def test_other_paths_and_methods_are_told_what_is_there(receiver) -> None:
    status, _, body = await receiver.post("/v1/trace", ONE_SPAN)
    assert (status, "/v1/traces" in Status.FromString(body).message) == (404, True)
    status, _, body = await receiver.post("/", b"{}", JSON)
    assert (status, "/v1/traces" in json.loads(body)["message"]) == (404, True)
    status, fields, body = await receiver.post("/v1/traces", b"", None, method="GET")
    assert (status, fields["allow"]) == (405, "post")


async def test_a_person_with_a_browser_is_told_what_this_port_is_for(receiver) -> None:
    status, fields, body = await receiver.post("/", b"", None, method="GET")
    assert (status, fields["content-type"]) == (404, "text/plain; charset=utf-8")
    assert body.startswith(b"this is an OTLP/HTTP receiver: POST to /v1/traces")


async def test_a_client_that_goes_away_mid_body_is_counted_and_leaves_no_traceback(receiver, caplog) -> None:
    counted = anyio.Event()
    count = receiver.intake.count_refused
    receiver.intake.count_refused = lambda *args: (count(*args), counted.set())
    host, port = receiver.address.split(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-length: 99\r\ncontent-type: {PROTOBUF}\r\n\r\n"
        await stream.send(head.encode() + b"only this")
    with anyio.fail_after(5):
        await counted.wait()
    assert receiver.value("refused_requests_total", reason="disconnected") == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


# ---------------------------------------------------------------- no room


async def test_a_full_budget_is_503_with_retry_after_to_a_sender_that_writes_all_of_a_large_body_first() -> None:
    async with receiving(max_request=2**24, retry_after=1.2) as receiver:
        receiver.sink.refuse = 1
        status, fields, body = await receiver.post("/v1/traces", bytes(2**24 - 1), connection="close")
        assert (status, fields["retry-after"]) == (503, "2")
        assert Status.FromString(body).code == 14
        assert receiver.value("refused_requests_total", reason="full") == 1
        assert receiver.sink.spans == []


async def test_uploads_that_stall_are_told_to_come_back_and_give_their_room_to_others() -> None:
    async with receiving(patience=0.1) as receiver:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: t\r\ncontent-length: {2**20}\r\ncontent-type: {PROTOBUF}\r\n\r\n"
        answers = []

        async def stall() -> None:
            answers.append(await receiver.exchange(head.encode() + bytes(2**20 - 1)))

        async with anyio.create_task_group() as stalled:
            for _ in range(BODIES_IN_FLIGHT):
                stalled.start_soon(stall)
        assert {(status, fields["retry-after"], fields["connection"]) for status, fields, _ in answers} == {
            (503, "1", "close")
        }
        assert receiver.value("refused_requests_total", reason="slow") == BODIES_IN_FLIGHT
        assert (await receiver.post("/v1/traces", ONE_SPAN))[0] == 200


async def test_metrics_are_accepted_when_there_is_no_room(receiver) -> None:
    receiver.sink.refuse = 5
    assert (await receiver.post("/v1/metrics", b""))[0] == 200


async def test_a_sink_that_fails_makes_the_sender_come_back_and_is_logged(receiver, caplog) -> None:
    receiver.sink.broken = True
    status, fields, _ = await receiver.post("/v1/traces", ONE_SPAN)
    assert (status, fields["retry-after"]) == (503, "1")
    assert receiver.value("spans_total") == 0, "it will come again, and is counted then"
    assert "event=defect spans=1 log_records=0 error=OSError" in caplog.text
    assert "disk full" not in caplog.text


# ---------------------------------------------------------------- the exporter of opentelemetry-python


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_the_real_exporter_delivers_its_spans(receiver, compression) -> None:
    exporter = OTLPSpanExporter(f"http://{receiver.address}/v1/traces", compression=compression)
    sent = sdk_span("chat")
    assert await anyio.to_thread.run_sync(exporter.export, [sent]) is SpanExportResult.SUCCESS
    assert [s.span_id for s in receiver.sink.spans] == [sent.context.span_id.to_bytes(8, "big")]


async def test_the_real_exporter_comes_back_after_503(receiver) -> None:
    receiver.sink.refuse = 1
    exporter = OTLPSpanExporter(f"http://{receiver.address}/v1/traces")
    assert await anyio.to_thread.run_sync(exporter.export, [sdk_span("chat")]) is SpanExportResult.SUCCESS
    assert len(receiver.sink.spans) == 1
    assert receiver.value("refused_requests_total", reason="full") == 1
