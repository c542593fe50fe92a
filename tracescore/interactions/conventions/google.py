"""Google's Agent Development Kit and Genkit."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, either, member, when

_KINDS: dict[str, Kind] = {
    "model": "llm",
    "retriever": "retriever",
    "reranker": "reranker",
    "tool": "tool",
    "embedder": "embedding",
    "evaluator": "evaluator",
    "flow": "chain",
    "prompt": "prompt",
    "agent": "agent",
}


def _kind(node: Node) -> Kind | None:
    subtype = node.attributes.get("genkit:metadata:subtype", node.attributes.get("genkit:type"))
    if isinstance(subtype, str):
        return _KINDS.get(subtype, "chain")
    if node.name.startswith("execute_tool") or "gcp.vertex.agent.tool_response" in node.attributes:
        return "tool"
    request = node.attributes.get("gcp.vertex.agent.llm_request")
    return "llm" if request not in (None, "{}") else None


CONVENTION = Convention(
    name="google",
    switch="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    kind=_kind,
    marks=("gcp.vertex", "genkit:input", "genkit:output", "genkit:type", "genkit:metadata:subtype"),
    input=attribute("genkit:input"),
    output=attribute("genkit:output"),
    sent=either(
        member("gcp.vertex.agent.llm_request", "contents", "messages"), when(("llm",), attribute("genkit:input"))
    ),
    received=either(
        member("gcp.vertex.agent.llm_response", "content", "candidates"), when(("llm",), attribute("genkit:output"))
    ),
    documents=when(("retriever", "reranker"), attribute("genkit:output")),
    query=when(("retriever",), attribute("genkit:input")),
    tool_result=when(("tool",), attribute("gcp.vertex.agent.tool_response", "genkit:output")),
)
