"""What a restart takes up again, seen from outside: `tracescore serve` twice over one file."""

from __future__ import annotations

import re
import sqlite3
import stat
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests import otlp
from tests.openai_server import MODEL, OpenAIServer, Reply, by, sensible
from tests.otlp_sink import otlp_sink
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import GOOD, Asked, answer, provider
from tracescore.cli import page_client
from tracescore.config import WebConfig

MEASURES = ("answer_relevancy", "completeness", "faithfulness")
SCORED = "tracescore_evaluations_total"


def settings(judge: OpenAIServer, tmp_path: Path, more: str = "") -> str:
    return (
        f"{FREE_PORTS}assembly: {{idle: 200ms}}\ndrift: {{min_count: 3}}\nspool: {{path: {tmp_path}/spool}}\n"
        f"{judge.settings}{more}"
    )


def ask(service: Running, count: int) -> list[str]:
    """Trace ids of the answers."""
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    contexts = [answer(app.get_tracer("app"), GOOD) for _ in range(count)]
    app.shutdown()
    return [f"{context.trace_id:032x}" for context in contexts]


def send(service: Running, *spans: otlp.Span) -> None:
    url = f"http://{service.addresses['http']}/v1/traces"
    headers = {"Content-Type": "application/x-protobuf"}
    body = otlp.traces(spans).SerializeToString()
    urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10).close()


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_what_waits_for_the_judge_is_scored_by_the_next_process(
    tmp_path: Path, judge: OpenAIServer, kill: bool
) -> None:
    config = settings(judge, tmp_path, "shutdown_grace: 500ms\n")
    judge.script = lambda request: replace(sensible(request), delay=0.0 if request.is_probe else 60)
    with serving(tmp_path, config) as service:
        ask(service, 20)
        service.wait_value(20, "tracescore_evaluations_pending", measure="faithfulness")
        if not kill:
            assert service.terminate() == 0
            service.join()
            assert len([line for line in service.log if "shed=0 pending=20" in line]) == 3, service.log
    judge.script = sensible
    with serving(tmp_path, config) as service:
        assert service.value("tracescore_evaluations_started_total", measure="faithfulness") == 20
        service.wait_value(60, SCORED, outcome="scored")
        assert service.value("tracescore_interactions_total") == 20
        assert service.value("tracescore_evaluations_pending") == 0


def test_gauges_histograms_and_the_page_go_on_where_they_were(tmp_path: Path, judge: OpenAIServer) -> None:
    config = settings(judge, tmp_path)
    kept = re.compile(r"tracescore_(\w+_(ratio|scores|score_\w+|weight_total)|evaluations_(lag|total|started)\w*)")
    with serving(tmp_path, config) as service:
        ids = ask(service, 5)
        service.wait_value(15, SCORED, outcome="scored")
        before = {key: value for key, value in service.samples().items() if kept.fullmatch(key[0])}
        exemplars = service.get("metrics", "/metrics", {"Accept": "application/openmetrics-text"}).count("# {")
    with serving(tmp_path, config) as service:
        after = {key: value for key, value in service.samples().items() if kept.fullmatch(key[0])}
        assert after == before
        again = service.get("metrics", "/metrics", {"Accept": "application/openmetrics-text"}).count("# {")
        assert again == exemplars > 0
        assert GOOD.question in service.get("page", f"/interactions/{ids[0]}")


def test_a_budget_that_is_spent_stays_spent(tmp_path: Path, judge: OpenAIServer) -> None:
    price = "name: m, price: {input: 1000, output: 1000}, budget: {per_day: 5},"  # a request costs about 1
    config = settings(judge, tmp_path, "sampling: {min_ratio: 1}\n").replace("judge: {", f"judge: {{{price} ")
    with serving(tmp_path, config) as service:
        ask(service, 1)
        service.wait_value(3, SCORED, outcome="scored")
        spent = service.value("tracescore_judge_spent_today")
        assert spent > 5
        assert service.value("tracescore_judge_budget_used_ratio") == 1
        ask(service, 2)
        service.wait_value(6, SCORED, outcome="skipped", reason="budget")
        service.process.kill()
        service.process.wait()
    with serving(tmp_path, config) as service:
        assert service.value("tracescore_judge_spent_today") == spent
        assert service.value("tracescore_judge_spent_total", service_name="shop") == spent
        ask(service, 1)
        service.wait_value(9, SCORED, outcome="skipped", reason="budget")
        assert service.value(SCORED, outcome="scored") == 3


