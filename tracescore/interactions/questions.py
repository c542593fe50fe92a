"""Questions, and what was said before them, out of recorded inputs of any shape.

Inputs of steps are whatever the app's functions take: a text, keyword arguments, a graph's state, a list of messages.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from tracescore.interactions import documents, messages, plausibility, prompt, reprs, values
from tracescore.model import Message

_QUESTION_KEYS = (
    "question",
    "query",
    "user_question",
    "user_query",
    "user_input",
    "task",
    "input",
    "user_message",
    "user_msg",
    "user_prompt",
    "message",
    "query_str",
    "messages",
    "prompt",
    "text",
    "content",
    "input_str",
    "search_query",
    "inputs",
    "kwargs",
    "args",
    "query_bundle",
    "str_or_query_bundle",
    "chat_input",
    "new_message",
    "q",
    "contents",
)
_HISTORY_KEYS = ("history", "chat_history", "conversation_history", "conversation", "messages", "memory", "turns")
_STATE = frozenset((*prompt.QUESTION_NAMES, *prompt.CONTEXT_NAMES, *_HISTORY_KEYS))
"""All keys of a flow's arguments that some record as if a user had said them."""
_DEPTH = 6
_KEPT = 10_000
"""Longest input (characters) of which the question is kept beyond its span."""
_SENTENCE = 3
"""Words from which on the only text among settings is what was asked."""


class Question(NamedTuple):
    """A question as found in an input, and what was said before it."""

    text: str | None
    history: tuple[Message, ...] = ()
    flaw: values.Flaw = ""


def asked(value: Any) -> Question:
    """The user's last question in an input; None when there is none, with `flaw` saying what hid it."""
    return _asked_in(value) if isinstance(value, str) and len(value) <= _KEPT else _asked_in.__wrapped__(value)


@functools.lru_cache(maxsize=256)
def _asked_in(value: Any) -> Question:
    """As `asked`; kept, since step after step records the same text."""
    parsed = values.parse(value)
    question, flaw, turns = _asked(parsed, _DEPTH)
    if question is None:
        return Question(None, flaw=flaw)
    return Question(question, turns or _history(parsed.data, question), "truncated" if values.cut(question) else "")


def said(text: str) -> tuple[str | None, values.Flaw]:
    """What a user's message asks: of a rendered prompt the question, and nothing that no one wrote."""
    if values.redacted(text):
        return None, "redacted"
    freed, flaw = plausibility.passed(text.strip(), "message")
    return (prompt.question_in(freed) if freed else None), flaw


_Asked = tuple[str | None, values.Flaw, tuple[Message, ...]]
"""(question, flaw, history that belongs to it)."""


def _asked(parsed: values.Parsed, depth: int) -> _Asked:
    data = parsed.data
    if isinstance(data, str):
        freed, flaw = plausibility.passed(data.strip("\r\n"), "input")
        bare = (freed or "").strip()
        return (prompt.question_in(bare) if bare else None), flaw or parsed.flaw, ()
    if depth == 0 or not isinstance(data, (list, dict)) or not data:
        return None, parsed.flaw, ()
    conversation = messages.turns(data)
    if conversation:
        return _from_conversation(conversation, parsed.flaw)
    why: values.Flaw = parsed.flaw or ("implausible" if documents.is_object(data) else "")
    for inner in _inner_questions(data):
        question, hidden, history = _asked(values.parse(inner), depth - 1)
        if question is not None or hidden in ("redacted", "truncated"):
            return question, hidden, history
        why = why or hidden
    return None, why, ()


def _from_conversation(conversation: list[messages.Turn], flaw: values.Flaw) -> _Asked:
    at = messages.last_user(conversation)
    if at is None:
        return None, flaw, ()
    text = conversation[at].text or ""
    state = values.data(text) if text.lstrip()[:1] == "{" else None
    if isinstance(state, dict) and state.keys() <= _STATE and (key := next(filter(state.get, _QUESTION_KEYS), None)):
        return *_asked(values.parse(state[key]), 1)[:2], messages.history(conversation, at)
    question, hidden = said(text)
    return question, hidden or (flaw if question is None else ""), messages.history(conversation, at)


def _inner_questions(data: list[Any] | dict[str, Any]) -> Iterator[Any]:
    if isinstance(data, list):
        texts = [item for item in data if isinstance(item, str) and not reprs.read(item)[0]]
        if len(data) == 1 or (len(texts) == 1 and texts[0] is data[0]):
            yield data[0]
        return
    for holder in (
        "kwargs",
        "additional_args",
        "inputs",
        "data",
    ):  # before the positional arguments, whose names are lost
        inner = data.get(holder)
        if isinstance(inner, dict) and (holder == "data" or any(key in inner for key in _QUESTION_KEYS)):
            yield inner
    arguments = data.get("args")
    if isinstance(arguments, list):
        yield from _positional(arguments)
    yield from (data[key] for key in _QUESTION_KEYS if key not in ("args", "kwargs") and data.get(key) is not None)
    nested = [value for value in data.values() if isinstance(value, dict)]
    for key in ("question", "query", "user_input", "messages", "text", "prompt"):  # one component each (Haystack)
        yield from (component[key] for component in nested if component.get(key))
    yield from _only_text(data)


def _only_text(data: dict[str, Any]) -> Iterator[str]:
    """The only text in a dict of settings, or the only member of a dict."""
    if reprs.TYPE in data:
        return
    texts = [(key, item) for key, item in data.items() if isinstance(item, str) and item.strip()]
    settings = len(texts) == 1 and texts[0][0] not in prompt.CONTEXT_NAMES and len(texts[0][1].split()) >= _SENTENCE
    if texts and (len(data) == 1 or settings):
        yield texts[0][1]


def _positional(arguments: list[Any]) -> Iterator[Any]:
    """The first argument that is a text or a conversation (objects such as `self` are skipped)."""
    for argument in arguments:
        spoken = isinstance(argument, str) and not reprs.read(argument)[0]
        if spoken or isinstance(argument, dict) or (isinstance(argument, list) and messages.turns(argument)):
            yield argument


def _history(data: Any, question: str) -> tuple[Message, ...]:
    """Earlier turns that an input carries beside the question."""
    for candidate in _conversations(data, 4):
        conversation = messages.turns(candidate) or _dspy_history(candidate)
        if conversation:
            end = len(conversation)
            last = messages.last_user(conversation)
            if last is not None and conversation[last].text == question:
                end = last
            return messages.history(conversation, end)
    return ()


def _conversations(data: Any, depth: int) -> Iterator[Any]:
    if isinstance(data, dict) and depth:
        yield from (data[key] for key in _HISTORY_KEYS if data.get(key))
        for key in ("kwargs", "args", "inputs", *(key for key, value in data.items() if isinstance(value, dict))):
            yield from _conversations(data.get(key), depth - 1)
    elif isinstance(data, list) and depth:
        yield from (item for item in data if isinstance(item, list))
        for item in data:
            if isinstance(item, dict):
                yield from _conversations(item, depth - 1)


def _dspy_history(value: Any) -> list[messages.Turn]:
    """`messages=[{'question': ..., 'answer': ...}]`, or the same as a dict."""
    data = values.data(value)
    rows = data.get("messages") if isinstance(data, dict) else None
    turns = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            question, _, _ = _asked(values.Parsed(row), 1)
            answer = row.get("answer", row.get("response", row.get("output")))
            turns.append(messages.Turn("user", question))
            turns.append(messages.Turn("assistant", answer if isinstance(answer, str) else None))
    return turns
