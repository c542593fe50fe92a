"""Passages in any of the shapes that retrievers record, as plain texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tracescore.interactions import plausibility, reprs, values

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
IDS = ("id", "id_", "document_id", "doc_id", "documentId", "node_id", "chunk_id")
"""Where the id of a document stands."""
_PLACES = ("uri", "url", "source", "file_path", "file_name")
"""What names a document that has no id."""
_ID_LENGTH = 200
_PASSAGE_LENGTH = 40
"""Shorter texts in a list are labels, tokens or sub-questions rather than passages."""
_TEXTS = ("page_content", "content", "text", "document", "passage", "chunk", "body", "snippet")
_TEXT_HOLDERS = ("node", "text_resource", "document", "kwargs", "metadata", "payload", "entity", "fields", "data")
_ID_HOLDERS = ("node", "document", "kwargs", "metadata", "meta", "meta_data", "payload", "location", "s3Location")
_FULL_LENGTH = frozenset(
    ("id", "id_", "score", "metadata", "meta_data", "meta", "page_content", "embedding", "node", "doc_id", "similarity")
)


_OF_MESSAGE = frozenset(("additional_kwargs", "response_metadata", "tool_call_id", "tool_calls", "usage_metadata"))
"""Keys that no document has."""
_KNOWN = frozenset((*_TEXTS, "question", "query", "input", "answer", "response", "messages", "role"))
"""Keys that are no ids of documents."""


class Passages(NamedTuple):
    """Texts in the order recorded. `flaw` tells of masked or cut ones, `bare` that only ids or scores were recorded.

    `ids` names the documents of texts that have an id or a URI.
    """

    texts: tuple[str, ...]
    flaw: values.Flaw = ""
    bare: bool = False
    ids: Mapping[str, str] = {}


def passages(value: Any) -> Passages | None:
    """The passages in `value`, a list of texts or documents or a dict holding one; None when there is no such list."""
    parsed = values.parse(value)
    found = _collect(parsed.data, 4)
    if found is None or not parsed.flaw:
        return Passages((), parsed.flaw) if found is None and parsed.flaw else found
    return found._replace(flaw=found.flaw or parsed.flaw)


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
    if isinstance(data, list):
        data = [_opened(item) for item in data]
    if _document_list(data, 4) is not None:
        return passages(data)
    if not isinstance(data, list) or not data or not all(isinstance(item, str) for item in data):
        return None
    long = all(len(item) >= _PASSAGE_LENGTH and not item.rstrip().endswith("?") for item in data)
    return passages(data) if long or FINDS.search(name) else None


def ranking(value: Any) -> list[int | str] | None:
    """The places or ids that a reranker returns in the stead of documents, the best first; None for anything else."""
    data = values.data(value)
    while isinstance(data, dict):
        lists = [item for key, item in data.items() if key in CONTAINERS or key in ("ranking", "indices", "ids")]
        data = next((item for item in lists if isinstance(item, (list, dict))), None)
    found = [_rank(item) for item in data] if isinstance(data, list) and data else []
    ranks = [one for one in found if one is not None]
    return ranks if ranks and len(ranks) == len(found) else None


def _rank(item: Any) -> int | str | None:
    """The place or id of one document."""
    if isinstance(item, dict) and text_of(item) is None:
        keys = ("index", "position", "original_index", "originalIndex", *IDS)
        item = next((item[key] for key in keys if item.get(key) is not None), None)
    if isinstance(item, int) and not isinstance(item, bool):
        return item
    return item if isinstance(item, str) and 0 < len(item) <= _ID_LENGTH and not item.isspace() else None


def entries(value: Any) -> list[tuple[str, str]]:
    """(id, text) of listed documents; the id is empty where none is recorded."""
    data = values.data(value)
    listed = _document_list(data, 4) or (data if isinstance(data, list) else [])
    found = []
    for item in listed:
        text = text_of(item)
        if text is not None:
            found.append((_first(item, IDS), text))
    return found


def _first(item: Any, keys: tuple[str, ...]) -> str:
    """What stands under the first of the keys that holds a name; empty where none does."""
    held = (item.get(key) for key in keys) if isinstance(item, dict) else ()
    return next((str(each) for each in held if isinstance(each, str | int) and not isinstance(each, bool)), "")


def id_of(item: Any) -> str:
    """The id of one document or else the URI of its source, with at most 200 characters; empty where neither is."""
    return " ".join((_named(item, IDS, 3) or _named(item, _PLACES, 3)).split())[:_ID_LENGTH]


def _named(item: Any, keys: tuple[str, ...], depth: int) -> str:
    if not isinstance(item, dict):
        return ""
    if found := _first(item, keys):
        return found
    held = (values.data(item[key]) for key in _ID_HOLDERS if depth and item.get(key))
    return next((found for each in held if (found := _named(each, keys, depth - 1))), "")


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
    if not isinstance(item, dict) or "role" in item or not _OF_MESSAGE.isdisjoint(item) or text_of(item) is None:
        return False
    if isinstance(item.get("id"), list):  # LangChain constructor: ["langchain", "schema", "document", "Document"]
        return str(item["id"][-1:]).lower().find("document") >= 0
    if item.get("type") in ("human", "ai", "system", "tool", "text"):
        return False
    return not _FULL_LENGTH.isdisjoint(item)


def is_object(data: Any) -> bool:
    """Whether data were printed as an object, or as a list with objects in it that are no documents."""
    if isinstance(data, list):
        return any(map(is_object, data)) and documents(data) is None
    return isinstance(data, dict) and reprs.TYPE in data


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
        text, flaw = plausibility.passed(data, "passage")
        return Passages((text,)) if text and text.strip() else Passages((), flaw) if flaw else None
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
    if text is not None and text.strip():
        return Passages((text,))
    return _from_list(list(data.values()), depth - 1) if _is_mapping(data) else None


def _is_mapping(data: dict[str, Any]) -> bool:
    """Whether a dict holds documents, or long texts, under their ids."""
    whole = all(text_of(item) is not None for item in data.values())
    long = all(not isinstance(item, str) or len(item) >= _PASSAGE_LENGTH for item in data.values())
    return bool(data) and whole and long and _KNOWN.isdisjoint(data)


def _opened(item: Any) -> Any:
    """An item of a list as data, where it is JSON or the repr of an object."""
    telling = isinstance(item, str) and (item.lstrip()[:1] == "{" or reprs.begins(item))
    return values.data(item) if telling else item


def _from_list(items: list[Any], depth: int) -> Passages | None:
    if not items:
        return Passages(())
    if len(items) == 1 and isinstance(items[0], list) and depth:
        return _from_list(items[0], depth - 1)
    items = [_opened(item) for item in items]
    texts = [text_of(item) for item in items]
    texts = [text if text is None else plausibility.passed(text, "passage")[0] for text in texts]
    if all(text is None for text in texts):
        known = all(isinstance(item, dict) and ("id" in item or "score" in item) for item in items)
        return Passages((), bare=True) if known else None
    kept = [text for text in texts if text is not None and not values.redacted(text)]
    flaw: values.Flaw = "redacted" if len(kept) + texts.count(None) < len(texts) else ""
    told = tuple(text for text in kept if text.strip())
    ids = {text: found for text, item in zip(texts, items, strict=True) if text is not None and (found := id_of(item))}
    return Passages(told, flaw, bare=len(told) < len(texts), ids=ids)
