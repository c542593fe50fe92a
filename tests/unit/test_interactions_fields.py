"""Question, history, answer, labels and state: what is believed, in which order, and what is never guessed."""

from __future__ import annotations

import json

import pytest

from tests.spans import SERVER, chain, chat, messages, read, retrieval, span, trace
from tracescore.interactions.answers import answered, replied
from tracescore.interactions.questions import asked
from tracescore.interactions.values import parse
from tracescore.model import Interaction, Message, Trace

P1 = "A Fernway bike may be kept for 45 minutes before a late fee is charged."
Q, A = "How long can I keep it?", "45 minutes."
RENDERED = f"Context:\n{P1}\n\nQuestion: {Q}\nAnswer:"


def only(made: Trace, **settings) -> Interaction:
    [got] = read(made, **settings)
    return got


# ---------------------------------------------------------------- inputs and outputs


@pytest.mark.parametrize(
    "value",
    [
        Q,
        {"question": Q, "history": None, "mode": ""},
        json.dumps({"question": Q, "k": 3}),
        json.dumps(json.dumps({"question": Q})),
        {"args": [Q], "kwargs": {}},
        {"args": [], "kwargs": {"user_input": Q}},
        {"args": ["<app.Rag object at 0x7f1>", Q], "kwargs": {}},
        {"args": [Q, [P1]], "kwargs": {}},
        {"args": [[{"role": "user", "content": "Hi"}, {"role": "user", "content": Q}]]},
        {"inputs": {"context": P1, "question": Q}, "tags": []},
        {"inputs": Q, "kwargs": {}},
        {"input": Q, "chat_history": []},
        {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": Q}]},
        {
            "messages": [
                [{"lc": 1, "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": Q}}]
            ]
        },
        {"messages": [{"type": "human", "data": {"content": Q}}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": Q}, {"type": "image_url", "image_url": {}}]}
            ]
        },
        {"model": "m", "messages": [{"role": "user", "content": Q}]},
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": Q}]}]},
        {"system": "Use the passages.", "prompt": RENDERED},
        {"query_bundle": {"query_str": Q, "image_path": None}},
        {"message": Q},
        {"retriever": {"query": Q}, "prompt": {"template": [{"role": "user", "content": [{"text": "{{q}}"}]}]}},
        [{"role": "user", "parts": [{"type": "text", "content": json.dumps({"input": Q, "history": []})}]}],
        [{"role": "user", "parts": [{"text": Q}]}],
        [json.dumps({"role": "user", "content": Q})],
        f"('{Q}',)",
        f"{{'question': '{Q}', 'k': 3}}",
        RENDERED,
    ],
)
def test_finds_the_question_in_an_input_of_any_shape(value):
    assert asked(value).text == Q


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        None,
        3,
        {},
        [],
        {"nodes": ["a", "b"], "show_progress": False},
        {"args": [], "kwargs": {}},
        {"questions": [Q, Q]},
        [Q, Q],
        {"messages": [{"role": "assistant", "content": A}]},
        {"messages": [{"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "result": P1}]}]},
        "<app.Rag object at 0x7f1>",
        "null",
        "__REDACTED__",
        {"question": "__REDACTED__"},
        '{"question": "How long can I ke',
    ],
)
def test_where_no_question_stands_none_is_made_up(value):
    assert asked(value).text is None


def test_a_question_that_stands_whole_in_cut_json_is_read():
    cut = json.dumps({"question": Q, "history": [P1, P1]})[:-30]
    assert asked(cut).text == Q


@pytest.mark.parametrize(
    "value",
    [
        A,
        json.dumps(A),
        {"answer": A, "sources": [P1]},
        {"reasoning": "x", "answer": A},
        {"response": A, "source_nodes": ["<NodeWithScore(node=TextNode(id_=1), score=1)>"]},
        {"outputs": A, "kwargs": {}},
        {"outputs": {"question": Q, "docs": [{"page_content": P1}], "answer": A}},
        {"output": A},
        {"result": {"text": A}},
        {"role": "assistant", "content": A},
        {"id": "c", "choices": [{"message": {"role": "assistant", "content": A}}], "model": "m"},
        {"generations": [[{"text": A, "type": "ChatGeneration"}]], "llm_output": {"model": "m"}},
        {"messages": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]},
        {"llm": {"replies": [{"role": "assistant", "content": [{"text": A}]}]}},
        {"llm": {"replies": [A]}},
        {"answer_builder": {"answers": [{"data": A, "query": Q}]}},
        {"lc": 1, "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": A}},
        [{"role": "assistant", "parts": [{"type": "reasoning", "content": "x"}, {"type": "text", "content": A}]}],
        [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]}],
        [{"choices": [{"delta": {"content": "45 "}}]}, {"choices": [{"delta": {"content": "minutes."}}]}],
        [A],
        "[[ ## reasoning ## ]]\nx\n\n[[ ## answer ## ]]\n" + A + "\n\n[[ ## completed ## ]]",
    ],
)
def test_finds_the_answer_in_an_output_of_any_shape(value):
    assert answered(value) == (A, "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"id": "chatcmpl-1", "model": "m"},
        {"documents": [{"page_content": P1, "metadata": {}}]},
        [{"id": "1", "content": P1, "score": 0.5}],
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "search", "arguments": {}}]}],
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "search"}}]},
        ["one part", "another part"],
    ],
)
def test_where_no_answer_stands_none_is_made_up(value):
    assert answered(value) == (None, "")


