"""What both protocols do with a request: inflate it, check for room, split it, hand the pieces on, count.

Refused or accepted is decided here and nowhere else; how a refusal is answered, in `refusals.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar, get_args

import anyio
import anyio.lowlevel
from grpc import StatusCode
from prometheus_client import CollectorRegistry, Counter

from tracescore import logs
from tracescore.config import ReceiverConfig
from tracescore.errors import DecodeError, SpoolError
from tracescore.model import RawLog, RawSpan
from tracescore.net.wire import Envelope, Withheld, compress
from tracescore.otlp import json as otlp_json
from tracescore.otlp.bounds import RequestLimits, TooMany
from tracescore.otlp.partition import Alone, Ids, part
from tracescore.otlp.split import Admits, Split, logs_in_steps, traces_in_steps
from tracescore.receiver.inflate import inflate
from tracescore.receiver.loops import Loops
from tracescore.receiver.refusals import RefusalReason, Refused, Signal, Wire, crowded
from tracescore.receiver.senders import Senders
from tracescore.runtime import aside, in_slices

_log = logging.getLogger("tracescore.receiver")

Answered = TypeVar("Answered")

BODIES_IN_FLIGHT = 8
"""Bodies of the largest size that may be on their way in at once, by one protocol, over all connections."""
_LEAVING = 3
"""Rounds of the event loop in which a request is on its way to the destination, which then works beside us."""
MOST_JSON = 2**22
"""Bytes of a body in JSON, which the parser reads in one go and makes ten times as much of."""
_SMALL = 2**16
"""Bytes of a body in JSON that are turned into protobuf at once; more of them beside the event loop."""
_AT_ONCE = 1_000
"""Spans and log records that are handed on together: one commit, and some milliseconds of the assembly's time."""
PATIENCE = 10.0
"""Seconds in which a body must have come in, or it would hold the room of others; senders wait for as long or less."""


class Sink(Protocol):
    """Where admitted pieces go."""

    def room(self) -> bool:
        """False when senders must come back later."""
        ...

    def fair(self, sender: str) -> bool:
        """False when this one must, as it holds half of the room."""
        ...

    def take(
        self, spans: Sequence[RawSpan], logs: Sequence[RawLog], withheld: Sequence[Withheld] = (), sender: str = ""
    ) -> Awaitable[None]:
        """Takes the pieces of one request; it is acknowledged when what this returns was awaited.

        `withheld` are the spans of the request that are kept back; `sender` is empty where nobody knows.
        """
        ...


