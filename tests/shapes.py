"""Traces of any size in the shapes that real ones take, for what must not cost more per span when a trace is long."""

from __future__ import annotations

from collections.abc import Callable

from tests.spans import Made, chain, chat, retrieval, span, trace
from tracescore.model import Trace

PASSAGE = "A Fernway bike may be kept for 45 minutes before a late fee is charged."
_DEPTH = 100


def rag(question: str, answer: str, **settings) -> Made:
    """A flow of three spans: itself, a retrieval, and a model call with the passage in its prompt."""
    asked = chat(f"Context:\n{PASSAGE}\n\nQuestion: {question}", answer)
    return chain(question, answer, retrieval(question, PASSAGE), asked, **settings)


def _flows_side_by_side(spans: int) -> Trace:
    return trace(span("session", {}, *(rag(f"q{n}", f"a{n}") for n in range(spans // 3))))


def _one_flow_of_calls(spans: int) -> Trace:
    return trace(chain("q", "a", *(chat(f"q{n}", f"a{n}") for n in range(spans - 1))))


def _calls_without_a_flow(spans: int) -> Trace:
    return trace(span("session", {}, *(chat(f"q{n}", f"a{n}") for n in range(spans - 1))))


def _pairs_without_a_flow(spans: int) -> Trace:
    parts = (part for n in range(spans // 2) for part in (retrieval(f"q{n}", PASSAGE), chat(f"q{n}", f"a{n}")))
    return trace(span("session", {}, *parts))


def _nested(spans: int) -> Trace:
    depth = min(_DEPTH, spans)
    made = chat("q", "a")
    for _ in range(depth - 1):
        made = chain("q", "a", made)
    return trace(span("root", {}, *[made] * max(1, spans // depth)))


def _ordinary_around_one_flow(spans: int) -> Trace:
    noise = (span(f"SELECT {n}", {"db.system": "postgresql", "db.statement": "SELECT 1"}) for n in range(spans - 4))
    return trace(span("POST /ask", {"http.route": "/ask"}, *noise, rag("q", "a"), kind=2))


def _lone_calls(spans: int) -> Trace:
    return trace(*(chat(f"q{n}", f"a{n}", parent_span_id=f"gone{n}") for n in range(spans)))


SHAPES: dict[str, Callable[[int], Trace]] = {
    "flows side by side": _flows_side_by_side,
    "one flow of calls": _one_flow_of_calls,
    "calls without a flow": _calls_without_a_flow,
    "pairs without a flow": _pairs_without_a_flow,
    "nested": _nested,
    "calls whose parents never came": _lone_calls,
    "one flow among ordinary spans": _ordinary_around_one_flow,
}
"""Each makes a trace of about as many spans as it is told."""
