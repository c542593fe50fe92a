"""From an app through a real collector to a real Phoenix: the trace is there, and the scores are on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from tests.openai_server import openai_server
from tests.phoenix_server import Phoenix
from tests.running import FREE_PORTS, serving
from tests.sample_app import GOOD, HALF, answer, provider
from tests.servers import rotel, wait

MEASURES = {"answer_relevancy", "completeness", "faithfulness"}


def spans_of(phoenix: Phoenix, trace_id: str, count: int) -> dict[str, str]:
    """Names by id, as soon as there are so many."""

    def enough() -> dict[str, str] | None:
        found = {span["context"]["span_id"]: span["name"] for span in phoenix.spans(trace_id)}
        return found if len(found) >= count else None

    spans = wait(enough, f"{count} spans of {trace_id} expected", 60)
    assert spans is not None
    return spans


@pytest.mark.server
@pytest.mark.timeout(400)
def test_a_trace_that_went_through_a_collector_is_found_in_phoenix_with_its_scores(
    tmp_path: Path, phoenix: Phoenix
) -> None:
    with openai_server() as judge:
        settings = (
            f"{FREE_PORTS.rsplit('exporters', 1)[0]}"
            "exporters:\n"
            "  prometheus: {listen: '127.0.0.1:0'}\n"
            f"  forward: {{http: '{phoenix.url}'}}\n"
            f"  phoenix: {{endpoint: '{phoenix.url}', explanations: true}}\n"
            "assembly: {idle: 300ms}\n"
            f"judge: {{kind: openai, name: by-the-book, model: m, base_url: '{judge.url}', max_retries: 0}}\n"
            f"embedder: {{kind: openai, model: e, base_url: '{judge.url}'}}\n"
        )
        with (
            serving(tmp_path, settings) as service,
            rotel(f"http://{service.addresses['http']}", tmp_path) as collector,
        ):
            app = provider(OTLPSpanExporter(endpoint=collector.grpc, insecure=True))
            contexts = [answer(app.get_tracer("app"), asked) for asked in (GOOD, HALF)]
            app.shutdown()
            service.wait_value(6, "tracescore_exporters_phoenix_sent_total")
            service.wait_value(2, "tracescore_exporters_otlp_sent_total", signal="traces")
    for context in contexts:
        trace_id, span_id = f"{context.trace_id:032x}", f"{context.span_id:016x}"
        spans = spans_of(phoenix, trace_id, 4)
        assert sorted(spans.values()) == ["POST /ask", "evaluate", "rag", "retrieve"]
        assert spans[span_id] == "rag"
        annotations = phoenix.wait_annotations([span_id], 3)
        assert {row["name"] for row in annotations} == MEASURES
        for row in annotations:
            assert 0 <= row["result"]["score"] <= 1
            assert row["annotator_kind"] == "LLM"
            assert row["identifier"] == "tracescore/by-the-book"
            assert row["result"]["explanation"]
