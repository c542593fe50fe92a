"""Vercel AI SDK, scope `ai`: an outer span per call (`ai.generateText`) around the model's (`.doGenerate`)."""

from __future__ import annotations

from collections.abc import Iterator

from tracescore.interactions import values
from tracescore.interactions.convention import Convention, Kind, Node, Piece, attribute, either, when

_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def _kind(node: Node) -> Kind | None:
    operation = str(node.attributes.get("ai.operationId", ""))
    if operation.endswith((".doGenerate", ".doStream")):
        return "llm"
    if operation in _OUTER:
        return "agent"
    if operation.startswith("ai.toolCall") or node.name == "ai.toolCall":
        return "tool"
    if operation.startswith("ai.rerank"):
        return "reranker"
    if operation in ("ai.embed", "ai.embed.doEmbed"):
        return "embedding"
    return "other" if operation else None


def _ranked(node: Node) -> Iterator[Piece]:
    documents, ranking = (values.data(node.attributes.get(key)) for key in ("ai.documents", "ai.ranking"))
    if not isinstance(documents, list) or not isinstance(ranking, list):
        return
    places = [row.get("index", row.get("originalIndex")) if isinstance(row, dict) else row for row in ranking]
    kept = [documents[at] for at in places if isinstance(at, int) and 0 <= at < len(documents)]
    if kept:
        yield Piece("ai.ranking", kept)


def _tool_calls(node: Node) -> Iterator[Piece]:
    """A reply without text that asks for tools."""
    calls = values.data(node.attributes.get("ai.response.toolCalls"))
    if isinstance(calls, list) and calls and not node.attributes.get("ai.response.text"):
        named = [
            {"id": call.get("toolCallId"), "name": call.get("toolName")} for call in calls if isinstance(call, dict)
        ]
        yield Piece("ai.response.toolCalls", [{"role": "assistant", "content": None, "tool_calls": named}])


_TEXT = attribute("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object")

CONVENTION = Convention(
    name="vercel-ai",
    switch="telemetry (AI SDK 6: experimental_telemetry): { isEnabled: true, recordInputs: true, recordOutputs: true }",
    kind=_kind,
    marks=("ai.operationId",),
    input=when(("agent",), attribute("ai.prompt")),
    output=when(("agent",), _TEXT),
    sent=attribute("ai.prompt.messages", "ai.prompt"),
    received=when(("llm",), either(_TEXT, _tool_calls)),
    documents=when(("reranker",), _ranked),
    rerank_input=attribute("ai.documents"),
    query=when(("embedding",), attribute("ai.value")),
    tool_name=attribute("ai.toolCall.name"),
    tool_result=attribute("ai.toolCall.result"),
)
