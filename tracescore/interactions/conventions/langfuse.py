"""Langfuse SDK, version 3 and later: observations as spans. Inputs and outputs are JSON or bare text."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {
    "generation": "llm",
    "embedding": "embedding",
    "agent": "agent",
    "tool": "tool",
    "chain": "chain",
    "retriever": "retriever",
    "evaluator": "evaluator",
    "guardrail": "guardrail",
    "event": "other",
}
_MODEL_KEYS = (
    "langfuse.observation.model.name",
    "langfuse.observation.usage_details",
    "langfuse.observation.model.parameters",
)


def _kind(node: Node) -> Kind | None:
    environment = node.attributes.get("langfuse.environment")
    if isinstance(environment, str) and environment.startswith("langfuse-"):
        return "evaluator"  # what Langfuse runs itself
    kind = _KINDS.get(str(node.attributes.get("langfuse.observation.type", "")))
    if kind is None and any(key in node.attributes for key in _MODEL_KEYS):
        return "llm"  # up to version 3.3.0 generations are of type `span`
    if kind is None and "langfuse.observation.type" in node.attributes and len(node.conventions) == 1:
        return "chain"
    return kind


CONVENTION = Convention(
    name="langfuse",
    switch="Langfuse(mask=None) and observe(capture_input=True, capture_output=True)",
    kind=_kind,
    marks=("langfuse.observation", "langfuse.trace", "langfuse.internal"),
    scopes=("langfuse-sdk",),
    trace_input=attribute("langfuse.trace.input"),
    trace_output=attribute("langfuse.trace.output"),
    input=attribute("langfuse.observation.input"),
    output=attribute("langfuse.observation.output"),
    sent=when(("llm",), attribute("langfuse.observation.input")),
    received=when(("llm",), attribute("langfuse.observation.output")),
    documents=when(("retriever", "reranker"), attribute("langfuse.observation.output")),
    query=when(("retriever", "embedding"), attribute("langfuse.observation.input")),
    tool_result=when(("tool",), attribute("langfuse.observation.output")),
)
