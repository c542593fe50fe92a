"""`attach: hold`: the spans themselves carry the scores when they arrive, and none is lost on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks.receiver import build
from tests.e2e.test_forward import Senders
from tests.openai_server import OpenAIServer, Reply, Request, openai_server, sensible
from tests.otlp_sink import Body, Sink, otlp_sink
from tests.phoenix_server import Phoenix
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import GOOD, HALF, answer, provider
from tests.servers import rotel, wait

MEASURES = {"answer_relevancy", "completeness", "faithfulness"}


def settings(tmp_path: Path, judge: OpenAIServer, forward: str, more: str = "") -> str:
    return (
        f"{FREE_PORTS.rsplit('exporters', 1)[0]}"
        f"exporters: {{prometheus: {{listen: '127.0.0.1:0'}}, forward: {{{forward}, attach: hold{more}}}}}\n"
        f"spool: {{path: {tmp_path}/spool}}\n"
        "assembly: {idle: 200ms}\n"
        f"{judge.settings}"
    )


def to(sink: Sink) -> str:
    return f"http: '{sink.http}', grpc: '{sink.grpc}'"


def ask(service: Running, *asked: Any) -> list[Any]:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
    contexts = [answer(app.get_tracer("app"), each) for each in asked]
    app.shutdown()
    return contexts


def spans_of(bodies: list[Body]) -> list[Any]:
    """Every span that is not ours, in protobuf, without the attributes that are."""
    found = []
    for body in bodies:
        if body.signal != "traces" or body.media_type == "application/json":
            continue
        for group in ExportTraceServiceRequest.FromString(body.content).resource_spans:
            for scoped in group.scope_spans:
                if scoped.scope.name != "tracescore":
                    found += [(group.resource.SerializeToString(), each) for each in scoped.spans]
    return found


def scored(span: Any) -> bool:
    return any(attribute.key.startswith("tracescore.") for attribute in span.attributes)


def bare(span: Any) -> bytes:
    kept = [each for each in span.attributes if not each.key.startswith("tracescore.")]
    del span.attributes[:]
    span.attributes.extend(kept)
    content: bytes = span.SerializeToString()
    return content


def waiting_judge() -> tuple[threading.Event, Callable[[Request], Reply]]:
    """The script of a judge that passes its probe and answers nothing else before the event is set."""
    judged = threading.Event()

    def held_up(request: Request) -> Reply:
        if not request.is_probe:
            judged.wait(60)
        return sensible(request)

    return judged, held_up


def test_the_span_arrives_with_its_scores_and_all_others_as_they_were(tmp_path: Path) -> None:
    with (
        otlp_sink() as sink,
        openai_server() as judge,
        serving(tmp_path, settings(tmp_path, judge, to(sink))) as service,
    ):
        (context,) = ask(service, GOOD)
        spans = {span["name"]: span for span in sink.wait(spans=4, logs=3).spans}
        assert service.value("tracescore_exporters_forward_attached_results_total", outcome="in_time") == 1
    assert set(spans) == {"POST /ask", "rag", "retrieve", "evaluate"}
    target = spans["rag"]
    assert target["span_id"] == f"{context.span_id:016x}"
    for measure in MEASURES:
        value = target["attributes"][f"tracescore.{measure}"]
        assert value == spans["evaluate"]["attributes"][f"tracescore.{measure}"]
    for name in ("POST /ask", "retrieve"):
        assert not [key for key in spans[name]["attributes"] if key.startswith("tracescore.")]


def test_what_cannot_be_a_target_goes_at_once_and_the_rest_waits_for_the_judge(tmp_path: Path) -> None:
    judged, held_up = waiting_judge()

    with (
        otlp_sink() as sink,
        openai_server(held_up) as judge,
        serving(tmp_path, settings(tmp_path, judge, to(sink))) as service,
    ):
        ask(service, GOOD)
        sink.wait(spans=2)  # the retriever goes when the trace has been read
        service.wait_value(1, "tracescore_exporters_forward_held_spans")
        assert {span["name"] for span in sink.received().spans} == {"POST /ask", "retrieve"}
        judged.set()
        assert {span["name"] for span in sink.wait(spans=4).spans} >= {"rag"}


def test_a_judge_that_is_too_slow_makes_scores_late_and_loses_no_span(tmp_path: Path) -> None:
    judged, held_up = waiting_judge()

    with (
        otlp_sink() as sink,
        openai_server(held_up) as judge,
        serving(tmp_path, settings(tmp_path, judge, to(sink), ", deadline: 1s")) as service,
    ):
        ask(service, GOOD)
        assert {span["name"] for span in sink.wait(spans=3).spans} == {"POST /ask", "retrieve", "rag"}
        judged.set()
        spans = {span["name"]: span for span in sink.wait(spans=4).spans}
        assert service.value("tracescore_exporters_forward_attached_results_total", outcome="late") == 1
        assert service.value("tracescore_exporters_forward_released_spans_total", reason="deadline") == 1
    assert "tracescore.answer_relevancy" in spans["evaluate"]["attributes"]
    assert "tracescore.answer_relevancy" not in spans["rag"]["attributes"]


@pytest.mark.parametrize("killed", [True, False], ids=["SIGKILL", "SIGTERM"])
def test_spans_kept_back_outlive_the_process_and_get_their_scores_from_the_next(tmp_path: Path, killed: bool) -> None:
    judged, held_up = waiting_judge()

    with otlp_sink() as sink, openai_server(held_up) as judge:
        config = settings(tmp_path, judge, to(sink)) + "shutdown_grace: 500ms\n"
        with serving(tmp_path, config) as service:
            contexts = ask(service, GOOD, HALF)
            service.wait_value(2, "tracescore_interactions_total")
            assert killed or service.terminate() == 0
        judged.set()
        with serving(tmp_path, config) as service:
            service.wait_value(2, "tracescore_exporters_forward_attached_results_total", outcome="in_time")
            received = sink.wait(spans=8)
    targets = {f"{context.span_id:016x}" for context in contexts}
    arrived = {span["span_id"]: span for span in received.spans}
    assert len(arrived) == 8
    assert targets == {span_id for span_id, span in arrived.items() if span["name"] == "rag"}
    for span_id in targets:
        assert "tracescore.answer_relevancy" in arrived[span_id]["attributes"]


@pytest.mark.timeout(300)
def test_a_stream_of_mixed_spans_arrives_complete_whatever_is_kept_back_of_it(tmp_path: Path) -> None:
    ordinary, rag = build("ordinary"), build("rag")
    bodies = [load.next() for _ in range(10) for load in (ordinary, rag)]
    with (
        otlp_sink(read=False) as sink,
        openai_server() as judge,
        serving(tmp_path, settings(tmp_path, judge, to(sink), ", deadline: 5s")) as service,
    ):
        senders = Senders(service)
        ways = [senders.plain, senders.rpc, senders.zipped, senders.rpc_zipped]
        sent = [ways[at % len(ways)](body) for at, body in enumerate(bodies)]
        senders.close()
        wanted = Counter((resource, bare(span)) for resource, span in spans_of(sent))

        def arrived() -> Counter[Any] | None:
            found = Counter((resource, bare(span)) for resource, span in spans_of(sink.bodies()))
            return found if found.total() >= wanted.total() else None

        found = wait(arrived, f"{wanted.total()} spans expected", 60)
        assert found == wanted
        assert service.value("tracescore_exporters_forward_held_spans") == 0
        released = service.value("tracescore_exporters_forward_released_spans_total")
        assert service.value("tracescore_exporters_forward_delivered_spans_total") == released > 1000
        with_scores = [span for _, span in spans_of(sink.bodies()) if scored(span)]
        in_time = service.value("tracescore_exporters_forward_attached_results_total", outcome="in_time")
        assert len(with_scores) == in_time > 0


@pytest.mark.server
@pytest.mark.timeout(400)
def test_phoenix_holds_the_root_with_its_scores_after_a_collector_and_a_hold(tmp_path: Path, phoenix: Phoenix) -> None:
    with openai_server() as judge:
        config = settings(tmp_path, judge, f"http: '{phoenix.url}'")
        with (
            serving(tmp_path, config) as service,
            rotel(f"http://{service.addresses['http']}", tmp_path) as collector,
        ):
            app = provider(OTLPSpanExporter(endpoint=collector.grpc, insecure=True))
            contexts = [answer(app.get_tracer("app"), asked) for asked in (GOOD, HALF)]
            app.shutdown()
            service.wait_value(2, "tracescore_exporters_forward_attached_results_total", outcome="in_time")

            def both() -> list[dict[str, Any]] | None:
                found = [
                    span
                    for context in contexts
                    for span in phoenix.spans(f"{context.trace_id:032x}")
                    if span["context"]["span_id"] == f"{context.span_id:016x}"
                ]
                return found if len(found) == 2 else None

            for span in wait(both, "both roots expected in Phoenix", 60) or []:
                assert span["name"] == "rag"
                for measure in MEASURES:
                    assert 0 <= _attribute(span["attributes"], f"tracescore.{measure}") <= 1


def _attribute(attributes: dict[str, Any], key: str) -> Any:
    """Phoenix gives attributes flat or nested by the dots in their keys."""
    if key in attributes:
        return attributes[key]
    head, _, rest = key.partition(".")
    return _attribute(attributes[head], rest)
