"""Spring AI: a chat client around advisors, vector stores and models. Texts are listed without being escaped."""

from __future__ import annotations

from tracescore.interactions.convention import Convention, Kind, Node, attribute, when

_KINDS: dict[str, Kind] = {"chat_client": "agent", "advisor": "chain", "vector_store": "retriever", "tool_call": "tool"}


def _kind(node: Node) -> Kind | None:
    kind = _KINDS.get(str(node.attributes.get("spring.ai.kind", "")))
    writes = node.attributes.get("db.operation.name") not in (None, "query")
    return "other" if kind == "retriever" and writes else kind


CONVENTION = Convention(
    name="spring-ai",
    switch="spring.ai.chat.observations.log-prompt=true spring.ai.chat.observations.log-completion=true",
    kind=_kind,
    marks=("spring.ai",),
    input=when(("agent",), attribute("spring.ai.chat.client.user.text")),
    documents=attribute("db.vector.query.response.documents"),
    query=attribute("db.vector.query.content"),
    tool_name=attribute("spring.ai.tool.definition.name"),
    tool_result=attribute("spring.ai.tool.call.result"),
)
