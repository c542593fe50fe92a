"""Scores as OpenTelemetry: an evaluation event per score and an evaluation span per interaction.

`export` only puts a result into bounded queues. Spans and events have a sender each, so that a store of traces that
takes no logs, or the reverse, loses only what it does not take. A sender sends what is waiting in batches, tries
again while the destination cannot take it, and counts a record as sent when it has been acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, get_args

import anyio
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore import config
from tracescore.exporters.otlp_messages import (
    delivered,
    evaluation_events,
    evaluation_span,
    logs_request,
    traces_request,
)
from tracescore.exporters.otlp_transports import Answer, GrpcTransport, HttpTransport, Request, Signal, Transport
from tracescore.model import Clock, Result

_log = logging.getLogger("tracescore.exporters")

MAX_WAITING = 4_096
"""Results in a queue; those that come while it is full are dropped."""
_MAX_BATCH = 256
_MAX_BATCH_BYTES = 1 << 20
"""A batch is closed beyond either; receivers take 4 MiB by default."""
_FLUSH = 4.0
"""Seconds that `close` waits at most for what is waiting."""
_FIRST_BACKOFF, _MAX_BACKOFF, _GIVE_UP = 0.5, 30.0, 300.0
"""Seconds: the first pause, the longest, and how long one batch is tried at all."""

Dropped = Literal["queue_full", "refused", "rejected", "retries_exhausted", "shutdown", "internal_error"]
Build = Callable[[Iterable[Any]], Request]
SIGNALS: dict[Signal, Build] = {"traces": traces_request, "logs": logs_request}


class OtlpExporter:
    """Sends evaluation spans and events to one OTLP endpoint."""

    name = "otlp"

    def __init__(self, settings: config.OtlpExporter, registry: CollectorRegistry, clock: Clock) -> None:
        """UsageError when a header's secret cannot be read."""
        headers = {name: secret.read(f"exporters.otlp.headers.{name}") for name, secret in settings.headers.items()}
        kind = HttpTransport if settings.protocol == "http" else GrpcTransport
        self._transport: Transport = kind(settings.endpoint, headers, settings.timeout)
        self._explanations = settings.explanations
        self._closed = False
        self.settled: Callable[[Result], None] = lambda _: None
        counters = _Counters(registry)
        self._senders = {
            signal: _Sender(signal, build, self._transport, counters, clock) for signal, build in SIGNALS.items()
        }

    async def export(self, result: Result) -> None:
        """Queues the result, or drops and counts it while the queue is full. RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("otlp exporter: export after close")
        if not delivered(result):
            self.settled(result)
            return
        ends = count(1)

        def end() -> None:
            """One of the signals has come to its end."""
            if next(ends) == len(self._senders):
                self.settled(result)

        self._senders["traces"].put(_Records([evaluation_span(result)], end))
        self._senders["logs"].put(_Records(evaluation_events(result, explanations=self._explanations), end))

    async def close(self) -> None:
        """Sends what is waiting, for at most a few seconds, and drops and counts the rest."""
        if self._closed:
            return
        self._closed = True
        try:
            async with anyio.create_task_group() as both:
                for sender in self._senders.values():
                    both.start_soon(sender.close)
        finally:
            with anyio.move_on_after(1, shield=True):
                await self._transport.close()


@dataclass(frozen=True, slots=True)
class _Records:
    """What one result is in one signal; `end` is called when that has been taken or given up."""

    messages: Sequence[Message]
    end: Callable[[], None]

    @property
    def bytes(self) -> int:
        return sum(message.ByteSize() for message in self.messages)


class _Counters:
    """What the senders count, by signal."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix, by_signal = "tracescore_exporters_otlp", ["signal"]
        self.sent = Counter(f"{prefix}_sent", "Spans and log records acknowledged.", by_signal, registry=registry)
        self.failed = Counter(f"{prefix}_failed_requests", "Requests not accepted.", by_signal, registry=registry)
        self.dropped = Counter(
            f"{prefix}_dropped", "Spans and log records given up, by reason.", ["signal", "reason"], registry=registry
        )
        self.waiting = Gauge(f"{prefix}_waiting", "Results in the queue.", by_signal, registry=registry)
        for signal in SIGNALS:
            self.sent.labels(signal)
            self.failed.labels(signal)
            for reason in get_args(Dropped):
                self.dropped.labels(signal, reason)


