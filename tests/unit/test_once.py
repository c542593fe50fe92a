"""Each interaction is read once, however often and however completely its trace is seen."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from tests import results
from tracescore.interactions.deduplication import Once
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
    once = Once(CollectorRegistry())
    assert once.new(trace(span("a")), [interaction("a")]) == [interaction("a")]
    assert once.new(trace(span("a")), [interaction("a")]) == []


def test_a_second_interaction_of_a_long_session_is_new() -> None:
    once = Once(CollectorRegistry())
    once.new(trace(span("a", "root")), [interaction("a")])
    grown = trace(span("root"), span("a", "root"), span("b", "root"))
    assert once.new(grown, [interaction("a"), interaction("b")]) == [interaction("b")]


def test_an_interaction_that_grew_upwards_to_a_late_root_is_the_same() -> None:
    once = Once(CollectorRegistry())
    once.new(trace(span("llm", "chain")), [interaction("llm")])
    grown = trace(span("root"), span("chain", "root"), span("llm", "chain"))
    assert once.new(grown, [interaction("root")]) == []
    assert once.new(grown, [interaction("root")]) == []


def test_a_reading_that_changed_after_the_decision_is_counted_not_scored_again() -> None:
    registry = CollectorRegistry()
    once = Once(registry)
    once.new(trace(span("a")), [interaction("a", "no_contexts")])
    assert late(registry) == 0
    assert once.new(trace(span("a")), [interaction("a")]) == []
    assert late(registry) == 1


def test_parents_in_a_circle_end_the_walk() -> None:
    once = Once(CollectorRegistry())
    circle = trace(span("a", "b"), span("b", "a"))
    once.new(circle, [interaction("a")])
    assert once.new(circle, [interaction("b")]) == []
