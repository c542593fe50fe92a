"""Scores as OpenTelemetry, read by a destination in a process of its own, over both protocols."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from prometheus_client import CollectorRegistry

from tests.freeing import TEXT, is_freed_at_once
from tests.otlp_sink import Sink
from tests.results import NOW, relevancy, result
from tests.servers import free_port
from tests.timing import Hours
from tracescore.config import OtlpExporterConfig
from tracescore.errors import UsageError
from tracescore.exporters.delivery import Answer
from tracescore.exporters.otlp import exporter
from tracescore.exporters.otlp.exporter import DEFAULT_LIMITS, Limits, OtlpExporter
from tracescore.exporters.posting import Poster
from tracescore.model import Item, Score, Unscored
from tracescore.net.retry import REAL_TIME, Timing

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("protocol", ["http", "grpc"])
COUNTERS = {
    "sent": "tracescore_exporters_otlp_sent_total",
    "dropped": "tracescore_exporters_otlp_dropped_total",
    "failed": "tracescore_exporters_otlp_failed_requests_total",
}


class Exporting:
    """An exporter and its counters."""

    def __init__(self, exporter: OtlpExporter, registry: CollectorRegistry) -> None:
        self.exporter, self.registry = exporter, registry

    def count(self, what: str, **labels: str) -> float:
        value = self.registry.get_sample_value(COUNTERS[what], labels)
        assert value is not None
        return value

    def lost(self, signal: str) -> dict[str, float]:
        reasons = exporter.DROPPED
        counts = {reason: self.count("dropped", signal=signal, reason=reason) for reason in reasons}
        return {reason: count for reason, count in counts.items() if count}


def at_once(call: Coroutine[Any, Any, None]) -> None:
    """Runs a call that must not wait for anything."""
    with pytest.raises(StopIteration):
        call.send(None)


@asynccontextmanager
async def exporting(
    endpoint: str, protocol: str, limits: Limits = DEFAULT_LIMITS, timing: Timing = REAL_TIME, **settings: Any
) -> AsyncIterator[Exporting]:
    registry = CollectorRegistry()
    chosen = OtlpExporterConfig(endpoint=endpoint, protocol=protocol, **settings)
    exporter = OtlpExporter(chosen, registry, limits, timing)
    try:
        yield Exporting(exporter, registry)
    finally:
        await exporter.close()


@BOTH
async def test_the_span_hangs_in_the_evaluated_trace_without_stretching_it(sink: Sink, protocol: str) -> None:
    scored = result(
        Score("answer_relevancy", 0.25, label="noncommittal"),
        Unscored("completeness", "judge_timeout"),
        Unscored("faithfulness", "no_contexts"),
        number=7,
    )
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(scored)
        (span,) = (await sink.awaited(spans=1)).spans
    evaluated = scored.interaction
    assert span["trace_id"] == evaluated.trace_id
    assert span["parent_span_id"] == evaluated.span_id
    assert span["links"] == [{"trace_id": evaluated.trace_id, "span_id": evaluated.span_id}]
    assert span["start"] == span["end"] == evaluated.end_unix_nano
    assert len(span["span_id"]) == 16
    assert span["span_id"] != evaluated.span_id
    assert (span["name"], span["scope"], span["resource"]["service.name"]) == ("evaluate", "tracescore", "tracescore")
    assert span["attributes"] == {
        "openinference.span.kind": "EVALUATOR",
        "tracescore.judge": "embedded-v2",
        "tracescore.epoch": 0,
        "tracescore.answer_relevancy": 0.25,
        "tracescore.answer_relevancy.label": "noncommittal",
        "tracescore.completeness.error": "judge_timeout",
    }


@BOTH
async def test_each_score_and_each_failure_is_an_event_with_the_ids_of_the_evaluated_span(
    sink: Sink, protocol: str
) -> None:
    scored = result(
        Score("answer_relevancy", 0.25, label="noncommittal"),
        Unscored("completeness", "judge_timeout"),
        Unscored("faithfulness", "no_contexts"),
        number=7,
    )
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(scored)
        relevancy_event, completeness_event = (await sink.awaited(logs=2)).logs
    for event, measure in ((relevancy_event, "answer_relevancy"), (completeness_event, "completeness")):
        assert (event["trace_id"], event["span_id"]) == (scored.interaction.trace_id, scored.interaction.span_id)
        assert event["event_name"] == event["attributes"]["event.name"] == "gen_ai.evaluation.result"
        assert event["attributes"]["gen_ai.evaluation.name"] == measure
        assert event["attributes"]["tracescore.score_id"] == scored.score_id(measure)
        assert event["time"] == int(NOW * 1e9)
        assert event["scope"] == event["resource"]["service.name"] == "tracescore"
    assert relevancy_event["severity"] == "INFO"
    assert relevancy_event["attributes"]["gen_ai.evaluation.score.value"] == 0.25
    assert relevancy_event["attributes"]["gen_ai.evaluation.score.label"] == "noncommittal"
    assert "error.type" not in relevancy_event["attributes"]
    assert completeness_event["severity"] == "WARN"
    assert completeness_event["attributes"]["error.type"] == "judge_timeout"
    assert "gen_ai.evaluation.score.value" not in completeness_event["attributes"]


@BOTH
async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    sink: Sink, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(result(relevancy(0.25), number=7))
        assert (await sink.awaited(spans=1)).spans


@BOTH
async def test_a_result_delivered_again_carries_the_same_ids(sink: Sink, protocol: str) -> None:
    scored = result(relevancy(0.5), Score("completeness", 1.0))
    for _ in range(2):  # the second time by another process, as it were
        async with exporting(sink.endpoint(protocol), protocol) as export:
            await export.exporter.export(scored)
    received = await sink.awaited(spans=2, logs=4)
    assert received.spans[0] == received.spans[1]
    assert received.logs[:2] == received.logs[2:]


async def test_another_interaction_measure_or_epoch_is_another_span(sink: Sink) -> None:
    async with exporting(sink.http, "http") as export:
        await export.exporter.export(result(relevancy(0.5), number=1))
        await export.exporter.export(result(relevancy(0.5), number=2))
        await export.exporter.export(result(Score("completeness", 0.5), number=1))
        received = await sink.awaited(spans=3)
    assert len({span["span_id"] for span in received.spans}) == 3


async def test_a_result_in_which_nothing_was_tried_sends_nothing(sink: Sink) -> None:
    async with exporting(sink.http, "http") as export:
        await export.exporter.export(result(Unscored("faithfulness", "no_contexts")))
        await export.exporter.export(result(Unscored("faithfulness", "queue_full")))
    assert sink.received().requests == []


@pytest.mark.parametrize("explanations", [False, True])
async def test_texts_of_users_go_along_only_when_asked_for(sink: Sink, explanations: bool) -> None:
    claim = Item("claim", "Returns take 30 days.", "supported", "within 30 days of purchase", 1.0)
    question = Item("question", "How long?", credit=0.7)
    async with exporting(sink.http, "http", explanations=explanations) as export:
        await export.exporter.export(result(Score("faithfulness", 1.0, items=(claim, question))))
        received = await sink.awaited(spans=1, logs=1)
    shown = received.logs[0]["attributes"].get("gen_ai.evaluation.explanation")
    expected = 'supported: Returns take 30 days. - "within 30 days of purchase"\nquestion: How long?'
    assert shown == (expected if explanations else None)
    assert explanations or "30 days" not in str(received)


@BOTH
async def test_a_destination_that_is_busy_gets_the_same_request_again(sink: Sink, protocol: str) -> None:
    sink.script("traces", times=2, status=503, retry_after=0)
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(result(relevancy(0.5)))
        received = await sink.awaited(spans=1, logs=1)
    assert [r["status"] for r in received.requests if r["signal"] == "traces"] == [503, 503, 200]
    assert export.count("failed", signal="traces") == 2
    assert export.count("sent", signal="traces") == 1
    assert export.lost("traces") == {}


@BOTH
async def test_a_refusal_is_final_and_concerns_its_signal_alone(sink: Sink, protocol: str) -> None:
    sink.script("logs", times=1, status=404)
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(result(relevancy(0.5), Score("completeness", 0.5)))
        await sink.awaited(spans=1, requests=2)
    assert (export.count("sent", signal="traces"), export.count("sent", signal="logs")) == (1, 0)
    assert export.lost("logs") == {"refused": 2}


@BOTH
async def test_of_a_partial_success_only_what_was_taken_counts_as_sent(sink: Sink, protocol: str) -> None:
    sink.script("logs", times=1, status=200, rejected=1)
    async with exporting(sink.endpoint(protocol), protocol) as export:
        await export.exporter.export(result(relevancy(0.5), Score("completeness", 0.5), Score("faithfulness", 0.5)))
        await sink.awaited(logs=3)
    assert export.count("sent", signal="logs") == 2
    assert export.lost("logs") == {"rejected": 1}


async def test_an_exhausted_destination_is_asked_again_only_if_it_says_when(sink: Sink) -> None:
    async with exporting(sink.grpc, "grpc") as export:
        sink.script("traces", times=1, status=429)
        await export.exporter.export(result(relevancy(0.5)))
        await sink.awaited(logs=1, requests=2)
    assert export.lost("traces") == {"refused": 1}
    sink.clear()
    async with exporting(sink.grpc, "grpc") as export:
        sink.script("traces", times=1, status=429, retry_after=0)
        await export.exporter.export(result(relevancy(0.5)))
        await sink.awaited(spans=1)
    assert export.lost("traces") == {}


async def test_what_waits_is_sent_in_batches(sink: Sink) -> None:
    async with exporting(sink.http, "http") as export:
        for number in range(300):
            await export.exporter.export(result(relevancy(0.5), number=number + 1))
        received = await sink.awaited(spans=300, logs=300)
    assert len(received.requests) == 4


@BOTH
async def test_nothing_is_counted_as_sent_before_it_is_acknowledged(sink: Sink, protocol: str) -> None:
    sink.script("traces", times=1, status=503, retry_after=30)
    async with exporting(sink.endpoint(protocol), protocol, timeout="100ms") as export:
        await export.exporter.export(result(relevancy(0.5)))
        await sink.awaited(logs=1, requests=2)
        assert export.count("sent", signal="traces") == 0
        with anyio.move_on_after(0.2) as impatience:
            await export.exporter.close()
        assert impatience.cancelled_caught
    assert export.lost("traces") == {"shutdown": 1}
    assert export.count("sent", signal="logs") == 1


@BOTH
async def test_a_dead_destination_costs_the_flow_nothing_and_every_record_is_counted(protocol: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with exporting(endpoint, protocol, Limits(waiting=5, flush=0.05)) as export:
        for number in range(50):
            at_once(export.exporter.export(result(relevancy(0.5), number=number + 1)))
            await anyio.lowlevel.checkpoint()
    lost = export.lost("traces")
    assert lost["queue_full"] >= 40
    assert sum(lost.values()) == 50
    assert sum(export.lost("logs").values()) == 50


async def test_the_pauses_double_and_a_batch_is_given_up_in_the_end(sink: Sink) -> None:
    sink.script("traces", times=20, status=503)
    hours = Hours()
    async with exporting(sink.http, "http", Limits(give_up=120), hours.timing) as export:
        await export.exporter.export(result(relevancy(0.5)))
    assert export.lost("traces") == {"retries_exhausted": 1}
    assert 90 < sum(hours.asked) <= 120
    for asked, longest in zip(hours.asked[:8], (0.5, 1, 2, 4, 8, 16, 30, 30), strict=False):
        assert longest / 2 <= asked <= longest


@BOTH
async def test_the_destination_says_when_to_come_back(sink: Sink, protocol: str) -> None:
    sink.script("traces", times=1, status=503, retry_after=30)
    hours = Hours()
    async with exporting(sink.endpoint(protocol), protocol, timing=hours.timing) as export:
        await export.exporter.export(result(relevancy(0.5)))
        await sink.awaited(spans=1)
    assert hours.asked == [30.0]


@pytest.mark.parametrize("path", ["", "/", "/v1/traces", "/v1/logs", "/otlp", "/otlp/v1/traces/"])
async def test_an_http_endpoint_may_be_a_base_url_or_that_of_a_signal(sink: Sink, path: str) -> None:
    async with exporting(sink.http + path, "http") as export:
        await export.exporter.export(result(relevancy(0.5)))
        await sink.awaited(spans=1, logs=1)


@BOTH
async def test_headers_go_along_and_a_missing_secret_is_said_at_once(
    sink: Sink, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"X-Tenant": {"env": "TENANT_OF_THE_TEST"}}
    with pytest.raises(UsageError, match=r"exporters\.otlp\.headers\.X-Tenant: .*TENANT_OF_THE_TEST"):
        async with exporting(sink.endpoint(protocol), protocol, headers=headers):
            pass
    monkeypatch.setenv("TENANT_OF_THE_TEST", "acme")
    async with exporting(sink.endpoint(protocol), protocol, headers=headers) as export:
        await export.exporter.export(result(relevancy(0.5)))
        received = await sink.awaited(requests=2)
    assert {r["headers"]["x-tenant"] for r in received.requests} == {"acme"}


async def test_closing_flushes_and_may_be_done_twice(sink: Sink) -> None:
    async with exporting(sink.http, "http") as export:
        await export.exporter.export(result(relevancy(0.5)))
        await export.exporter.close()
        assert len(sink.received().spans) == 1
        await export.exporter.close()


async def test_ids_that_are_not_hex_are_refused_before_anything_is_queued(sink: Sink) -> None:
    async with exporting(sink.http, "http") as export:
        with pytest.raises(ValueError, match="non-hexadecimal"):
            await export.exporter.export(result(relevancy(0.5), trace_id="not hex"))
    assert sink.received().requests == []


async def test_a_body_that_reached_nobody_is_freed_at_once() -> None:
    poster, url = Poster({}, 5.0), f"http://127.0.0.1:{free_port()}"

    async def call() -> None:
        assert await poster.post(url, TEXT.encode()) == Answer("again", "ClientConnectorError")

    assert await is_freed_at_once(call)
    await poster.close()