def test_a_model_that_was_asked_for_json_is_quoted_as_it_spoke():
    assert replied('{"steps": ["a", "b"]}')[0] == '{"steps": ["a", "b"]}'


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ('{"question": "why \\ud83d?"}', "why \ufffd?"),
        ('{"question": "why \\ud83d?", "score": NaN}', "why \ufffd?"),
        ('{"question": "why \\ud83d?", "context": "cut o', "why \ufffd?"),
        ("{'question': 'why \\ud83d?'}", "why \ufffd?"),
        ("{'question': 'why \\ud83d\\ude00?'}", "why \U0001f600?"),
        ('{"question": "why \\ud83d\\ude00?"}', "why \U0001f600?"),
        (json.dumps('{"question": "why \\ud83d?"}'), "why \ufffd?"),
    ],
)
def test_half_a_character_in_a_text_becomes_a_replacement_mark(written: str, read_as: str):
    assert asked(written).text == read_as


def test_half_a_character_in_a_key_becomes_a_replacement_mark():
    assert parse('{"\\ud83d": 1}').data == parse("{'\\ud83d': 1}").data == {"\ufffd": 1}


# ---------------------------------------------------------------- precedence


def test_the_outermost_input_is_believed_before_a_rewritten_query():
    got = only(trace(chain(Q, A, retrieval("bike time limit", P1), chat(RENDERED, A))))
    assert got.question == Q
    assert got.found["question"].key == "input.value"


def test_the_question_marked_in_the_prompt_is_believed_before_search_queries():
    got = only(trace(span("answer", {}, retrieval("time limit", P1), retrieval("late fee", P1), chat(RENDERED, A))))
    assert got.question == Q


def test_a_search_query_fills_the_gap_only_before_a_model_could_rewrite_it():
    silent = span("chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    assert only(trace(span("answer", {}, retrieval(Q, P1), silent))).question == Q
    assert only(trace(span("answer", {}, silent, retrieval("time limit", P1), silent))).question is None
    assert only(trace(span("answer", {}, retrieval("a", P1), retrieval("b", P1), silent))).question is None


@pytest.mark.parametrize(
    "sent",
    [
        f"Answer from this: {P1}\n\n{Q}",
        f"{P1}\n\nHow long  can I\nkeep it?\n",
        f'{P1}\n\nThe customer asks: "{Q}"',
        f"{Q}\n\n{P1}",
        f"Tell the customer: {Q}\n\n{P1}\n\nAnswer briefly.",
    ],
)
def test_a_search_query_that_stands_in_an_unmarked_prompt_is_the_question(sent: str):
    got = only(trace(span("answer", {}, retrieval(Q), chat(sent, A))))
    assert (got.question, got.context_source, got.state) == (Q, "prompt", "complete")
    assert P1 in got.contexts[0]
    assert Q not in got.contexts[0]
    listed = only(trace(span("answer", {}, retrieval(Q, P1), chat(sent, A))))
    assert (listed.question, listed.contexts, listed.context_source) == (Q, (P1,), "retrieval")


@pytest.mark.parametrize(
    ("sent", "query"),
    [
        (f"{P1}\n\n{Q}", "bike time limit"),
        (f"{P1}\n\n{Q}", "keep it?"),
        (f"Be kind.\n\n{Q}", Q),
        (f"{P1} {P1} Please tell me about the late fee", "late fee"),
        (f"{P1}\n{Q}\n45 minutes.\n\nMay I keep the bike for an hour?", Q),
        (f"{P1}\n{Q}\n45 minutes.\n{Q}\nAn hour.", Q),
    ],
)
def test_a_search_query_that_is_no_part_of_its_own_in_a_longer_prompt_is_not_the_question(sent: str, query: str):
    got = only(trace(span("answer", {}, retrieval(query), chat(sent, A))))
    assert (got.question, got.state) == (sent, "no_contexts")


def test_an_unmarked_prompt_is_left_whole_where_the_queries_may_not_be_the_users():
    sent = f"{P1}\n\n{Q}"
    plan = chat(sent, "I shall look that up.")
    for steps in ((), (plan, retrieval(Q)), (retrieval(Q), retrieval("late fee"))):
        got = only(trace(span("answer", {}, *steps, chat(sent, A))))
        assert (got.question, got.contexts) == (sent, ())


def test_instructions_around_a_question_are_no_evidence():
    sent = f"You are a helpful assistant.\nAnswer the customer politely and in English.\n\n{Q}\n\nAnswer briefly."
    got = only(trace(span("answer", {}, retrieval(Q), chat(sent, A))))
    assert (got.question, got.state) == (Q, "no_contexts")


def test_a_question_that_a_model_wrote_leads_back_to_what_the_user_asked():
    rewrite = chat(
        "Given the conversation, rephrase the follow up question to be a standalone question.\n"
        "Chat History:\nuser: Can I rent a bike?\nassistant: Yes.\nFollow Up Input: How long?\nStandalone question:",
        "How long can I rent a bike?",
    )
    answer = chat(f"Context:\n{P1}\n\nQuestion: How long can I rent a bike?", A)
    assert (
        only(trace(span("ask", {}, rewrite, retrieval("How long can I rent a bike?", P1), answer))).question
        == "How long?"
    )


def test_tool_results_in_a_user_role_are_no_question():
    sent = json.dumps(
        [
            {"role": "user", "parts": [{"type": "text", "content": Q}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "search"}]},
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "result": [P1]}]},
        ]
    )
    got = only(trace(chat(sent, A)))
    assert (got.question, got.contexts, got.context_source) == (Q, (P1,), "tool")