class Relay(Protocol):
    """Passes requests on as they came and tells what the destination said."""

    @property
    def over_http(self) -> bool:
        """Whether the destination takes OTLP/HTTP."""
        ...

    @property
    def over_grpc(self) -> bool:
        """Whether the destination takes OTLP/gRPC."""
        ...

    async def send_http(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
        """Status, headers and body; None when there was no answer. Never raises for what a destination can do."""
        ...

    async def send_grpc(
        self,
        method: str,
        metadata: Iterable[tuple[str, str | bytes]],
        body: bytes,
        *,
        gzip: bool,
        remaining: float | None,
    ) -> tuple[StatusCode, str, tuple[tuple[str, str | bytes], ...], bytes]:
        """Code, message, trailers and reply; `gzip` asks for compression, `remaining` are the sender's seconds."""
        ...


class SpanHolder(Protocol):
    """Keeps spans back until they have their scores."""

    def wanted(self, spans: Iterable[RawSpan]) -> Collection[Ids]:
        """Trace id and span id of the spans that are to be kept back: they may get scores, and there is room."""
        ...

    def holds(self, envelope: Envelope) -> bool:
        """Whether spans of a request that came like this may be kept back."""
        ...

    def withheld(self, envelope: Envelope, alone: Iterable[Alone]) -> list[Withheld]:
        """The spans as they are kept."""
        ...


class Intake:
    """The receiver behind its protocols. `admits` says which trace ids are wanted.

    With a `relay`, what is received is passed on, and the sender is told what the relay was told. Scoring is then a
    guest: what it has no room for or cannot read is counted and keeps nothing from being passed on. A `hold` keeps
    back what it wants of that.
    """

    def __init__(
        self,
        settings: ReceiverConfig,
        sink: Sink,
        admits: Admits,
        registry: CollectorRegistry,
        relay: Relay | None = None,
        hold: SpanHolder | None = None,
    ) -> None:
        self.max_request = settings.max_request
        self.retry_after = settings.retry_after
        self.relay, self.hold = relay, hold
        self._sink, self._admits = sink, admits
        self._at_work = 0
        """Bytes of inflated bodies that are being taken in."""
        self._limits = RequestLimits(settings.max_containers, settings.max_spans, settings.max_traces)
        self.loops = Loops(settings.max_request, self._limits)
        names = frozenset({*settings.grpc.tokens, *settings.http.tokens})
        self.senders = Senders(settings.per_sender, names, registry)
        self._metrics = _Metrics(registry)

    @property
    def spans_received(self) -> int:
        """Spans in all accepted requests so far."""
        return self._metrics.spans

    def check_room(self, sender: str = "") -> None:
        """Raises Refused when the held traces fill the budget, or those of the sender half of it."""
        if not self._sink.room():
            raise Refused("full", f"no room for more traces now; send again in {self.retry_after:g} s")
        if not self._sink.fair(sender):
            raise self.senders.refusal(sender, "share")

    async def accept(
        self, wire: Wire, signal: Signal, body: bytes, encoding: str = "", json: bool = False, sender: str = ""
    ) -> int:
        """Takes in one request body and returns how many of its pieces were rejected; raises Refused.

        `encoding` is the body's content encoding, empty for none. Metrics are of no use here: they are counted and
        thrown away unread, so that senders with one endpoint for everything see no errors.
        """
        rejected = 0
        if signal != "metrics":
            self.check_room(sender)
            plain = inflate(body, encoding, self.max_request)
            with self._working_on(plain):
                split = await self._split(signal, plain, json)
                await self._hand_on(split, (), sender)
            self._metrics.accepted(wire, signal, split)
            rejected = split.rejected
        self._metrics.requests[wire, signal].inc()
        return rejected

    async def accept_beside(
        self,
        passing_on: Callable[[], Awaitable[Answered]],
        wire: Wire,
        signal: Signal,
        body: bytes,
        encoding: str = "",
        json: bool = False,
        sender: str = "",
    ) -> Answered:
        """Passes a request on and takes it in meanwhile; returns what the destination said, once both are done."""
        async with anyio.create_task_group() as both:
            both.start_soon(self._accept_or_count, wire, signal, body, encoding, json, sender)
            answer = await passing_on()
        return answer  # noqa: RET504 - only after the block is the other one done too

    async def _accept_or_count(
        self, wire: Wire, signal: Signal, body: bytes, encoding: str, json: bool, sender: str
    ) -> None:
        for _ in range(_LEAVING):
            await anyio.lowlevel.checkpoint()
        try:
            await self.accept(wire, signal, body, encoding, json, sender)
        except Refused as refused:
            self._metrics.unscored[wire, refused.reason].inc()

    async def hold_back(
        self, hold: SpanHolder, envelope: Envelope, body: bytes, encoding: str = "", sender: str = ""
    ) -> bytes | None:
        """Takes a request of traces in and returns what is to be passed on at once, in the encoding of the body.

        None when `hold` has kept all of it back, the whole body when scoring has no room for it or cannot read it.
        Raises Refused when some of it may have been kept back already: passed on as well, that would come twice.
        """
        in_bits = False
        try:
            self.check_room(sender)
            plain = inflate(body, encoding, self.max_request)
            with self._working_on(plain):
                split = await self._split("traces", plain, envelope.json)
                wanted = hold.wanted(split.spans) if hold.holds(envelope) else ()
                parting = partial(part, plain, wanted, json=envelope.json)
                small = not wanted or len(plain) <= _SMALL
                rest, alone = (plain, []) if not wanted else parting() if small else await aside(parting)
                in_bits = len(split.spans) > _AT_ONCE
                await self._hand_on(split, hold.withheld(envelope, alone), sender)
        except Refused as refused:
            if in_bits:
                raise
            self._metrics.unscored[envelope.wire, refused.reason].inc()
            return body
        self._metrics.accepted(envelope.wire, "traces", split)
        self._metrics.requests[envelope.wire, "traces"].inc()
        if not wanted:
            return body
        return None if rest is None else compress(rest, encoding)

    def count_refused(self, wire: Wire, reason: RefusalReason) -> None:
        """Counts a refusal; whoever answers it calls this."""
        self._metrics.refused[wire, reason].inc()

    @contextmanager
    def _working_on(self, plain: bytes) -> Iterator[None]:
        """Refuses what would be too much in memory at once: a small body may have become a large one."""
        if self._at_work and self._at_work + len(plain) > BODIES_IN_FLIGHT * self.max_request:
            raise crowded()
        self._at_work += len(plain)
        try:
            yield
        finally:
            self._at_work -= len(plain)

    async def _split(self, signal: Signal, body: bytes, json: bool) -> Split:
        try:
            if json:
                body = await _protobuf(signal, body)
            in_steps = traces_in_steps if signal == "traces" else logs_in_steps
            return await in_slices(in_steps(body, self._admits, self._limits))
        except TooMany as error:
            raise Refused("too_large", str(error)) from None
        except DecodeError as error:
            raise Refused("malformed", str(error)) from None

    async def _hand_on(self, split: Split, withheld: Sequence[Withheld], sender: str) -> None:
        """A failing sink is our trouble, not the sender's: it keeps its data and comes back.

        Much is handed on bit by bit. What has been taken when that fails will come again and then change nothing.
        """
        try:
            for spans, records, kept in _bit_by_bit(split, withheld):
                await self._sink.take(spans, records, kept, sender)  # a variable would keep its error, and that us
        except SpoolError:  # it has said why, once
            raise Refused(
                "failed", f"tracescore cannot write the spool; send again in {self.retry_after:g} s"
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever it is, the sender must not take it for an answer to its data
            logs.defect(_log, error, spans=len(split.spans), log_records=len(split.logs))
            raise Refused("failed", f"internal error; send again in {self.retry_after:g} s") from None


def _bit_by_bit(
    split: Split, withheld: Sequence[Withheld]
) -> Iterator[tuple[Sequence[RawSpan], Sequence[RawLog], Sequence[Withheld]]]:
    """The pieces of a request, few at a time; what is kept back goes with its span."""
    if len(split.spans) + len(split.logs) <= _AT_ONCE:
        yield split.spans, split.logs, withheld
        return
    kept: dict[Ids, list[Withheld]] = {}
    for each in withheld:
        kept.setdefault((each.trace_id, each.span_id), []).append(each)
    for at in range(0, len(split.spans), _AT_ONCE):
        spans = split.spans[at : at + _AT_ONCE]
        yield spans, (), [each for span in spans for each in kept.pop((span.trace_id, span.span_id), ())]
    for at in range(0, len(split.logs), _AT_ONCE):
        yield (), split.logs[at : at + _AT_ONCE], ()


async def _protobuf(signal: Signal, body: bytes) -> bytes:
    """A request in JSON, in protobuf; DecodeError, Refused."""
    if len(body) > MOST_JSON:
        raise Refused(
            "too_large", f"body: at most {MOST_JSON} bytes of JSON expected; send protobuf or smaller batches"
        )
    convert = otlp_json.traces_to_protobuf if signal == "traces" else otlp_json.logs_to_protobuf
    return convert(body) if len(body) <= _SMALL else await aside(partial(convert, body))


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
        self.requests = counters("requests", "Accepted requests, by signal.", "signal", signals)
        reasons = get_args(RefusalReason)
        self.refused = counters("refused_requests", "Refused requests, by reason.", "reason", reasons)
        self.unscored = counters(
            "unscored_requests", "Requests forwarded but not scored, by reason.", "reason", reasons
        )
        self._received = {
            "traces": counters("spans", "Spans in accepted requests."),
            "logs": counters("log_records", "Log records in accepted requests."),
        }
        self._rejected = {
            "traces": counters("rejected_spans", "Rejected spans: they do not parse or have no valid id."),
            "logs": counters(
                "rejected_log_records", "Rejected log records: they do not parse or have no valid trace id."
            ),
        }
        self._admitted = {
            "traces": counters("admitted_spans", "Spans of traces that sampling may choose."),
            "logs": counters("admitted_log_records", "Log records of traces that sampling may choose."),
        }

    def accepted(self, wire: Wire, signal: Signal, split: Split) -> None:
        """Counts the pieces of a request."""
        self.spans += split.received if signal == "traces" else 0
        self._received[signal][wire].inc(split.received)
        self._rejected[signal][wire].inc(split.rejected)
        self._admitted[signal][wire].inc(len(split.spans) + len(split.logs))
