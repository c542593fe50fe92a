"""A small RAG app: retrieves real passages, gives canned answers, and reports by the OpenTelemetry SDK over gRPC.

Nothing here knows tracescore; it is instrumented as any app is that follows OpenInference. Spans are given their
times afterwards, as if retrieving and generating had taken a moment, so that no one has to wait for them.
"""

import logging
import math
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import anyio
import anyio.to_thread
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from tracescore.demo.documents import SERVICES, DemoService, Document
from tracescore.demo.questions import KINDS, QUESTIONS, AnswerKind, DemoQuestion
from tracescore.model import Clock

_log = logging.getLogger("tracescore.demo")

PASSAGES = 2
"""Passages retrieved for a question."""
REMEMBERED = 10_000
"""Answers of which it is remembered what they were built to be."""
BLOCK = 4
"""Questions asked in turn until each has had an answer of each kind: 4 and 5 share no divisor, so every pair comes."""
INSTRUCTIONS = "Answer the question from the passages. Say so when they do not hold the answer."


def plan(step: int) -> tuple[DemoQuestion, AnswerKind]:
    """What is asked in step 0, 1, 2, ... and how it is answered: every 20 steps each kind comes 4 times."""
    first = step // (BLOCK * len(KINDS)) * BLOCK
    return QUESTIONS[(first + step % BLOCK) % len(QUESTIONS)], KINDS[step % len(KINDS)]


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z0-9]+", text.lower()))


def ranked(question: str, documents: Sequence[Document]) -> list[tuple[Document, float]]:
    """All passages by what they share with the question, rare words counting more, the best first."""
    pages = [_words(document.text) for document in documents]
    asked = _words(question)
    rarity = {word: math.log(1 + len(pages) / (1 + sum(word in page for page in pages))) for word in asked}
    scores = [sum(rarity[word] for word in asked if word in page) for page in pages]
    return sorted(zip(documents, scores, strict=True), key=lambda pair: -pair[1])


def retrieve(question: str, documents: Sequence[Document]) -> list[tuple[Document, float]]:
    """The passages that an answer is made of."""
    return ranked(question, documents)[:PASSAGES]


@dataclass(frozen=True, slots=True)
class _Moments:
    """When each step of an answer began and ended, in Unix nanoseconds."""

    start: int
    retrieved: int
    end: int

    @classmethod
    def ending(cls, now: float, answer: str) -> Self:
        """The times of an answer that ends now: 40 ms to retrieve, then the writing, word by word."""
        end = int(now * 1e9)
        retrieved = end - int((0.3 + 0.02 * len(answer.split())) * 1e9)
        return cls(retrieved - 40_000_000, retrieved, end)


