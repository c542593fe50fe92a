"""Answers out of recorded outputs of any shape, and what a model said out of its raw response."""

from __future__ import annotations

from typing import Any

from tracescore.interactions import documents, messages, plausibility, prompt, values

_DEPTH = 6
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
    "raw",
    "final_result",
    "chat_message",
    "generated_text",
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
_COMPONENT_KEYS = ("replies", "answers", "reply", "answer", "messages", "last_message")
_RESPONSE_KEYS = ("choices", "generations", "replies", "candidates", "message", "delta", "object", "parts")
_NO_ANSWER = frozenset(("id", "model", "object", "created", "usage", "finish_reason", "system_fingerprint"))
"""What is left of a response when its text was not recorded."""
_STRUCTURED = ("answer", "final_answer", "output", "result", "response", "content", "text", "reply")
"""Where the answer stands in JSON that a model was told to reply with; behind the second only in company of these:"""
_COMPANY = frozenset(
    (*_STRUCTURED, "sources", "citations", "references", "source", "quotes", "confidence", "score", "reasoning")
).union(("thought", "thoughts", "rationale", "explanation", "language", "type", "role", "follow_up", "found", "status"))


def answered(value: Any) -> tuple[str | None, values.Flaw]:
    """The answer in an output, and its flaw."""
    text, flaw, _ = _answered(values.parse(value), "output")
    return text, flaw


Told = tuple[str | None, values.Flaw, bool]
"""(what was told, its flaw, whether the model asked for a tool and said nothing)."""


def _answered(parsed: values.Parsed, source: plausibility.Source) -> Told:
    if isinstance(parsed.data, dict) and parsed.data.keys() <= _NO_ANSWER:
        return None, parsed.flaw, False
    if parsed.flaw and parsed.data is None:
        return None, parsed.flaw, False
    text = _answer(parsed.data, _DEPTH)
    if text is None and documents.is_object(parsed.data):
        return None, parsed.flaw or "implausible", False
    return _told(text, parsed.flaw, source)


def replied(value: Any) -> Told:
    """What a model said.

    JSON that a model said is a recorded response only if it has the form of one, else its text.
    """
    parsed = values.parse(value)
    turns = [] if isinstance(parsed.data, str) else messages.turns(parsed.data)
    text = "".join(turn.text or "" for turn in turns) if messages.streamed(turns) else messages.last_answer(turns)
    if turns and turns[-1].calls and text is None:
        return None, parsed.flaw, True
    if isinstance(parsed.data, list) and turns:
        return _told(text, parsed.flaw)
    spoken = isinstance(value, str) and parsed.flaw != "redacted" and not turns and not _is_response(parsed.data)
    if spoken and not (isinstance(parsed.data, dict) and parsed.data.keys() <= _NO_ANSWER):
        return (None, parsed.flaw, False) if parsed.flaw == "implausible" else _told(value, "")
    return _answered(parsed, "reply")


def _told(text: str | None, flaw: values.Flaw, source: plausibility.Source = "reply") -> Told:
    """A text as the answer; `flaw` is that of the recording it was to be found in."""
    if text is None:
        return None, flaw, False
    if values.redacted(text):
        return None, "redacted", False
    freed, flaw = plausibility.passed(text, source)
    if freed is None:
        return None, flaw, not flaw
    final = _final(freed)
    if final is None:
        return None, "", True
    return final, "truncated" if values.cut(final) else "", False


def _is_response(data: Any) -> bool:
    """Whether data are a model's or library's response that holds messages."""
    holder = data[0] if isinstance(data, list) and len(data) == 1 else data
    return isinstance(holder, dict) and any(key in holder for key in _RESPONSE_KEYS)


def conversation(value: Any) -> list[messages.Turn]:
    """The messages in the state that a flow was given or gave back; of one component, where each has its own."""
    data = values.data(value)
    for _ in range(3):
        found = messages.turns(data)
        if found or not isinstance(data, dict):
            return found
        inner = [item for item in data.values() if isinstance(item, dict)]
        known = next((data[key] for key in ("messages", "update", "output", "outputs") if data.get(key)), None)
        data = values.data(known) if known is not None else next((one for one in inner if "messages" in one), None)
    return []


def _answer(data: Any, depth: int) -> str | None:
    data = values.data(data)
    if isinstance(data, str):
        return data
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
        if isinstance(inner, dict) and any(inner.get(key) for key in _COMPONENT_KEYS):
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
    """Whether data are texts that a generator yielded token by token, spaces and all."""
    return all(isinstance(item, str) for item in data) and messages.pieces(data)


def _delta(item: Any) -> str | None:
    """The text a streamed chunk adds; None when the item is no chunk."""
    choices = item.get("choices") if isinstance(item, dict) else None
    if not isinstance(choices, list):
        return None
    delta = choices[0].get("delta") if choices and isinstance(choices[0], dict) else {}
    return str(delta.get("content") or "") if isinstance(delta, dict) else None


def _final(text: str) -> str | None:
    """The answer inside a model's structured text, DSPy's sections or JSON with a telling key; None: it asks a tool."""
    sections = prompt.output_sections(text)
    if "next_tool_name" in sections:
        return None
    if sections:
        known = [name for name in ("answer", "response", "output", "result") if name in sections]
        others = [name for name in sections if name not in ("reasoning", "rationale", "completed", "thoughts")]
        return sections[(known or others or list(sections))[0]]
    if text.lstrip()[:1] == "{":
        parsed = values.parse(text)
        if isinstance(parsed.data, dict) and not parsed.flaw and not documents.is_object(parsed.data):
            key = next((key for key in _STRUCTURED if isinstance(parsed.data.get(key), str)), None)
            if key and (key in _STRUCTURED[:2] or parsed.data.keys() <= _COMPANY):
                return str(parsed.data[key])
    return text
