"""Logfire's own wrappers of provider clients: request and response as JSON."""

from __future__ import annotations

from tracescore.interactions import values
from tracescore.interactions.convention import Convention, Kind, Node, member


def _kind(node: Node) -> Kind | None:
    request = values.data(node.attributes.get("request_data"))
    if not isinstance(request, dict):
        return None
    return "llm" if "messages" in request or "prompt" in request or {"model", "input"} <= request.keys() else None


CONVENTION = Convention(
    name="logfire",
    switch="on by default (logfire.instrument_openai() and the like)",
    kind=_kind,
    marks=("request_data", "response_data"),
    sent=member("request_data", "messages", "prompt", "input"),
    received=member("response_data", "message", "combined_chunk_content", "text", "output"),
)
