"""OpenInference: Arize's instrumentations of LangChain, LlamaIndex, OpenAI, DSPy, Haystack, OpenAI Agents and more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracescore.interactions.convention import Convention, Kind, Node, Piece, attribute, either, heads, indexed, when

KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "EMBEDDING": "embedding",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "TOOL": "tool",
    "AGENT": "agent",
    "GUARDRAIL": "guardrail",
    "EVALUATOR": "evaluator",
    "PROMPT": "prompt",
}
_RERANKER = frozenset(
    f"reranker.{name}" for name in ("query", "model_name", "top_k", "input_documents", "output_documents")
)


def _kind(node: Node) -> Kind | None:
    kind = KINDS.get(str(node.attributes.get("openinference.span.kind", "")).upper())
    if kind in ("retriever", "chain", None) and not _RERANKER.isdisjoint(heads(node)):
        return "reranker"
    return kind


def _message(item: Any) -> Any:
    """`{"message": {"contents": [{"message_content": {...}}], ...}}` without the wrappers."""
    message = item.get("message", item) if isinstance(item, dict) else item
    if not isinstance(message, dict):
        return message
    contents = message.get("contents")
    plain = dict(message)
    if isinstance(contents, list):
        parts = [part.get("message_content", part) if isinstance(part, dict) else part for part in contents]
        plain["content"] = [part for part in parts if part]
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        plain["tool_calls"] = [call.get("tool_call", call) if isinstance(call, dict) else call for call in calls]
    if "content" not in plain:
        plain["content"] = None
    return plain


def _messages(prefix: str) -> Any:
    read_list = indexed(prefix)

    def read(node: Node) -> Iterator[Piece]:
        for piece in read_list(node):
            yield Piece(f"{piece.key}.message.content", [_message(item) for item in piece.value])

    return read


def _texts(prefix: str, *path: str) -> Any:
    read_list = indexed(prefix)

    def read(node: Node) -> Iterator[Piece]:
        for piece in read_list(node):
            texts = []
            for item in piece.value:
                for step in path:
                    item = item.get(step) if isinstance(item, dict) else None  # noqa: PLW2901 - descends
                texts.append(item)
            yield Piece(".".join((piece.key, *path)), "\n".join(text for text in texts if isinstance(text, str)))

    return read


def _documents(prefix: str) -> Any:
    read_list = indexed(prefix)

    def read(node: Node) -> Iterator[Piece]:
        for piece in read_list(node):
            items = [item.get("document", item) if isinstance(item, dict) else item for item in piece.value]
            yield Piece(f"{piece.key}.document.content", items)

    return read


CONVENTION = Convention(
    name="openinference",
    switch="OPENINFERENCE_HIDE_INPUTS=false OPENINFERENCE_HIDE_OUTPUTS=false",
    kind=_kind,
    marks=(
        "openinference.span",
        "input.value",
        "output.value",
        "llm.input_messages",
        "llm.output_messages",
        "llm.prompts",
        "llm.prompt_template",
        "retrieval.documents",
        "reranker.output_documents",
        "reranker.input_documents",
    ),
    scopes=("openinference.",),
    input=attribute("input.value"),
    output=attribute("output.value"),
    sent=either(
        _messages("llm.input_messages"),
        _texts("llm.prompts", "prompt", "text"),
        when(("llm",), attribute("input.value")),
    ),
    received=either(
        _messages("llm.output_messages"),
        _texts("llm.choices", "completion", "text"),
        when(("llm",), attribute("output.value")),
    ),
    documents=either(
        when(("reranker",), _documents("reranker.output_documents")),
        _documents("retrieval.documents"),
        when(("retriever", "reranker"), attribute("output.value")),
    ),
    rerank_input=_documents("reranker.input_documents"),
    query=either(attribute("reranker.query"), when(("retriever", "embedding"), attribute("input.value"))),
    variables=attribute("llm.prompt_template.variables"),
    tool_name=attribute("tool.name"),
    tool_result=when(("tool",), attribute("output.value")),
)