class _Sender:
    """One signal's queue and the task that empties it. The task begins with the first record."""

    def __init__(self, signal: Signal, build: Build, transport: Transport, counters: _Counters, clock: Clock) -> None:
        self._signal, self._build, self._transport, self._clock = signal, build, transport, clock
        self._queue: asyncio.Queue[_Records] = asyncio.Queue(MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._healthy = True
        self._sent, self._failed = counters.sent.labels(signal), counters.failed.labels(signal)
        self._dropped = counters.dropped
        counters.waiting.labels(signal).set_function(self._queue.qsize)

    def put(self, records: _Records) -> None:
        """Queues the records of one result, or drops and counts them."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"otlp exporter, {self._signal}")
        try:
            self._queue.put_nowait(records)
        except asyncio.QueueFull:
            self._drop("queue_full", len(records.messages))
            records.end()

    async def close(self) -> None:
        """Waits a while for the queue to empty, then ends the task."""
        try:
            with anyio.move_on_after(_FLUSH):
                await self._queue.join()
        finally:
            if self._task is not None:
                self._task.cancel()
                with anyio.move_on_after(1, shield=True):
                    await asyncio.wait([self._task])
            while not self._queue.empty():
                self._drop("shutdown", len(self._queue.get_nowait().messages))

    async def _run(self) -> None:
        while True:
            batch = await self._next_batch()
            try:
                await self._deliver([message for records in batch for message in records.messages])
                for records in batch:
                    records.end()
            finally:
                for _ in batch:
                    self._queue.task_done()

    async def _next_batch(self) -> list[_Records]:
        batch = [await self._queue.get()]
        size = batch[0].bytes
        while len(batch) < _MAX_BATCH and size < _MAX_BATCH_BYTES and not self._queue.empty():
            batch.append(self._queue.get_nowait())
            size += batch[-1].bytes
        return batch

    async def _deliver(self, records: Sequence[Message]) -> None:
        """Brings one request to an end; whatever the end, its records are counted."""
        lost, reason = len(records), "shutdown"
        try:
            answer = await self._until_taken(self._build(records))
            reason = "refused" if answer.outcome == "refused" else "retries_exhausted"
            if answer.outcome == "accepted":
                lost, reason = min(answer.rejected, len(records)), "rejected"
                self._sent.inc(len(records) - lost)
        except Exception:  # noqa: BLE001 - logged; the next batch must not suffer from this one
            reason = "internal_error"
            _log.exception("event=defect stage=exporters exporter=otlp signal=%s", self._signal)
        finally:
            self._drop(reason, lost)

    async def _until_taken(self, request: Request) -> Answer:
        """Tries until the request is accepted or refused, or until it has been tried long enough."""
        wait, begun = _FIRST_BACKOFF, self._clock()
        while True:
            answer = await self._transport.send(self._signal, request)
            self._failed.inc(answer.outcome != "accepted")
            self._say(answer)
            jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads replicas, hides nothing
            pause = wait * jitter if answer.after is None else answer.after
            if answer.outcome != "again" or self._clock() + pause - begun > _GIVE_UP:
                return answer
            await asyncio.sleep(pause)
            wait = min(_MAX_BACKOFF, wait * 2)

    def _say(self, answer: Answer) -> None:
        """Logs when things change, not at every attempt."""
        healthy = answer.outcome == "accepted" and not answer.rejected
        if healthy == self._healthy:
            return
        self._healthy = healthy
        if healthy:
            _log.info("event=otlp_recovered signal=%s", self._signal)
        else:
            state = "rejected" if answer.rejected else {"again": "retrying"}.get(answer.outcome, answer.outcome)
            what = (state, self._signal, answer.detail, answer.rejected)
            _log.warning('event=otlp_%s signal=%s detail="%s" rejected=%d', *what)

    def _drop(self, reason: str, records: int) -> None:
        self._dropped.labels(self._signal, reason).inc(records)
