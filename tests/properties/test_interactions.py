"""Delivery changes nothing, and no attribute, however odd, makes reading fail."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.captures.loading import NAMES, raw_traces, traces
from tests.spans import read
from tracescore.interactions import answers, documents, messages, prompt, questions, values
from tracescore.model import LogRecord, RawTrace, Span, SpanEvent, Trace
from tracescore.otlp.decode import decode


@pytest.mark.parametrize("name", NAMES)
def test_any_order_and_repetition_of_spans_gives_the_same_interactions(name: str):
    whole = raw_traces(name)
    once = {trace.trace_id: read(trace) for trace in traces(name)}

    @settings(max_examples=4)
    @given(st.randoms(use_true_random=False))
    def check(random):
        for raw in whole:
            spans = [*raw.spans, *random.sample(raw.spans, k=min(3, len(raw.spans)))]
            logs = list(raw.logs)
            random.shuffle(spans)
            random.shuffle(logs)
            again = decode(RawTrace(raw.trace_id, tuple(spans), tuple(logs), raw.closed_by))
            assert read(again) == once[raw.trace_id.hex()]

    check()


KEYS = st.sampled_from(
    [
        "openinference.span.kind",
        "input.value",
        "output.value",
        "llm.input_messages.0.message.content",
        "llm.input_messages.x.message.role",
        "retrieval.documents.0.document.content",
        "retrieval.documents.7.document",
        "gen_ai.operation.name",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.retrieval.documents",
        "gen_ai.system_instructions",
        "gen_ai.prompt.0.content",
        "gen_ai.tool.call.result",
        "traceloop.span.kind",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "haystack.component.type",
        "haystack.component.output",
        "haystack.pipeline.input_data",
        "langfuse.observation.type",
        "langfuse.observation.input",
        "mlflow.spanType",
        "mlflow.spanOutputs",
        "ai.operationId",
        "ai.prompt",
        "ai.documents",
        "ai.ranking",
        "pydantic_ai.all_messages",
        "langsmith.span.kind",
        "gcp.vertex.agent.llm_request",
        "function.args",
        "question",
    ]
)
WORDS = st.sampled_from(
    [
        "CHAIN",
        "LLM",
        "RETRIEVER",
        "RERANKER",
        "TOOL",
        "chat",
        "retrieval",
        "execute_tool",
        "invoke_agent",
        "workflow",
        "task",
        "generation",
        "ai.generateText",
        "ai.generateText.doGenerate",
        "ai.rerank",
        '"RETRIEVER"',
        "__REDACTED__",
        '{"question": "cut off',
        '{"question": "half \\ud83d"}',
        "{'answer': ['\\ud83d']}",
        '[{"role": "user", "content": [{"type": "text", "text": {}}]}]',
        '[{"role": "user", "parts": [{"type": "tool_call_response", "response": null}]}]',
        '{"choices": [{"delta": 3}]}',
        '{"messages": [[]]}',
        "[" * 2000,
        "{'a': {",
        "[[ ## question ## ]]",
        "Question:",
        "<context>",
    ]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS | st.binary(max_size=4)
NAMES_OF_PARTS = st.sampled_from(
    [
        *("role", "content", "parts", "type", "text", "messages", "question", "input", "kwargs", "args", "lc", "id"),
        *("outputs", "documents", "node", "data"),
    ]
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES_OF_PARTS, inner, max_size=4), max_leaves=8
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES, max_size=6)
EVENTS = st.sampled_from(
    [
        "gen_ai.choice",
        "gen_ai.user.message",
        "gen_ai.client.inference.operation.details",
        "QueryStartEvent",
        "db.query.result",
    ]
)


@st.composite
def odd_traces(draw) -> Trace:
    spans = []
    for number in range(draw(st.integers(1, 5))):
        events = tuple(SpanEvent(draw(EVENTS), 1, draw(ATTRIBUTES)) for _ in range(draw(st.integers(0, 1))))
        spans.append(
            Span(
                trace_id="t",
                span_id=f"s{number}",
                parent_span_id=draw(st.sampled_from(["", "s0", "s1", "s2", "s3", "gone"])),
                name="span",
                kind=draw(st.integers(0, 5)),
                start_unix_nano=draw(st.integers(0, 9)),
                end_unix_nano=draw(st.integers(0, 9)),
                attributes=draw(ATTRIBUTES),
                events=events,
                resource={},
                scope_name=draw(st.sampled_from(["", "openlit", "llamaindex.opentelemetry.tracer", "tracescore"])),
                is_error=draw(st.booleans()),
            )
        )
    logs = tuple(
        LogRecord("t", draw(st.sampled_from(["s0", "s1", ""])), draw(EVENTS), 1, draw(VALUES), draw(ATTRIBUTES), {}, "")
        for _ in range(draw(st.integers(0, 2)))
    )
    return Trace("t", tuple(spans), logs)


@settings(max_examples=150)
@given(odd_traces())
def test_no_attribute_makes_reading_fail(trace: Trace):
    for got in read(trace):
        assert got.span_id in {span.span_id for span in trace.spans}
        assert all(isinstance(text, str) for text in got.contexts)
        assert got.question is None or isinstance(got.question, str)
        assert got.answer is None or isinstance(got.answer, str)
        for text in (got.question, got.answer, *got.contexts, *(turn.text for turn in got.history)):
            (text or "").encode()


@settings(max_examples=300)
@given(VALUES | st.text(alphabet="{}[]'\"\\,: aQ#\n", max_size=30))
def test_no_value_makes_a_parser_fail(value):
    values.parse(value)
    questions.asked(value)
    answers.answered(value)
    answers.replied(value)
    documents.passages(value)
    documents.documents(value)
    messages.turns(value)
    if isinstance(value, str):
        prompt.take_apart(value)


TASKS = {
    "crewai-inputs": ("Answer the question of the visitor: What does an evening ticket cost, and do children pay?",)
}
"""What a framework makes of the question: all that is left of it without the outermost span."""


@pytest.mark.parametrize("name", NAMES)
def test_a_root_that_never_arrives_invents_no_text(name: str):
    """Without its outermost span an interaction may lose fields, but what is read is what was said somewhere."""
    for trace in traces(name):
        known = {i.question for i in read(trace)} | {None, *TASKS.get(name, ())}
        roots = {i.span_id for i in read(trace)}
        rest = dataclasses.replace(trace, spans=tuple(span for span in trace.spans if span.span_id not in roots))
        assert {i.question for i in read(rest)} <= known
