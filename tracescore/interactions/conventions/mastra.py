"""Mastra's own exporter: inputs and outputs under keys that carry the type of the span."""

from __future__ import annotations

from collections.abc import Iterator

from tracescore.interactions.convention import FLOWS, Convention, Kind, Node, Piece, Reader, when

_KINDS: dict[str, Kind] = {
    "agent_run": "agent",
    "workflow_run": "agent",
    "workflow_step": "chain",
    "model_generation": "chain",
    "model_step": "chain",
    "model_inference": "llm",
    "model_chunk": "other",
    "llm_generation": "llm",
    "tool_call": "tool",
    "mcp_tool_call": "tool",
    "generic": "chain",
}


def _type(node: Node) -> str:
    return str(node.attributes.get("mastra.span.type", ""))


def _kind(node: Node) -> Kind | None:
    return _KINDS.get(_type(node))


def _of_type(suffix: str) -> Reader:
    def read(node: Node) -> Iterator[Piece]:
        key = f"mastra.{_type(node)}.{suffix}"
        if node.attributes.get(key) is not None:
            yield Piece(key, node.attributes[key])

    return read


CONVENTION = Convention(
    name="mastra",
    switch="on by default (@mastra/otel-exporter without a span processor that hides inputs and outputs)",
    kind=_kind,
    marks=("mastra.span",),
    input=when(FLOWS, _of_type("input")),
    output=when(FLOWS, _of_type("output")),
    sent=when(("llm",), _of_type("input")),
    received=when(("llm",), _of_type("output")),
    tool_result=when(("tool",), _of_type("output")),
)
