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
from typing import Any, Literal, get_args

import anyio
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore import config, logs
from tracescore.exporters.otlp_messages import (
    delivered,
    evaluation_events,
    evaluation_span,
    logs_request,
    traces_request,
)
from tracescore.exporters.otlp_transports import Answer, GrpcTransport, HttpTransport, Request, Signal, Transport
from tracescore.model import Result
from tracescore.retrying import REAL_TIME, Timing

_log = logging.getLogger("tracescore.exporters")

_MAX_BATCH = 256
_MAX_BATCH_BYTES = 1 << 20
"""A batch is closed beyond either; receivers take 4 MiB by default."""
_FIRST_BACKOFF, _MAX_BACKOFF = 0.5, 30.0
"""Seconds: the first pause, and the longest."""

Dropped = Literal["queue_full", "refused", "rejected", "retries_exhausted", "shutdown", "internal_error"]
Build = Callable[[Iterable[Any]], Request]
SIGNALS: dict[Signal, Build] = {"traces": traces_request, "logs": logs_request}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait, and for how long.

    `waiting`: results in a queue; those that come while it is full are dropped. In seconds, `flush`: what `close`
    waits at most for what is waiting; `give_up`: how long one batch is tried at all.
    """

    waiting: int = 4_096
    flush: float = 4.0
    give_up: float = 300.0


DEFAULT_LIMITS = Limits()


class OtlpExporter:
    """Sends evaluation spans and events to one OTLP endpoint."""

    def __init__(
        self,
        settings: config.OtlpExporter,
        registry: CollectorRegistry,
        limits: Limits = DEFAULT_LIMITS,
        timing: Timing = REAL_TIME,
    ) -> None:
        """UsageError when a header's secret cannot be read."""
        headers = {name: secret.read(f"exporters.otlp.headers.{name}") for name, secret in settings.headers.items()}
        kind = HttpTransport if settings.protocol == "http" else GrpcTransport
        self._transport: Transport = kind(settings, headers)
        self._explanations = settings.explanations
        counters = _Counters(registry)
        self._senders = {
            signal: _Sender(signal, build, self._transport, counters, limits, timing)
            for signal, build in SIGNALS.items()
        }

    async def export(self, result: Result) -> None:
        """Queues the result, or drops and counts it while the queue is full."""
        if delivered(result):
            self._senders["traces"].put([evaluation_span(result)])
            self._senders["logs"].put(evaluation_events(result, explanations=self._explanations))

    async def close(self) -> None:
        """Sends what is waiting, for at most a few seconds, and drops and counts the rest."""
        try:
            async with anyio.create_task_group() as both:
                for sender in self._senders.values():
                    both.start_soon(sender.close)
        finally:
            with anyio.move_on_after(1, shield=True):
                await self._transport.close()


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

    def __init__(
        self,
        signal: Signal,
        build: Build,
        transport: Transport,
        counters: _Counters,
        limits: Limits,
        timing: Timing,
    ) -> None:
        self._signal, self._build, self._transport = signal, build, transport
        self._limits, self._timing = limits, timing
        self._queue: asyncio.Queue[Sequence[Message]] = asyncio.Queue(limits.waiting)
        self._task: asyncio.Task[None] | None = None
        self._healthy = True
        self._sent, self._failed = counters.sent.labels(signal), counters.failed.labels(signal)
        self._dropped = counters.dropped
        counters.waiting.labels(signal).set_function(self._queue.qsize)

    def put(self, records: Sequence[Message]) -> None:
        """Queues the records of one result, or drops and counts them."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"otlp exporter, {self._signal}")
        try:
            self._queue.put_nowait(records)
        except asyncio.QueueFull:
            self._drop("queue_full", len(records))

    async def close(self) -> None:
        """Waits a while for the queue to empty, then ends the task."""
        try:
            with anyio.move_on_after(self._limits.flush):
                await self._queue.join()
        finally:
            if self._task is not None:
                self._task.cancel()
                with anyio.move_on_after(1, shield=True):
                    await asyncio.wait([self._task])
            while not self._queue.empty():
                self._drop("shutdown", len(self._queue.get_nowait()))

    async def _run(self) -> None:
        while True:
            batch = await self._next_batch()
            try:
                await self._deliver([record for records in batch for record in records])
            finally:
                for _ in batch:
                    self._queue.task_done()

    async def _next_batch(self) -> list[Sequence[Message]]:
        batch = [await self._queue.get()]
        size = _bytes(batch[0])
        while len(batch) < _MAX_BATCH and size < _MAX_BATCH_BYTES and not self._queue.empty():
            batch.append(self._queue.get_nowait())
            size += _bytes(batch[-1])
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
        except Exception as error:  # noqa: BLE001 - logged; the next batch must not suffer from this one
            reason = "internal_error"
            logs.defect(_log, error, exporter="otlp", signal=self._signal)
        finally:
            self._drop(reason, lost)

    async def _until_taken(self, request: Request) -> Answer:
        """Tries until the request is accepted or refused, or until it has been tried long enough."""
        wait, clock = _FIRST_BACKOFF, self._timing.clock
        begun = clock()
        while True:
            answer = await self._transport.send(self._signal, request)
            self._failed.inc(answer.outcome != "accepted")
            self._say(answer)
            jitter = random.uniform(0.8, 1.2)  # noqa: S311 - spreads replicas, hides nothing
            pause = wait * jitter if answer.after is None else answer.after
            if answer.outcome != "again" or clock() + pause - begun > self._limits.give_up:
                return answer
            await self._timing.sleep(pause)
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


def _bytes(records: Sequence[Message]) -> int:
    return sum(record.ByteSize() for record in records)
