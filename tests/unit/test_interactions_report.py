"""The line that says what came and what of it can be scored, and whether keys of the user's own were found."""

from __future__ import annotations

import logging

import pytest
from prometheus_client import CollectorRegistry

from tests import results
from tests.results import SettableClock
from tracescore.config import InteractionsConfig
from tracescore.interactions import Reading, content_switch, switches
from tracescore.interactions.report import Report
from tracescore.model import Found, Interaction, State


def interaction(state: State = "complete", key: str = "input.value") -> Interaction:
    found = {"question": Found("rag", key)}
    return results.interaction(state=state, convention="otel-genai", found=found)


def report(clock: SettableClock, **keys: tuple[str, ...]) -> tuple[Report, CollectorRegistry]:
    registry = CollectorRegistry()
    return Report(InteractionsConfig(**keys), registry, clock, content_switch), registry


def test_the_line_comes_with_the_first_trace_and_then_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tracescore.interactions")
    clock = SettableClock()
    told, _ = report(clock)
    told.tick()
    assert not caplog.messages
    told.trace(Reading((), 3, {}), [interaction(), interaction("no_contexts")])
    told.tick()
    assert caplog.messages == ["genai_spans=3 interactions=2 complete=1 no_contexts=1"]
    told.trace(Reading((), 1, {}), [interaction()])
    told.tick()
    assert len(caplog.messages) == 1
    clock.now += 60
    told.tick()
    assert caplog.messages[1:] == ["genai_spans=1 interactions=1 complete=1"]


def test_content_that_is_not_recorded_is_a_warning_that_names_the_switch(caplog: pytest.LogCaptureFixture) -> None:
    told, _ = report(SettableClock())
    told.trace(Reading((), 2, {}), [interaction("content_not_captured")])
    told.tick()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in record.message


def test_the_switch_named_is_that_of_the_instrumentation_before_that_of_the_convention(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told, _ = report(SettableClock())
    silent = results.interaction(
        state="content_not_captured",
        convention="otel-genai",
        instrumentation="opentelemetry.instrumentation.ollama 0.62.4",
    )
    told.trace(Reading((), 2, {}), [silent])
    told.tick()
    advice = (
        "opentelemetry.instrumentation.ollama 0.62.4 records no content; turn it on with TRACELOOP_TRACE_CONTENT=true"
    )
    assert f'advice="{advice}"' in caplog.text


@pytest.mark.parametrize(
    ("instrumentation", "settings"),
    [
        ("gcp.vertex.agent 2.13.0", "SPAN_ONLY"),
        ("gcp.vertex.agent 1.18.0", "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"),
        ("opentelemetry.instrumentation.google_genai 0.4b0", "a log exporter, both"),
        ("opentelemetry.instrumentation.openai_v2", "a log exporter, both"),
        ("opentelemetry.instrumentation.genai.openai 1.3b0", "SPAN_ONLY"),
        ("opentelemetry.instrumentation.openai 0.62.4", "TRACELOOP_TRACE_CONTENT=true"),
        ("of.nobody 1.0", ""),
        ("", ""),
    ],
)
def test_the_first_row_of_the_scope_and_its_version_names_the_settings(instrumentation: str, settings: str) -> None:
    found = switches.of(instrumentation)
    assert settings in found
    assert bool(found) == bool(settings)


def test_a_misspelt_key_of_the_users_own_shows_as_never_found() -> None:
    told, registry = report(SettableClock(), question=("my.question",), answer=("my.answre",))
    told.trace(Reading((), 1, {}), [interaction(key="my.question"), interaction()])

    def count(field: str, found: str) -> float | None:
        return registry.get_sample_value("tracescore_interactions_own_keys_total", {"field": field, "found": found})

    assert (count("question", "yes"), count("question", "no")) == (1, 1)
    assert (count("answer", "yes"), count("answer", "no")) == (0, 2)
    assert count("contexts", "no") is None
