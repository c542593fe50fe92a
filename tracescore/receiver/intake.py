"""What both protocols do with a request: inflate it, check for room, split it, hand the pieces on, count.

Refused or accepted, retryable or not, is decided here and nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from isal import isal_zlib
from prometheus_client import CollectorRegistry, Counter

from tracescore.config import Receiver as Settings
from tracescore.errors import DecodeError, SpoolError
from tracescore.model import RawLog, RawSpan
from tracescore.receiver import otlp_json
from tracescore.receiver.split import Admits, Split, split_logs, split_traces

_log = logging.getLogger("tracescore.receiver")

Wire = Literal["http", "grpc"]
Signal = Literal["traces", "logs", "metrics"]
RefusalReason = Literal[
    "malformed", "too_large", "unsupported_type", "unsupported_encoding", "full", "failed", "disconnected"
]

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Content encoding -> zlib's name for its header; HTTP's `deflate` is the zlib format."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a refusal is in both protocols: HTTP status and google.rpc.Code."""

    http_status: int
    grpc_code: int
    retryable: bool = False


REFUSALS: dict[RefusalReason, Verdict] = {
    "malformed": Verdict(400, 3),  # INVALID_ARGUMENT
    "too_large": Verdict(413, 8),  # RESOURCE_EXHAUSTED; without RetryInfo this tells the sender to give up
    "unsupported_type": Verdict(415, 3),
    "unsupported_encoding": Verdict(415, 12),  # UNIMPLEMENTED
    # Not 429: older exporters take that as final and drop the batch.
    "full": Verdict(503, 14, retryable=True),  # UNAVAILABLE
    "failed": Verdict(503, 14, retryable=True),
}
"""How each refusal is answered; a client that has gone gets no answer."""


class Refused(Exception):
    """A request that is answered with an error: why, and in words for the sender."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        self.reason: RefusalReason = reason
        self.message = message
        super().__init__(message)

    @property
    def verdict(self) -> Verdict:
        """How it is answered."""
        return REFUSALS[self.reason]


class Sink(Protocol):
    """Where admitted pieces go."""

    def room(self) -> bool:
        """False when senders must come back later."""
        ...

    def take(self, spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> Awaitable[None] | None:
        """Takes the pieces of one request; it is acknowledged when this returns and what it returns was awaited."""
        ...


class Intake:
    """The receiver behind its protocols. `admits` says which trace ids are wanted."""

    def __init__(self, settings: Settings, sink: Sink, admits: Admits, registry: CollectorRegistry) -> None:
        self.max_request = settings.max_request
        self.retry_after = settings.retry_after
        self._sink, self._admits = sink, admits
        self._metrics = _Metrics(registry)

    @property
    def spans_received(self) -> int:
        """Spans in all accepted requests so far."""
        return self._metrics.spans

    def check_room(self) -> None:
        """Raises Refused when the held traces fill the budget."""
        if not self._sink.room():
            raise Refused("full", f"no room for more traces at present; send again in {self.retry_after:g} s")

    async def accept(self, wire: Wire, signal: Signal, body: bytes, encoding: str = "", json: bool = False) -> int:
        """Takes in one request body and returns how many of its pieces were rejected; raises Refused.

        `encoding` is the body's content encoding, empty for none. Metrics are of no use here: they are counted and
        thrown away unread, so that senders with one endpoint for everything see no errors.
        """
        rejected = 0
        if signal != "metrics":
            self.check_room()
            split = self._split(signal, inflate(body, encoding, self.max_request), json)
            await self._hand_on(split)
            self._metrics.accepted(wire, signal, split)
            rejected = split.rejected
        self._metrics.requests[wire, signal].inc()
        return rejected

    def count_refused(self, wire: Wire, reason: RefusalReason) -> None:
        """Counts a refusal; whoever answers it calls this."""
        self._metrics.refused[wire, reason].inc()

    def _split(self, signal: Signal, body: bytes, json: bool) -> Split:
        try:
            if signal == "traces":
                return split_traces(otlp_json.traces_to_protobuf(body) if json else body, self._admits)
            return split_logs(otlp_json.logs_to_protobuf(body) if json else body, self._admits)
        except DecodeError as error:
            raise Refused("malformed", str(error)) from None

    async def _hand_on(self, split: Split) -> None:
        """A failing sink is our trouble, not the sender's: it keeps its data and comes back."""
        try:
            pending = self._sink.take(split.spans, split.logs)
            if pending is not None:
                await pending
        except SpoolError:  # it has said why, once
            raise Refused("failed", f"nothing can be written; send again in {self.retry_after:g} s") from None
        except Exception:  # noqa: BLE001 - whatever it is, the sender must not take it for an answer about its data
            _log.exception("event=take_failed spans=%d log_records=%d", len(split.spans), len(split.logs))
            raise Refused("failed", f"internal error; send again in {self.retry_after:g} s") from None


