"""Question, history and answer out of recorded inputs and outputs of any shape.

Inputs and outputs of steps are whatever the app's functions take and return: a text, keyword arguments, a graph's
state, a list of messages, a model's raw response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracescore.interactions import documents, messages, prompt, values
from tracescore.model import Message

_QUESTION_KEYS = (
    "question",
    "query",
    "user_question",
    "user_query",
    "user_input",
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
_ANSWER_KEYS = (
    "answer",
    "final_answer",
    "output",
    "result",
    "response",
    "final_output",
    "outputs",
    "reply",
    "replies",
    "answers",
    "generations",
    "choices",
    "candidates",
    "message",
    "messages",
    "content",
    "text",
    "output_text",
    "completion",
    "data",
    "parts",
    "generation",
    "llm_output",
    "update",
    "value",
    "blocks",
    "last_messages",
)
_RESPONSE_KEYS = ("choices", "generations", "replies", "candidates", "message", "delta", "object", "parts")
_NO_ANSWER = frozenset(("id", "model", "object", "created", "usage", "finish_reason", "system_fingerprint"))
"""What is left of a response when its text was not recorded."""
_HISTORY_KEYS = ("history", "chat_history", "conversation_history", "conversation", "messages", "memory", "turns")
_OBJECT = re.compile(r"\s*<[\w.]+(?: object at 0x|\()[^>]*>?\s*$")
_DSPY_HISTORY = re.compile(r"^messages=(\[.*\])$", re.DOTALL)
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Question:
    """A question as found in an input, and what was said before it."""

    text: str | None
    history: tuple[Message, ...] = ()
    flaw: values.Flaw = ""


def asked(value: Any) -> Question:
    """The user's last question in an input; None when there is none, with `flaw` saying what hid it."""
    parsed = values.parse(value)
    if parsed.flaw and parsed.data is None:
        return Question(None, flaw=parsed.flaw)
    question, flaw, turns = _question(parsed.data, _DEPTH)
    if question is None:
        return Question(None, flaw=flaw or parsed.flaw)
    return Question(question, turns or _history(parsed.data, question), "truncated" if values.cut(question) else "")


def answered(value: Any) -> tuple[str | None, values.Flaw]:
    """The answer in an output, and its flaw."""
    return _answered(values.parse(value))


def _answered(parsed: values.Parsed) -> tuple[str | None, values.Flaw]:
    if isinstance(parsed.data, dict) and parsed.data.keys() <= _NO_ANSWER:
        return None, parsed.flaw
    if parsed.flaw and parsed.data is None:
        return None, parsed.flaw
    return _told(_answer(parsed.data, _DEPTH), parsed.flaw)


def replied(value: Any) -> tuple[str | None, values.Flaw, list[messages.Turn]]:
    """What a model said, its flaw, and the messages it came in, where it came in any.

    JSON that a model said is a recorded response only if it has the form of one, else its text.
    """
    parsed = values.parse(value)
    turns = [] if isinstance(parsed.data, str) else messages.turns(parsed.data)
    if isinstance(parsed.data, list) and turns:
        return *_told(messages.last_answer(turns), parsed.flaw), turns
    said = isinstance(value, str) and parsed.flaw != "redacted" and not turns and not _is_response(parsed.data)
    if said and not (isinstance(parsed.data, dict) and parsed.data.keys() <= _NO_ANSWER):
        return *_told(value, ""), turns
    return *_answered(parsed), turns


def _told(text: str | None, flaw: values.Flaw) -> tuple[str | None, values.Flaw]:
    """A text as the answer; `flaw` is that of the recording it was to be found in."""
    if text is None:
        return None, flaw
    if values.redacted(text):
        return None, "redacted"
    text = _final(text)
    return text, "truncated" if values.cut(text) else ""


def _is_response(data: Any) -> bool:
    """Whether data are a model's or library's response that holds messages."""
    holder = data[0] if isinstance(data, list) and len(data) == 1 else data
    return isinstance(holder, dict) and any(key in holder for key in _RESPONSE_KEYS)


def _question(data: Any, depth: int) -> tuple[str | None, values.Flaw, tuple[Message, ...]]:
    """(question, flaw, history that belongs to it)."""
    data = values.data(data) if isinstance(data, str) and data.lstrip()[:1] in ("{", "[", '"') else data
    if isinstance(data, str):
        if values.redacted(data):
            return None, "redacted", ()
        usable = data.strip() and not _OBJECT.match(data)
        return (prompt.question_in(data.strip()) if usable else None), "", ()
    if depth == 0 or not isinstance(data, (list, dict)) or not data:
        return None, "", ()
    conversation = messages.turns(data)
    if conversation:
        return _from_conversation(conversation, depth)
    flaw: values.Flaw = ""
    for inner in _inner_questions(data):
        question, flaw, history = _question(inner, depth - 1)
        if question is not None or flaw:
            return question, flaw, history
    return None, flaw, ()


def _from_conversation(
    conversation: list[messages.Turn], depth: int
) -> tuple[str | None, values.Flaw, tuple[Message, ...]]:
    at = messages.last_user(conversation)
    if at is None:
        return None, "", ()
    question, flaw, history = _question(conversation[at].text, depth - 1)
    return question, flaw, messages.history(conversation, at) or history