def test_what_a_person_changed_is_there_after_a_kill_right_behind_the_answer(
    tmp_path: Path, judge: OpenAIServer
) -> None:
    config = settings(judge, tmp_path)
    paused, reference = "tracescore_drift_paused", "tracescore_drift_reference_ratio"

    def change(service: Running, **asked: str | float) -> None:
        page_client.ask(
            WebConfig(), f"http://{service.addresses['page']}", "/api/v1/baseline", {"service": "shop"} | asked
        )
        service.process.kill()

    with serving(tmp_path, config) as service:
        ask(service, 1)
        service.wait_value(3, SCORED, outcome="scored")
        change(service, action="pause", until="2h", why="a new prompt")
    with serving(tmp_path, config) as service:
        assert service.value(paused, service_name="shop") == 1
        change(service, action="pin", detector="completeness", at=0.7)
    with serving(tmp_path, config) as service:
        assert service.value(reference, detector="completeness", against="baseline") == 0.7


def test_a_trace_that_is_begun_by_one_process_is_completed_by_the_next(tmp_path: Path, judge: OpenAIServer) -> None:
    config = settings(judge, tmp_path).replace("idle: 200ms", "idle: 200ms, orphan_idle: 1h")
    rag = {"openinference.span.kind": "CHAIN", "input.value": GOOD.question, "output.value": GOOD.answer}
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": GOOD.contexts[0]}
    inner = otlp.span(2, 1, 1, rag, name="rag"), otlp.span(3, 2, 1, found, name="retrieve")
    with serving(tmp_path, config) as service:
        send(service, *inner)
        assert service.terminate() == 0
    with serving(tmp_path, config) as service:
        assert service.value("tracescore_assembly_waiting_spans") == 2
        send(service, otlp.span(1, 0, 1, name="POST /ask", kind=2))
        service.wait_value(3, SCORED, outcome="scored")
    with serving(tmp_path, config) as service:
        send(service, *inner, otlp.span(1, 0, 1, name="POST /ask", kind=2))  # somebody missed the answer
        send(service, otlp.span(4, 1, 1, name="late"))
        ask(service, 1)
        service.wait_value(6, SCORED, outcome="scored")
        assert service.value("tracescore_interactions_total") == 2
        assert service.value("tracescore_assembly_duplicate_spans_total") == 3


def test_scores_that_could_not_be_delivered_are_delivered_by_the_next_process(
    tmp_path: Path, judge: OpenAIServer
) -> None:
    config = settings(judge, tmp_path)
    with otlp_sink() as sink:
        sink.script("traces", times=50, status=503)
        with serving(tmp_path, config, "--otlp-out", sink.http) as service:
            ids = ask(service, 4)
            sink.wait(logs=12)
        sink.clear()
        with serving(tmp_path, config, "--otlp-out", sink.http) as service:
            received = sink.wait(spans=4, logs=12)
            assert {span["trace_id"] for span in received.spans} == set(ids)
            service.wait_value(4, "tracescore_exporters_otlp_sent_total", signal="traces")
            assert service.terminate() == 0
        sink.clear()
        with serving(tmp_path, config, "--otlp-out", sink.http) as service:
            ask(service, 1)
            received = sink.wait(spans=1, logs=3)
            assert len(received.spans) == 1, "what was acknowledged is not sent again"


