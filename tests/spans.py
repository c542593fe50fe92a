"""Small traces by hand: `span(...)` with its children inside, `trace(...)` around them, ids and times in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracescore import interactions
from tracescore.config import InteractionsConfig
from tracescore.model import Interaction, LogRecord, Span, SpanEvent, Trace

INTERNAL, SERVER, CLIENT = 1, 2, 3


@dataclass
class Made:
    """A span to be, with the spans below it and its log records."""

    name: str
    attributes: dict[str, Any]
    children: tuple[Made, ...] = ()
    events: tuple[SpanEvent, ...] = ()
    logs: tuple[tuple[str, Any, Mapping[str, Any]], ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


def span(name: str, attributes: dict[str, Any], *children: Made, events=(), logs=(), **settings: Any) -> Made:
    """`settings`: kind, scope_name, is_error, resource, dropped_attributes, parent_span_id."""
    return Made(name, attributes, children, tuple(events), tuple(logs), settings)


def event(name: str, **attributes: Any) -> SpanEvent:
    return SpanEvent(name, 1, {key.replace("__", "."): value for key, value in attributes.items()})


def trace(*roots: Made, trace_id: str = "trace") -> Trace:
    """Spans are numbered s1, s2, ... parents first; each starts after the one before and ends after its children."""
    spans: list[Span] = []
    logs: list[LogRecord] = []
    clock = itertools.count(1)
    numbers = itertools.count(1)

    def build(made: Made, parent: str) -> None:
        span_id, start = f"s{next(numbers)}", next(clock)
        for name, body, attributes in made.logs:
            logs.append(LogRecord(trace_id, span_id, name, next(clock), body, attributes, {}, "scope"))
        at = len(spans)
        for child in made.children:
            build(child, span_id)
        settings = {"kind": INTERNAL, "scope_name": "app", "is_error": False, "resource": {}, **made.settings}
        spans.insert(
            at,
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_span_id=settings.pop("parent_span_id", parent),
                name=made.name,
                start_unix_nano=start,
                end_unix_nano=next(clock),
                attributes=made.attributes,
                events=made.events,
                **settings,
            ),
        )

    for root in roots:
        build(root, "")
    return Trace(trace_id, tuple(spans), tuple(logs))


def read(made: Trace, **settings: Any) -> list[Interaction]:
    """The interactions of a trace; `settings`: question, answer, contexts, tenant."""
    return list(interactions.read(made, InteractionsConfig(**settings)).interactions)


def genai_spans(made: Trace) -> int:
    return interactions.read(made, InteractionsConfig()).genai_spans


def messages(*turns: tuple[str, str]) -> str:
    """GenAI messages as JSON: (role, text) each."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in turns])


def chat(sent: str, reply: str | None, **settings: Any) -> Made:
    """A model call of OpenTelemetry's convention; `sent` is the user's message, or messages as JSON."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": sent if sent.startswith("[{") else messages(("user", sent)),
    }
    if reply is not None:
        attributes["gen_ai.output.messages"] = messages(("assistant", reply))
    return span("chat m", attributes, kind=CLIENT, **settings)


def retrieval(query: str, *texts: str, **settings: Any) -> Made:
    """A retrieval of OpenTelemetry's convention."""
    documents = json.dumps([{"id": str(number), "content": text} for number, text in enumerate(texts)])
    attributes = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": query,
        "gen_ai.retrieval.documents": documents,
    }
    return span("retrieval kb", attributes, kind=CLIENT, **settings)


def chain(question: Any, answer: Any, *children: Made, kind: str = "CHAIN", name: str = "rag", **settings: Any) -> Made:
    """A step of OpenInference; other values than texts are recorded as JSON."""
    attributes = {"openinference.span.kind": kind}
    for key, value in (("input.value", question), ("output.value", answer)):
        if value is not None:
            attributes[key] = value if isinstance(value, str) else json.dumps(value)
    return span(name, attributes, *children, **settings)
