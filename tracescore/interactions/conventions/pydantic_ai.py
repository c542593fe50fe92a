"""Pydantic AI, through Logfire or plain OpenTelemetry. What the official convention does not say is here."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, when


def _kind(node: Node) -> Kind | None:
    if "gen_ai.operation.name" in node.attributes and node.name != "agent run":
        return None  # said by the official convention
    if node.name == "agent run" or "agent_name" in node.attributes or "final_result" in node.attributes:
        return "agent"
    if node.name.startswith("running tool") and "gen_ai.tool.name" in node.attributes:
        return "tool"
    return None


CONVENTION = Convention(
    name="pydantic-ai",
    switch="InstrumentationSettings(include_content=True)",
    kind=_kind,
    marks=("pydantic_ai.all_messages", "all_messages_events", "model_request_parameters"),
    scopes=("pydantic-ai",),
    input=attribute("pydantic_ai.all_messages", "all_messages_events"),
    output=attribute("final_result", "pydantic_ai.all_messages", "all_messages_events"),
    sent=when(("llm",), attribute("events")),
    received=when(("llm",), attribute("events")),
    tool_result=when(("tool",), attribute("tool_response")),
)
