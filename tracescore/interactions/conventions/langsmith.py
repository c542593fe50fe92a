"""LangSmith SDK with OpenTelemetry export: `gen_ai.prompt` and `gen_ai.completion` hold a run's inputs and outputs."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {
    "llm": "llm",
    "chain": "chain",
    "retriever": "retriever",
    "tool": "tool",
    "prompt": "prompt",
    "parser": "chain",
    "embedding": "embedding",
}


def _kind(node: Node) -> Kind | None:
    return _KINDS.get(str(node.attributes.get("langsmith.span.kind", "")).lower())


_PROMPT, _COMPLETION = attribute("gen_ai.prompt"), attribute("gen_ai.completion")

CONVENTION = Convention(
    name="langsmith",
    switch="LANGSMITH_HIDE_INPUTS=false LANGSMITH_HIDE_OUTPUTS=false",
    kind=_kind,
    marks=("langsmith.span", "langsmith.trace"),
    scopes=("langsmith",),
    input=_PROMPT,
    output=_COMPLETION,
    sent=when(("llm",), _PROMPT),
    received=when(("llm",), _COMPLETION),
    documents=when(("retriever",), _COMPLETION),
    query=when(("retriever", "embedding"), _PROMPT),
    tool_result=when(("tool",), _COMPLETION),
)
