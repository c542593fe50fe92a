"""Lists of chat messages in any of the shapes that libraries record, as plain turns.

Understood: OpenAI dicts; OpenTelemetry parts; LangChain (`{"type": "human", "data": {...}}`, constructor wrappers,
reprs of either); Vercel content parts; Haystack ChatMessages; LlamaIndex blocks; Anthropic and Gemini parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracescore.interactions import reprs, scaffolds, values
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
    "tool-call": "assistant",
    "tool-response": "tool",
    "bot": "assistant",
    "humanmessage": "user",
    "aimessage": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
}
_PLAIN_ROLES = ("user", "assistant", "system", "tool")
_WRAPPERS = ("kwargs", "data", "message")
"""What holds the message in LangChain's constructors and dumps, and in OpenAI's choices."""
_ODD = (*_WRAPPERS, "type")
_CALLS = ("tool_call", "tool-call", "tool_use", "function_call")
_RESULT_HOLDERS = ("tool_call_result", "functionResponse", "function_response", "toolResult")
_CALL_HOLDERS = ("tool_call", "toolUse", "functionCall", "function_call")
_UNTYPED_RESULTS = (frozenset(("call_id", "content")), frozenset(("origin", "result")))
_UNTYPED_CALLS = (frozenset(("arguments", "name")), frozenset(("arguments", "tool_name")))
_RESULT_IDS = ("id", "toolCallId", "tool_use_id", "toolUseId", "call_id")
_RESULTS = ("tool_call_response", "tool-result", "tool_result", "tool_response", "function_call_output")
_BODIES = frozenset(("content", "parts", "tool_calls", "text", "_content", "blocks", "contents", "output"))
"""One of these keys is in every message."""
_HELD = ("parts", "content", "_content", "blocks", "contents", "text")
"""Where what a message says is looked for."""
_NOT_TEXT = frozenset(
    ("reasoning", "thinking", "redacted_thinking", "thought", "thoughts", "reasoning_content", "summary_text")
).union(("blob", "image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "uri"))
"""What a model thought, and what is to be seen or heard."""
_MEDIA = ("mime_type", "mimeType", "media_type", "inline_data", "inlineData", "reasoningContent")
_BLOCKS = frozenset(
    ("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint", "guardContent")
)
"""The keys of Bedrock's content blocks, which have no type."""
_PIECES = 3
"""Fewer texts are no stream."""
_OF_ASSISTANT = ("usage_metadata", "invalid_tool_calls", "tool_calls", "finish_reason")
_MODEL_RUN = ("run-", "run--", "lc_run", "chatcmpl", "msg_", "resp_")


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
    if isinstance(value[0], str) and (pair := _pair(value)):
        return [pair]
    found = [_turn(item) for item in value if not _is_aside(item)]
    if not found or None in found:
        return []
    return _with_observations([turn for turn in found if turn])


def _is_aside(item: Any) -> bool:
    """Whether a list of messages holds in this place what is none: a thought, a call of a tool of the provider."""
    if not isinstance(item, dict) or "role" in item:  # the most
        return False
    kind = item.get("type")
    return isinstance(kind, str) and (kind in _NOT_TEXT or (kind.endswith("_call") and kind != "function_call"))


def _pair(value: list[Any]) -> Turn | None:
    """A message as (role, text)."""
    if len(value) != 2 or not all(isinstance(item, str) for item in value):
        return None
    role = _ROLES.get(value[0].lower())
    return Turn(role, value[1]) if role else None


def _with_observations(conversation: list[Turn]) -> list[Turn]:
    """Messages in which what a tool gave back, and an agent handed on as if the user had said it, is a tool's."""
    for at, turn in enumerate(conversation):
        if turn.role == "user" and at and turn.text and (begun := scaffolds.OBSERVED.match(turn.text)):
            before = conversation[at - 1]
            name = scaffolds.called(before.text or "") if before.role == "assistant" else ""
            conversation[at] = Turn("tool", None, (ToolResult("", name, turn.text[begun.end() :]),))
    return conversation


