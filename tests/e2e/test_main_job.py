"""The main job, from outside: an app with the real SDK, the service as a process, a sink that is not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter

from tests.otlp_sink import Sink, otlp_sink
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import GOOD, HALF, OFF_TOPIC, Asked, JsonSpanExporter, answer, provider, recorded
from tests.servers import prometheus, wait

pytestmark = pytest.mark.local

SETTINGS = FREE_PORTS + "assembly: {idle: 500ms}\ndrift: {min_count: 3}\n"
MEASURES = ("answer_relevancy", "completeness", "faithfulness")

EXPORTERS: dict[str, Callable[[Running], SpanExporter]] = {
    "grpc": lambda service: GrpcSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True),
    "http/protobuf": lambda service: HttpSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"),
    "http/json": lambda service: JsonSpanExporter(f"http://{service.addresses['http']}"),
}


@pytest.fixture(scope="module")
def sink() -> Iterator[Sink]:
    with otlp_sink() as running:
        yield running


@pytest.fixture(scope="module")
def service(sink: Sink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, SETTINGS, "--otlp-out", sink.http) as running:
        yield running


def scored(service: Running) -> float:
    return service.value("tracescore_evaluations_total", outcome="scored")


def ask(service: Running, exporter: SpanExporter, *asked: Asked) -> list[tuple[str, str]]:
    """Sends the answers and returns the ids of their RAG roots once everything has been scored."""
    before = scored(service)
    app = provider(exporter)
    contexts = [answer(app.get_tracer("app"), each) for each in asked]
    app.shutdown()
    service.wait_value(before + 3 * len(asked), "tracescore_evaluations_total", outcome="scored")
    return [(f"{context.trace_id:032x}", f"{context.span_id:016x}") for context in contexts]


@pytest.mark.parametrize("protocol", EXPORTERS)
def test_spans_become_gauges_and_evaluations_on_the_same_trace(service: Running, sink: Sink, protocol: str) -> None:
    sink.clear()
    before = service.value("tracescore_answer_relevancy_weight_total")
    ids = ask(service, EXPORTERS[protocol](service), GOOD, OFF_TOPIC, HALF)

    labels = {"service_name": "shop", "service_version": "1.4", "deployment_environment": "test"}
    labels["judge"] = "embedded-v2"
    for measure in MEASURES:
        value = service.value(f"tracescore_{measure}_ratio", **labels)
        assert 0 < service.value(f"tracescore_{measure}_lower_ratio", **labels) < value
        assert value < service.value(f"tracescore_{measure}_upper_ratio", **labels) <= 1
    assert service.value("tracescore_answer_relevancy_weight_total", **labels) == before + 3
    assert service.value("tracescore_completeness_by_slice_weight_total", slice_key="route", slice="/ask") > 0

    received = sink.wait(spans=3, logs=9)
    spans = {span["parent_span_id"]: span for span in received.spans}
    assert set(spans) == {span_id for _, span_id in ids}
    for trace_id, span_id in ids:
        span = spans[span_id]
        assert span["trace_id"] == trace_id
        assert [(link["trace_id"], link["span_id"]) for link in span["links"]] == [(trace_id, span_id)]
        assert span["start"] == span["end"] > 0
        assert span["resource"]["service.name"] == "tracescore"
        assert span["attributes"]["openinference.span.kind"] == "EVALUATOR"
        logs = [log for log in received.logs if log["span_id"] == span_id]
        assert {log["attributes"]["gen_ai.evaluation.name"] for log in logs} == set(MEASURES)
        for log in logs:
            assert log["trace_id"] == trace_id
            assert log["event_name"] == "gen_ai.evaluation.result"
            measured = span["attributes"][f"tracescore.{log['attributes']['gen_ai.evaluation.name']}"]
            assert log["attributes"]["gen_ai.evaluation.score.value"] == measured
    good, off_topic, half = (spans[span_id]["attributes"] for _, span_id in ids)
    assert good["tracescore.answer_relevancy"] > off_topic["tracescore.answer_relevancy"] + 0.1
    assert half["tracescore.completeness"] == 0.5
    assert good["tracescore.completeness"] == 1.0


def test_the_same_spans_sent_again_change_nothing(service: Running, sink: Sink) -> None:
    spans = recorded([GOOD, HALF])
    exporter = EXPORTERS["grpc"](service)
    before = scored(service)
    assert exporter.export(spans)
    exporter.export(list(reversed(spans)))
    service.wait_value(before + 6, "tracescore_evaluations_total", outcome="scored")
    sink.clear()
    received = service.value("tracescore_receiver_spans_total")
    EXPORTERS["http/json"](service).export(spans)
    assert service.value("tracescore_receiver_spans_total") == received + len(spans)
    # Something new goes the same way behind the repeats; when it has come out, they would have too.
    (after,) = ask(service, exporter, GOOD)
    assert scored(service) == before + 9
    assert {span["parent_span_id"] for span in sink.wait(spans=1, logs=3).spans} == {after[1]}


def test_a_score_is_found_on_the_page_by_its_trace_id(service: Running) -> None:
    ((trace_id, span_id),) = ask(service, EXPORTERS["grpc"](service), HALF)
    page = service.get("page", f"/interactions/{trace_id}")
    assert span_id in page
    assert HALF.question in page
    assert trace_id in service.get("page", "/interactions")


@pytest.mark.server
def test_a_low_score_leads_from_prometheus_to_the_trace_its_evaluations_and_the_page_by_the_same_ids(
    service: Running, sink: Sink, tmp_path: Path
) -> None:
    sink.clear()
    operator = {"service": "tracescore", "namespace": "rag", "pod": "tracescore-0", "instance": "pod-0"}
    target = {"targets": [service.addresses["metrics"]], "labels": operator}
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "scores", "static_configs": [target]}],
    }
    *_, (trace_id, span_id) = ask(service, EXPORTERS["grpc"](service), GOOD, GOOD, OFF_TOPIC)
    with prometheus(config, tmp_path) as server:
        (found,) = server.wait_query('tracescore_answer_relevancy_ratio{service_name="shop"}')
        assert found.labels | operator | {"job": "scores", "service_name": "shop"} == found.labels
        bucket = 'tracescore_answer_relevancy_score_bucket{service_name="shop"}'

        def of_this_trace() -> list[dict[str, Any]]:
            return [found for found in server.exemplars(bucket) if found["labels"]["trace_id"] == trace_id]

        (low,) = wait(of_this_trace, "no exemplar of the low score came")
    assert low["labels"] == {"trace_id": trace_id, "span_id": span_id}
    assert float(low["value"]) < 0.5
    received = sink.wait(spans=3, logs=9)
    (evaluation,) = [span for span in received.spans if span["trace_id"] == low["labels"]["trace_id"]]
    assert evaluation["parent_span_id"] == low["labels"]["span_id"]
    assert evaluation["attributes"]["tracescore.answer_relevancy"] == float(low["value"])
    events = [log for log in received.logs if (log["trace_id"], log["span_id"]) == (trace_id, span_id)]
    assert {event["attributes"]["gen_ai.evaluation.name"] for event in events} == set(MEASURES)
    assert f'id="{span_id}"' in service.get("page", f"/interactions/{evaluation['trace_id']}")
    assert span_id in service.get("page", f"/interactions/{low['labels']['trace_id']}")


def test_health_and_readiness_are_answered_on_the_metrics_listener(service: Running) -> None:
    service.get("metrics", "/-/healthy")
    service.get("metrics", "/-/ready")


def test_the_first_trace_says_what_came_and_what_of_it_can_be_scored(service: Running) -> None:
    ask(service, EXPORTERS["grpc"](service), GOOD)
    assert [line for line in service.log if "stage=interactions" in line and "genai_spans=" in line]
