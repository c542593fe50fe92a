"""Which passages the answer is held against, and where they were read."""

from __future__ import annotations

import json

import pytest

from tests.costs import grows_in_step
from tests.spans import chain, chat, messages, read, retrieval, span, trace
from tracescore.interactions import prompt
from tracescore.interactions.documents import passages
from tracescore.interactions.messages import Turn
from tracescore.model import Interaction

P1 = "A Fernway bike may be kept for 45 minutes before a late fee is charged."
P2 = "A lost lock key costs 11 crowns, and a new one comes by post."
P3 = "Helmets are lent free of charge at the Mill Square kiosk."
Q, A = "How long can I keep it?", "45 minutes."


def of(*steps, question: str = Q, answer: str = A) -> Interaction:
    [got] = read(trace(chain(question, answer, *steps)))
    return got


def retriever(*texts: str, kind: str = "RETRIEVER", given: tuple[str, ...] = (), **settings):
    attributes = {"openinference.span.kind": kind, "input.value": Q}
    prefix = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
    for number, text in enumerate(texts):
        attributes[f"{prefix}.{number}.document.content"] = text
    for number, text in enumerate(given):
        attributes[f"reranker.input_documents.{number}.document.content"] = text
    return span(kind.lower(), attributes, *settings.pop("children", ()), **settings)


def tool(name: str, result: object, **settings):
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.result": result}
    return span(f"execute_tool {name}", attributes, **settings)


LAST = chat(Q, A)


def test_several_retrievers_are_united_without_repeats_in_order():
    got = of(retriever(P1, P2), retriever(P3, P1), LAST)
    assert (got.contexts, got.context_source) == ((P1, P2, P3), "retrieval")


def test_a_reranker_replaces_the_retrievers_it_was_fed_from_and_no_others():
    got = of(retriever(P1, P2), retriever(P3), retriever(P2, kind="RERANKER", given=(P1, P2)), LAST)
    assert got.contexts == (P3, P2)


def test_a_reranker_that_does_not_say_what_it_was_given_replaces_all_before_it():
    assert of(retriever(P1, P2), retriever(P2, kind="RERANKER"), LAST).contexts == (P2,)


def test_rerankers_in_a_row_leave_the_last():
    steps = (retriever(P1, P2, P3), retriever(P3, P1, kind="RERANKER", given=(P1, P2, P3)))
    assert of(*steps, retriever(P1, kind="RERANKER", given=(P3, P1)), LAST).contexts == (P1,)


def test_a_retriever_inside_a_retriever_is_not_listed_twice():
    assert of(retriever(P1, children=(retriever(P2), retriever(P1))), LAST).contexts == (P1,)


def test_an_outer_retriever_that_lists_nothing_leaves_the_word_to_the_inner():
    assert of(retriever(children=(retriever(P1),)), LAST).contexts == (P1,)


def test_what_was_retrieved_after_the_answer_is_not_its_evidence():
    assert of(retriever(P1), LAST, retriever(P2)).contexts == (P1,)


def test_ids_without_texts_are_no_contexts():
    bare = span(
        "retrieval",
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.documents": json.dumps([{"id": "a", "score": 0.5}]),
        },
    )
    got = of(bare, LAST)
    assert (got.contexts, got.state) == ((), "no_contexts")


def test_fewer_documents_than_counted_are_partial():
    short = retrieval(Q, P1)
    short.attributes["gen_ai.retrieval.document_count"] = 5
    got = of(short, LAST)
    assert (got.state, got.unusable) == ("partial_contexts", {"contexts"})


def test_documents_of_a_span_that_dropped_attributes_are_partial():
    assert of(retriever(P1, dropped_attributes=4), LAST).state == "partial_contexts"


def test_cut_documents_are_truncated_and_keep_the_rest_usable():
    made = retrieval(Q, P1, P2)
    made.attributes["gen_ai.retrieval.documents"] = made.attributes["gen_ai.retrieval.documents"][:-20]
    got = of(made, LAST)
    assert (got.state, got.unusable) == ("truncated", {"contexts"})


def test_redacted_documents_are_no_contexts():
    got = of(retriever("__REDACTED__"), LAST)
    assert (got.contexts, got.state, got.unusable) == ((), "redacted", {"contexts"})


def test_results_of_search_tools_count_as_many_as_there_were():
    got = of(tool("search_handbook", json.dumps([P1, P2])), tool("search_handbook", f"{P3}\n\n{P1}"), LAST)
    assert (got.contexts, got.context_source) == ((P1, P2, f"{P3}\n\n{P1}"), "tool")


def test_other_tools_give_no_evidence_unless_they_return_documents():
    assert of(tool("send_mail", "sent"), LAST).contexts == ()
    assert of(tool("kb", json.dumps([{"id": "1", "content": P1, "score": 1.0}])), LAST).contexts == (P1,)


def test_a_tool_that_failed_gives_no_evidence():
    assert of(tool("search", "connection refused", is_error=True), LAST).contexts == ()


