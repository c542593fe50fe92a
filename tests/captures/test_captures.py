"""What is read out of the OTLP requests of 53 set-ups, most of them real, is exactly what is in them."""

from __future__ import annotations

import dataclasses
import gc
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.captures.loading import NAMES, expected, raw_traces, traces
from tests.spans import INTERNAL, SERVER, genai_spans, read
from tracescore.assembly import Assembly
from tracescore.config import AssemblyConfig, ForwardConfig
from tracescore.exporters.relay.forward import Forwarder
from tracescore.exporters.relay.hold import Hold
from tracescore.interactions import MARKERS, content_switch
from tracescore.interactions.values import squeezed
from tracescore.model import Interaction, Span, Trace

PROMPT = {
    "genai-llamaindex": "prompt",
    "vercel-ai-json": "prompt",
    "openlit": "prompt",
    "pydantic-ai-logfire": "prompt",
    "genai-langchain": "variables",
    "langchain-openinference-redacted": "variables",
}
"""Where the passages were read in captures whose spans do not list them."""
LISTED = {
    ("dspy-openinference", None): "variables",
    ("traceloop-langchain-0.40", "lcel"): "variables",
    ("traceloop-langchain-0.40", "bare-chain"): "variables",
    ("traceloop-langgraph", "agent-compare"): "tool",
    ("pydantic-ai-logfire", None): "tool",
    ("vercel-ai-json", None): "tool",
    ("openai-v2-span", "tool"): "tool",
    ("openai-v2-event", "tool"): "tool",
    ("openai-v2-legacy-logs", "tool"): "tool",
    ("genai-openai-span", "tool"): "tool",
}
"""Where they were read in captures that list them other than by a retriever; None: in all interactions."""


SOURCES = {
    "absurd-indices": "retrieval",
    "adk-native": "none",
    "autogen-openinference": "tool",
    "bedrock-retrieve-and-generate": "retrieval",
    "crewai-inputs": "tool",
    "crewai-openllmetry-alone": "none",
    "crewai-openllmetry-openai": "tool",
    "dify-chatflow": "retrieval",
    "evidence-beside-question": "prompt",
    "flow-around-retrieve-and-generate": "retrieval",
    "langgraph-openinference": "tool",
    "messages-as-reprs": "retrieval",
    "openai-agents-logfire": "tool",
    "own-spans-bold": "retrieval",
    "own-spans-greeting": "retrieval",
    "own-spans-joined": "retrieval",
    "own-spans-no-retriever": "none",
    "own-spans-verbatim": "retrieval",
    "picture-beside-question": "retrieval",
    "retriever-clock-ahead": "retrieval",
    "smolagents-tool": "tool",
    "spring-unescaped-lists": "retrieval",
    "strands-events": "tool",
    "template-variables": "retrieval",
}
"""Where they were read in the captures of agents, wrappers and own spans."""


def _cases() -> list[Any]:
    found = [(name, wanted) for name in NAMES for wanted in expected(name)["interactions"]]
    return [pytest.param(name, wanted, id=f"{name}-{wanted['key']}") for name, wanted in found]


def _normal(text: str | None) -> str | None:
    return None if text is None else squeezed(text)


def _read(name: str) -> list[Interaction]:
    return [interaction for trace in traces(name) for interaction in read(trace)]


def _states(name: str, wanted: dict[str, Any]) -> list[str]:
    """The state an interaction must have, or those of which one is as right as the other."""
    return [wanted.get("state") or _state(name, wanted), *wanted.get("or_state", ())]


def _state(name: str, wanted: dict[str, Any]) -> str:
    if wanted["status"] == "error":
        return "app_error"
    if wanted["question"] is None or wanted["answer"] is None:
        return "redacted" if name.endswith("-redacted") else "content_not_captured"
    return "complete" if wanted["contexts"] or wanted.get("contexts_in_prompt") else "no_contexts"


def _source(name: str, wanted: dict[str, Any]) -> str:
    if "state" in wanted:
        return wanted.get("context_source") or SOURCES[name]
    if wanted["contexts"]:
        return LISTED.get((name, wanted["key"]), LISTED.get((name, None), "retrieval"))
    return PROMPT[name] if wanted.get("contexts_in_prompt") else "none"


def test_all_53_captures_are_here():
    assert len(NAMES) == 53


