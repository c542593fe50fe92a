"""Prompt flow's tracing: functions under `@trace`, and the OpenAI client that it patches."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {
    "FLOW": "agent",
    "FUNCTION": "chain",
    "PROMPTY": "chain",
    "LANGCHAIN": "chain",
    "LLM": "llm",
    "TOOL": "tool",
    "RETRIEVAL": "retriever",
    "EMBEDDING": "embedding",
}


def _kind(node: Node) -> Kind | None:
    ours = node.attributes.get("framework") == "promptflow"
    return _KINDS.get(str(node.attributes.get("span_type", "")).upper()) if ours else None


_INPUTS, _OUTPUT = attribute("inputs"), attribute("output")

CONVENTION = Convention(
    name="promptflow",
    switch="PF_DISABLE_TRACING=false",
    kind=_kind,
    scopes=("promptflow",),
    events=("promptflow.function.inputs", "promptflow.function.output"),
    input=_INPUTS,
    output=_OUTPUT,
    sent=when(("llm",), _INPUTS),
    received=when(("llm",), _OUTPUT),
    documents=when(("retriever",), _OUTPUT),
    query=when(("retriever", "embedding"), _INPUTS),
    tool_result=when(("tool",), _OUTPUT),
)