class SampleApp:
    """Asks itself the next question of the plan and answers it, as one of several services and releases.

    `endpoint` is HOST:PORT of an OTLP receiver on gRPC.
    """

    def __init__(self, endpoint: str, clock: Clock) -> None:
        delivery = Delivery(endpoint)
        self._clock = clock
        self._step = 0
        self._built: OrderedDict[str, AnswerKind] = OrderedDict()
        self._providers = {
            (service.name, release): provider_of(service, release, delivery)
            for service in SERVICES.values()
            for release in service.releases
        }

    def kind_of(self, trace_id: str) -> AnswerKind | None:
        """What the answer of this trace was built to be; None for traces that are not ours."""
        return self._built.get(trace_id)

    def send(self, count: int) -> None:
        """Answers `count` more questions. Returns at once: the spans leave from the SDK's own threads."""
        for _ in range(count):
            question, kind = plan(self._step)
            service = SERVICES[question.service]
            release = service.releases[self._step // BLOCK % len(service.releases)]
            tracer = self._providers[service.name, release].get_tracer("sample-rag-app", release)
            found = retrieve(question.text, service.documents)
            answer = question.answers[kind]
            self._remember(report_answer(tracer, service.route, question.text, found, answer, self._clock()), kind)
            self._step += 1

    async def run(self, at_once: int = 20, pause: float = 2.0, *, total: int | None = None) -> None:
        """Answers `at_once` questions and then one every `pause` seconds, `total` in all or until cancelled."""
        self.send(at_once if total is None else min(at_once, total))
        while total is None or self._step < total:
            await anyio.sleep(pause)
            self.send(1)

    async def close(self) -> None:
        """Sends what has not left yet and ends the SDK's threads."""
        for provider in self._providers.values():
            await anyio.to_thread.run_sync(provider.shutdown)

    def _remember(self, trace_id: str, kind: AnswerKind) -> None:
        self._built[trace_id] = kind
        if len(self._built) > REMEMBERED:
            self._built.popitem(last=False)


class Delivery:
    """Whether spans get to `endpoint`; says once that they do not, and once that they do again."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._well = True
        self._lock = threading.Lock()

    def note(self, well: bool) -> None:
        """One batch got there, or did not."""
        with self._lock:
            if well == self._well:
                return
            self._well = well
        if well:
            _log.warning("event=delivered_again endpoint=%s", self.endpoint)
        else:
            advice = "does an OTLP receiver for gRPC listen there? The sample app goes on trying"
            _log.warning('event=not_delivered endpoint=%s advice="%s"', self.endpoint, advice)


class _Exporter(OTLPSpanExporter):
    """The SDK's, on a plain connection, which tells `delivery` how each batch went."""

    def __init__(self, delivery: Delivery) -> None:
        # A proxy that the environment names cannot reach this machine's loopback.
        direct = (("grpc.enable_http_proxy", 0),)
        super().__init__(endpoint=delivery.endpoint, insecure=True, timeout=5, channel_options=direct)  # type: ignore[arg-type]
        self._delivery = delivery

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self._delivery.note(result is SpanExportResult.SUCCESS)
        return result


def provider_of(service: DemoService, release: str, delivery: Delivery) -> TracerProvider:
    """The SDK of a service's release, which sends its spans in batches; to be shut down."""
    # Resource() rather than Resource.create(), and a sampler of our own: the environment must not change the demo.
    resource = Resource(
        {"service.name": service.name, "service.version": release, "deployment.environment.name": "demo"}
    )
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_Exporter(delivery), schedule_delay_millis=200))
    return provider


def report_answer(
    tracer: Tracer,
    route: str,
    question: str,
    found: Sequence[tuple[Document, float]],
    answer: str,
    now: float,
) -> str:
    """Reports a question as answered `now` (Unix seconds) from the passages `found`; returns the trace id."""
    moments = _Moments.ending(now, answer)
    request = tracer.start_span(f"POST {route}", Context(), SpanKind.SERVER, _http(route), start_time=moments.start)
    chain = _child(tracer, request, "answer_question", moments.start, _texts("CHAIN", question, answer))
    retriever = _child(tracer, chain, "retrieve", moments.start, _passages(question, found))
    retriever.end(moments.retrieved)
    model = _child(tracer, chain, "generate", moments.retrieved, _generation(question, found, answer))
    for span in (model, chain, request):
        span.set_status(StatusCode.OK)
        span.end(moments.end)
    return f"{request.get_span_context().trace_id:032x}"


def _child(tracer: Tracer, parent: Span, name: str, start: int, attributes: Mapping[str, AttributeValue]) -> Span:
    return tracer.start_span(name, set_span_in_context(parent, Context()), attributes=attributes, start_time=start)


def _http(route: str) -> dict[str, AttributeValue]:
    return {"http.request.method": "POST", "http.route": route, "url.path": route, "http.response.status_code": 200}


def _texts(kind: str, given: str, got: str) -> dict[str, AttributeValue]:
    return {
        "openinference.span.kind": kind,
        "input.value": given,
        "input.mime_type": "text/plain",
        "output.value": got,
        "output.mime_type": "text/plain",
    }


def _passages(question: str, found: Sequence[tuple[Document, float]]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for place, (document, score) in enumerate(found):
        prefix = f"retrieval.documents.{place}.document"
        attributes |= {f"{prefix}.id": document.id, f"{prefix}.content": document.text, f"{prefix}.score": score}
    return attributes


def _generation(question: str, found: Sequence[tuple[Document, float]], answer: str) -> dict[str, AttributeValue]:
    passages = "\n\n".join(document.text for document, _ in found)
    prompt = f"Passages:\n{passages}\n\nQuestion: {question}"
    return _texts("LLM", prompt, answer) | {
        "llm.model_name": "canned-answers",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": INSTRUCTIONS,
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
        "llm.token_count.prompt": _words(INSTRUCTIONS + prompt).total(),
        "llm.token_count.completion": _words(answer).total(),
    }
