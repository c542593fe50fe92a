"""OpenTelemetry's GenAI conventions: attributes, the operation event, and the older one event per message.

Events are read as span events and as log records of the span alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tracescore.interactions import messages, values
from tracescore.interactions.convention import (
    FLOWS,
    SERVER_KINDS,
    Convention,
    Kind,
    Node,
    Piece,
    Reader,
    attribute,
    either,
    happening,
    heads,
    when,
)

_KINDS: dict[str, Kind] = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "completion": "llm",
    "chat_completion": "llm",
    "agent_step": "chain",
    "acompletion": "llm",  # LiteLLM's proxy names the functions it calls
    "atext_completion": "llm",
    "aresponses": "llm",
    "anthropic_messages": "llm",
    "embedding": "embedding",
    "aembedding": "embedding",
    "arerank": "reranker",
    "embeddings": "embedding",
    "retrieval": "retriever",
    "vector_db_retrieve": "retriever",
    "rerank": "reranker",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "create_agent": "other",
    "evaluation": "evaluator",
    "evaluate": "evaluator",
    "experiment": "evaluator",
}
_MESSAGE_ROLES: dict[Any, dict[str, str]] = {"gen_ai.choice": {"role": "assistant"}}
_DETAILS = "gen_ai.client.inference.operation.details"
_MESSAGES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_OTHER_KEYS = re.compile(r"db\.|http\.|url\.|rpc\.|messaging\.")
_MESSAGE_ROLES.update({name: {"role": role} for name, role in _MESSAGES.items()})
_MODELS = ("gen_ai.request.model", "gen_ai.response.model")


def _kind(node: Node) -> Kind | None:
    operation = node.attributes.get("gen_ai.operation.name")
    if isinstance(operation, str) and operation in _KINDS:
        return _KINDS[operation]
    if isinstance(operation, str) and operation:
        if operation.startswith("invoke_"):  # a swarm, a graph, a team
            return "agent"
        named = operation.startswith(("chat", "text", "completion", "generate", "response"))
        return "llm" if named or (any(True for _ in _SENT(node)) and any(True for _ in _RECEIVED(node))) else None
    keys = node.attributes
    if any(key.startswith("gen_ai.retrieval.") for key in keys):
        return "retriever"
    if "gen_ai.tool.name" in keys or "gen_ai.tool.call.id" in keys:
        return "tool"
    if keys.get("llm.request.type") in ("embedding", "rerank"):
        return None
    if not any(key in keys for key in _MODELS):
        return None
    return (
        "llm" if not _elsewhere(node) or any(True for _ in _SENT(node)) or any(True for _ in _RECEIVED(node)) else None
    )


def _elsewhere(node: Node) -> bool:
    """Whether a span is of a server or a database, onto which a proxy may have copied the name of a model."""
    return (node.span is not None and node.span.kind in SERVER_KINDS) or any(map(_OTHER_KEYS.match, heads(node)))


def _happened(node: Node) -> Iterator[tuple[str, str, Mapping[str, Any], Any]]:
    """(where, event name, attributes, body) of the span's log records and span events."""
    for record in node.logs:
        yield f"log {record.event_name}", record.event_name, record.attributes, record.body
    for event in node.span.events if node.span else ():
        yield f"event {event.name}", event.name, event.attributes, None


def _details(key: str) -> Reader:
    """A key of the operation event; some emitters put the same fields into the record's body."""

    @happening
    def read(node: Node) -> Iterator[Piece]:
        for where, name, attributes, body in _happened(node):
            if name == _DETAILS:
                fields = values.data(body)
                inner = fields.get(key) if isinstance(fields, dict) else None
                value = attributes.get(key, inner)
                if value is not None:
                    yield Piece(f"{where}/{key}", value)

    return read


def _fields(attributes: Mapping[str, Any], body: Any) -> dict[str, Any]:
    """What an event of one message says, wherever it says it: body, JSON attribute, or plain attributes."""
    for holder in (
        body,
        attributes.get("gen_ai.event.content"),
        attributes.get("message"),
        attributes.get("event.body"),
    ):
        fields = values.data(holder)
        if isinstance(fields, dict):
            return fields
        if isinstance(fields, str) and fields and holder is body:
            return {"content": fields}
    return {key: values.data(value) if key in ("message", "tool_calls") else value for key, value in attributes.items()}


