"""How much a request holds, counted on the wire before anything is built of it.

Two bytes are enough for an empty message, so that a body of 16 MB may hold eight million of them, for which the parser
needs seconds and half a gigabyte. Counting stops at the limit: refusing costs little, however much was sent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import NamedTuple

from tracescore.errors import DecodeError


class RequestLimits(NamedTuple):
    """The most that one request may hold. `containers` are resources and scopes with what stands beside them."""

    containers: int
    records: int
    traces: int


UNLIMITED = RequestLimits(2**63, 2**63, 2**63)
"""For files, which somebody chose to read."""
MOST_FIELDS = 100_000
"""Fields of one span, log record, resource or scope, nested ones included."""
SMALL = 2**20
"""Bytes below which a piece is parsed without having been counted: it cannot hold enough for a pause."""
_STEP = 5_000
"""Fields that are counted before everybody else has a turn."""
DENSE = 2**22
"""The same for the records of a request."""


class TooMany(DecodeError):
    """A request holds more than it may; its text says of what."""


Layout = Mapping[int, "Layout"]
"""Field number -> the layout of the message it holds. Other fields hold none, or are not looked into."""

_VALUE: dict[int, Layout] = {}
_PAIR: Layout = {2: _VALUE}
_VALUE[5], _VALUE[6] = {1: _VALUE}, {1: _PAIR}
SPAN: Layout = {9: _PAIR, 11: {3: _PAIR}, 13: {4: _PAIR}, 15: {}}
LOG: Layout = {5: _VALUE, 6: _PAIR}
RESOURCE: Layout = {1: _PAIR}
SCOPE: Layout = {3: _PAIR}


def check(body: bytes, limits: RequestLimits) -> Iterator[None]:
    """Raises TooMany, in steps, when a request has too many containers, or so many records that parsing would be long.

    Where the wire is no protobuf counting ends: the parser will say so.
    """
    fields = records = 0
    dense = len(body) > DENSE
    for group, start, end in _fields(body, 0, len(body)):
        fields += 1
        for scope, begin, stop in _fields(body, start, end) if group == 1 else ():
            fields += 1
            if scope == 2 and dense:
                for _ in _fields(body, begin, stop):
                    records += 1
                    if records % _STEP == 0:
                        yield
                    if records > limits.records + limits.containers:
                        raise too_many("spans or log records", limits.records)
            if fields > limits.containers:
                break
        if fields > limits.containers:
            raise too_many("resources and scopes", limits.containers)
        if fields % _STEP == 0:
            yield


def too_many(what: str, limit: int) -> TooMany:
    """The error that says of what there is too much."""
    return TooMany(f"body: at most {limit} {what} expected; send smaller batches")


def fits(piece: bytes, layout: Layout) -> Generator[None, None, bool]:
    """Whether a piece has so few fields, at every depth, that it may be parsed; in steps."""
    yield
    if len(piece) <= SMALL:
        return True
    count, open_ = 0, [(layout, 0, len(piece))]
    while open_:
        inner, start, end = open_.pop()
        for number, begin, stop in _fields(piece, start, end):
            count += 1
            if count > MOST_FIELDS:
                return False
            if count % _STEP == 0:
                yield
            if number in inner:
                open_.append((inner[number], begin, stop))
    return True


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, first byte of the content, the byte behind it) of each field of a message; ends where it is none."""
    while at < end:
        tag, at = _varint(data, at)
        kind, start = tag & 7, at
        if kind == 2:
            length, start = _varint(data, at)
            at = start + length
        elif kind == 0:
            _, at = _varint(data, at)
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        if at > end:
            return
        yield (tag >> 3 if kind == 2 else 0), start, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that stands there, and where the next thing stands; a place behind everything where there is none."""
    number = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    return 0, len(data) + 1