@pytest.mark.parametrize(("name", "wanted"), _cases())
def test_reads_what_was_recorded(name: str, wanted: dict[str, Any]):
    [got] = [i for i in _read(name) if i.span_id == wanted["root_span_id"]]
    assert got.trace_id == wanted["trace_id"]
    assert _normal(got.question) == _normal(wanted["question"])
    assert _normal(got.answer) == _normal(wanted["answer"])
    assert got.state in _states(name, wanted)
    assert got.context_source == _source(name, wanted) or wanted.get("or_state")
    contexts = [_normal(text) for text in got.contexts]
    if wanted["contexts"] is not None:
        assert contexts in (
            [_normal(t) for t in wanted["contexts"]],
            [_normal(t) for t in wanted.get("passages") or []],
        )
    else:
        inside = wanted.get("contexts_in_prompt") or []
        assert bool(contexts) == bool(inside) or wanted.get("or_state")
        assert not contexts or all(any(_normal(text) in context for context in contexts) for text in inside)


@pytest.mark.parametrize("name", NAMES)
def test_invents_nothing(name: str):
    """Indexing, bare retrievals and start-up noise are no interactions."""
    assert {i.span_id for i in _read(name)} == {w["root_span_id"] for w in expected(name)["interactions"]}


@pytest.mark.parametrize("name", NAMES)
def test_later_turns_carry_their_history(name: str):
    for got in _read(name):
        wanted = next(w for w in expected(name)["interactions"] if w["root_span_id"] == got.span_id)
        if got.question is None or wanted["status"] == "error" or got.state == "content_not_captured":
            continue
        assert got.slices["turn"] == ("later" if got.history else "first")
        if wanted["key"] == "follow-up":
            continue  # the earlier turn is in the state of the graph
        if "turn2" in wanted["key"]:
            assert [turn.role for turn in got.history][-2:] == ["user", "assistant"], name
            assert got.history[-2].text == "Where can I return a cargo bike?"
        else:
            assert got.history == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_marker_occurs_in_the_bytes_of_every_recognised_span_and_log(name: str):
    for raw, trace in zip(raw_traces(name), traces(name), strict=True):
        pieces = [span.span + span.scope for span in raw.spans] + [log.record + log.scope for log in raw.logs]
        marked = sum(any(marker in piece for marker in MARKERS) for piece in pieces)
        assert marked >= genai_spans(trace)
        assert marked or not read(trace)


@pytest.mark.parametrize("name", NAMES)
def test_where_content_is_missing_the_switch_is_known(name: str):
    for got in _read(name):
        assert not content_switch(got.convention).startswith("see the documentation"), got.convention


@pytest.mark.parametrize("kind", [INTERNAL, SERVER, None], ids=["session", "server", "roots"])
@pytest.mark.parametrize("name", NAMES)
def test_all_of_a_capture_in_one_trace_reads_the_same(name: str, kind: int | None):
    """Several interactions in one trace: below a span of a session or a request, or beside each other."""
    apart = {i.span_id: _without_turns_of_the_trace(i) for i in _read(name)}
    together = {i.span_id: _without_turns_of_the_trace(i) for i in read(_merged(name, kind))}
    assert together == apart


def _without_turns_of_the_trace(interaction: Interaction) -> Interaction:
    return dataclasses.replace(interaction, trace_id="", slices={})


def _merged(name: str, kind: int | None) -> Trace:
    above = "f" * 16 if kind else ""
    spans = [
        span._replace(trace_id="one", parent_span_id=span.parent_span_id or above)
        for trace in traces(name)
        for span in trace.spans
    ]
    if kind:
        start, end = min(s.start_unix_nano for s in spans), max(s.end_unix_nano for s in spans)
        spans.append(Span("one", above, "", "session", kind, start, end, {}, (), {}, "app", is_error=False))
    logs = [record for trace in traces(name) for record in trace.logs]
    return Trace("one", tuple(spans), tuple(logs))


@pytest.mark.parametrize("name", NAMES)
def test_every_span_that_scores_attach_to_is_known_as_such_before_it_is_read(name: str) -> None:
    marked = Assembly(AssemblyConfig(), MARKERS, CollectorRegistry(), lambda: 0.0).marked
    forward = ForwardConfig.model_validate({"http": "http://127.0.0.1:9", "attach": "hold"})
    hold = Hold(forward, Forwarder(forward, CollectorRegistry()), marked, CollectorRegistry(), lambda: 0.0)
    kept = {span_id for trace in raw_traces(name) for _, span_id in hold.wanted(trace.spans)}
    assert {interaction.span_id for interaction in _read(name)} <= {span_id.hex() for span_id in kept}


@pytest.mark.parametrize("name", NAMES)
def test_reading_leaves_nothing_that_only_the_garbage_collector_could_find(name: str):
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        _read(name)
        gc.collect()
        ours = {type(each).__name__ for each in gc.garbage if type(each).__module__.startswith("tracescore")}
        assert not ours, "they hold all texts of the trace"
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