def test_history_is_what_user_and_assistant_said_before():
    sent = messages(("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello"), ("user", Q))
    got = only(trace(chat(sent, A)))
    assert got.history == (Message("user", "Hi"), Message("assistant", "Hello"))
    assert got.slices["turn"] == "later"


def test_history_beside_the_question_is_kept():
    earlier = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    got = only(trace(chain({"question": Q, "chat_history": earlier}, A, chat(Q, A))))
    assert got.history == (Message("user", "Hi"), Message("assistant", "Hello"))


def test_a_streamed_root_without_output_answers_with_the_last_model_call():
    assert only(trace(chain(Q, None, retrieval(Q, P1), chat(RENDERED, A)))).answer == A


def test_an_answer_that_is_there_and_blank_is_an_answer():
    got = only(trace(chain(Q, "", chat(Q, ""))))
    assert got.answer == ""
    assert got.state == "no_contexts"


def test_a_missing_answer_is_none():
    got = only(trace(chain(Q, None, chat(Q, None))))
    assert (got.answer, got.state) == (None, "content_not_captured")


def test_keys_of_the_users_own_come_before_the_conventions():
    made = trace(chain(Q, A, chat(Q, A), name="rag"))
    made.spans[1].attributes["my.q"] = "mine?"  # any span below the outermost will do
    made.spans[1].attributes["my.a"] = json.dumps({"answer": "mine"})
    made.spans[1].attributes["my.docs"] = ["d1", "d2"]
    got = only(made, question=("typo", "my.q"), answer=("my.a",), contexts=("my.docs",))
    assert (got.question, got.answer, got.contexts) == ("mine?", "mine", ("d1", "d2"))
    assert got.found["question"].key == "my.q"


def test_spans_of_the_users_own_need_no_convention_when_their_keys_are_named():
    made = trace(span("ask", {"my.q": Q, "my.a": A}, span("kb", {"my.docs": [P1]})))
    assert read(made) == []
    got = only(made, question=("my.q",), answer=("my.a",), contexts=("my.docs",))
    assert (got.question, got.answer, got.contexts, got.convention) == (Q, A, (P1,), "configured")


_ASK = {"name": "ask*", "question": ["in"], "answer": ["out"], "history": ["before"]}
_FIND = {"name": "find", "kind": "retriever", "contexts": ["out"]}


def test_a_mapping_reads_the_spans_of_a_library_that_no_convention_covers():
    before = json.dumps([{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}])
    made = trace(
        span("ask 7", {"in": Q, "out": A, "before": before}, span("find", {"in": "bikes", "out": [P1, "two"]}))
    )
    assert read(made) == []
    got = only(made, mappings=[_ASK, _FIND])
    assert (got.question, got.answer, got.contexts, got.convention) == (Q, A, (P1, "two"), "configured")
    assert [turn.text for turn in got.history] == ["Hello?", "Hello."]
    assert (got.found["answer"].span, got.found["contexts"].span) == ("ask 7", "find")


def test_a_mapping_leaves_spans_of_other_names_alone():
    made = trace(span("answer", {"in": Q, "out": A}, span("find", {"out": [P1]})))
    assert read(made, mappings=[_ASK]) == []


