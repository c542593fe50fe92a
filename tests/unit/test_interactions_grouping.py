"""Which spans are one interaction, and which of them the scores attach to."""

from __future__ import annotations

import json

import pytest

from tests.costs import grows_in_step
from tests.shapes import PASSAGE as P1
from tests.shapes import SHAPES, rag
from tests.spans import CLIENT, SERVER, chain, chat, genai_spans, messages, read, retrieval, span, trace
from tracescore import interactions
from tracescore.config import InteractionsConfig
from tracescore.model import Trace

P2 = "A lost lock key costs 11 crowns."


def outline(made: Trace) -> list[tuple[str, str | None, str | None]]:
    names = {s.span_id: s.name for s in made.spans}
    return [(names[i.span_id], i.question, i.answer) for i in read(made)]


def test_an_http_server_span_above_the_outermost_flow_is_not_the_interaction():
    made = trace(span("POST /ask", {"http.route": "/ask"}, rag("q", "a"), kind=SERVER))
    assert outline(made) == [("rag", "q", "a")]
    assert read(made)[0].slices["route"] == "/ask"


def test_a_server_span_that_alone_covers_retrieval_and_model_call_is():
    made = trace(span("POST /ask", {}, retrieval("q", P1), chat(f"Context:\n{P1}\n\nQuestion: q", "a"), kind=SERVER))
    assert outline(made) == [("POST /ask", "q", "a")]


def test_the_nearest_span_that_covers_retrieval_and_model_call_stands_for_both():
    search = span("search step", {}, retrieval("q", P1))
    write = span("write step", {}, chat(f"Context:\n{P1}\n\nQuestion: q", "a"))
    assert outline(trace(span("answer", {}, search, write))) == [("answer", "q", "a")]


def test_flows_side_by_side_are_several_interactions():
    made = trace(span("batch", {}, rag("q1", "a1"), rag("q2", "a2"), rag("q3", "a3")))
    assert outline(made) == [("rag", "q1", "a1"), ("rag", "q2", "a2"), ("rag", "q3", "a3")]


def test_functions_of_the_app_side_by_side_are_several_interactions():
    one, two = (
        span(f"answer {n}", {}, retrieval(f"q{n}", P1), chat(f"Context:\n{P1}\n\nQuestion: q{n}", f"a{n}"))
        for n in (1, 2)
    )
    assert outline(trace(span("session", {}, one, two))) == [("answer 1", "q1", "a1"), ("answer 2", "q2", "a2")]


def test_a_flow_around_several_questions_is_split_into_them():
    made = trace(chain({"questions": ["q1", "q2"]}, ["a1", "a2"], rag("q1", "a1"), rag("q2", "a2"), name="batch"))
    assert outline(made) == [("rag", "q1", "a1"), ("rag", "q2", "a2")]


def test_a_nested_agent_belongs_to_the_outer_one():
    inner = chain("lost key fee", "11 crowns", chat("lost key fee", "11 crowns"), kind="AGENT", name="helper")
    made = trace(
        chain("How much is a lost key?", "It costs 11 crowns.", inner, chat("x", "It costs 11 crowns."), kind="AGENT")
    )
    assert outline(made) == [("rag", "How much is a lost key?", "It costs 11 crowns.")]


def test_turns_of_a_session_without_spans_of_their_own_are_told_apart():
    """The second model call was asked something else, so the first had already answered."""
    later = messages(("user", "q1"), ("assistant", "a1"), ("user", "q2"))
    made = trace(span("session", {}, retrieval("q1", P1), chat("q1", "a1"), retrieval("q2", P2), chat(later, "a2")))
    assert outline(made) == [("chat m", "q1", "a1"), ("chat m", "q2", "a2")]
    assert [i.contexts for i in read(made)] == [(P1,), (P2,)]


def test_a_batch_of_prompts_with_evidence_is_one_interaction_each():
    batch = [chat(f"Context:\n{P1}\n\nQuestion: q{n}", f"a{n}") for n in range(3)]
    assert outline(trace(span("batch", {}, *batch))) == [("chat m", f"q{n}", f"a{n}") for n in range(3)]