def last_user(conversation: Sequence[Turn]) -> int | None:
    """Index of the last message of the user; None where it says nothing, whatever was said before.

    Tool results in a user's role are no message of the user.
    """
    for at in range(len(conversation) - 1, -1, -1):
        turn = conversation[at]
        if turn.role == "user" and (turn.text or "").strip():
            return at
        if turn.role == "user" and not turn.results:
            return None
    return None


def last_answer(conversation: Sequence[Turn]) -> str | None:
    """Text of the last assistant message that has any; None when the assistant only called tools."""
    for turn in reversed(conversation):
        if turn.role == "assistant" and turn.text is not None and (turn.text.strip() or not turn.calls):
            return turn.text
        if turn.role == "user" and turn.text:
            break
    return None


def streamed(conversation: Sequence[Turn]) -> bool:
    """Whether messages are the pieces of one, which the assistant's model sent token by token, spaces and all."""
    if len(conversation) < _PIECES:
        return False
    said = all(turn.role == "assistant" and not turn.calls for turn in conversation)
    return said and pieces([turn.text or "" for turn in conversation])


def pieces(texts: Sequence[str]) -> bool:
    """Whether texts are what a generator yielded token by token."""
    spaced = sum(text[:1].isspace() or text[-1:].isspace() for text in texts)
    return len(texts) >= _PIECES and spaced * 4 >= len(texts) and sum(map(len, texts)) <= 20 * len(texts)


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
    if (role := message.get("role")) in _PLAIN_ROLES:  # the most
        return str(role)
    for role in (message.get("role"), message.get("_role"), message.get("type"), message.get(reprs.TYPE)):
        found = _ROLES.get(role.rpartition(".")[2].removesuffix("Chunk").lower()) if isinstance(role, str) else None
        if found:
            return found
    source, kind = message.get("source"), message.get("type", message.get(reprs.TYPE))
    if isinstance(source, str) and isinstance(kind, str) and kind.endswith(("Message", "Event")):  # AutoGen
        return "user" if source == "user" else "assistant"
    if isinstance(message.get("id"), list) and message["id"]:  # LangChain constructor
        return _ROLES.get(str(message["id"][-1]).removesuffix("Chunk").lower())
    return None


def _turn(value: Any) -> Turn | None:
    if isinstance(value, dict) and value.get("role") in _PLAIN_ROLES and value.keys().isdisjoint(_ODD):  # the most
        return _from(str(value["role"]), value) if not _BODIES.isdisjoint(value) else None
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = values.data(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return _pair(value)
    if isinstance(value, str) and reprs.begins(value):
        value = values.data(value)
    if not isinstance(value, dict):
        return None
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, dict) and "content" in inner:
            role = _role(value) or _role(inner)
            return _from(role, inner) if role else None
    if value.get("type") == "function_call_output":
        return _from("tool", value)
    if value.get("type") == "function_call":
        return Turn("assistant", None, calls=((str(value.get("call_id", "")), str(value.get("name", ""))),))
    role = _role(value) or _printed_role(value)
    return _from(role, value) if role and not _BODIES.isdisjoint(value) else None


def _printed_role(message: dict[str, Any]) -> str | None:
    """Whose a LangChain message is that was printed with str(), which leaves its class out."""
    if "content" not in message or message.keys().isdisjoint(
        ("additional_kwargs", "response_metadata", "tool_call_id")
    ):
        return None
    if message.get("tool_call_id"):
        return "tool"
    run = str(message.get("id") or "").startswith(_MODEL_RUN)
    made = run or bool(message.get("response_metadata")) or any(key in message for key in _OF_ASSISTANT)
    return "assistant" if made else "user"


def _from(role: str, message: dict[str, Any]) -> Turn:
    body = None
    for key in _HELD:
        if (body := message.get(key)) is not None:
            break
    if isinstance(body, list) and len(body) == 1 and role != "tool" and "tool_calls" not in message:
        said = _plain_part(body[0]) if isinstance(body[0], dict) else None
        if said is not None:  # the most
            return Turn(role, said)
    texts, results, calls = _parts(body, role)
    for call in message.get("tool_calls") or ():
        if isinstance(call, dict):
            function = call.get("function")
            name = function.get("name") if isinstance(function, dict) else call.get("name")
            calls.append((str(call.get("id", "")), str(name or "")))
    text = "\n".join(texts) if texts else None
    if role == "tool" and not results:
        call_id = str(message.get("tool_call_id", message.get("call_id", message.get("id", ""))))
        output = None if _failed(message) else message.get("output", text)
        return Turn("tool", None, (ToolResult(call_id, str(message.get("name") or ""), output),))
    return Turn(role, text, tuple(results), tuple(calls))


