"""Mirascope 2: traced functions; its model calls stand under the keys of GenAI."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute


def _kind(node: Node) -> Kind | None:
    return "chain" if node.attributes.get("mirascope.type") == "trace" else None


CONVENTION = Convention(
    name="mirascope",
    switch="on by default (ops.trace and ops.instrument_llm)",
    kind=_kind,
    marks=("mirascope.type", "mirascope.trace"),
    input=attribute("mirascope.trace.arg_values"),
    output=attribute("mirascope.trace.output"),
)
