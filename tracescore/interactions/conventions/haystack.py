"""Haystack: its own tracer and opentelemetry-haystack. Pipelines and agents hold component runs."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, either, when

_ENDINGS: tuple[tuple[str, Kind], ...] = (
    ("Retriever", "retriever"),
    ("WebSearch", "retriever"),
    ("Ranker", "reranker"),
    ("DocumentJoiner", "reranker"),
    ("Generator", "llm"),
    ("PromptBuilder", "prompt"),
    ("TextEmbedder", "embedding"),
    ("DocumentEmbedder", "other"),
    ("ToolInvoker", "tool"),
    ("Evaluator", "evaluator"),
    ("Agent", "agent"),
)


def _kind(node: Node) -> Kind | None:
    component = node.attributes.get("haystack.component.type")
    if isinstance(component, str):
        return next((kind for ending, kind in _ENDINGS if component.endswith(ending)), "chain")
    if node.name == "haystack.tracing.auto_enable":
        return "other"
    if node.name.startswith("haystack.agent.step.llm"):
        return "llm"
    if node.name.startswith("haystack.agent.run") or "haystack.agent.input" in node.attributes:
        return "agent"
    if node.name.startswith(("haystack.tool", "haystack.agent.step.tool")) or "haystack.tool.name" in node.attributes:
        return "tool"
    return (
        "chain" if any(key.startswith(("haystack.pipeline.", "haystack.agent.")) for key in node.attributes) else None
    )


_INPUT, _OUTPUT = attribute("haystack.component.input"), attribute("haystack.component.output")

CONVENTION = Convention(
    name="haystack",
    switch="HAYSTACK_CONTENT_TRACING_ENABLED=true",
    kind=_kind,
    scopes=("haystack",),
    marks=("haystack.pipeline", "haystack.component", "haystack.agent", "haystack.tool"),
    input=either(attribute("haystack.pipeline.input_data", "haystack.agent.input"), _INPUT),
    output=either(attribute("haystack.pipeline.output_data", "haystack.agent.output"), _OUTPUT),
    sent=when(("llm",), either(_INPUT, attribute("haystack.agent.step.llm.input"))),
    received=when(("llm",), either(_OUTPUT, attribute("haystack.agent.step.llm.output"))),
    documents=when(("retriever", "reranker"), _OUTPUT),
    rerank_input=when(("reranker",), _INPUT),
    query=when(("retriever", "embedding"), _INPUT),
    variables=when(("prompt",), _INPUT),
    tool_name=attribute("haystack.tool.name"),
    tool_result=when(("tool",), either(attribute("haystack.tool.output", "haystack.agent.step.tool.output"), _OUTPUT)),
)
