"""A chat completion that was streamed although nobody asked for it, as some proxies do."""

from __future__ import annotations

from typing import Any

import orjson


def streamed(content: bytes) -> dict[str, Any] | None:
    """The completion that the events of a stream add up to; None for what is no such stream, or did not end."""
    if not content.lstrip().startswith((b"data:", b":", b"event:")):
        return None
    whole: dict[str, Any] = {}
    text, finish = [], None
    for line in content.splitlines():
        if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
            continue
        try:
            event = orjson.loads(line[5:])
            for choice in event.pop("choices", ()):
                text.append(choice["delta"].get("content") or "")
                finish = choice.get("finish_reason") or finish
        except (ValueError, KeyError, AttributeError, TypeError):
            return None
        whole |= {key: value for key, value in event.items() if value is not None}
    if "error" in whole:
        return whole
    message = {"content": "".join(map(str, text))}
    return whole | {"choices": [{"message": message, "finish_reason": finish}]} if finish else None
