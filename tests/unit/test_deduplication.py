"""Each interaction is read once, however often and however completely its trace is seen."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from tests import results
from tracescore.interactions.deduplication import Deduplication
from tracescore.model import Interaction, Span, State, Trace


def span(span_id: str, parent: str = "") -> Span:
    return Span("t", span_id, parent, "s", 1, 1, 2, {}, (), {}, "", is_error=False)


def trace(*spans: Span) -> Trace:
    return Trace("t", spans)


def interaction(span_id: str, state: State = "complete") -> Interaction:
    return results.interaction(trace_id="t", span_id=span_id, state=state)


def late(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("tracescore_interactions_changed_late_total")


def test_a_trace_read_again_gives_nothing_new() -> None:
    known = Deduplication(CollectorRegistry())
    assert known.new(trace(span("a")), [interaction("a")]) == [interaction("a")]
    assert known.new(trace(span("a")), [interaction("a")]) == []


def test_a_second_interaction_of_a_long_session_is_new() -> None:
    known = Deduplication(CollectorRegistry())
    known.new(trace(span("a", "root")), [interaction("a")])
    grown = trace(span("root"), span("a", "root"), span("b", "root"))
    assert known.new(grown, [interaction("a"), interaction("b")]) == [interaction("b")]


def test_an_interaction_that_grew_upwards_to_a_late_root_is_the_same() -> None:
    known = Deduplication(CollectorRegistry())
    known.new(trace(span("llm", "chain")), [interaction("llm")])
    grown = trace(span("root"), span("chain", "root"), span("llm", "chain"))
    assert known.new(grown, [interaction("root")]) == []
    assert known.new(grown, [interaction("root")]) == []


def test_a_reading_that_changed_after_the_decision_is_counted_not_scored_again() -> None:
    registry = CollectorRegistry()
    known = Deduplication(registry)
    known.new(trace(span("a")), [interaction("a", "no_contexts")])
    assert late(registry) == 0
    assert known.new(trace(span("a")), [interaction("a")]) == []
    assert late(registry) == 1


def test_parents_in_a_circle_end_the_walk() -> None:
    known = Deduplication(CollectorRegistry())
    circle = trace(span("a", "b"), span("b", "a"))
    known.new(circle, [interaction("a")])
    assert known.new(circle, [interaction("b")]) == []
