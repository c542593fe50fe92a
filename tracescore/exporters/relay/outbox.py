"""Spans that were kept back, on their way to where requests are passed on.

They were acknowledged, so they are tried until the destination has taken them or refused them for good. Spans of
different envelopes never share a request, so each envelope has a queue of its own while something waits for it; the
spans of one go in the order in which they were let go.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore.exporters.delivery import UNTIL_TAKEN, Answer, DeliveryQueue, Dropped, QueueMetrics
from tracescore.net.retry import Timing
from tracescore.net.wire import Envelope, dumps, loads
from tracescore.runtime import gather

_log = logging.getLogger("tracescore.exporters")

_AT_ONCE = 8
"""Requests under way."""
_DROPPED: tuple[Dropped, ...] = ("refused", "rejected", "internal_error")


class Outbox:
    """Sends requests of one span each through `deliver`, which makes one attempt to pass on a request of several."""

    def __init__(
        self, deliver: Callable[[Envelope, bytes], Awaitable[Answer]], registry: CollectorRegistry, timing: Timing
    ) -> None:
        self._deliver, self._timing = deliver, timing
        self._queues: dict[Envelope, DeliveryQueue[bytes]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self.size = 0
        """Bytes of all requests that wait."""
        prefix = "tracescore_exporters_forward"
        dropped = Counter(
            f"{prefix}_dropped_spans",
            "Released spans that the destination refused for good, by reason.",
            ["reason"],
            registry=registry,
        )
        self._metrics = QueueMetrics(
            name="forward",
            sent=Counter(
                f"{prefix}_delivered_spans", "Released spans that the destination accepted.", registry=registry
            ),
            failed=None,  # the forwarder counts its requests
            dropped={reason: dropped.labels(reason) for reason in _DROPPED},
            waiting=Gauge(
                f"{prefix}_outgoing_spans",
                "Released spans that the destination has not accepted yet.",
                registry=registry,
            ),
        )

    def put(self, envelope: Envelope, request: bytes, end: Callable[[], None]) -> None:
        """Queues a request of one span; `end` is called once it has been taken or refused for good."""
        queue = self._queues.get(envelope)
        if queue is None:
            attempt = partial(self._attempt, envelope)
            queue = self._queues[envelope] = DeliveryQueue(self._metrics, attempt, len, UNTIL_TAKEN, self._timing)
        self.size += len(request)
        queue.put([request], partial(self._ended, envelope, queue, len(request), end))

    async def close(self) -> None:
        """Waits a few seconds for everything to be taken, then ends."""
        left = await gather([partial(queue.close, durable=True) for queue in self._queues.values()])
        if any(left):
            _log.warning("event=spans_left_in_spool envelopes=%d", sum(map(bool, left)))

    def _ended(self, envelope: Envelope, queue: DeliveryQueue[bytes], size: int, end: Callable[[], None]) -> None:
        self.size -= size
        if not queue.waiting and self._queues.get(envelope) is queue:
            del self._queues[envelope]
        end()

    async def _attempt(self, envelope: Envelope, spans: Sequence[Sequence[bytes]]) -> Answer:
        async with self._at_once:
            answer = await self._deliver(envelope, merged([request for (request,) in spans], json=envelope.json))
        if answer.outcome == "refused" and len(spans) == 1:  # of more than one, each is tried alone
            _log.warning('event=spans_refused spans=1 detail="%s"', answer.detail)
        return answer


def merged(requests: Sequence[bytes], *, json: bool) -> bytes:
    """Several requests as one: in protobuf, messages written behind each other are one message."""
    if not json:
        return b"".join(requests)
    groups = (group for request in requests for found in loads(request).values() for group in found)
    return dumps({"resourceSpans": list(groups)})
