"""What receiving and passing on share: content encodings, and JSON as senders really write it."""

from __future__ import annotations

import json
from typing import Any

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
