"""Nothing that scoring itself leaves in traces is scored, however it comes back: loops are impossible."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.gateway import RECORDINGS, recorded, without_scopes
from tests.openai_server import OpenAIServer
from tests.otlp_sink import Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import GOOD, HALF, answer, provider

SET_ASIDE = "tracescore_interactions_set_aside_total"


@pytest.fixture
def sink() -> Iterator[Sink]:
    with otlp_sink() as running:
        yield running


@pytest.fixture
def service(tmp_path: Path, judge: OpenAIServer, sink: Sink) -> Iterator[Running]:
    settings = f"{FREE_PORTS}assembly: {{idle: 100ms, orphan_idle: 200ms}}\n{judge.settings}"
    with serving(tmp_path, settings, "--otlp-out", sink.http) as running:
        yield running


def score_two(service: Running) -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    for each in (GOOD, HALF):
        answer(app.get_tracer("app"), each)
    app.shutdown()
    service.wait_value(6, "tracescore_evaluations_total", outcome="scored")


def send(service: Running, signal: str, body: bytes) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    url = f"http://{service.addresses['http']}/v1/{signal}"
    urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10).close()


def assert_only_the_app_is_scored(service: Running) -> None:
    """Something new goes the same way behind what came back; when it has been scored, that would have been too."""
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    answer(app.get_tracer("app"), GOOD)
    app.shutdown()
    service.wait_value(9, "tracescore_evaluations_total", outcome="scored")
    assert service.value("tracescore_interactions_total") == 3
    for measure in ("answer_relevancy", "completeness", "faithfulness"):
        assert service.value("tracescore_evaluations_started_total", measure=measure) == 3
    assert service.value("tracescore_service_errors_total") == 0


def test_our_own_output_sent_back_without_scopes_is_set_aside_and_counted(service: Running, sink: Sink) -> None:
    score_two(service)
    sink.wait(spans=2, logs=6)
    for body in sink.bodies():
        if body.signal == "traces":
            spans = without_scopes(ExportTraceServiceRequest.FromString(body.content))
            send(service, "traces", spans.SerializeToString())
        else:
            records = ExportLogsServiceRequest.FromString(body.content)
            for of_scope in (scope for of_resource in records.resource_logs for scope in of_resource.scope_logs):
                of_scope.ClearField("scope")
            send(service, "logs", records.SerializeToString())
    service.wait_value(8, SET_ASIDE, made_by="tracescore")
    assert_only_the_app_is_scored(service)


def test_judge_calls_that_come_back_through_a_gateway_are_set_aside_and_counted(
    service: Running, judge: OpenAIServer
) -> None:
    score_two(service)
    calls = [request.body for request in judge.requests if "messages" in request.body]
    assert len(calls) >= 10
    assert {request.headers["User-Agent"] for request in judge.requests if "messages" in request.body} == {
        "tracescore-judge/1"
    }
    number = 100
    for way in RECORDINGS.values():
        for body in calls:
            number += 1
            send(service, "traces", recorded(way(body), number).SerializeToString())
    service.wait_value(number - 100, SET_ASIDE, made_by="judge_call")
    assert_only_the_app_is_scored(service)
