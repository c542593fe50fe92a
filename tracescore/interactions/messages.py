"""Lists of chat messages in any of the shapes that libraries record, as plain turns.

Understood: OpenAI dicts; OpenTelemetry parts; LangChain (`{"type": "human", "data": {...}}`, constructor wrappers,
`content='...'` reprs); Vercel content parts; Haystack ChatMessages; LlamaIndex blocks; Anthropic and Gemini parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracescore.interactions import values
from tracescore.model import Message

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "ipython": "tool",
    "humanmessage": "user",
    "aimessage": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
}
_REPR = re.compile(r"""^content=(?P<quote>['"])(?P<text>.*?)(?P=quote) (?P<rest>additional_kwargs=.*)$""", re.DOTALL)
_CALLS = ("tool_call", "tool-call", "tool_use", "function_call")
_RESULTS = ("tool_call_response", "tool-result", "tool_result", "tool_response", "function_call_output")
_BODIES = frozenset(("content", "parts", "tool_calls", "text", "_content", "blocks", "contents", "output"))
"""One of these keys is in every message."""
_NOT_TEXT = ("reasoning", "thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back inside a conversation; `name` is empty where the message does not say."""

    call_id: str
    name: str
    result: Any


class Turn(NamedTuple):  # made for every message: a frozen dataclass takes three times as long
    """One message: `role` is system, user, assistant or tool; `text` is None when it has no text part at all."""

    role: str
    text: str | None
    results: tuple[ToolResult, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    """(id, name) of the tool calls the assistant asked for."""


def turns(value: Any) -> list[Turn]:
    """The messages in `value`; empty when it is not a message or a list of messages."""
    value = values.data(value)
    if isinstance(value, dict):
        inner = value.get("messages")
        if isinstance(inner, (list, str)) and _role(value) is None:
            return turns(inner)
        turn = _turn(value)
        return [turn] if turn else []
    if not isinstance(value, list) or not value:
        return []
    if len(value) == 1 and isinstance(value[0], list):
        return turns(value[0])
    found = [_turn(item) for item in value]
    return [turn for turn in found if turn] if all(found) else []


def last_user(conversation: Sequence[Turn]) -> int | None:
    """Index of the last message in which the user says something (tool results in a user's role do not count)."""
    for at in range(len(conversation) - 1, -1, -1):
        if conversation[at].role == "user" and (conversation[at].text or "").strip():
            return at
    return None


def last_answer(conversation: Sequence[Turn]) -> str | None:
    """Text of the last assistant message that has any; None when the assistant only called tools."""
    for turn in reversed(conversation):
        if turn.role == "assistant" and turn.text is not None and (turn.text.strip() or not turn.calls):
            return turn.text
        if turn.role == "user" and turn.text:
            break
    return None


def history(conversation: Sequence[Turn], before: int) -> tuple[Message, ...]:
    """What user and assistant said before message number `before`."""
    earlier = (turn for turn in conversation[:before] if turn.role in ("user", "assistant"))
    return tuple(Message(turn.role, turn.text) for turn in earlier if turn.text and turn.text.strip())


def results_after(conversation: Sequence[Turn], start: int) -> list[ToolResult]:
    """Tool results behind message number `start`, with the names their calls had."""
    names = {call: name for turn in conversation for call, name in turn.calls}
    found = [result for turn in conversation[start:] for result in turn.results]
    return [ToolResult(r.call_id, r.name or names.get(r.call_id, ""), r.result) for r in found]


def is_message(value: Any) -> bool:
    """Whether a dict is one chat message."""
    return isinstance(value, dict) and _turn(value) is not None


def _role(message: dict[str, Any]) -> str | None:
    role = message.get("role", message.get("type"))
    if isinstance(role, str):
        found = _ROLES.get(role.rpartition(".")[2].lower())
        if found:
            return found
    if isinstance(message.get("id"), list) and message["id"]:  # LangChain constructor
        return _ROLES.get(str(message["id"][-1]).removesuffix("Chunk").lower())
    return None


def _turn(value: Any) -> Turn | None:
    if isinstance(value, str):
        value = values.data(value) if value.lstrip()[:1] == "{" else value
    if isinstance(value, str):
        return _repr_turn(value)
    if not isinstance(value, dict):
        return None
    for wrapper in ("kwargs", "data", "message"):  # LangChain constructor, LangChain dump, OpenAI choice
        inner = value.get(wrapper)
        if isinstance(inner, dict) and "content" in inner:
            role = _role(value) or _role(inner)
            return _from(role, inner) if role else None
    if value.get("type") == "function_call_output":
        return _from("tool", value)
    if value.get("type") == "function_call":
        return Turn("assistant", None, calls=((str(value.get("call_id", "")), str(value.get("name", ""))),))
    role = _role(value)
    return _from(role, value) if role and not _BODIES.isdisjoint(value) else None


def _from(role: str, message: dict[str, Any]) -> Turn:
    keys = ("parts", "content", "_content", "blocks", "contents", "text")
    body = next((message[key] for key in keys if message.get(key) is not None), None)
    texts, results, calls = _parts(body, role)
    for call in message.get("tool_calls") or ():
        if isinstance(call, dict):
            function = call.get("function")
            name = function.get("name") if isinstance(function, dict) else call.get("name")
            calls.append((str(call.get("id", "")), str(name or "")))
    text = "\n".join(texts) if texts else None
    if role == "tool" and not results:
        call_id = str(message.get("tool_call_id", message.get("call_id", message.get("id", ""))))
        output = message.get("output", text)
        return Turn("tool", None, (ToolResult(call_id, str(message.get("name") or ""), output),))
    return Turn(role, text, tuple(results), tuple(calls))


def _parts(body: Any, role: str) -> tuple[list[str], list[ToolResult], list[tuple[str, str]]]:
    """Texts, tool results and tool calls in a message's content."""
    texts: list[str] = []
    results: list[ToolResult] = []
    calls: list[tuple[str, str]] = []
    if isinstance(body, str) and body.lstrip()[:1] in ("[", "{") and _is_part_list(values.data(body)):
        body = values.data(body)
    for part in body if isinstance(body, list) else [body]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = part.get("type", part.get("block_type", part.get("kind", "")))
            if kind in _RESULTS or "tool_call_result" in part or "functionResponse" in part:
                results.append(_result(part))
            elif kind in _CALLS or "tool_call" in part:
                call = part.get("tool_call") if isinstance(part.get("tool_call"), dict) else part
                identity = call.get("id", call.get("toolCallId", "")) if isinstance(call, dict) else ""
                name = call.get("name", call.get("toolName", "")) if isinstance(call, dict) else ""
                calls.append((str(identity), str(name)))
            elif kind not in _NOT_TEXT:
                text = _part_text(part)
                if text is not None:
                    texts.append(text)
    if role == "tool" and texts and results:
        texts = []
    return texts, results, calls


def _part_text(part: dict[str, Any]) -> str | None:
    """The text of a text part, whatever its library calls the field."""
    for key in ("text", "content", "value", "message_content.text"):
        text = part.get(key)
        if isinstance(text, dict):
            text = text.get("value", text.get("text"))
        if isinstance(text, str):
            return text
    return None


def _result(part: dict[str, Any]) -> ToolResult:
    inner = part.get("tool_call_result", part.get("functionResponse", part))
    inner = inner if isinstance(inner, dict) else part
    origin: dict[str, Any] = inner["origin"] if isinstance(inner.get("origin"), dict) else {}
    call_id = inner.get("id", inner.get("toolCallId", inner.get("tool_use_id", inner.get("call_id", ""))))
    name = inner.get("name") or inner.get("toolName") or origin.get("tool_name") or ""
    keys = ("response", "result", "output", "content")
    result = next((inner[key] for key in keys if inner.get(key) is not None), None)
    if isinstance(result, dict) and "value" in result and str(result.get("type", "")).startswith("error"):
        result = None
    elif isinstance(result, dict) and set(result) <= {"type", "value"} and "value" in result:
        result = result["value"]
    return ToolResult(str(call_id or origin.get("id") or ""), str(name), result)


def _is_part_list(value: Any) -> bool:
    items: Iterable[Any] = value if isinstance(value, list) else ()
    found = [isinstance(item, dict) and ("type" in item or "block_type" in item) for item in items]
    return bool(found) and all(found)


def _repr_turn(text: str) -> Turn | None:
    """A LangChain message printed with str(): `content='...' additional_kwargs={...} ...`."""
    match = _REPR.match(text)
    if match is None:
        return None
    rest = match["rest"]
    role = "assistant" if "invalid_tool_calls" in rest or "usage_metadata" in rest else "user"
    if "tool_call_id=" in rest:
        return Turn("tool", None, (ToolResult("", "", match["text"]),))
    return Turn(role, match["text"].replace("\\n", "\n").replace("\\'", "'"))