def test_the_judge_epoch_goes_on_and_steps_when_the_prompts_or_parameters_changed(
    tmp_path: Path, judge: OpenAIServer
) -> None:
    config = settings(judge, tmp_path)

    def epoch(service: Running) -> tuple[str, str]:
        service.wait_value(1, "tracescore_judge_ready")
        (labels,) = [dict(labels) for name, labels in service.samples() if name == "tracescore_judge_info"]
        return labels["epoch"], labels["model"]

    with serving(tmp_path, config) as service:
        assert epoch(service) == ("0", MODEL)
        assert service.terminate() == 0
    judge.script = by("another")
    with serving(tmp_path, config) as service:
        assert epoch(service) == ("0", MODEL), "one answer by another model is not yet a change"
        ask(service, 6)
        service.wait_value(18, SCORED, outcome="scored")
        assert epoch(service) == ("1", "another")
    with serving(tmp_path, config) as service:
        assert epoch(service) == ("1", "another")
    warmer = config.replace("max_retries: 0}", "max_retries: 0, parameters: {temperature: 0.7}}")
    with serving(tmp_path, warmer) as service:
        assert epoch(service) == ("2", "another")


def test_at_its_full_size_senders_are_told_to_come_back_and_then_served(tmp_path: Path, judge: OpenAIServer) -> None:
    config = (
        settings(judge, tmp_path)
        .replace("/spool}", "/spool, max_size: 16MiB}")
        .replace("idle:", "orphan_idle: 3s, idle:")
    )
    with serving(tmp_path, config) as service:
        refusal = None
        for number in range(1, 40):
            try:
                send(service, otlp.span(2, 1, number, {"text": "x" * 1_000_000}, name="n"))
            except urllib.error.HTTPError as error:
                refusal = error
                break
        assert refusal is not None
        assert (refusal.code, refusal.headers["Retry-After"]) == (503, "2")
        refusal.close()
        assert service.value("tracescore_spool_bytes") < 24 * 2**20, "the file, and beside it a log of 256 pages"
        service.wait_value(5, "tracescore_assembly_remembered_traces")
        ask(service, 1)
        service.wait_value(3, SCORED, outcome="scored")


def test_a_judge_without_an_answer_costs_nothing_that_was_acknowledged(tmp_path: Path, judge: OpenAIServer) -> None:
    config = settings(judge, tmp_path)
    judge.script = lambda request: Reply.error(503)
    with serving(tmp_path, config) as service:
        ask(service, 3)
        service.wait_value(3, "tracescore_evaluations_pending", measure="completeness")
    judge.script = sensible
    with serving(tmp_path, config) as service:
        service.wait_value(9, SCORED, outcome="scored")
        assert service.value(SCORED, outcome="unscored") == 0


def test_what_is_read_again_is_redacted_as_before_and_counted_once(tmp_path: Path, judge: OpenAIServer) -> None:
    secret = "jane.doe@mail.example"
    config = settings(judge, tmp_path, "shutdown_grace: 500ms\nredaction: {patterns: [email]}\n")
    asked = Asked(f"Refund for {secret}?", f"Done for {secret}.", (f"Refunds of {secret} take a day.",))
    judge.script = lambda request: replace(sensible(request), delay=0.0 if request.is_probe else 60)
    with serving(tmp_path, config) as service:
        app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
        context = answer(app.get_tracer("app"), asked)
        app.shutdown()
        service.wait_value(1, "tracescore_evaluations_pending", measure="faithfulness")
        assert service.value("tracescore_redaction_replaced_total", pattern="email") == 3
    judge.script = sensible
    with serving(tmp_path, config) as service:
        service.wait_value(3, SCORED, outcome="scored")
        assert service.value("tracescore_redaction_replaced_total", pattern="email") == 0
    with serving(tmp_path, config) as service:
        page = service.get("page", f"/interactions/{context.trace_id:032x}")
    assert secret not in page
    assert "[email]" in page
    assert secret not in b"\n".join(request.raw for request in judge.requests).decode()
    with sqlite3.connect(tmp_path / "spool") as db:
        stored = db.execute("SELECT brief, full FROM results").fetchall()
    db.close()
    assert len(stored) == 1
    assert secret.encode() not in b"".join(part for row in stored for part in row)
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o600
