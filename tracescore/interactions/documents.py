"""Passages in any of the shapes that retrievers record, as plain texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tracescore.interactions import values

CONTAINERS = (
    "documents",
    "nodes",
    "source_nodes",
    "source_documents",
    "docs",
    "context",
    "contexts",
    "passages",
    "results",
    "matches",
    "chunks",
    "hits",
    "items",
    "outputs",
    "output",
    "result",
    "data",
    "value",
    "content",
)
"""Keys under which a list of passages is found, the more telling first."""
_HOLDERS = ("inputs", "kwargs", "args", *CONTAINERS)
FINDS = re.compile(r"retriev|search|look_?up|fetch|find_?(?:docs|documents|passages|context)", re.IGNORECASE)
"""In the name of a function that looks something up."""
_PASSAGE_LENGTH = 40
"""Shorter texts in a list are labels, tokens or sub-questions rather than passages."""
_TEXTS = ("page_content", "content", "text", "document", "passage", "chunk", "body", "snippet")
_TEXT_HOLDERS = ("node", "text_resource", "document", "kwargs", "metadata", "payload", "entity", "fields", "data")
_FULL_LENGTH = frozenset(
    ("id", "id_", "score", "metadata", "page_content", "embedding", "node", "doc_id", "similarity")
)


@dataclass(frozen=True, slots=True)
class Passages:
    """Texts in the order recorded. `flaw` tells of masked or cut ones, `bare` that only ids or scores were recorded."""

    texts: tuple[str, ...]
    flaw: values.Flaw = ""
    bare: bool = False


def passages(value: Any) -> Passages | None:
    """The passages in `value`, a list of texts or documents or a dict holding one; None when there is no such list."""
    parsed = values.parse(value)
    found = _collect(parsed.data, 4)
    if found is None or not parsed.flaw:
        return Passages((), parsed.flaw) if found is None and parsed.flaw else found
    return Passages(found.texts, found.flaw or parsed.flaw, found.bare)


def documents(value: Any) -> Passages | None:
    """As `passages`, but only for lists of document objects: a list of mere strings may be anything."""
    data = values.data(value)
    found = _document_list(data, 4)
    return passages(found) if found is not None else None


def returned(value: Any, name: str) -> Passages | None:
    """What a function gave back, if that is a list of passages.

    Documents always are; mere texts are when the function's name tells, or when all are long and none asks anything.
    """
    data = values.data(value)
    if _document_list(data, 4) is not None:
        return passages(data)
    if isinstance(data, dict) and len(data) == 1:
        data = next(iter(data.values()))
    if not isinstance(data, list) or not data or not all(isinstance(item, str) for item in data):
        return None
    long = all(len(item) >= _PASSAGE_LENGTH and not item.rstrip().endswith("?") for item in data)
    return passages(data) if long or FINDS.search(name) else None


def text_of(item: Any, depth: int = 4) -> str | None:
    """The text of one document."""
    if isinstance(item, str):
        return item
    if not isinstance(item, dict) or not depth:
        return None
    for key in _TEXTS:
        if isinstance(item.get(key), str):
            return str(item[key])
    parts = item.get("content")
    if isinstance(parts, list) and parts and all(isinstance(part, dict) and "text" in part for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    for key in _TEXT_HOLDERS:
        text = text_of(item[key], depth - 1) if isinstance(item.get(key), dict) else None
        if text is not None:
            return text
    return None


def looks_like_document(item: Any) -> bool:
    """Whether a dict is a document rather than a message or a record of something else."""
    if not isinstance(item, dict) or "role" in item or text_of(item) is None:
        return False
    if isinstance(item.get("id"), list):  # LangChain constructor: ["langchain", "schema", "document", "Document"]
        return str(item["id"][-1:]).lower().find("document") >= 0
    if item.get("type") in ("human", "ai", "system", "tool", "text"):
        return False
    return not _FULL_LENGTH.isdisjoint(item)


def _document_list(data: Any, depth: int) -> list[Any] | None:
    if isinstance(data, list) and data:
        if all(looks_like_document(item) for item in data):
            return data
        return _document_list(data[0], depth - 1) if len(data) == 1 and depth else None
    if isinstance(data, dict) and depth:
        for key in _HOLDERS:
            inner = data.get(key)
            found = _document_list(inner, depth - 1) if isinstance(inner, (list, dict)) else None
            if found is not None:
                return found
    return None


def _collect(data: Any, depth: int) -> Passages | None:
    if isinstance(data, str):
        return Passages((data,)) if data.strip() else None
    if isinstance(data, list):
        return _from_list(data, depth)
    if not isinstance(data, dict) or not depth:
        return None
    if looks_like_document(data) and not any(isinstance(data.get(key), list) for key in CONTAINERS):
        return _from_list([data], depth)
    for key in CONTAINERS:
        inner = values.data(data[key]) if key in data else None
        if isinstance(inner, (list, dict)) or (isinstance(inner, str) and key not in ("data", "value")):
            found = _collect(inner, depth - 1)
            if found is not None:
                return found
    text = text_of(data)
    return Passages((text,)) if text is not None and text.strip() else None


def _from_list(items: list[Any], depth: int) -> Passages | None:
    if not items:
        return Passages(())
    if len(items) == 1 and isinstance(items[0], list) and depth:
        return _from_list(items[0], depth - 1)
    items = [values.data(item) if isinstance(item, str) and item.lstrip()[:1] == "{" else item for item in items]
    texts = [text_of(item) for item in items]
    if all(text is None for text in texts):
        known = all(isinstance(item, dict) and ("id" in item or "score" in item) for item in items)
        return Passages((), bare=True) if known else None
    kept = [text for text in texts if text is not None and not values.redacted(text)]
    flaw: values.Flaw = "redacted" if len(kept) + texts.count(None) < len(texts) else ""
    told = tuple(text for text in kept if text.strip())
    return Passages(told, flaw, bare=len(told) < len(texts))