@pytest.mark.parametrize(
    "result",
    [
        json.dumps(
            {"output": {"lc": 1, "id": ["langchain", "schema", "messages", "ToolMessage"], "kwargs": {"content": P1}}}
        ),
        json.dumps({"tool_messages": [{"role": "tool", "content": [{"tool_call_result": {"result": P1}}]}]}),
        json.dumps({"results": [{"title": "t", "content": P1}]}),
        json.dumps([{"type": "text", "text": P1}]),
        json.dumps({"content": [{"type": "text", "text": P1}]}),
    ],
)
def test_tool_results_come_in_wrappers(result):
    assert of(tool("search", result), LAST).contexts == (P1,)


def test_retrievers_inside_tools_are_listed_as_the_model_got_them():
    inside = tool("search", None)
    inside.children = (retriever(P1, P2),)
    again = tool("search", None)
    again.children = (retriever(P1),)
    got = of(inside, again, LAST)
    assert (got.contexts, got.context_source) == ((P1, P2, P1), "tool")


def test_only_results_of_this_turn_count():
    sent = json.dumps(
        [
            {"role": "user", "content": "Before?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "search"}}]},
            {"role": "tool", "tool_call_id": "1", "content": P2},
            {"role": "assistant", "content": "That."},
            {"role": "user", "content": Q},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "2", "function": {"name": "search"}}]},
            {"role": "tool", "tool_call_id": "2", "content": P1},
        ]
    )
    assert of(chat(sent, A)).contexts == (P1,)


def test_a_function_that_returns_documents_is_a_retrieval():
    docs = json.dumps([{"id": "1", "content": P1}, {"id": "2", "content": P2}])
    got = of(chain(Q, docs, name="lookup"), LAST)
    assert (got.contexts, got.context_source) == ((P1, P2), "retrieval")


def test_a_function_that_narrows_documents_replaces_them():
    both = json.dumps([{"id": "1", "content": P1}, {"id": "2", "content": P2}])
    one = json.dumps([{"id": "2", "content": P2}])
    assert of(chain(Q, both, name="lookup"), chain(None, one, name="best"), LAST).contexts == (P2,)


def test_sub_questions_are_no_passages():
    assert of(chain(Q, json.dumps(["What is a bike?", "How long?"]), name="decompose"), LAST).contexts == ()


def test_documents_handed_to_a_step_are_variables():
    step = chain({"context": [P1, P2], "question": Q}, A, LAST, name="generate")
    got = of(step)
    assert (got.contexts, got.context_source) == ((P1, P2), "variables")


def test_template_variables_are_read_before_the_prompt():
    variables = {
        "openinference.span.kind": "PROMPT",
        "llm.prompt_template.variables": json.dumps({"context": f"{P1}\n\n{P2}", "question": Q}),
    }
    got = of(span("template", variables), chat(f"Context:\n{P1}\n\n{P2}\n\nQuestion: {Q}", A))
    assert (got.contexts, got.context_source) == ((f"{P1}\n\n{P2}",), "variables")


# ---------------------------------------------------------------- the prompt as evidence

BOTH = f"{P1}\n\n{P2}"
PROMPTS = {
    "passages": f"Passages:\n{BOTH}\n\nQuestion: {Q}\nAnswer:",
    "llamaindex": (
        f"Context information is below.\n---------------------\n{BOTH}\n---------------------\n"
        f"Given the context information and not prior knowledge, answer the query.\nQuery: {Q}\nAnswer: "
    ),
    "question-first": f"Question: {Q}\n\nContext:\n{BOTH}",
    "inline": f"Use these pieces of context to answer the question at the end.\n\nContext: {BOTH}\n\nQuestion: {Q}",
    "tags": f"Answer from the documents.\n<documents>\n{BOTH}\n</documents>\n<question>{Q}</question>",
    "markdown": f"## Context\n{BOTH}\n\n## Question:\n{Q}",
    "bold": f"**Context:**\n{BOTH}\n\n**Question:** {Q}",
    "dspy": f"[[ ## context ## ]]\n{BOTH}\n\n[[ ## question ## ]]\n{Q}\n\nRespond with the output fields.",
    "sources": f"Here are the search results you may use:\n{BOTH}\n\nUser question: {Q}",
}


EXPERT = """You are an expert Q&A system.
Always answer the query using the provided context information.
Some rules to follow:
1. Never directly reference the given context.
2. Avoid statements like 'Based on the context, ...' or the like."""
STRUCTURE = """All interactions will be structured in the following way.

[[ ## context ## ]]
{context}

[[ ## question ## ]]
{question}

[[ ## answer ## ]]
{answer}

[[ ## completed ## ]]"""


