"""What scoring leaves in traces is set aside and counted, and nothing else is."""

from __future__ import annotations

import pytest

from tests.gateway import RECORDINGS, recorded
from tests.otlp import RESOURCE, log, trace_id
from tests.spans import SERVER, chain, chat, messages, read, retrieval, span, trace
from tracescore import interactions
from tracescore.config import InteractionsConfig
from tracescore.judge.prompt import prompts_of
from tracescore.model import RawLog, RawSpan, RawTrace, Trace
from tracescore.otlp.decode import decode
from tracescore.otlp.split import split_traces

PROMPTS = prompts_of("v1").by_name
DATA = {
    "evidence": ["Returns take 30 days."],
    "question": "How long?",
    "statements": [{"id": "s1", "text": "30 days."}],
}


def _trace(request) -> Trace:
    spans: list[RawSpan] = split_traces(request.SerializeToString(), lambda _: True).spans
    return decode(RawTrace(spans[0].trace_id, tuple(spans), (), "complete"))


def whole(made: Trace) -> interactions.Reading:
    return interactions.read(made, InteractionsConfig())


@pytest.mark.parametrize("failed", [False, True], ids=["answered", "failed"])
@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("way", RECORDINGS)
def test_a_judge_call_that_a_gateway_records_is_no_interaction(way: str, name: str, failed: bool) -> None:
    body = {"model": "m", "messages": PROMPTS[name].messages(DATA)}
    made = _trace(recorded(RECORDINGS[way](body), 7, failed=failed))
    assert read(made) == []
    counted = whole(made)
    assert counted.genai_spans == 0
    assert counted.set_aside["judge_call"] >= 1
    assert set(counted.set_aside) == {"judge_call"}


FRAME = PROMPTS["claims"].messages(DATA)[1]["content"]
APP = (("system", "You answer from the context."), ("user", "Q?"))
APP_CALLS = {
    "in the middle of a question": messages(("user", f"What does this mean: {FRAME}")),
    "in a passage before the question": messages(APP[0], ("user", f"Context:\n{FRAME}\n\nQuestion: Q?")),
    "in an earlier reply": messages(APP[0], ("user", "Q?"), ("assistant", FRAME), ("user", "And?")),
}


@pytest.mark.parametrize("where", APP_CALLS)
def test_the_mark_of_a_judge_call_hides_nothing_where_a_text_of_others_holds_it(where: str) -> None:
    (interaction,) = read(trace(chat(APP_CALLS[where], "a")))
    assert interaction.answer == "a"


def test_what_the_app_did_in_the_trace_of_a_judge_call_is_still_read() -> None:
    judge = chat(messages(("user", FRAME)), "{}")
    made = trace(span("POST /ask", {}, chain("q", "a", retrieval("q", "p"), chat("q", "a")), judge, kind=SERVER))
    assert [(i.question, i.answer) for i in read(made)] == [("q", "a")]
    assert dict(whole(made).set_aside) == {"judge_call": 1}


def test_a_user_who_calls_himself_a_judge_is_scored_all_the_same() -> None:
    server = span(
        "POST /ask", {"user_agent.original": "tracescore-judge/1"}, chain("q", "a", chat("q", "a")), kind=SERVER
    )
    assert [i.question for i in read(trace(server))] == ["q"]


EVALUATORS = {
    "TruLens": {"ai.observability.span_type": "eval", "gen_ai.operation.name": "chat"},
    "TruLens, root": {"ai.observability.span_type": "eval_root", "gen_ai.operation.name": "chat"},
    "pydantic-evals": {"gen_ai.operation.name": "experiment"},
    "a span that carries a result": {"gen_ai.evaluation.name": "tone", "gen_ai.request.model": "m"},
    "ours": {"openinference.span.kind": "EVALUATOR", "tracescore.judge": "embedded-v2"},
}


@pytest.mark.parametrize("name", EVALUATORS)
def test_evaluators_are_told_without_the_names_of_scopes(name: str) -> None:
    made = trace(chain("q", "a", chat("q", "a"), span("e", EVALUATORS[name], chat("Rate this.", "1"), scope_name="")))
    assert [i.question for i in read(made)] == ["q"]
    assert dict(whole(made).set_aside) == {"tracescore" if name == "ours" else "other_evaluator": 1}


def test_a_model_call_that_carries_a_result_about_itself_is_still_read() -> None:
    call = chat("q", "a")
    call.attributes["gen_ai.evaluation.name"] = "tone"
    assert [i.question for i in read(trace(call))] == ["q"]


def test_evaluation_events_are_counted_by_who_made_them() -> None:
    ours = log(7, {"tracescore.score_id": "1"}, event_name="gen_ai.evaluation.result")
    theirs = log(7, {"event.name": "gen_ai.evaluation.result"})
    resource = RESOURCE.SerializeToString()
    records = tuple(RawLog(trace_id(7), b"", resource, b"", record.SerializeToString()) for record in (ours, theirs))
    made = decode(RawTrace(trace_id(7), (), records, "quiet"))
    assert read(made) == []
    assert dict(whole(made).set_aside) == {"tracescore": 1, "other_evaluator": 1}
