"""What goes in, out and to disk: content encodings, JSON as senders really write it, and how a request came."""

import dataclasses
import json
from typing import Any, Literal, NamedTuple

import orjson
from isal import isal_zlib

WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Content encoding -> zlib's name for its header; HTTP's `deflate` is the zlib format."""


def compress(body: bytes, encoding: str) -> bytes:
    """The body in a content encoding; one that is not known, empty or identity leaves it as it is."""
    return isal_zlib.compress(body, 1, WINDOW_BITS[encoding]) if encoding in WINDOW_BITS else body


def loads(body: bytes) -> Any:
    """The JSON document; ValueError when it is none.

    JavaScript cuts strings inside a character pair, and orjson refuses the half that is left.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\ud" not in body and b"\\uD" not in body:
            raise
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(document: Any) -> bytes:
    """The document as JSON, half a character pair in it as it was."""
    try:
        return orjson.dumps(document)
    except TypeError:
        return json.dumps(document).encode()


def dumps_utf8(value: Any, *, indent: bool = False) -> bytes:
    """Plain data, dataclasses and frozen sets as JSON that every reader takes: half a character pair becomes `?`."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2 if indent else 0)
    except TypeError:
        text = json.dumps(value, default=_plain, ensure_ascii=False, indent=2 if indent else None)
        return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


class Envelope(NamedTuple):
    """How a request came, which is how its spans go on: nothing is merged across envelopes.

    `target` is the path with its query, or the method; `headers` are those of the message, or its metadata;
    `encoding` is the content encoding, empty for none.
    """

    wire: Literal["http", "grpc"]
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    json: bool
    encoding: str


class Withheld(NamedTuple):
    """A span that is kept back until it has its scores: `request` is an export request of it alone, in plain bytes."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    envelope: Envelope
    request: bytes
