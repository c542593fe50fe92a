"""OpenLLMetry (Traceloop): JSON in `traceloop.entity.*`; older versions number the messages in attributes."""

from __future__ import annotations

from tracescore.interactions import documents
from tracescore.interactions.convention import Convention, Kind, Node, attribute, either, indexed, when

_KINDS: dict[str, Kind] = {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}
_REQUESTS: dict[str, Kind] = {"chat": "llm", "completion": "llm", "embedding": "embedding", "rerank": "reranker"}


def _kind(node: Node) -> Kind | None:
    kind = _KINDS.get(str(node.attributes.get("traceloop.span.kind", "")))
    if kind == "chain" and node.attributes.get("traceloop.span.kind") == "task" and _returns_passages(node):
        return "retriever"
    return kind or _REQUESTS.get(str(node.attributes.get("llm.request.type", "")))


def _returns_passages(node: Node) -> bool:
    """There is no kind for retrievers: a task that returns passages is one."""
    output = node.attributes.get("traceloop.entity.output")
    return output is not None and documents.returned(output, node.name) is not None


_INPUT = attribute("traceloop.entity.input", "gen_ai.task.input")
_OUTPUT = attribute("traceloop.entity.output", "gen_ai.task.output")

CONVENTION = Convention(
    name="openllmetry",
    switch="TRACELOOP_TRACE_CONTENT=true",
    kind=_kind,
    marks=(
        "traceloop.span",
        "traceloop.entity",
        "traceloop.workflow",
        "llm.request",
        "gen_ai.prompt",
        "gen_ai.completion",
    ),
    scopes=("traceloop.",),
    input=_INPUT,
    output=_OUTPUT,
    sent=either(indexed("gen_ai.prompt"), when(("llm",), _INPUT)),
    received=either(indexed("gen_ai.completion"), when(("llm",), _OUTPUT)),
    documents=when(("retriever", "reranker"), _OUTPUT),
    query=when(("retriever",), _INPUT),
    tool_name=attribute("traceloop.entity.name"),
    tool_result=when(("tool",), _OUTPUT),
)
