"""What the connections of a listener may do, and for how long: senders that never finish must not keep others out.

uvicorn has a deadline for idle connections alone. Here a connection that says nothing, or stops within the head of a
request, ends; so does one whose owner does not read. At the most connections, the one ends that has been without a
request for the longest time, so that an honest sender gets in while others hold many silent ones.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections import OrderedDict
from typing import Any, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_log = logging.getLogger("tracescore.net")

Listener = Literal["receiver", "metrics", "page"]
Ended = Literal["slow_head", "large_head", "malformed", "idle", "slow_reader", "crowded"]
"""The head of a request did not come in time, was too large, or was none; no request came; the answer was not read;
there were too many connections."""

HEAD = 10.0
"""Seconds in which the head of a request must have come, from the first byte or the beginning of a connection."""
IDLE = 30
"""Seconds between two requests: more than exporters let pass between two batches."""
UNREAD = 30.0
"""Seconds for which an answer may wait to be read."""
CERTIFICATE = "tracescore.certificate"
"""In the ASGI scope: what `SSLSocket.getpeercert` says of a client whose certificate was verified."""
_LARGEST_HEAD = 2**16
_MOST_PIPELINED = 32
"""Requests that may wait for the answer to an earlier one of their connection."""
_SAY_EVERY = 60.0
_MOST = 10_000
_SHARES: dict[Listener | Literal["grpc"], int] = {"receiver": 4, "grpc": 4, "metrics": 8, "page": 8}
"""A listener gets 1 / n of the files that the process may open; the disk, the judge and destinations share the rest."""


def most_connections(listener: Listener | Literal["grpc"]) -> int:
    """How many connections a listener may have, so that the others keep working when it is full."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(_MOST, files // _SHARES[listener]) if files != resource.RLIM_INFINITY else _MOST


class ConnectionMetrics:
    """What all listeners of a process count."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = Gauge("tracescore_net_connections", "Open connections.", ["listener"], registry=registry)
        self.ended = Counter(
            "tracescore_net_ended_connections",
            "Connections that tracescore closed, by reason.",
            ["listener", "reason"],
            registry=registry,
        )
        for listener in get_args(Listener):
            self.open.labels(listener)
            for reason in get_args(Ended):
                self.ended.labels(listener, reason)


class Connections:
    """The connections of one listener, at most `most`."""

    def __init__(self, listener: Listener, metrics: ConnectionMetrics, most: int | None = None) -> None:
        self._listener, self._metrics = listener, metrics
        self._most = most_connections(listener) if most is None else most
        self._open = 0
        self._waiting: OrderedDict[Connection, None] = OrderedDict()  # without a request, the longest first
        self._said: dict[Ended, float] = {}

    def protocol(self, **of_uvicorn: Any) -> Connection:
        """A new connection, as uvicorn makes one."""
        return Connection(self, **of_uvicorn)

    def opened(self, connection: Connection) -> None:
        """Takes a connection in; at the most another ends for it."""
        self._count(+1)
        self._waiting[connection] = None
        if self._open > self._most:
            next(iter(self._waiting)).end("crowded")

    def closed(self, connection: Connection) -> None:
        """It is gone."""
        self._count(-1)
        self._waiting.pop(connection, None)

    def waits(self, connection: Connection) -> None:
        """It has no request at present."""
        self._waiting[connection] = None

    def works(self, connection: Connection) -> None:
        """It has a request."""
        self._waiting.pop(connection, None)

    def ended(self, reason: Ended) -> None:
        """Counts a connection that is ended, and says so once a minute."""
        self._metrics.ended.labels(self._listener, reason).inc()
        now = time.monotonic()
        if reason != "idle" and now >= self._said.get(reason, 0.0):
            self._said[reason] = now + _SAY_EVERY
            advice = "see tracescore_net_ended_connections_total; a proxy in front can limit senders"
            _log.warning('event=connection_ended listener=%s reason=%s advice="%s"', self._listener, reason, advice)

    def _count(self, step: int) -> None:
        self._open += step
        self._metrics.open.labels(self._listener).set(self._open)


class Connection(HttpToolsProtocol):
    """uvicorn's, with deadlines."""

    def __init__(self, connections: Connections, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._all = connections
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_size = 0
        self._begun = False
        """Whether a head has begun that is not complete."""
        self._in_body = False

    def end(self, reason: Ended) -> None:
        """Ends the connection; what was not read of an answer is lost."""
        if not self.transport.is_closing() or self.transport.get_write_buffer_size():
            self._all.ended(reason)
        self._all.works(self)  # or it would be ended again before the loop tells that it is gone
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection has to send the head of a request."""
        super().connection_made(transport)
        self._expect_head()
        self._all.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop(self._head, self._unread)
        self._all.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, or of a body, which the app has deadlines for."""
        super().data_received(data)
        if self.transport.is_closing() or not (self.cycle is None or self.cycle.response_complete):
            return
        if (
            self._in_body
        ):  # the rest of a body that was answered before it had come: whatever its size, but not for long
            if self._head is None:
                self._expect_head()
            return
        self._head_size += len(data)
        if self._head is None:
            self._expect_head()
        elif self._head_size > _LARGEST_HEAD:
            self.end("large_head")

    def on_message_begin(self) -> None:
        """The head of a request begins."""
        super().on_message_begin()
        self._begun = True
        certificate = self.transport.get_extra_info("peercert")
        if certificate:
            self.scope[CERTIFICATE] = certificate  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        """A request begins."""
        self._begun = False
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise ValueError("too many requests at once")  # the parser stops, and the answer is 400
        self._stop(self._head)
        self._head, self._head_size, self._in_body = None, 0, True
        self._all.works(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request has come whole; it may have been answered before."""
        super().on_message_complete()
        self._in_body = False
        if self.cycle is None or self.cycle.response_complete:
            self._stop(self._head)
            self._head = None

    def on_response_complete(self) -> None:
        """A request is answered."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_reading()
        elif self.cycle.response_complete:
            self._all.waits(self)
            if self._begun and self._head is None:
                self._expect_head()

    def send_400_response(self, msg: str) -> None:
        """What came is no request."""
        self._all.ended("malformed")
        super().send_400_response(msg)
        self._expect_reading()

    def pause_writing(self) -> None:
        """An answer is not read as fast as it is written."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._stop(self._unread)

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
        self.end("idle")

    def _expect_head(self) -> None:
        self._head_size = 0
        self._head = self.loop.call_later(HEAD, self.end, "slow_head")

    def _expect_reading(self) -> None:
        self._stop(self._unread)
        self._unread = self.loop.call_later(UNREAD, self.end, "slow_reader")

    @staticmethod
    def _stop(*timers: asyncio.TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()


class QuietAboutSenders(logging.Filter):
    """Keeps what uvicorn says of each malformed request out of the logs; it is counted."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be logged."""
        return not str(record.msg).startswith(("Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket"))