@pytest.mark.parametrize("kind", ["agent", "chain", "llm"])
def test_a_mapping_says_of_what_kind_its_spans_are(kind):
    made = trace(span("step", {"in": Q, "out": A}))
    got = only(made, mappings=[{"name": "step", "kind": kind, "question": ["in"], "answer": ["out"]}])
    assert (got.question, got.answer, got.state) == (Q, A, "no_contexts")


def test_says_what_was_tried_before():
    got = only(trace(chain(None, None, chat(Q, A))))
    assert got.found["answer"].span == "chat m"
    assert got.found["contexts"].key == ""
    assert got.found["contexts"].tried


# ---------------------------------------------------------------- labels


def test_labels_come_from_spans_before_resources():
    resource = {"service.name": "shop", "service.version": "1.2", "deployment.environment": "prod"}
    own = {"deployment.environment.name": "stage"}
    made = trace(span("POST", {"http.route": "/ask", **own}, chain(Q, A, chat(Q, A), resource=resource), kind=SERVER))
    got = only(made)
    assert (got.service, got.release, got.environment) == ("shop", "1.2", "stage")


def test_service_names_that_sdks_make_up_count_as_none():
    got = only(trace(chain(Q, A, chat(Q, A), resource={"service.name": "unknown_service:python"})))
    assert got.service == "unknown"


def test_the_tenant_is_the_first_configured_key_that_is_present():
    made = trace(chain(Q, A, chat(Q, A)))
    made.spans[0].attributes["customer"] = "acme"
    assert "tenant" not in only(made).slices
    assert only(made, tenant=("org", "customer")).slices["tenant"] == "acme"


# ---------------------------------------------------------------- states


def test_complete():
    assert only(trace(chain(Q, A, retrieval(Q, P1), chat(RENDERED, A)))).state == "complete"


def test_the_outermost_error_is_the_apps():
    assert only(trace(chain(Q, None, chat(Q, A), is_error=True))).state == "app_error"


def test_a_childs_error_that_ended_it_is_the_apps():
    assert only(trace(chain(Q, None, chat(Q, None, is_error=True)))).state == "app_error"
    failed = retrieval(Q, is_error=True)
    assert only(trace(span("POST /ask", {}, failed, kind=SERVER, is_error=True))).state == "app_error"


def test_a_childs_error_that_was_recovered_from_is_not():
    assert only(trace(chain(Q, A, chat(Q, None, is_error=True), chat(Q, A)))).state == "no_contexts"
    assert only(trace(chain(Q, None, chat(Q, None, is_error=True), chat(Q, A)))).answer == A


def test_what_an_earlier_call_said_is_not_the_answer_of_a_failed_one():
    draft = chat("Rewrite this message as a search query: " + Q, "bike limit")
    got = only(trace(chain(Q, None, draft, chat(RENDERED, None, is_error=True))))
    assert (got.state, got.answer) == ("app_error", None)


def test_content_that_was_not_recorded_is_told_from_content_that_is_missing():
    silent = span("chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    assert only(trace(span("ask", {}, retrieval("q"), silent))).state == "content_not_captured"
    assert only(trace(chain(None, A, chat(messages(("system", "Go on.")), "x")))).state == "no_question"
    called = chat(Q, None)
    asks_a_tool = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "send_mail"}]}]
    called.attributes["gen_ai.output.messages"] = json.dumps(asks_a_tool)
    assert only(trace(chain(Q, None, chat(Q, "Let me see."), called))).answer == "Let me see."


def test_redacted_text_is_no_text():
    made = trace(chain("__REDACTED__", "__REDACTED__", chat("__REDACTED__", "__REDACTED__")))
    got = only(made)
    assert (got.question, got.answer, got.state) == (None, None, "redacted")
    assert got.unusable == {"question", "answer"}


def test_cut_json_is_truncated_and_not_scored():
    whole = messages(("assistant", "A long answer " * 50))
    made = trace(chain(Q, None, chat(Q, None)))
    made.spans[1].attributes["gen_ai.output.messages"] = whole[:200]
    got = only(made)
    assert (got.answer, got.state) == (None, "truncated")
    assert "answer" in got.unusable


def test_text_cut_at_a_common_limit_is_truncated():
    answer = ("word " * 300)[:1023] + "x"
    got = only(trace(chain(Q, answer, retrieval(Q, P1), chat(RENDERED, A))))
    assert (got.state, got.unusable) == ("truncated", {"answer"})


def test_numbered_messages_of_a_span_that_dropped_attributes_are_not_trusted():
    numbered = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": Q,
        "output.value": A,
    }
    got = only(trace(span("llm", numbered, dropped_attributes=3)))
    assert got.state == "truncated"
    assert "question" in got.unusable