@pytest.mark.parametrize(
    ("text", "rewrites"),
    [
        ("Write a STANDALONE question.", True),
        ("a stand-alone version of it", True),
        ("Rephrase the follow up", True),
        ("Re-phrase this last message", True),
        ("Please re-write the user's question", True),
        ("Reformulate a query", True),
        ("Condense the chat into one question", True),
        ("Generate a short title", True),
        ("Please write a scientific paper passage to answer the question", True),
        ("Write a short hypothetical document for this search", True),
        ("Please write a paragraph that answers my critics.", False),
        (
            "Write an answer to the question. You are alone: condense, phrase and formulate well, generate no lists.",
            False,
        ),
    ],
)
def test_a_request_to_rewrite_is_told_by_its_words_in_any_case(text, rewrites):
    assert prompt.rewrites([Turn("user", text)]) is rewrites


@pytest.mark.parametrize("name", PROMPTS)
def test_takes_a_rendered_prompt_apart(name):
    found = prompt.take_apart(PROMPTS[name])
    assert found.question == Q
    assert found.evidence == BOTH


@pytest.mark.parametrize(
    "text",
    [
        Q,
        f"Answer the question briefly and politely.\n\nQuestion: {Q}",
        "You are a helpful assistant.\nAnswer in the user's language.\nIf you do not know, say so.",
        "Answer visitors' questions. Use only the passages given. If they do not hold the answer, say so.",
        EXPERT,
        STRUCTURE,
    ],
)
def test_questions_and_instructions_are_no_evidence(text):
    assert prompt.evidence_in([Turn("system", text)]) == []
    assert prompt.evidence_in([Turn("user", text)]) == []


@pytest.mark.parametrize(
    "text",
    [
        "Passages: do they need a question mark?",
        "What does the manual say about this: context matters?",
        "Please answer: is the context below zero?",
        "Query: can I pay by card?",
    ],
)
def test_a_users_own_words_are_not_taken_apart(text):
    assert prompt.question_in(text) == text


def test_the_rendered_prompt_is_evidence_where_nothing_lists_the_passages():
    got = of(chat(messages(("system", f"Be kind.\n\nPassages:\n{BOTH}"), ("user", Q)), A))
    assert (got.contexts, got.context_source, got.state) == ((BOTH,), "prompt", "complete")


def test_prompts_of_earlier_turns_are_no_evidence():
    sent = messages(("user", PROMPTS["passages"]), ("assistant", A), ("user", "And then?"))
    got = of(chat(sent, A), question="And then?")
    assert (got.contexts, got.state) == ((), "no_contexts")


# ---------------------------------------------------------------- shapes of documents


@pytest.mark.parametrize(
    "value",
    [
        [P1, P2],
        json.dumps([P1, P2]),
        [{"page_content": P1, "metadata": {}}, {"page_content": P2, "metadata": {}}],
        {"documents": [{"id": "1", "content": P1}, {"id": "2", "content": P2}], "count": 2},
        {"output": [{"page_content": P1}, {"page_content": P2}]},
        [{"node": {"text": P1}, "score": 0.5}, {"node": {"text_resource": {"text": P2}}, "score": 0.4}],
        {"source_nodes": [{"node": {"text": P1}}, {"node": {"text": P2}}]},
        [
            {"lc": 1, "id": ["langchain", "schema", "document", "Document"], "kwargs": {"page_content": text}}
            for text in (P1, P2)
        ],
        {"matches": [{"id": "1", "metadata": {"text": P1}}, {"id": "2", "metadata": {"text": P2}}]},
        [json.dumps({"content": P1, "id": "1"}), json.dumps({"content": P2, "id": "2"})],
        {"results": [{"text": P1, "score": 1}, {"text": P2, "score": 1}]},
        [[{"page_content": P1}, {"page_content": P2}]],
        f"['{P1}', '{P2}']",
    ],
)
def test_reads_passages_of_any_shape(value):
    found = passages(value)
    assert found is not None
    assert found.texts == (P1, P2)


def test_chunks_of_one_length_are_how_they_were_split_unless_other_attributes_end_there_too():
    chunk = ("word " * 300)[:1023] + "x"
    assert of(retriever(chunk, P1), LAST).state == "complete"
    cut = retriever(chunk, P1)
    cut.attributes["output.value"] = "y" * 1024
    assert of(cut, LAST).state == "truncated"


@pytest.mark.parametrize("part", ["a ", 'a "a ', "a\n", "\na" + " b" * 899])
def test_a_long_question_is_looked_for_at_the_same_cost_per_character_however_long_the_prompt_is(part: str):
    def looking(size: int):
        text = (part * (size // len(part) + 1))[:size]
        return lambda: [
            prompt.split_at(text, query) for query in ("a " * 900 + "a", 'a "a ' * 400 + "a", "a" + " b" * 900)
        ]

    assert grows_in_step(looking, 20_000)


@pytest.mark.parametrize("part", ["<context>", "Question:\n", "Context:\n", "##########", "          ", "Answer:\n"])
def test_taking_a_prompt_apart_costs_as_much_per_character_however_long_it_is(part: str):
    def taking_apart(parts: int):
        text = part * parts
        return lambda: (
            prompt.take_apart(text),
            prompt.split_at(f"{text}\n{Q}", Q),
            prompt.rewrites([Turn("user", text)]),
        )

    assert grows_in_step(taking_apart, 5_000)
