"""Logfire's own wrappers of provider clients and of the OpenAI Agents SDK: requests and responses as JSON."""

from __future__ import annotations

from tracescore.interactions import values
from tracescore.interactions.convention import FLOWS, Convention, Kind, Node, attribute, either, member, when

_AGENTS = "logfire.openai_agents"


def _kind(node: Node) -> Kind | None:
    if node.span is not None and node.span.scope_name == _AGENTS and "gen_ai.operation.name" not in node.attributes:
        return _agents_kind(node)
    request = values.data(node.attributes.get("request_data"))
    if not isinstance(request, dict):
        return None
    return "llm" if "messages" in request or "prompt" in request or {"model", "input"} <= request.keys() else None


def _agents_kind(node: Node) -> Kind:
    template = str(node.attributes.get("logfire.msg_template", node.name))
    if template.startswith("Function") or "mcp_data" in node.attributes:
        return "tool"
    if template.startswith("Guardrail"):
        return "guardrail"
    return "agent" if template.startswith(("OpenAI Agents trace", "Agent run")) else "chain"


_INPUT, _OUTPUT = attribute("raw_input"), member("response", "output", "choices")

CONVENTION = Convention(
    name="logfire",
    switch="on by default (logfire.instrument_openai() and the like)",
    kind=_kind,
    marks=("request_data", "response_data", "raw_input"),
    scopes=(_AGENTS,),
    input=when(FLOWS, _INPUT),
    output=when(FLOWS, _OUTPUT),
    sent=either(member("request_data", "messages", "prompt", "input"), _INPUT),
    received=either(member("response_data", "message", "combined_chunk_content", "text", "output"), _OUTPUT),
    tool_name=when(("tool",), attribute("name")),
    tool_result=when(("tool",), attribute("output")),
)
