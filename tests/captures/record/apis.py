"""The wire forms of the model APIs: a request becomes the script's, its step becomes a reply, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .script import Call, Message, Tool, decide

Reply = dict[str, Any] | Iterator[str]
Api = Callable[[dict[str, Any], int, str], Reply]
_CREATED = 1700000000


def _text(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts (tool results included)."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (_text(part) for part in content)))
    if isinstance(content, dict):
        return next((_text(content[key]) for key in ("text", "content", "response", "result") if content.get(key)), "")
    return ""


def _sse(event: str | None, data: dict[str, Any]) -> str:
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(data)}\n\n"


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


def _openai_tools(ask: dict[str, Any]) -> list[Tool]:
    functions = [each.get("function") or each for each in ask.get("tools") or []]
    return [Tool(f.get("name") or "", (f.get("parameters") or {}).get("properties") or {}) for f in functions]


def chat(ask: dict[str, Any], number: int, _path: str) -> Reply:
    """OpenAI's chat completions."""
    roles = {"developer": "system", "function": "tool"}
    messages = [Message(roles.get(m["role"], m["role"]), _text(m.get("content"))) for m in ask.get("messages") or []]
    schema = ((ask.get("response_format") or {}).get("json_schema") or {}).get("schema")
    step = decide(messages, _openai_tools(ask), schema)
    base = {"id": f"chatcmpl-{number:04}", "created": _CREATED, "model": ask.get("model")}
    usage = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}
    if isinstance(step, Call):
        function = {"name": step.name, "arguments": json.dumps(step.arguments)}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        message, why = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        deltas = [{"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}]
    else:
        message, why = {"role": "assistant", "content": step}, "stop"
        deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in _pieces(step))]
    if not ask.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": why}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": why}]})
    if (ask.get("stream_options") or {}).get("include_usage"):
        chunks.append({"choices": [], "usage": usage})
    lines = [_sse(None, {**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return iter([*lines, "data: [DONE]\n\n"])


def responses(ask: dict[str, Any], number: int, _path: str) -> Reply:
    """OpenAI's responses."""
    given = ask.get("input") or ""
    items = given if isinstance(given, list) else [{"role": "user", "content": given}]
    messages = [Message("system", ask.get("instructions") or "")]
    for item in items:
        if item.get("type") == "function_call_output":
            messages.append(Message("tool", _text(item.get("output"))))
        elif item.get("role"):
            role = {"developer": "system"}.get(item["role"], item["role"])
            messages.append(Message(role, _text(item.get("content"))))
    schema = ((ask.get("text") or {}).get("format") or {}).get("schema")
    step = decide(messages, _openai_tools(ask), schema)
    if isinstance(step, Call):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": step.name}
        item |= {"arguments": json.dumps(step.arguments), "status": "completed"}
    else:
        part = {"type": "output_text", "text": step, "annotations": []}
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": _CREATED, "model": ask.get("model")}
    whole |= {"status": "completed", "output": [item], "parallel_tool_calls": False, "tool_choice": "auto"}
    whole |= {"tools": ask.get("tools") or [], "usage": usage}
    return _response_events(whole, item) if ask.get("stream") else whole


def _response_events(whole: dict[str, Any], item: dict[str, Any]) -> Iterator[str]:
    begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
    where = {"output_index": 0, "item_id": item["id"]}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}),
        ("response.output_item.added", {"output_index": 0, "item": begun}),
    ]
    if "content" in item:
        part, inside = item["content"][0], {**where, "content_index": 0}
        events.append(("response.content_part.added", {**inside, "part": {**part, "text": ""}}))
        events += [
            ("response.output_text.delta", {**inside, "delta": piece, "logprobs": []})
            for piece in _pieces(part["text"])
        ]
        events.append(("response.output_text.done", {**inside, "text": part["text"], "logprobs": []}))
        events.append(("response.content_part.done", {**inside, "part": part}))
    else:
        events.append(("response.function_call_arguments.delta", {**where, "delta": item["arguments"]}))
        done = {**where, "arguments": item["arguments"], "name": item["name"]}
        events.append(("response.function_call_arguments.done", done))
    events.append(("response.output_item.done", {"output_index": 0, "item": item}))
    events.append(("response.completed", {"response": whole}))
    return iter([_sse(kind, {"type": kind, "sequence_number": n, **data}) for n, (kind, data) in enumerate(events)])


