"""OpenLIT's decorator and what else it records beside the official convention."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, either


def _kind(node: Node) -> Kind | None:
    if "gen_ai.operation.name" in node.attributes:
        return None
    decorated = node.span is not None and node.span.scope_name == "openlit"
    return "chain" if decorated or "function.args" in node.attributes else None


CONVENTION = Convention(
    name="openlit",
    switch="OPENLIT_CAPTURE_MESSAGE_CONTENT=true (openlit.init(capture_message_content=True))",
    kind=_kind,
    marks=("function.args",),
    scopes=("openlit",),
    input=either(
        attribute("function.args", "function.kwargs", "gen_ai.framework.pipeline.input", "gen_ai.workflow.input")
    ),
    output=either(attribute("gen_ai.output.messages", "gen_ai.framework.pipeline.output", "gen_ai.workflow.output")),
)