def _parts(body: Any, role: str) -> tuple[list[str], list[ToolResult], list[tuple[str, str]]]:
    """Texts, tool results and tool calls in a message's content."""
    if isinstance(body, str) and body.lstrip()[:1] not in ("[", "{"):  # the most
        return [body], [], []
    texts: list[str] = []
    results: list[ToolResult] = []
    calls: list[tuple[str, str]] = []
    if isinstance(body, str) and _is_part_list(values.data(body)):
        body = values.data(body)
    for part in body if isinstance(body, list) else [body]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and (said := _plain_part(part)) is not None:
            texts.append(said)
        elif isinstance(part, dict):
            kind = part.get("type", part.get("block_type", part.get("kind", "")))
            if kind in _RESULTS or _holds(part, _RESULT_HOLDERS, _UNTYPED_RESULTS):
                results.append(_result(part))
            elif kind in _CALLS or _holds(part, _CALL_HOLDERS, _UNTYPED_CALLS):
                call = next((part[key] for key in _CALL_HOLDERS if isinstance(part.get(key), dict)), part)
                identity = call.get("id", call.get("toolCallId", call.get("toolUseId", "")))
                calls.append((str(identity), str(call.get("name", call.get("toolName", call.get("tool_name", ""))))))
            elif (
                kind not in _NOT_TEXT
                and part.get("thought") is not True
                and not any(part.get(key) is not None for key in _MEDIA)
            ):
                text = _part_text(part)
                if text is not None:
                    texts.append(text)
    if role == "tool" and texts and results:
        texts = []
    return texts, results, calls


def _plain_part(part: dict[str, Any]) -> str | None:
    """The text of a part that is no more than a text, as the most are."""
    if len(part) != 2 or part.get("type") != "text":
        return None
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else None


def _holds(part: dict[str, Any], holders: tuple[str, ...], untyped: tuple[frozenset[str], ...]) -> bool:
    """Whether a part of no known type is a call or a result by its keys."""
    return any(part.get(key) is not None for key in holders) or any(keys <= part.keys() for keys in untyped)


def _part_text(part: dict[str, Any]) -> str | None:
    """The text of a text part, whatever its library calls the field."""
    for key in ("text", "content", "value", "message_content.text"):
        text = part.get(key)
        if isinstance(text, dict):
            text = text.get("value", text.get("text"))
        if isinstance(text, str):
            return text
    return None


def _failed(message: dict[str, Any]) -> bool:
    """Whether a tool's message says, beside its text, that the tool failed."""
    return message.get("status") == "error" or message.get("is_error") is True


def _result(part: dict[str, Any]) -> ToolResult:
    inner = next((part[key] for key in _RESULT_HOLDERS if isinstance(part.get(key), dict)), part)
    origin: dict[str, Any] = inner["origin"] if isinstance(inner.get("origin"), dict) else {}
    call_id = next((inner[key] for key in _RESULT_IDS if inner.get(key)), "")
    name = inner.get("name") or inner.get("toolName") or origin.get("tool_name") or ""
    keys = ("response", "result", "output", "content")
    result = next((inner[key] for key in keys if inner.get(key) is not None), None)
    if _failed(inner) or (
        isinstance(result, dict) and "value" in result and str(result.get("type")).startswith("error")
    ):
        result = None
    elif isinstance(result, dict) and set(result) <= {"type", "value"} and "value" in result:
        result = result["value"]
    return ToolResult(str(call_id or origin.get("id") or ""), str(name), result)


def _is_part_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_part, value))


def _is_part(item: Any) -> bool:
    typed = isinstance(item, dict) and ("type" in item or "block_type" in item)
    return typed or (isinstance(item, dict) and bool(item) and item.keys() <= _BLOCKS)