def test_graders_and_planners_inside_a_function_are_no_interactions():
    steps = (
        chat("Plan the search for: q", "first lost keys, then fees"),
        retrieval("lost keys", P2),
        chat(f"Is this relevant? {P2}", "yes"),
        retrieval("fees", P1),
        chat(f"Is this relevant? {P1}", "yes"),
        chat(f"Context:\n{P2}\n\n{P1}\n\nQuestion: q", "a"),
    )
    assert outline(trace(span("answer", {}, *steps))) == [("answer", "q", "a")]


def test_drafts_that_the_last_model_call_takes_up_end_no_interaction():
    drafts = [chat(f"Summarise passage {n}", f"summary number {n}") for n in range(9)]
    joined = "\n".join(f"summary number {n}" for n in range(9))
    last = chat(f"Context:\n{joined}\n\nQuestion: q", "a")
    assert outline(trace(span("answer", {}, retrieval("q", P1), *drafts, last))) == [("answer", "q", "a")]


def test_a_rewritten_query_ends_no_interaction():
    rewrite = chat("How long may I keep it?", "How long may a bike be kept?")
    answer = chat(f"Context:\n{P1}\n\nQuestion: How long may I keep it?", "45 minutes.")
    made = trace(span("answer", {}, rewrite, retrieval("How long may a bike be kept?", P1), answer))
    assert outline(made) == [("answer", "How long may I keep it?", "45 minutes.")]


def test_passages_found_before_a_flow_that_was_handed_them_belong_to_it():
    made = trace(span("answer", {}, retrieval("q", P1), chain("q", "a", chat("q", "a"))))
    assert outline(made) == [("answer", "q", "a")]
    assert read(made)[0].contexts == (P1,)


def test_several_flows_take_the_passages_found_before_each():
    parts = [
        part
        for n, p in ((1, P1), (2, P2))
        for part in (retrieval(f"q{n}", p), chain(f"q{n}", f"a{n}", chat(f"q{n}", "a")))
    ]
    made = trace(span("session", {}, *parts))
    assert [(i.question, i.contexts) for i in read(made)] == [("q1", (P1,)), ("q2", (P2,))]


def test_a_lone_model_call_is_an_interaction():
    assert outline(trace(chat("What is a bike?", "A vehicle."))) == [("chat m", "What is a bike?", "A vehicle.")]


def test_a_lone_model_call_under_a_server_span_attaches_to_itself():
    made = trace(span("POST /ask", {}, chat("q", "a"), kind=SERVER))
    assert outline(made) == [("chat m", "q", "a")]


def test_a_function_of_the_app_around_one_model_call_is_the_outermost_span():
    assert outline(trace(span("answer", {}, chat("q", "a")))) == [("answer", "q", "a")]


def test_a_function_around_the_span_that_covers_all_is_outermost():
    loop = span("loop", {}, retrieval("q", P1), chat("q", "a"))
    assert outline(trace(span("answer", {}, loop))) == [("answer", "q", "a")]


