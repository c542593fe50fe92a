"""The sample app sends what an app instrumented with OpenInference sends, to a real OTLP service over gRPC."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from itertools import pairwise
from typing import Any

import anyio
import grpc
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as services
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.spans import read
from tracescore.demo import run
from tracescore.demo.app import SampleApp, plan, retrieve
from tracescore.demo.documents import SERVICES
from tracescore.demo.questions import KINDS, QUESTIONS
from tracescore.model import RawSpan, RawTrace
from tracescore.otlp.decode import decode
from tracescore.otlp.split import split_traces

NOW = 1_800_000_000.0


class Collector(services.TraceServiceServicer):
    """Keeps every span that arrives, with the attributes of its resource."""

    def __init__(self) -> None:
        self.spans: list[tuple[dict[str, Any], Span]] = []
        self.requests: list[bytes] = []
        self.address = ""

    def Export(self, request, context):  # noqa: N802 - the name is OTLP's
        self.requests.append(request.SerializeToString())
        for resource in request.resource_spans:
            about = attributes(resource.resource)
            self.spans += [(about, span) for scope in resource.scope_spans for span in scope.spans]
        return messages.ExportTraceServiceResponse()

    def traces(self) -> dict[str, dict[str, tuple[dict[str, Any], Span]]]:
        """By trace id and name of the span."""
        found: dict[str, dict[str, tuple[dict[str, Any], Span]]] = {}
        for about, span in self.spans:
            found.setdefault(span.trace_id.hex(), {})[span.name.split()[0]] = (about, span)
        return found


def attributes(holder: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in holder.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    received = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    services.add_TraceServiceServicer_to_server(received, server)
    received.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield received
    server.stop(0).wait()


async def send(collector: Collector, count: int) -> SampleApp:
    app = SampleApp(collector.address, lambda: NOW)
    app.send(count)
    await app.close()
    return app


@pytest.mark.anyio
async def test_each_question_arrives_as_one_trace_with_its_texts_where_openinference_puts_them(collector) -> None:
    app = await send(collector, 60)
    traces = collector.traces()
    assert len(traces) == 60
    pairs = set()
    for trace_id, spans in traces.items():
        assert set(spans) == {"POST", "answer_question", "retrieve", "generate"}
        chain, retriever, model = (attributes(spans[name][1]) for name in ("answer_question", "retrieve", "generate"))
        [question] = [question for question in QUESTIONS if question.text == chain["input.value"]]
        kind = app.kind_of(trace_id)
        assert chain["output.value"] == question.answers[kind]
        assert chain["openinference.span.kind"] == "CHAIN"
        assert retriever["openinference.span.kind"] == "RETRIEVER"
        assert retriever["input.value"] == question.text
        assert retriever["retrieval.documents.0.document.id"] == question.document
        texts = {page.text for page in SERVICES[question.service].documents}
        assert {retriever[f"retrieval.documents.{n}.document.content"] for n in (0, 1)} <= texts
        assert model["openinference.span.kind"] == "LLM"
        assert model["llm.output_messages.0.message.content"] == question.answers[kind]
        assert question.text in model["llm.input_messages.1.message.content"]
        pairs.add((question.text, kind))
    assert len(pairs) == len(QUESTIONS) * len(KINDS)


@pytest.mark.anyio
async def test_every_trace_is_read_as_one_complete_interaction(collector) -> None:
    app = await send(collector, 60)
    raw: dict[bytes, list[RawSpan]] = {}
    for request in collector.requests:
        for span in split_traces(request, lambda _: True).spans:
            raw.setdefault(span.trace_id, []).append(span)
    assert len(raw) == 60
    for trace_id, spans in raw.items():
        [told] = read(decode(RawTrace(trace_id, tuple(spans), (), "complete")))
        [question] = [question for question in QUESTIONS if question.text == told.question]
        assert told.answer == question.answers[app.kind_of(trace_id.hex())]
        assert told.contexts == tuple(
            page.text for page, _ in retrieve(question.text, SERVICES[question.service].documents)
        )
        assert (told.state, told.convention, told.context_source) == ("complete", "openinference", "retrieval")
        assert told.service == SERVICES[question.service].name
        assert told.slices["route"] == SERVICES[question.service].route


@pytest.mark.anyio
async def test_spans_are_nested_and_their_times_fit_into_one_another(collector) -> None:
    await send(collector, 5)
    for spans in collector.traces().values():
        request, chain, retriever, model = (
            spans[name][1] for name in ("POST", "answer_question", "retrieve", "generate")
        )
        assert request.parent_span_id == b""
        assert request.kind == Span.SPAN_KIND_SERVER
        assert chain.parent_span_id == request.span_id
        assert retriever.parent_span_id == model.parent_span_id == chain.span_id
        assert request.start_time_unix_nano == chain.start_time_unix_nano == retriever.start_time_unix_nano
        assert retriever.end_time_unix_nano == model.start_time_unix_nano < model.end_time_unix_nano
        assert model.end_time_unix_nano == chain.end_time_unix_nano == request.end_time_unix_nano == int(NOW * 1e9)


@pytest.mark.anyio
async def test_several_services_releases_and_routes_are_seen_early(collector) -> None:
    await send(collector, 20)
    seen = {
        (about["service.name"], about["service.version"], attributes(span)["http.route"])
        for about, span in collector.spans
        if span.name.startswith("POST")
    }
    assert len({service for service, _, _ in seen}) == len({route for _, _, route in seen}) == 3
    assert len({release for service, release, _ in seen if service == "shop-help"}) == 2
    assert {about["deployment.environment.name"] for about, _ in collector.spans} == {"demo"}


@pytest.mark.anyio
async def test_what_an_answer_was_built_to_be_is_not_in_the_telemetry(collector) -> None:
    await send(collector, 20)
    shape = {(span.name, *sorted(attributes(span))) for _, span in collector.spans if span.name == "generate"}
    assert len(shape) == 1, "all kinds look alike"
    told = " ".join(str(value) for _, span in collector.spans for value in attributes(span).values())
    assert not re.search("|".join(kind for kind in KINDS if kind not in {"good", "half"}), told)


@pytest.mark.anyio
async def test_the_environment_of_the_user_changes_nothing(collector, monkeypatch) -> None:
    for name, value in {
        "http_proxy": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine",
        "OTEL_SERVICE_NAME": "mine",
    }.items():
        monkeypatch.setenv(name, value)
    before = trace.get_tracer_provider()
    await send(collector, 2)
    assert len(collector.spans) == 8
    assert "mine" not in {about["service.name"] for about, _ in collector.spans}
    assert trace.get_tracer_provider() is before


@pytest.mark.anyio
async def test_running_sends_the_first_answers_at_once_and_then_one_after_the_other(collector) -> None:
    app = SampleApp(collector.address, lambda: NOW)
    with anyio.move_on_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run, 20, 0.01)
            while len(collector.spans) < 24 * 4:  # noqa: ASYNC110 - the SDK's threads set no event of ours
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    await app.close()
    assert len(collector.traces()) >= 24


@pytest.mark.anyio
async def test_that_nothing_gets_through_is_said_once(caplog) -> None:
    with socket.socket() as silent:  # bound, but nobody listens
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        app = SampleApp(address, lambda: NOW)
        app.send(20)
        await app.close()
    said = [record.getMessage() for record in caplog.records if record.name == "tracescore.demo"]
    assert len(said) == 1
    assert said[0].startswith(f"event=not_delivered endpoint={address} ")


def test_a_trace_of_someone_else_has_no_kind() -> None:
    app = SampleApp("127.0.0.1:1", lambda: NOW)
    assert app.kind_of("0" * 32) is None


def test_every_twenty_steps_each_kind_comes_four_times_for_the_same_four_questions() -> None:
    for start in (0, 20, 40):
        steps = [plan(step) for step in range(start, start + 20)]
        assert Counter(kind for _, kind in steps) == dict.fromkeys(KINDS, 4)
        assert (
            Counter(question.text for question, _ in steps).values() == {}
            or len({question.text for question, _ in steps}) == 4
        )
        assert len({(question.text, kind) for question, kind in steps}) == 20


def test_no_two_answers_in_a_row_have_the_same_question_or_kind() -> None:
    steps = [plan(step) for step in range(121)]
    for (question, kind), (next_question, next_kind) in pairwise(steps):
        assert question is not next_question
        assert kind != next_kind


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.document)
def test_the_passage_that_answers_comes_first(question) -> None:
    found = retrieve(question.text, SERVICES[question.service].documents)
    assert found[0][0].id == question.document
    assert found[0][1] > found[1][1]


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,]\d+)*", text))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.document)
def test_answers_are_what_they_were_built_to_be_as_far_as_numbers_tell(question) -> None:
    [page] = [page for page in SERVICES[question.service].documents if page.id == question.document]
    assert set(question.answers) == set(KINDS)
    assert len(set(question.answers.values())) == len(KINDS)
    assert _numbers(question.answers["good"]) <= _numbers(page.text)
    assert _numbers(question.answers["half"]) <= _numbers(question.answers["good"])
    assert _numbers(question.answers["unfaithful"]) - _numbers(page.text)
    assert not _numbers(question.answers["refused"])


@pytest.mark.anyio
async def test_alone_it_sends_to_any_receiver_until_it_is_told_to_stop(collector) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.send, collector.address, stop)
        with anyio.fail_after(20):
            while not collector.requests:  # noqa: ASYNC110 - it is filled by a thread of the server
                await anyio.sleep(0.01)
        stop.set()
    assert len(collector.traces()) >= 20
