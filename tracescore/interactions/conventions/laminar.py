"""Laminar's SDK: `@observe` around functions, and model calls whose messages stand under the keys of GenAI."""

from __future__ import annotations

from tracescore.interactions.convention import FLOWS, Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {
    "DEFAULT": "chain",
    "LLM": "llm",
    "TOOL": "tool",
    "EVALUATION": "evaluator",
    "EXECUTOR": "evaluator",
    "EVALUATOR": "evaluator",
    "HUMAN_EVALUATOR": "evaluator",
}


def _kind(node: Node) -> Kind | None:
    return _KINDS.get(str(node.attributes.get("lmnr.span.type", "")).upper())


_INPUT, _OUTPUT = attribute("lmnr.span.input"), attribute("lmnr.span.output")

CONVENTION = Convention(
    name="laminar",
    switch="on by default (@observe without ignore_input and ignore_output, LMNR_TRACE_CONTENT not false)",
    kind=_kind,
    marks=("lmnr.span",),
    input=when(FLOWS, _INPUT),
    output=when(FLOWS, _OUTPUT),
    sent=when(("llm",), _INPUT),
    received=when(("llm",), _OUTPUT),
    tool_result=when(("tool",), _OUTPUT),
)
