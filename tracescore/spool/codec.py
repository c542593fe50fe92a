"""Results and envelopes as JSON, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import orjson
from pydantic import TypeAdapter

from tracescore.model import Result
from tracescore.net.wire import Envelope, dumps_utf8

_READER = TypeAdapter(Result)
_ENVELOPE = TypeAdapter(tuple[Literal["http", "grpc"], str, list[tuple[str, str]], bool, str])


def encode(result: Result) -> bytes:
    """The result as JSON, without the attributes that only sampling reads."""
    bare = replace(result, interaction=replace(result.interaction, attributes={}))
    return dumps_utf8(bare)


def decode(text: bytes) -> Result:
    """The result that `encode` was given. Raises ValueError for anything else."""
    return _READER.validate_json(text)


def encode_envelope(envelope: Envelope) -> bytes:
    """How a request came, as JSON."""
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in envelope.headers]
    return orjson.dumps([envelope.wire, envelope.target, headers, envelope.json, envelope.encoding])


def decode_envelope(text: bytes) -> Envelope:
    """The envelope that `encode_envelope` was given. Raises ValueError for anything else."""
    wire, target, headers, is_json, encoding = _ENVELOPE.validate_json(text, strict=True)
    pairs = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)
    return Envelope(wire, target, pairs, is_json, encoding)


def brief(result: Result) -> Result:
    """The result without any text of users: what windows and counters need."""
    interaction = replace(
        result.interaction,
        question=None,
        answer=None,
        contexts=(),
        documents=(),
        history=(),
        reference=None,
        found={},
    )
    evaluations = tuple(replace(each, items=()) for each in result.evaluations)
    return replace(result, interaction=interaction, evaluations=evaluations)
