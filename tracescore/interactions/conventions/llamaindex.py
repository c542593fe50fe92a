"""LlamaIndex's own OpenTelemetry integration: spans without attributes, everything in events named by class."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracescore.interactions.convention import Convention, Kind, Node, Piece, either, event, when

_EVENTS: dict[str, Kind] = {
    "QueryStartEvent": "chain",
    "QueryEndEvent": "chain",
    "SynthesizeStartEvent": "chain",
    "SynthesizeEndEvent": "chain",
    "StreamChatStartEvent": "chain",
    "StreamChatEndEvent": "chain",
    "GetResponseStartEvent": "chain",
    "AgentRunStepStartEvent": "agent",
    "AgentRunStepEndEvent": "agent",
    "AgentChatWithStepStartEvent": "agent",
    "AgentChatWithStepEndEvent": "agent",
    "AgentToolCallEvent": "tool",
    "RetrievalStartEvent": "retriever",
    "RetrievalEndEvent": "retriever",
    "ReRankStartEvent": "reranker",
    "ReRankEndEvent": "reranker",
    "EmbeddingStartEvent": "embedding",
    "EmbeddingEndEvent": "embedding",
    "LLMPredictStartEvent": "llm",
    "LLMChatStartEvent": "llm",
    "LLMCompletionStartEvent": "llm",
    "LLMStructuredPredictStartEvent": "llm",
}
_TOOL_CALL = re.compile(r"(Tool\.a?call|call_tool)$")


def _kind(node: Node) -> Kind | None:
    for happened in node.span.events if node.span else ():
        if happened.name in _EVENTS:
            return _EVENTS[happened.name]
    return "tool" if _TOOL_CALL.search(node.name) else "chain"


def _nested(name: str, prefix: str) -> Iterator[str]:
    yield name
    yield f"{name}.{prefix}"


def _joined_blocks(node: Node) -> Iterator[Piece]:
    for piece in event("LLMChatEndEvent", "response.message.blocks", "response.message.content")(node):
        yield Piece(piece.key, [{"role": "assistant", "content": piece.value}])


CONVENTION = Convention(
    name="llamaindex",
    switch="on by default (llama-index-observability-otel)",
    kind=_kind,
    scopes=("llamaindex.opentelemetry",),
    events=("QueryStartEvent", "QueryEndEvent", "RetrievalEndEvent", "SynthesizeEndEvent", "LLMChatEndEvent"),
    input=either(
        event("QueryStartEvent", *_nested("query", "query_str")),
        event("SynthesizeStartEvent", *_nested("query", "query_str")),
        event("AgentChatWithStepStartEvent", "user_msg"),
        event("GetResponseStartEvent", "query_str"),
    ),
    output=either(
        event("QueryEndEvent", "response.response", "response"),
        event("SynthesizeEndEvent", "response.response", "response"),
        event("AgentChatWithStepEndEvent", "response.response", "response"),
    ),
    sent=either(
        event("LLMChatStartEvent", "messages"),
        event("LLMChatEndEvent", "messages"),
        event("LLMCompletionStartEvent", "prompt"),
    ),
    received=either(
        _joined_blocks,
        event("LLMChatEndEvent", "response.raw.choices"),
        event("LLMPredictEndEvent", "output"),
        event("LLMCompletionEndEvent", "response.text"),
    ),
    documents=either(event("ReRankEndEvent", "nodes"), event("RetrievalEndEvent", "nodes")),
    rerank_input=event("ReRankStartEvent", "nodes"),
    query=either(
        event("RetrievalStartEvent", *_nested("str_or_query_bundle", "query_str")),
        event("ReRankStartEvent", *_nested("query", "query_str")),
    ),
    variables=when(("llm",), event("LLMPredictStartEvent", "template_args")),
)