def _inner_questions(data: list[Any] | dict[str, Any]) -> Iterator[Any]:
    if isinstance(data, list):
        texts = [item for item in data if isinstance(item, str) and not _OBJECT.match(item)]
        if len(data) == 1 or (len(texts) == 1 and texts[0] is data[0]):
            yield data[0]
        return
    for holder in ("kwargs", "inputs"):  # before the positional arguments, whose names are lost
        inner = data.get(holder)
        if isinstance(inner, dict) and any(key in inner for key in _QUESTION_KEYS):
            yield inner
    arguments = data.get("args")
    if isinstance(arguments, list):
        yield from _positional(arguments)
    yield from (data[key] for key in _QUESTION_KEYS if key not in ("args", "kwargs") and data.get(key) is not None)
    nested = [value for value in data.values() if isinstance(value, dict)]
    for key in ("question", "query", "user_input", "messages", "text", "prompt"):  # one component each (Haystack)
        yield from (component[key] for component in nested if component.get(key))
    if len(data) == 1 and isinstance(only := next(iter(data.values())), str):
        yield only


def _positional(arguments: list[Any]) -> Iterator[Any]:
    """The first argument that is a text or a conversation (objects such as `self` are skipped)."""
    for argument in arguments:
        spoken = isinstance(argument, str) and not _OBJECT.match(argument)
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
    match = _DSPY_HISTORY.match(value) if isinstance(value, str) else None
    rows = values.data(match[1]) if match else value.get("messages") if isinstance(value, dict) else None
    turns = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            said, _, _ = _question(row, 1)
            replied = row.get("answer", row.get("response", row.get("output")))
            turns.append(messages.Turn("user", said))
            turns.append(messages.Turn("assistant", replied if isinstance(replied, str) else None))
    return turns


def _answer(data: Any, depth: int) -> str | None:
    data = values.data(data) if isinstance(data, str) and data.lstrip()[:1] in ("{", "[", '"') else data
    if isinstance(data, str):
        return None if _OBJECT.match(data) else data
    if depth == 0 or not isinstance(data, (list, dict)) or not data:
        return None
    if isinstance(data, list):
        return _answer_in_list(data, depth)
    if documents.looks_like_document(data) and "page_content" in data:
        return None
    if messages.is_message(data):
        return messages.last_answer(messages.turns(data))
    if isinstance(data.get("kwargs"), dict) and "lc" in data:
        return _answer(data["kwargs"], depth - 1)
    for key in _ANSWER_KEYS:
        if data.get(key) is not None:
            found = _answer(data[key], depth - 1)
            if found is not None:
                return found
    for inner in data.values():  # one component each (Haystack)
        if isinstance(inner, dict) and any(inner.get(key) for key in ("replies", "answers", "reply", "answer")):
            return _answer(inner, depth - 1)
    return None


def _answer_in_list(data: list[Any], depth: int) -> str | None:
    conversation = messages.turns(data)
    if conversation:
        return messages.last_answer(conversation)
    if all(documents.looks_like_document(item) for item in data):
        return None
    deltas = [_delta(item) for item in data]
    if len(data) > 1 and all(delta is not None for delta in deltas):
        return "".join(delta or "" for delta in deltas)
    if all(isinstance(item, dict) and isinstance(item.get("type", ""), str) for item in data):
        found = [text for item in data if (text := _answer(item, depth - 1)) is not None]
        return "\n".join(found) if found and all("type" in item for item in data) else (found[0] if found else None)
    if len(data) == 1:
        return _answer(data[0], depth - 1)
    return "".join(data) if _streamed(data) else None


def _streamed(data: list[Any]) -> bool:
    """Whether texts are what a generator yielded token by token, spaces and all."""
    texts = [item for item in data if isinstance(item, str)]
    if len(texts) < max(3, len(data)):
        return False
    spaced = sum(text[:1].isspace() or text[-1:].isspace() for text in texts)
    return spaced * 4 >= len(texts) and sum(map(len, texts)) <= 20 * len(texts)


def _delta(item: Any) -> str | None:
    """The text a streamed chunk adds; None when the item is no chunk."""
    choices = item.get("choices") if isinstance(item, dict) else None
    if not isinstance(choices, list):
        return None
    delta = choices[0].get("delta") if choices and isinstance(choices[0], dict) else {}
    return str(delta.get("content") or "") if isinstance(delta, dict) else None


def _final(text: str) -> str:
    """The answer inside a model's structured text: DSPy's sections, or JSON with a telling key."""
    sections = prompt.output_sections(text)
    if sections:
        known = [name for name in ("answer", "response", "output", "result") if name in sections]
        others = [name for name in sections if name not in ("reasoning", "rationale", "completed", "thoughts")]
        return sections[(known or others or list(sections))[0]]
    if text.lstrip()[:1] == "{":
        parsed = values.parse(text)
        if isinstance(parsed.data, dict) and not parsed.flaw:
            for key in ("answer", "final_answer", "output", "result", "response", "content", "text", "reply"):
                if isinstance(parsed.data.get(key), str):
                    return str(parsed.data[key])
    return text
