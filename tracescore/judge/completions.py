"""Where the text of a chat completion stands, and what kept it from coming to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tracescore.errors import JudgeError

_CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
_REFUSED = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist", "guardrail_intervened"}
)
"""Reasons to finish, as OpenAI, Anthropic, Gemini, Mistral and Bedrock call them, in small letters."""


def text_of(payload: Mapping[str, Any]) -> str:
    """The text of a chat completion that came to its end; JudgeError when it was refused, cut off or is empty.

    A gateway may have made the form that was asked for a tool, then the text is what the tool is called with; and a
    server that takes all of a reply for thought leaves no other place for it.
    """
    choices = payload.get("choices")
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    message = _object(choice.get("message"))
    finish = str(choice.get("finish_reason")).casefold()
    content = message.get("content")
    parts = [_object(part) for part in content] if isinstance(content, list) else []
    if message.get("refusal") or any(part.get("refusal") for part in parts) or finish in _REFUSED:
        raise JudgeError("judge_refused", "the judge refused to answer")
    if finish in _CUT_OFF:
        raise JudgeError("judge_truncated", "the reply was cut off")
    if parts:
        content = "".join(str(part.get("text") or "") for part in parts)
    thought = message.get("reasoning_content") or message.get("reasoning")
    for text in (content, _arguments(message), thought):
        if isinstance(text, str) and text.strip():
            return text
    raise JudgeError("judge_unreadable", "the reply is empty")


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _arguments(message: Mapping[str, Any]) -> str | None:
    """What the one function is called with."""
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    function = _object(_object(call).get("function") or message.get("function_call"))
    given = function.get("arguments")
    return orjson.dumps(given).decode() if isinstance(given, dict) else given
