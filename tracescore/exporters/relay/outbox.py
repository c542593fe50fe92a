"""Spans that were kept back, on their way to where requests are passed on.

They were acknowledged, so they are tried until the destination has taken them or refused them for good. Spans of
different envelopes never share a request; those of one go in the order in which they were let go. Of a request that
is refused each span is tried alone: what is wrong with one says nothing about the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore import logs
from tracescore.exporters.delivery import FIRST_BACKOFF, MAX_BACKOFF, MAX_BATCH, MAX_BATCH_BYTES, Answer, jitter
from tracescore.net.retry import Timing
from tracescore.net.wire import Envelope, dumps, loads

_log = logging.getLogger("tracescore.exporters")

_AT_ONCE = 8
"""Requests under way."""
_FLUSH = 4.0
"""Seconds that `close` waits for what is on its way."""

Deliver = Callable[[Envelope, bytes], Awaitable[Answer]]


@dataclass(slots=True)
class _Parcel:
    """A request of one span, and what to call when it has been taken or refused for good."""

    request: bytes
    end: Callable[[], None]


@dataclass(slots=True)
class _Line:
    """What waits for one envelope, and the task that sends it."""

    parcels: deque[_Parcel] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class Outbox:
    """Sends requests through `deliver`, which makes one attempt."""

    def __init__(self, deliver: Deliver, registry: CollectorRegistry, timing: Timing) -> None:
        self._deliver, self._timing = deliver, timing
        self._lines: dict[Envelope, _Line] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._idle = asyncio.Event()
        self.size = 0
        """Bytes of all requests that wait."""
        prefix = "tracescore_exporters_forward"
        self._delivered = Counter(f"{prefix}_delivered_spans", "Spans kept back, then taken.", registry=registry)
        self._dropped = Counter(
            f"{prefix}_dropped_spans", "Spans kept back, then refused for good.", ["reason"], registry=registry
        )
        for reason in ("refused", "rejected", "internal_error"):
            self._dropped.labels(reason)
        waiting = Gauge(f"{prefix}_outgoing_spans", "Spans let go and not yet taken.", registry=registry)
        waiting.set_function(lambda: sum(len(line.parcels) for line in self._lines.values()))

    def put(self, envelope: Envelope, request: bytes, end: Callable[[], None]) -> None:
        """Queues a request of one span; `end` is called once it has been taken or refused for good."""
        line = self._lines.setdefault(envelope, _Line())
        line.parcels.append(_Parcel(request, end))
        self.size += len(request)
        self._idle.clear()
        if line.task is None:
            line.task = asyncio.create_task(self._send(envelope, line), name="spans kept back")

    async def close(self) -> None:
        """Waits a few seconds for everything to be taken, then ends."""
        if self._lines:
            with anyio.move_on_after(_FLUSH):
                await self._idle.wait()
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            with anyio.move_on_after(1, shield=True):
                await asyncio.wait(tasks)
            _log.warning("event=spans_left_in_spool envelopes=%d", len(tasks))

    async def _send(self, envelope: Envelope, line: _Line) -> None:
        pause, alone = FIRST_BACKOFF, 0
        while line.parcels:
            batch = [line.parcels[0]] if alone else _batch(line.parcels)
            async with self._at_once:
                answer = await self._attempt(envelope, batch)
            if answer.outcome == "again":
                await self._timing.sleep(answer.after or pause * jitter())
                pause = min(MAX_BACKOFF, pause * 2)
                continue
            pause = FIRST_BACKOFF
            if answer.outcome == "refused" and len(batch) > 1:
                alone = len(batch)
                continue
            alone = max(0, alone - 1)
            for parcel in batch:
                line.parcels.popleft()
                self.size -= len(parcel.request)
            self._count(answer, len(batch))
            for parcel in batch:
                parcel.end()
        del self._lines[envelope]
        if not self._lines:
            self._idle.set()

    async def _attempt(self, envelope: Envelope, batch: Sequence[_Parcel]) -> Answer:
        try:
            return await self._deliver(envelope, together([each.request for each in batch], json=envelope.json))
        except Exception as error:  # noqa: BLE001 - logged; what comes behind must not suffer from this batch
            logs.defect(_log, error, spans=len(batch))
            return Answer("refused", "internal_error")

    def _count(self, answer: Answer, spans: int) -> None:
        if answer.outcome != "accepted":
            reason = "internal_error" if answer.detail == "internal_error" else "refused"
            self._dropped.labels(reason).inc(spans)
            _log.warning('event=spans_refused spans=%d detail="%s"', spans, answer.detail)
            return
        rejected = min(answer.rejected, spans)
        self._dropped.labels("rejected").inc(rejected)
        self._delivered.inc(spans - rejected)


def _batch(parcels: Sequence[_Parcel]) -> list[_Parcel]:
    """The first of them, as many as make one request."""
    batch: list[_Parcel] = []
    size = 0
    for parcel in parcels:
        batch.append(parcel)
        size += len(parcel.request)
        if len(batch) == MAX_BATCH or size >= MAX_BATCH_BYTES:
            break
    return batch


def together(requests: Sequence[bytes], *, json: bool) -> bytes:
    """Several requests as one: in protobuf, messages written behind each other are one message."""
    if not json:
        return b"".join(requests)
    groups = (group for request in requests for found in loads(request).values() for group in found)
    return dumps({"resourceSpans": list(groups)})
