"""A RAG app as its users write it: the real OpenTelemetry SDK, OpenInference attributes, any OTLP exporter."""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True)
class Asked:
    """One question, what was retrieved, and what was answered."""

    question: str
    answer: str
    contexts: tuple[str, ...]


PASSWORD = "To reset your password, open the sign-in page, choose Forgot password and follow the link in the e-mail."
GOOD = Asked(
    "How do I reset my password?", "Choose Forgot password on the sign-in page and follow the link.", (PASSWORD,)
)
OFF_TOPIC = Asked(
    "How do I reset my password?",
    "Our security team enforces a 90-day password rotation policy and requires 12-character minimums.",
    (PASSWORD,),
)
HALF = Asked(
    "What is the return window, and does it cover opened items?",
    "You can return items within 30 days of purchase.",
    ("Items can be returned within 30 days of purchase. Opened items are accepted if complete.",),
)


def provider(exporter: SpanExporter, **resource: str) -> TracerProvider:
    """A tracer provider of its own, so that tests do not share the global one."""
    attributes = {"service.name": "shop", "service.version": "1.4", "deployment.environment.name": "test", **resource}
    made = TracerProvider(resource=Resource(attributes))
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def answer(tracer: trace.Tracer, asked: Asked) -> trace.SpanContext:
    """Answers inside a SERVER span that carries no GenAI key; returns the context of the RAG root below it."""
    with tracer.start_as_current_span("POST /ask", kind=trace.SpanKind.SERVER, attributes={"http.route": "/ask"}):
        root = {"openinference.span.kind": "CHAIN", "input.value": asked.question, "output.value": asked.answer}
        with tracer.start_as_current_span("rag", attributes=root) as span:
            found = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(asked.contexts)}
            retriever = {"openinference.span.kind": "RETRIEVER", "input.value": asked.question, **found}
            with tracer.start_as_current_span("retrieve", attributes=retriever):
                pass
            return span.get_span_context()


def answer_silently(tracer: trace.Tracer) -> None:
    """The same from an instrumentation that is told to record no content."""
    chain = {"openinference.span.kind": "CHAIN"}
    with (
        tracer.start_as_current_span("POST /ask", kind=trace.SpanKind.SERVER, attributes={"http.route": "/ask"}),
        tracer.start_as_current_span("rag", attributes=chain),
    ):
        for name, kind in (("retrieve", "RETRIEVER"), ("generate", "LLM")):
            with tracer.start_as_current_span(name, attributes={"openinference.span.kind": kind}):
                pass


def recorded(asked: Sequence[Asked]) -> list[ReadableSpan]:
    """The finished spans of some answers, to be sent by hand."""
    memory = InMemorySpanExporter()
    with_memory = provider(memory)
    for each in asked:
        answer(with_memory.get_tracer("app"), each)
    with_memory.shutdown()
    return list(memory.get_finished_spans())


class JsonSpanExporter(SpanExporter):
    """OTLP/HTTP with a JSON body, which the Python SDK does not bring."""

    def __init__(self, endpoint: str) -> None:
        self._url = f"{endpoint}/v1/traces"

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        request = MessageToDict(encode_spans(spans))
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    _hex_ids(span)
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self._url, orjson.dumps(request), headers), timeout=10):
            return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is held back."""


def _hex_ids(span: dict[str, str]) -> None:
    """protobuf's JSON writes bytes as base64; OTLP/JSON wants hex."""
    from base64 import b64decode

    for key in ("traceId", "spanId", "parentSpanId"):
        with suppress(KeyError):
            span[key] = b64decode(span[key]).hex()
