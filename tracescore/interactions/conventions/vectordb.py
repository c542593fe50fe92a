"""Vector database clients: what a query returned, as span events."""

from __future__ import annotations

from collections.abc import Iterator

from tracescore.interactions import values
from tracescore.interactions.convention import Convention, Kind, Node, Piece, attribute

_RESULTS = ("db.query.result", "db.search.result")
_WRITES = ("add", "upsert", "insert", "update", "delete", "create")


def _kind(node: Node) -> Kind | None:
    operation = str(node.attributes.get("db.operation", node.attributes.get("db.operation.name", ""))).lower()
    if operation.startswith(_WRITES):
        return "other"
    happened = any(event.name in _RESULTS for event in (node.span.events if node.span else ()))
    return "retriever" if happened or any(key.startswith("db.vector.query.") for key in node.attributes) else None


def _documents(node: Node) -> Iterator[Piece]:
    found, key = [], ""
    for event in node.span.events if node.span else ():
        if event.name in _RESULTS:
            key = f"event {event.name}"
            fields = {
                name.removeprefix(f"{event.name}."): values.data(value) for name, value in event.attributes.items()
            }
            found.append({"id": fields.get("id"), **fields})
    if found:
        yield Piece(key, found)


CONVENTION = Convention(
    name="vector-db",
    switch="depends on the client: only some record the documents' text",
    kind=_kind,
    marks=("db.vector",),
    events=_RESULTS,
    documents=_documents,
    query=attribute("db.vector.query.content"),
)
