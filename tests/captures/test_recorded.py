"""What is read out of the recordings of `tests.captures.record`, and what is advised where they hold no content."""

from __future__ import annotations

from typing import Any

import pytest

from tests.captures.loading import RECORDED, expected, traces
from tests.captures.record import instrument
from tests.captures.record.__main__ import setups
from tests.spans import read
from tracescore.interactions import content_switch, switches
from tracescore.interactions.switches import SWITCHES
from tracescore.interactions.values import squeezed
from tracescore.model import Interaction


def _found(name: str) -> list[Interaction]:
    return [interaction for trace in traces(name) for interaction in read(trace)]


def _normal(texts: list[str | None]) -> list[str | None]:
    return [text if text is None else squeezed(text) for text in texts]


def _right(got: Interaction, wanted: dict[str, Any]) -> None:
    assert _normal([got.question])[0] in _normal([wanted["question"], *wanted.get("or_question", [])])
    assert _normal([got.answer])[0] in _normal([wanted["answer"], *wanted.get("or_answer", [])])
    assert got.state in {wanted["state"], *wanted.get("or_state", [])}
    contexts = _normal(list(got.contexts))
    if wanted["contexts"] is not None:
        forms = [wanted["contexts"], wanted.get("passages"), *wanted.get("or_contexts", [])]
        assert contexts in [_normal(form or []) for form in forms]
    elif wanted.get("contexts_in_prompt") and contexts:
        assert all(any(_normal([text])[0] in context for context in contexts) for text in wanted["contexts_in_prompt"])
    elif wanted["status"] != "error":
        assert not contexts or got.context_source == "prompt"


@pytest.mark.parametrize("name", RECORDED)
def test_reads_what_a_user_of_the_library_would_read(name: str) -> None:
    found = _found(name)
    for wanted in expected(name)["interactions"]:
        here = [one for one in found if one.trace_id == wanted["trace_id"]]
        roots = {wanted["root_span_id"], *wanted.get("or_root_span_id", [])}
        if wanted["state"] == "content_not_captured" and not here:
            continue
        (got,) = [one for one in here if one.span_id in roots]
        _right(got, wanted)
    told = {wanted["trace_id"] for wanted in expected(name)["interactions"]}
    assert not [one for one in found if one.trace_id not in told and (one.question or one.answer)]


def test_every_recording_has_a_recipe_of_the_same_packages() -> None:
    assert {name: expected(name)["packages"] for name in RECORDED} == {
        name: list(setup.packages) for name, (setup, _) in setups().items() if name in RECORDED
    }
    assert len(RECORDED) >= 25


SILENT: dict[str, tuple[str, tuple[int, ...]]] = {
    "adk-nocontent": ("gcp.vertex.agent", (2,)),
    "adk1-nocontent": ("gcp.vertex.agent", ()),
    "agent-framework-nocontent": ("agent_framework", ()),
    "anthropic-openllmetry-nocontent": ("opentelemetry.instrumentation.", ()),
    "autogen-own-spans": ("autogen-core", ()),
    "genai-openai-nocontent": ("opentelemetry.instrumentation.genai.", ()),
    "google-genai-otel-0.4-switch-alone": ("opentelemetry.instrumentation.google_genai", ()),
    "litellm-otel-callback-nocontent": ("litellm", ()),
    "openai-v2-2.1-true-no-logs": ("opentelemetry.instrumentation.openai_v2", ()),
    "openai-v2-switch-alone": ("opentelemetry.instrumentation.openai_v2", ()),
    "openai-v2-true-no-logs": ("opentelemetry.instrumentation.openai_v2", ()),
    "semantic-kernel-nocontent": ("semantic_kernel.", ()),
    "vercel-ai7-nocontent": ("gen_ai", ()),
}
"""Recordings without content, and the row of the table that must be advised."""


@pytest.mark.parametrize("name", SILENT)
def test_advises_the_settings_of_the_instrumentation_that_recorded_no_content(name: str) -> None:
    (settings,) = (row.settings for row in SWITCHES if (row.scope, row.since) == SILENT[name])
    roots = {wanted["root_span_id"] for wanted in expected(name)["interactions"]}
    spans = [span for trace in traces(name) for span in trace.spans if span.span_id in roots]
    assert {switches.of(f"{span.scope_name} {span.scope_version}") for span in spans} == {settings}
    told = [one for one in _found(name) if one.span_id in roots and one.state == "content_not_captured"]
    assert {content_switch(one.convention, one.instrumentation) for one in told} <= {settings}


SPEAKING = {
    "adk1-own": ("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true",),
    "google-genai-otel-0.4-opt-in": (
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    ),
    "adk-span-alone": ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",),
    "agent-framework": ("ENABLE_SENSITIVE_DATA=true",),
    "genai-openai-switch-alone": ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",),
    "google-genai-otel-switch-alone": ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",),
    "openai-v2-2.1-true-with-logs": ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true", "a log exporter"),
    "openai-v2-true-with-logs": ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true", "a log exporter"),
    "openai-v2-opt-in": (
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    ),
    "semantic-kernel-agent": ("SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",),
}
"""Recordings that hold content, and the settings they were made with: all of them, and only they, are advised."""


@pytest.mark.parametrize("name", SPEAKING)
def test_the_settings_advised_are_those_that_a_recording_with_content_was_made_with(name: str) -> None:
    for setting in SPEAKING[name][:1]:
        assert setting in expected(name)["switches"]
    told = [one for one in _found(name) if one.question or one.answer]
    assert told
    advised = {content_switch(one.convention, one.instrumentation) for one in told}
    if name != "openai-v2-opt-in":  # with the opt-in, the scope is another one's
        assert all(setting in text for setting in SPEAKING[name] for text in advised)
    else:
        assert advised == {SPEAKING[name][1]}


def test_the_page_on_instrumenting_is_made_from_the_recordings() -> None:
    assert instrument.PAGE.read_text() == instrument.page()