@pytest.mark.parametrize(
    "copied",
    [
        {"gen_ai.conversation.id": "c"},
        {"traceloop.association.properties.user_id": "u", "traceloop.workflow.name": "w"},
        {"langfuse.trace.name": "t", "session.id": "s"},
        {"request_data": "form"},
    ],
)
def test_names_and_ids_copied_onto_every_span_make_no_step_of_it(copied):
    flows = (rag("q1", "a1"), rag("q2", "a2"))
    assert len(read(trace(span("POST /ask", copied, *flows, kind=SERVER)))) == 2
    assert read(trace(span("POST /ask", copied, span("SELECT", copied), kind=SERVER))) == []


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(trace(retrieval("q", P1)), id="bare-retrieval"),
        pytest.param(trace(span("search", {}, retrieval("q", P1))), id="search-endpoint"),
        pytest.param(trace(chain({"nodes": ["x"]}, ["y"], chain("text", "text"), name="Splitter")), id="indexing"),
        pytest.param(trace(span("create_agent a", {"gen_ai.operation.name": "create_agent"})), id="create-agent"),
        pytest.param(trace(span("embeddings", {"gen_ai.operation.name": "embeddings"})), id="embedding"),
        pytest.param(
            trace(span("GET /", {"http.route": "/"}, span("SELECT", {"db.system": "pg"}), kind=SERVER)), id="http"
        ),
        pytest.param(trace(chain("find it", [{"page_content": P1, "id": 1}], name="lookup")), id="list-of-documents"),
        pytest.param(trace(chain("find it", P1, name="search", kind="TOOL")), id="tool"),
        pytest.param(trace(chain("find it", "2 documents found", kind="RETRIEVER")), id="count-of-documents"),
        pytest.param(trace(chat("Rewrite the last message as a standalone question.\nIt?", "What?")), id="rewriting"),
        pytest.param(Trace("empty", ()), id="no-spans"),
    ],
)
def test_is_no_interaction(made: Trace):
    assert read(made) == []


def test_a_flow_whose_model_is_not_instrumented_is_one_if_it_answers_from_passages():
    made = trace(chain("How long?", "45 minutes.", chain("How long?", None, kind="RETRIEVER", name="kb")))
    assert outline(made) == [("rag", "How long?", "45 minutes.")]


def test_without_the_root_the_interaction_stands_on_what_arrived():
    parts = (retrieval("q", P1), chat(f"Context:\n{P1}\n\nQuestion: q", "a"))
    for part in parts:
        part.settings["parent_span_id"] = "gone"
    assert outline(trace(*parts)) == [("chat m", "q", "a")]
    assert read(trace(*parts))[0].contexts == (P1,)


def test_a_step_that_arrived_without_the_root_is_no_interaction_of_its_own():
    rewrite = chain("It?", "What is it?", chat("It?", "What is it?"), name="rewrite", parent_span_id="gone")
    rest = [retrieval("What is it?", P1), chat(f"Context:\n{P1}\n\nQuestion: What is it?", "a")]
    for part in rest:
        part.settings["parent_span_id"] = "gone"
    [got] = read(trace(rewrite, *rest))
    assert (got.question, got.answer) == ("It?", "a")


@pytest.mark.parametrize(
    ("attributes", "scope"),
    [
        ({"openinference.span.kind": "EVALUATOR"}, "tracescore"),
        ({"openinference.span.kind": "EVALUATOR"}, "app"),
        ({"langfuse.observation.type": "evaluator"}, "langfuse-sdk"),
        ({"mlflow.spanType": '"EVALUATOR"'}, "mlflow"),
        ({"gen_ai.operation.name": "chat"}, "pydantic-evals"),
        ({"langfuse.environment": "langfuse-llm-as-a-judge", "langfuse.observation.type": "span"}, "langfuse-sdk"),
    ],
)
def test_what_evaluators_add_is_never_read(attributes, scope):
    judge = span("judge", attributes, chat("Rate this.", "0.9"), scope_name=scope)
    assert read(trace(judge)) == []
    asked = chain("q", "a", chat("q", "a"), judge)
    assert outline(trace(asked)) == [("rag", "q", "a")]
    assert genai_spans(trace(asked)) == 2


def test_parent_links_in_a_circle_do_no_harm():
    one = chain("q", "a", chat("q", "a"))
    one.settings["parent_span_id"] = "s2"
    assert len(read(trace(one))) <= 1


def test_a_failed_attempt_that_a_retry_made_good_is_not_counted():
    failed = chain("q", None, chat("q", None, is_error=True), is_error=True)
    assert [i.state for i in read(trace(span("answer", {}, failed, rag("q", "a"))))] == ["complete"]


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_costs_as_much_per_span_however_long_the_trace(shape: str):
    def reading(spans: int):
        made = SHAPES[shape](spans)
        return lambda: read(made)

    assert grows_in_step(reading, 250)


