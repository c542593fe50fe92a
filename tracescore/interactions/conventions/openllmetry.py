"""OpenLLMetry (Traceloop): JSON in `traceloop.entity.*`; older versions number the messages in attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracescore.interactions import documents, values
from tracescore.interactions.convention import (
    Convention,
    Kind,
    Node,
    Piece,
    Reader,
    attribute,
    either,
    indexed,
    when,
)

_KINDS: dict[str, Kind] = {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}
_REQUESTS: dict[str, Kind] = {"chat": "llm", "completion": "llm", "embedding": "embedding", "rerank": "reranker"}


def _kind(node: Node) -> Kind | None:
    kind = _KINDS.get(str(node.attributes.get("traceloop.span.kind", "")))
    if kind == "chain" and "raw_output" in _output(node):
        return "tool"
    if kind == "chain" and node.attributes.get("traceloop.span.kind") == "task" and _returns_passages(node):
        return "retriever"
    return kind or _REQUESTS.get(str(node.attributes.get("llm.request.type", "")))


def _returns_passages(node: Node) -> bool:
    """There is no kind for retrievers: a task that returns passages is one."""
    output = node.attributes.get("traceloop.entity.output")
    return output is not None and documents.returned(output, node.name) is not None


def _output(node: Node) -> dict[str, Any]:
    """A step's output where it is an object's, of LlamaIndex: what a tool gave back, what an agent is handed."""
    recorded = node.attributes.get("traceloop.entity.output")
    telling = isinstance(recorded, str) and any(key in recorded for key in ('"raw_output"', '"current_agent_name"'))
    data = values.data(recorded) if telling else None
    return data if isinstance(data, dict) else {}


def _member_of_output(name: str, beside: str) -> Reader:
    def read(node: Node) -> Iterator[Piece]:
        data = _output(node)
        if beside in data and data.get(name) is not None:
            yield Piece(f"traceloop.entity.output/{name}", data[name])

    return read


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
    input=either(_INPUT, _member_of_output("input", "current_agent_name")),
    output=_OUTPUT,
    sent=either(indexed("gen_ai.prompt"), when(("llm",), _INPUT)),
    received=either(indexed("gen_ai.completion"), when(("llm",), _OUTPUT)),
    documents=when(("retriever", "reranker"), _OUTPUT),
    query=when(("retriever",), _INPUT),
    tool_name=either(_member_of_output("tool_name", "raw_output"), attribute("traceloop.entity.name")),
    tool_result=when(("tool",), either(_member_of_output("raw_output", "tool_name"), _OUTPUT)),
)
