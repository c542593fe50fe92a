"""Requests that come round again and again: the destination's collector sends to tracescore what it got from it.

Nothing may be added to what is passed on, so a loop is known by the ids of spans: one that is passed on for the third
time within a minute for one tenant. Several tenants may send the same spans, as those who share an app do. A request
that the destination did not take does not count, as it is sent again.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from google.protobuf.message import DecodeError

from tracescore.errors import TracescoreError
from tracescore.model import Clock
from tracescore.net import wire
from tracescore.net.wire import Envelope
from tracescore.otlp.bounds import RequestLimits, check
from tracescore.otlp.split import Request, SpanIds
from tracescore.receiver.inflate import inflate
from tracescore.receiver.refusals import Refused, Signal, crowded

_log = logging.getLogger("tracescore.receiver")

_ROUNDS = 2
"""Times that a span may have been passed on before."""
_WITHIN = 60.0
"""Seconds, up to twice as many."""
_MOST = 50_000
"""Ids remembered of such a time; beyond them it ends early."""
_FIRST, _ONE_IN = 16, 16
"""Spans of a request that are looked at: the first ones, and of the others one in so many, the same ones each time."""
_LARGEST_JSON = 2**16
_HEAD = b"\n\x10"
_THEN = b"\x12\x08"


@dataclass(slots=True)
class Passage:
    """A request on its way; `taken` is set when the destination has accepted it."""

    ids: list[bytes] = field(default_factory=list)
    taken: bool = False


class Loops:
    """What was passed on lately."""

    def __init__(self, max_request: int, limits: RequestLimits, clock: Clock = time.monotonic) -> None:
        self._max_request, self._limits, self._clock = max_request, limits, clock
        self._now: dict[bytes, int] = {}
        self._before: dict[bytes, int] = {}
        self._under_way = Counter[bytes]()
        self._turned = self._said = float("-inf")

    @contextmanager
    def passage(self, signal: Signal, envelope: Envelope, body: bytes) -> Iterator[Passage]:
        """Counts the spans of a request while it is passed on, and after that if it was taken.

        Refused when one of them comes round. `body` is in the encoding of the envelope.
        """
        self._turn()
        passage = Passage()
        if signal == "traces":
            ids, tenant = self._ids(body, envelope.encoding, envelope.json), _tenant(envelope)
            passage.ids = [each + tenant for each in ids]
        if any(self._now.get(each, 0) + self._before.get(each, 0) >= _ROUNDS for each in passage.ids):
            self._say()
            raise Refused(
                "loop", "tracescore forwarded these spans twice within a minute: the destination sends them back"
            )
        if any(self._under_way[each] >= _ROUNDS for each in passage.ids):
            raise crowded()  # a loop as well, or a sender that does not wait for the answer
        self._under_way.update(passage.ids)
        try:
            yield passage
        finally:
            for each in passage.ids:
                self._under_way[each] -= 1
                if not self._under_way[each]:
                    del self._under_way[each]
                if passage.taken:
                    self._now[each] = self._now.get(each, 0) + 1

    def _turn(self) -> None:
        now = self._clock()
        if now - self._turned > _WITHIN or len(self._now) > _MOST:
            self._before = self._now if now - self._turned <= 2 * _WITHIN else {}
            self._now, self._turned = {}, now

    def _say(self) -> None:
        now = self._clock()
        if now - self._said > _WITHIN:
            self._said = now
            advice = "check that the destination of exporters.forward does not send the spans back"
            _log.error('event=loop detail="spans arrived for the third time" advice="%s"', advice)

    def _ids(self, body: bytes, encoding: str, json: bool) -> list[bytes]:
        """Ids of some spans; none of what cannot be read, which is not ours to refuse here."""
        try:
            plain = inflate(body, encoding, self._max_request)
            if not json:
                for _ in check(plain, self._limits):
                    pass
            spans = _of_json(plain) if json else _of_protobuf(plain)
            return list({each for n, each in enumerate(spans) if n < _FIRST or each[-1:] < _SOME})
        except (TracescoreError, DecodeError, ValueError, TypeError, AttributeError):
            return []


_TENANT = re.compile(rb"auth|cookie|key|org|project|team|tenant|token|workspace")
"""In the names of headers that say whose data it is."""


def _tenant(envelope: Envelope) -> bytes:
    """A few bytes that differ where the headers name another tenant."""
    named = sorted(b"%b=%b" % (name.lower(), value) for name, value in envelope.headers if _TENANT.search(name.lower()))
    return blake2b(b"\n".join(named), digest_size=8).digest()


_SOME = bytes([256 // _ONE_IN])


def _of_protobuf(plain: bytes) -> Iterator[bytes]:
    request: Any = Request.FromString(plain)
    for group in request.groups:
        for scoped in group.scopes:
            for span in scoped.records:
                if span[:2] == _HEAD and span[18:20] == _THEN:  # as nearly every exporter writes it
                    yield span[2:18] + span[20:28]
                else:
                    ids = SpanIds.FromString(span)
                    yield ids.trace_id + ids.span_id


def _of_json(plain: bytes) -> Iterator[bytes]:
    if len(plain) > _LARGEST_JSON:
        return
    for group in _listed(wire.loads(plain), "resourceSpans", "resource_spans"):
        for scoped in _listed(group, "scopeSpans", "scope_spans"):
            for span in _listed(scoped, "spans", "spans"):
                ids = (str(span.get(key) or span.get(other, "")) for key, other in _ID_KEYS)
                yield bytes.fromhex("".join(ids))


_ID_KEYS = (("traceId", "trace_id"), ("spanId", "span_id"))


def _listed(item: Any, key: str, other: str) -> list[Any]:
    return item.get(key) or item.get(other) or []
