"""The gate: what people and models really wrote passes unchanged; what a function only printed is no text of theirs."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.costs import grows_in_step
from tests.spans import chain, chat, read, retrieval, span, trace
from tests.unit.real_texts import ANSWERS, PASSAGES, QUESTIONS
from tracescore.interactions import plausibility, reprs, scaffolds
from tracescore.model import Interaction

Q, A = "What does an evening ticket cost?", "An evening ticket costs nine crowns."


def only(*spans: Any) -> Interaction:
    [got] = read(trace(*spans))
    return got


def said(question: str, answer: str) -> Any:
    """A model call that records its messages as one JSON list each."""
    sent = [{"role": "user", "parts": [{"type": "text", "content": question}]}]
    received = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    keys = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    return span(
        "chat m", {**keys, "gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(received)}
    )


def flattened(question: str, answer: str) -> Any:
    """A model call that records its messages in one attribute each."""
    attributes = {"openinference.span.kind": "LLM"}
    for way, role, text in (("input", "user", question), ("output", "assistant", answer)):
        attributes[f"llm.{way}_messages.0.message.role"] = role
        attributes[f"llm.{way}_messages.0.message.content"] = text
    return span("llm", attributes)


def test_there_are_more_than_a_hundred_of_them():
    assert len({*QUESTIONS, *ANSWERS, *PASSAGES}) > 100


@pytest.mark.parametrize("call", [said, flattened])
@pytest.mark.parametrize("text", QUESTIONS)
def test_what_a_user_wrote_passes_unchanged(text: str, call: Any):
    assert only(call(text, A)).question == text


@pytest.mark.parametrize("call", [said, flattened])
@pytest.mark.parametrize("text", [*ANSWERS, *QUESTIONS[:40]])
def test_what_a_model_said_passes_unchanged(text: str, call: Any):
    got = only(call(Q, text))
    assert (got.question, got.answer) == (Q, text)


@pytest.mark.parametrize("text", PASSAGES)
def test_a_passage_passes_unchanged(text: str):
    assert only(chain(Q, A, retrieval(Q, text), chat(Q, A))).contexts == (text,)


@dataclasses.dataclass
class Step:
    number: int
    note: str
    more: Any = None


class Model(BaseModel):
    note: str
    inner: list[Any] = []


Point = namedtuple("Point", "x label")  # noqa: PYI024 - the plain kind


class Plain:
    """An object with the repr that all objects have."""


TEXTS = st.text(min_size=1, max_size=60).filter(str.strip)
STATES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["alpha", "beta", "gamma"]), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.one_of(
    st.builds(Step, st.integers(), TEXTS, STATES),
    st.builds(lambda text, inner: Model(note=text, inner=[inner]), TEXTS, STATES),
    st.builds(Point, st.integers(), TEXTS),
    st.builds(lambda text: SimpleNamespace(note=text), TEXTS),
    st.builds(Plain),
    st.builds(lambda: (one for one in ())),
    st.builds(lambda step: [step, Plain()], st.builds(Step, st.integers(), TEXTS)),
)


@settings(max_examples=200, deadline=None)
@given(OBJECTS)
def test_an_object_in_a_functions_input_or_output_is_no_text(made: Any):
    printed = repr(made)
    assert only(chain(printed, A, retrieval(Q, "P"), chat(Q, A))).question == Q
    assert only(chain(Q, printed, retrieval(Q, "P"), chat(Q, A))).answer == A
    alone = only(chain(printed, printed, chat("", "")))
    assert alone.question is None
    assert alone.state == "implausible"


@pytest.mark.parametrize(
    "cut",
    [
        "{'query': 'How long can I ret",
        "[Document(id='1', page_content='Items can be ret",
        "{'result': 'Within 30 days.', 'docs': [Document(page_con",
    ],
)
def test_an_object_whose_end_was_cut_off_is_no_text(cut: str):
    read = only(chain(cut, cut, chat("", "")))
    assert (read.question, read.answer or None, read.state) == (None, None, "truncated")


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_the_text_inside_an_object_is_read_with_its_quotes_and_line_ends(text: str):
    class Message(BaseModel):
        role: str
        content: str

    question = f"{text} {Q}"
    messages = [Message(role="user", content=question)]
    expected = only(chain({"messages": [{"role": "user", "content": question}]}, A, chat(Q, A))).question
    assert only(chain({"messages": [repr(one) for one in messages]}, A, chat(Q, A))).question == expected


@settings(max_examples=100, deadline=None)
@given(
    st.binary(min_size=120, max_size=400), st.sampled_from(["image/png", "audio/wav", "application/pdf", "video/mp4"])
)
def test_a_file_written_out_is_no_text(content: bytes, media: str):
    uri = f"data:{media};base64,{base64.b64encode(content).decode()}"
    assert only(chain(uri, A, chat(Q, A))).question == Q
    assert only(chain(f"{Q} {uri}", A, chat(Q, A))).question == Q
    assert only(said(f"{uri}\n{Q}", A)).question == Q


FRAMES = (
    "\nCurrent Task: {}\n\nThis is the expected criteria for your final answer: One.\nyou MUST return the content.",
    (
        "Answer the following questions as best you can. Tools:\n\nsearch: looks up\n\nUse the following format:\n\n"
        "Question: the input question\nThought: what to do\nFinal Answer: the answer\n\nBegin!\n\nQuestion: {}\n"
        "Thought:"
    ),
    "TOOLS\n------\nsearch\n\nUSER'S INPUT\n----\nHere is the user's input (remember to respond with JSON):\n\n{}",
    "New task:\n{}",
    "You have been submitted this task by your manager.\n---\nTask:\n{}\n---\nHelp your manager.",
    "We are working to address the following user request:\n\n{}\n\nTo answer this request we have assembled a team:",
    "Context:\nUser Request: {}\n\nOther agents available for collaboration:\nAgent name: clerk.",
    "{}\n\n\n (reminder to respond in a JSON blob no matter what)",
    "For the following plan:\n1. look up\n2. answer\n\nYou are tasked with executing step 1, {}.",
    "<task>\n{}\n</task>\n<environment_details>\nOpen tabs: none\n</environment_details>",
    "<user_query>\n{}\n</user_query>",
)


@pytest.mark.parametrize("frame", FRAMES)
@settings(max_examples=25, deadline=None)
@given(text=st.from_regex(r"\A[A-Z][a-z]{2,9}( [a-z]{2,9}){2,12}\?\Z"))
def test_of_a_scaffold_only_the_task_is_read(frame: str, text: str):
    assert only(chain(frame.format(text), A, chat("", A))).question == text
    assert only(said(frame.format(text), A)).question == text


EVIDENCE = "The dome of the observatory is open on Tuesdays and Fridays from 21:00 until midnight."
PROMPTS = (Path(__file__).parent / "data/prompts.txt").read_text().removesuffix("\n").split("\n%%%%\n")
"""What frameworks write around a question {q}, and around evidence {c}."""


@pytest.mark.parametrize("prompt", PROMPTS)
def test_of_what_a_framework_writes_only_the_question_is_read(prompt: str):
    text = prompt.replace("{q}", Q).replace("{c}", EVIDENCE)
    assert only(chain(text, A)).question == Q
    assert only(said(text, A)).question == Q


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Thought: I now know the final answer\nFinal Answer: Nine crowns.", "Nine crowns."),
        ("Thought: I can answer without any more tools.\nAnswer: Nine crowns.", "Nine crowns."),
        ("<think>Tickets ... nine.</think>\nNine crowns.", "Nine crowns."),
        ('```json\n{"action": "Final Answer", "action_input": "Nine crowns."}\n```', "Nine crowns."),
        ("Nine crowns. TERMINATE", "Nine crowns."),
        (
            "[[ ## reasoning ## ]]\nTickets.\n\n[[ ## answer ## ]]\nNine crowns.\n\n[[ ## completed ## ]]",
            "Nine crowns.",
        ),
    ],
)
def test_what_a_model_thought_is_not_what_it_said(reply: str, answer: str):
    assert only(said(Q, reply)).answer == answer


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: I must look it up\nAction: search\nAction Input: ticket",
        '{"action": "search", "action_input": "ticket"}',
        "[[ ## next_thought ## ]]\nLook.\n\n[[ ## next_tool_name ## ]]\nsearch\n\n[[ ## completed ## ]]",
    ],
)
def test_a_tool_asked_for_in_words_is_no_answer(reply: str):
    assert [i.answer for i in read(trace(chain(Q, None, said(Q, reply))))] in ([], [None])


def test_what_an_agent_observed_is_no_turn_of_the_user():
    turns = [
        ("user", Q),
        ("assistant", "Thought: look\nAction: search_prices"),
        ("user", "Observation: 9 crowns a ticket"),
    ]
    call = chat("", A)
    call.attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": A}]),
    }
    call.attributes["gen_ai.input.messages"] = json.dumps([{"role": role, "content": text} for role, text in turns])
    got = only(call)
    assert (got.question, got.contexts) == (Q, ("9 crowns a ticket",))


@pytest.mark.parametrize(
    "part", ["[", "Foo(a=", "'", "{'a':", "<a", "<a '", "Foo(a='x', ", "a='b' ", "\\'", "a.", "A(", "((", '"']
)
def test_a_hostile_repr_costs_as_much_per_character_however_long_it_is(part: str):
    def reading(size: int) -> Any:
        text = (part * size)[:size]
        return lambda: [reprs.read(begun + text) for begun in ("", "[", "Foo(x=", "x=")]

    assert grows_in_step(reading, 20_000)


@pytest.mark.parametrize(
    ("begun", "part"),
    [
        *(("", part) for part in ("A1b", "data:image/png;base64,", "Begin!\n", "Task:\n", "Thought:\n", "<think>")),
        *(("", part) for part in ("A1b" * 25 + "\n", "A1b" * 25 + "\n\n", "TERMINATE\n", "}\n")),
        *((begun, "\n") for begun in ("Begin!\nQuestion: hi", "Set a reminder to call mum", "TERMINATE")),
        *(
            (begun, "\n")
            for begun in ("Thought: x\nFinal answer: y", "Current Task: x", "New Task:\n", '{"action_input"}')
        ),
    ],
)
def test_a_hostile_text_costs_as_much_per_character_however_long_it_is(begun: str, part: str):
    def reading(size: int) -> Any:
        text = begun + (part * size)[:size] + "now"
        return lambda: [plausibility.passed(text, "message"), plausibility.passed(text, "reply"), scaffolds.task(text)]

    assert grows_in_step(reading, 20_000)