@happening
def _message_events(node: Node) -> Iterator[Piece]:
    found, where = [], ""
    for place, name, attributes, body in _happened(node):
        if name in _MESSAGES:
            found.append({"content": None, **_fields(attributes, body), "role": _MESSAGES[name]})
            where = place
    if found:
        yield Piece(f"{where} body", found)


def _choices(node: Node) -> Iterator[Piece]:
    """What the events of choices hold, message by message."""
    for place, name, attributes, body in _happened(node):
        if name == "gen_ai.choice":
            fields = _fields(attributes, body)
            yield Piece(f"{place} body", fields.get("message", fields))


@happening
def _choice_events(node: Node) -> Iterator[Piece]:
    found = []
    for place, message in _choices(node):
        fields = message if isinstance(message, dict) else {"content": message}
        if isinstance(fields.get("content"), dict):  # Gemini's, with parts and a role
            fields = fields["content"]
        found.append(Piece(place, [{"content": None, **fields, "role": "assistant"}]))
    joined = [message for piece in found for message in piece.value]
    if messages.streamed(messages.turns(joined)):
        found = [Piece(found[0].key, joined)]
    yield from found


@happening
def _tool_choices(node: Node) -> Iterator[Piece]:
    """What a tool gave back, by those who record it as they record what a model says."""
    for place, message in _choices(node):
        yield Piece(place, message.get("content", message) if isinstance(message, dict) else message)


def _event_list(node: Node) -> Iterator[Piece]:
    """Events of one message each in one attribute, as a list."""
    listed = values.data(node.attributes["events"]) if "events" in node.attributes else None
    if isinstance(listed, list) and listed and isinstance(listed[0], dict) and "event.name" in listed[0]:
        yield Piece("events", [{**_MESSAGE_ROLES.get(one.get("event.name"), {}), **one} for one in listed])


def _content_events(name: str, key: str) -> Reader:
    @happening
    def read(node: Node) -> Iterator[Piece]:
        for place, happened, attributes, _ in _happened(node):
            if happened == name and attributes.get(key) is not None:
                yield Piece(f"{place}/{key}", attributes[key])

    return read


def _variables(node: Node) -> Iterator[Piece]:
    prefix = "gen_ai.prompt.variable."
    found = {key[len(prefix) :]: value for key, value in node.attributes.items() if key.startswith(prefix)}
    if found:
        yield Piece(f"{prefix}*", found)


_SENT = either(attribute("gen_ai.input.messages"), _details("gen_ai.input.messages"))
_RECEIVED = either(attribute("gen_ai.output.messages"), _details("gen_ai.output.messages"))

_PROMPT = attribute("gen_ai.prompt")


def _completions(node: Node) -> Iterator[Piece]:
    """What a model said, as a text or as a list of texts."""
    for key, value in attribute("gen_ai.completion")(node):
        said = values.data(value)
        if isinstance(said, list) and said and all(isinstance(text, str) for text in said):
            yield Piece(key, [{"role": "assistant", "content": said}])
        else:
            yield Piece(key, value)


CONVENTION = Convention(
    name="otel-genai",
    switch="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (older instrumentations: true)",
    kind=_kind,
    marks=("gen_ai.",),
    events=(_DETAILS, *_MESSAGES, "gen_ai.choice", "gen_ai.content.prompt", "gen_ai.content.completion"),
    input=when(FLOWS, either(_SENT, attribute("gen_ai.workflow.input"), _message_events, _event_list)),
    output=when(FLOWS, either(_RECEIVED, attribute("gen_ai.workflow.output"), _choice_events, _event_list)),
    sent=either(
        _SENT, _message_events, _event_list, _content_events("gen_ai.content.prompt", "gen_ai.prompt"), _PROMPT
    ),
    received=either(
        _RECEIVED,
        _choice_events,
        _event_list,
        _content_events("gen_ai.content.completion", "gen_ai.completion"),
        _completions,
    ),
    documents=attribute("gen_ai.retrieval.documents"),
    query=attribute("gen_ai.retrieval.query.text"),
    variables=_variables,
    tool_name=attribute("gen_ai.tool.name"),
    tool_result=either(attribute("gen_ai.tool.call.result"), when(("tool",), _tool_choices)),
)