def anthropic(ask: dict[str, Any], number: int, _path: str) -> Reply:
    """Anthropic's messages."""
    messages = [Message("system", _text(ask.get("system")))]
    for each in ask["messages"]:
        content = each["content"]
        result = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
        messages.append(Message("tool" if result else each["role"], _text(content)))
    tools = [Tool(t["name"], (t.get("input_schema") or {}).get("properties") or {}) for t in ask.get("tools") or []]
    step = decide(messages, tools)
    if isinstance(step, Call):
        block: dict[str, Any] = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": step.name,
            "input": step.arguments,
        }
    else:
        block = {"type": "text", "text": step}
    why = "tool_use" if isinstance(step, Call) else "end_turn"
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": ask["model"], "content": [block]}
    whole |= {"stop_reason": why, "stop_sequence": None, "usage": {"input_tokens": 40, "output_tokens": 12}}
    return _anthropic_events(whole, block) if ask.get("stream") else whole


def _anthropic_events(whole: dict[str, Any], block: dict[str, Any]) -> Iterator[str]:
    text = "text" in block
    begun = {**block, **({"text": ""} if text else {"input": {}})}
    deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])] if text else []
    if not text:
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    events = [
        ("message_start", {"message": {**whole, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": begun}),
        *(("content_block_delta", {"index": 0, "delta": delta}) for delta in deltas),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {"delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": whole["usage"]},
        ),
        ("message_stop", {}),
    ]
    return iter([_sse(kind, {"type": kind, **data}) for kind, data in events])


def gemini(ask: dict[str, Any], number: int, path: str) -> Reply:
    """Gemini's generateContent and streamGenerateContent."""
    messages = [Message("system", _text((ask.get("systemInstruction") or {}).get("parts")))]
    for content in ask["contents"]:
        parts = content["parts"]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        role = "tool" if results else {"model": "assistant"}.get(content.get("role") or "user", "user")
        messages.append(Message(role, json.dumps(results) if results else _text(parts)))
    declared = [f for tool in ask.get("tools") or [] for f in tool.get("functionDeclarations") or []]
    tools = [Tool(f["name"], _gemini_properties(f)) for f in declared]
    step = decide(messages, tools)
    if isinstance(step, Call):
        parts = [{"functionCall": {"name": step.name, "args": step.arguments}}]
    else:
        parts = [{"text": piece} for piece in (_pieces(step) if "stream" in path else [step])]
    usage = {"promptTokenCount": 40, "candidatesTokenCount": 12, "totalTokenCount": 52}
    base = {"modelVersion": "gemini-2.5-flash", "responseId": f"resp{number}", "usageMetadata": usage}
    replies = [{**base, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    replies[-1]["candidates"][0]["finishReason"] = "STOP"
    return iter([_sse(None, reply) for reply in replies]) if "stream" in path else replies[0]


def _gemini_properties(function: dict[str, Any]) -> dict[str, Any]:
    return (function.get("parameters") or function.get("parametersJsonSchema") or {}).get("properties") or {}


def ollama(ask: dict[str, Any], _number: int, _path: str) -> Reply:
    """Ollama's own chat."""
    messages = [Message(m["role"], m.get("content") or "") for m in ask["messages"]]
    step = decide(messages, _openai_tools(ask))
    base = {"model": ask["model"], "created_at": "2024-01-01T00:00:00Z"}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 40, "eval_count": 12, "total_duration": 9}
    if isinstance(step, Call):
        call = {"function": {"name": step.name, "arguments": step.arguments}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        whole = {**base, "message": message, **end}
        return iter([json.dumps(whole) + "\n"]) if ask.get("stream") else whole
    if not ask.get("stream"):
        return {**base, "message": {"role": "assistant", "content": step}, **end}
    said = [{**base, "message": {"role": "assistant", "content": piece}, "done": False} for piece in _pieces(step)]
    lines = [*said, {**base, "message": {"role": "assistant", "content": ""}, **end}]
    return iter([json.dumps(line) + "\n" for line in lines])


BY_PATH: dict[str, Api] = {
    "/responses$": responses,
    "/messages$": anthropic,
    "[gG]enerateContent$": gemini,
    "/api/chat$": ollama,
    "/chat/completions$": chat,
}
"""Which API a path belongs to."""