def inflate(body: bytes, encoding: str, max_size: int) -> bytes:
    """The body without its content encoding (gzip, deflate; empty or identity: as it is).

    Never holds more than `max_size` bytes, however far a small body would expand. Raises Refused.
    """
    if encoding in ("", "identity"):
        if len(body) > max_size:
            raise too_large(max_size)
        return body
    if encoding not in _WINDOW_BITS:
        raise Refused("unsupported_encoding", "content encoding: one of gzip, deflate and identity expected")
    parts: list[bytes] = []
    rest, room = body, max_size
    while rest or not parts:  # a gzip file may have several members
        inflater = isal_zlib.decompressobj(wbits=_WINDOW_BITS[encoding])
        try:
            part = inflater.decompress(rest, room + 1)
        except isal_zlib.error:  # type: ignore[misc]  # its stubs declare an instance
            raise Refused("malformed", f"body: {encoding} data expected; got {len(body)} other bytes") from None
        if len(part) > room:
            raise too_large(max_size)
        if not inflater.eof:
            raise Refused("malformed", f"body: the {encoding} data ends too early, after {len(body)} bytes")
        parts.append(part)
        rest, room = inflater.unused_data, room - len(part)
    return b"".join(parts)


def too_large(max_size: int) -> Refused:
    """The refusal of a body above the limit."""
    return Refused("too_large", f"body: at most {max_size} bytes expected; send smaller batches")


class _Metrics:
    """What the receiver counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        wires, signals = get_args(Wire), get_args(Signal)

        def counters(name: str, meaning: str, label: str = "", values: tuple[Any, ...] = ()) -> dict[Any, Counter]:
            labels = ["protocol", label] if label else ["protocol"]
            family = Counter(f"tracescore_receiver_{name}", meaning, labels, registry=registry)
            if not label:
                return {wire: family.labels(wire) for wire in wires}
            return {(wire, value): family.labels(wire, value) for wire in wires for value in values}

        self.spans = 0
        self.requests = counters("requests", "Requests accepted.", "signal", signals)
        self.refused = counters("refused_requests", "Requests refused.", "reason", get_args(RefusalReason))
        self._received = {
            "traces": counters("spans", "Spans received in accepted requests."),
            "logs": counters("log_records", "Log records received in accepted requests."),
        }
        self._rejected = {
            "traces": counters("rejected_spans", "Spans that do not parse or have no valid ids."),
            "logs": counters("rejected_log_records", "Log records that do not parse or have no valid trace id."),
        }
        self._admitted = {
            "traces": counters("admitted_spans", "Spans of traces that sampling may want."),
            "logs": counters("admitted_log_records", "Log records of traces that sampling may want."),
        }

    def accepted(self, wire: Wire, signal: Signal, split: Split) -> None:
        """Counts the pieces of a request."""
        self.spans += split.received if signal == "traces" else 0
        self._received[signal][wire].inc(split.received)
        self._rejected[signal][wire].inc(split.rejected)
        self._admitted[signal][wire].inc(len(split.spans) + len(split.logs))
