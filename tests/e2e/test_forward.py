"""A service inside a pipeline: everything goes on as it came, whatever becomes of scoring."""

from __future__ import annotations

import gzip
import http.client
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks.receiver import build
from tests.openai_server import Reply, Request, openai_server, sensible
from tests.otlp_sink import Body, Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import GOOD, answer, provider

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOBUF = "application/x-protobuf"


def settings(judge: str, sink: Sink, more: str = "") -> str:
    forward = f"forward: {{http: '{sink.http}', grpc: '{sink.grpc}'}}"
    return (
        f"{FREE_PORTS.rsplit('exporters', 1)[0]}exporters: {{prometheus: {{listen: '127.0.0.1:0'}}, {forward}{more}}}\n"
        "assembly: {idle: 200ms}\n"
        f"judge: {{kind: openai, model: m, base_url: '{judge}', max_retries: 0, timeout: 2s}}\n"
        f"embedder: {{kind: openai, model: e, base_url: '{judge}'}}\n"
    )


class Senders:
    """One connection per way to send; each tells what the destination will see."""

    def __init__(self, service: Running) -> None:
        self._http = http.client.HTTPConnection(service.addresses["http"])
        self._channel = grpc.insecure_channel(service.addresses["grpc"], options=[("grpc.max_send_message_length", -1)])
        self._call = self._channel.unary_unary(TRACES)

    def close(self) -> None:
        self._http.close()
        self._channel.close()

    def plain(self, body: bytes) -> Body:
        return self._post(body, body)

    def zipped(self, body: bytes) -> Body:
        return self._post(gzip.compress(body, 1), body, **{"content-encoding": "gzip"})

    def json(self, body: bytes) -> Body:
        text = MessageToJson(ExportTraceServiceRequest.FromString(body)).encode()
        return self._post(text, text, **{"content-type": "application/json"})

    def rpc(self, body: bytes) -> Body:
        assert self._call(body, timeout=60) == b""
        return Body("traces", "grpc", "", body)

    def rpc_zipped(self, body: bytes) -> Body:
        assert self._call(body, timeout=60, compression=grpc.Compression.Gzip) == b""
        return Body("traces", "grpc", "", body)

    def _post(self, sent: bytes, seen: bytes, **headers: str) -> Body:
        given = {"content-type": PROTOBUF} | headers
        self._http.request("POST", "/v1/traces", sent, given)
        response = self._http.getresponse()
        assert response.status == 200, response.read()
        response.read()
        return Body("traces", "http", given["content-type"], seen)


def failing(request: Request) -> Reply:
    return sensible(request) if request.is_probe else Reply.error(500)


def slow(request: Request) -> Reply:
    return replace(sensible(request), delay=0.0 if request.is_probe else 5.0)


def away(_: Request) -> Reply:
    return Reply(disconnect=True)


@pytest.mark.timeout(300)
def test_100_000_spans_arrive_complete_and_unchanged_while_the_judge_is_slow_failing_and_down(tmp_path: Path) -> None:
    ordinary, rag = build("ordinary"), build("rag")
    bodies = [load.next() for _ in range(124) for load in (ordinary, rag)]
    assert 124 * (ordinary.spans + rag.spans) >= 100_000
    with otlp_sink(read=False) as sink, openai_server(sensible) as judge:
        with serving(tmp_path, settings(judge.url, sink)) as service:
            sent: list[Body] = []
            phases = [slow, failing, away, sensible]
            share = len(bodies) // len(phases)
            for phase, script in enumerate(phases):
                judge.script = script
                with ThreadPoolExecutor(4) as pool:
                    chunk = bodies[phase * share : (phase + 1) * share]
                    sent += [
                        one for part in pool.map(_send, [service] * 4, [chunk[n::4] for n in range(4)]) for one in part
                    ]
            assert service.value("tracescore_receiver_spans_total") >= 90_000  # all but what came as JSON of its own
            assert service.value("tracescore_exporters_forward_requests_total", outcome="accepted") == len(sent)
            assert service.value("tracescore_service_errors_total") == 0
            arrived = Counter(sink.bodies())
        missing = Counter(sent) - arrived
        assert not missing, f"{missing.total()} of {len(sent)} requests did not arrive as they were sent"
        ours = Counter(arrived) - Counter(sent)
        assert all(b"\x0a\x0atracescore" in body.content for body in ours)


def _send(service: Running, bodies: list[bytes]) -> list[Body]:
    senders = Senders(service)
    ways: list[Callable[[bytes], Body]] = [senders.plain, senders.rpc, senders.zipped, senders.rpc_zipped]
    try:
        sent = [ways[at % len(ways)](body) for at, body in enumerate(bodies)]
        return [*sent, senders.json(bodies[0])]
    finally:
        senders.close()


def test_evaluation_spans_follow_the_spans_to_where_they_are_passed_on(tmp_path: Path) -> None:
    with otlp_sink() as sink, openai_server() as judge, serving(tmp_path, settings(judge.url, sink)) as service:
        app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
        context = answer(app.get_tracer("app"), GOOD)
        app.shutdown()
        received = sink.wait(spans=4, logs=3)
    (evaluation,) = [span for span in received.spans if span["scope"] == "tracescore"]
    assert evaluation["trace_id"] == f"{context.trace_id:032x}"
    assert evaluation["parent_span_id"] == f"{context.span_id:016x}"
    assert len(received.spans) == 4


def test_a_destination_that_was_away_gets_everything_once_it_is_back(tmp_path: Path) -> None:
    with otlp_sink() as sink, openai_server() as judge, serving(tmp_path, settings(judge.url, sink)) as service:
        sink.script("traces", times=2, status=503, retry_after=0)
        app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
        started = time.monotonic()
        answer(app.get_tracer("app"), GOOD)  # the exporter of the SDK sends again by itself
        app.shutdown()
        assert time.monotonic() - started < 30
        received = sink.wait(spans=4, logs=3)
        assert len({span["span_id"] for span in received.spans}) == 4
        assert service.value("tracescore_interactions_total") == 1


@pytest.mark.parametrize("signal", ["logs", "metrics"])
def test_other_signals_go_on_too(tmp_path: Path, signal: str) -> None:
    with otlp_sink() as sink, openai_server() as judge, serving(tmp_path, settings(judge.url, sink)) as service:
        connection = http.client.HTTPConnection(service.addresses["http"])
        connection.request("POST", f"/v1/{signal}", b"", {"content-type": PROTOBUF})
        assert connection.getresponse().status == 200
        connection.close()
        assert sink.bodies() == [Body(signal, "http", PROTOBUF, b"")]
