"""Scores as OpenTelemetry: an evaluation event per score and an evaluation span per interaction.

Spans and events have a queue each, so that a store of traces that takes no logs, or the reverse, loses only what it
does not take.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, get_args

import anyio
from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from tracescore.config import OtlpExporterConfig
from tracescore.exporters.delivery import (
    DEFAULT_LIMITS,
    Answer,
    Attempt,
    DeliveryMetrics,
    DeliveryQueue,
    Dropped,
    Limits,
)
from tracescore.exporters.kinds import Delivering
from tracescore.exporters.otlp.messages import (
    delivered,
    evaluation_events,
    evaluation_span,
    logs_request,
    traces_request,
)
from tracescore.exporters.otlp.transports import ExportRequest, ExportSignal, GrpcTransport, HttpTransport
from tracescore.model import Result
from tracescore.net.retry import REAL_TIME, Timing

DROPPED: tuple[Dropped, ...] = tuple(reason for reason in get_args(Dropped) if reason != "not_found")

Build = Callable[[Iterable[Any]], ExportRequest]
SIGNALS: dict[ExportSignal, Build] = {"traces": traces_request, "logs": logs_request}


class OtlpExporter(Delivering):
    """Sends evaluation spans and events to one OTLP endpoint."""

    name = "otlp"

    def __init__(
        self,
        settings: OtlpExporterConfig,
        registry: CollectorRegistry,
        limits: Limits = DEFAULT_LIMITS,
        timing: Timing = REAL_TIME,
        *,
        durable: bool = False,
    ) -> None:
        """UsageError when a header's secret cannot be read."""
        super().__init__(durable=durable)
        headers = {name: secret.read(f"exporters.otlp.headers.{name}") for name, secret in settings.headers.items()}
        self._transport = (HttpTransport if settings.protocol == "http" else GrpcTransport)(settings, headers)
        self._explanations = settings.explanations
        metrics = DeliveryMetrics("otlp", "Spans and log records", registry, DROPPED, tuple(SIGNALS))
        self._queues = {
            signal: DeliveryQueue(metrics.queue("otlp", signal), self._attempt(signal, build), _bytes, limits, timing)
            for signal, build in SIGNALS.items()
        }

    async def export(self, result: Result) -> None:
        """Queues the result, or drops and counts it while the queue is full."""
        if not delivered(result):
            self.settled(result)
            return
        ends = count(1)

        def end() -> None:
            """One of the signals has come to its end."""
            if next(ends) == len(self._queues):
                self.settled(result)

        self._queues["traces"].put([evaluation_span(result)], end)
        self._queues["logs"].put(evaluation_events(result, explanations=self._explanations), end)

    async def close(self) -> None:
        """Sends what is waiting, for at most a few seconds, and drops and counts the rest, unless it is kept."""
        try:
            async with anyio.create_task_group() as both:
                for queue in self._queues.values():
                    both.start_soon(partial(queue.close, durable=self.durable))
        finally:
            with anyio.move_on_after(1, shield=True):
                await self._transport.close()

    def _attempt(self, signal: ExportSignal, build: Build) -> Attempt[Message]:
        async def attempt(results: Sequence[Sequence[Message]]) -> Answer:
            return await self._transport.send(signal, build(record for records in results for record in records))

        return attempt


def _bytes(record: Message) -> int:
    return record.ByteSize()