def test_client_spans_below_a_model_call_change_nothing():
    http = span("POST", {"http.url": "http://model"}, kind=CLIENT)
    call = chat("q", "a")
    call.children = (http,)
    assert outline(trace(chain("q", "a", call))) == [("rag", "q", "a")]


@pytest.mark.parametrize(
    "answer",
    [
        f"Yes. {P1} That is all there is to it.",
        f"As the manual says: {P1}",
        P1,
        f"{P1}\n\n{P2}",
        f"**{P1}**",
        f"Hi! {P2}",
    ],
)
def test_an_answer_that_quotes_its_passage_is_an_interaction_also_without_a_model_call(answer):
    made = trace(chain("q?", answer, retrieval("q?", P1, P2)))
    assert outline(made) == [("rag", "q?", answer)]


def test_an_output_that_is_a_list_of_documents_is_none():
    output = f'[{{"page_content": "{P1}", "metadata": {{"source": "a b c"}}}}]'
    assert outline(trace(chain("q?", output, retrieval("q?", P1, P2)))) == []


def test_an_output_that_is_word_for_word_the_only_passage_is_an_answer():
    assert outline(trace(chain("q?", P1, retrieval("q?", P1)))) == [("rag", "q?", P1)]


def retrieve_and_generate(answer: str | None):
    made = chain("q?", answer, kind="RETRIEVER", name="retrieve_and_generate")
    made.attributes.update({f"retrieval.documents.{n}.document.content": text for n, text in enumerate((P1, P2))})
    return made


def test_a_retrieval_that_came_with_an_answer_is_an_interaction():
    [got] = read(trace(retrieve_and_generate("Yes, for 45 minutes.")))
    assert (got.question, got.answer, got.contexts, got.state) == ("q?", "Yes, for 45 minutes.", (P1, P2), "complete")
    assert got.slices["model_call"] == "no_model_call"
    [inside] = read(trace(chain("q?", None, retrieve_and_generate("Yes, for 45 minutes."))))
    assert (inside.span_id, inside.answer) == ("s1", "Yes, for 45 minutes.")


@pytest.mark.parametrize("answer", [None, f"{P1}\n{P2}", "Found 2 documents."])
def test_a_retrieval_that_only_hands_on_its_documents_is_none(answer):
    assert read(trace(retrieve_and_generate(answer))) == []


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (trace(retrieval("q", P1)), "bare_retrieval"),
        (trace(chain("find it", P1, name="search", kind="TOOL")), "tools_only"),
        (trace(span("embeddings", {"gen_ai.operation.name": "embeddings"})), "indexing"),
        (trace(chat("Rewrite the last message as a standalone question.\nIt?", "What?")), "no_answering_call"),
        (trace(chain(None, None)), "no_question_and_answer"),
        (trace(span("create_agent a", {"gen_ai.operation.name": "create_agent"})), "no_step"),
        (trace(span("judge", {"openinference.span.kind": "EVALUATOR"})), "evaluators"),
        (Trace("empty", ()), "spans_missing"),
        (trace(rag("q", "a")), None),
    ],
)
def test_a_trace_without_an_interaction_says_why(made: Trace, reason):
    assert interactions.read(made, InteractionsConfig()).reason == reason


def test_steps_of_one_turn_are_one_interaction_and_two_turns_are_two():
    def step(*conversation, answer):
        sent = json.dumps([{"role": role, "content": text} for role, text in conversation])
        return chain(None, answer, chat(sent, answer), kind="AGENT", name="step")

    first = step(("user", "q1"), answer="Let me look.")
    second = step(("user", "q1"), ("assistant", "Let me look."), ("user", "Observation: 9"), answer="Nine.")
    assert [(i.question, i.answer) for i in read(trace(span("run", {}, first, second)))] == [("q1", "Nine.")]
    other = step(("user", "q1"), ("assistant", "Let me look."), ("user", "q2"), answer="Ten.")
    assert [i.question for i in read(trace(span("run", {}, first, other)))] == ["q1", "q2"]
