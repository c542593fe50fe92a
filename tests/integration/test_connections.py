"""Senders that never finish: their connections end, and keep nobody out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream
from prometheus_client import CollectorRegistry

from tracescore.net import connections as rules
from tracescore.net.asgi import Response, respond
from tracescore.net.connections import ConnectionMetrics, Connections, most_connections
from tracescore.net.listener import address_of, bind, serving

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nhost: t\r\n\r\n"
LARGE = 2**23


async def _app(scope, _receive, send) -> None:
    await respond(send, Response(200, bytes(LARGE) if scope["path"] == "/large" else b"ok"))


class Listening:
    def __init__(self, port: int, registry: CollectorRegistry) -> None:
        self.port, self.registry = port, registry

    async def connect(self, first: bytes = b"") -> SocketStream:
        stream = await anyio.connect_tcp("127.0.0.1", self.port)
        if first:
            await stream.send(first)
        return stream

    def ended(self, reason: str) -> float | None:
        labels = {"listener": "receiver", "reason": reason}
        return self.registry.get_sample_value("tracescore_net_ended_connections_total", labels)


@asynccontextmanager
async def listening(most: int = 100) -> AsyncIterator[Listening]:
    registry = CollectorRegistry()
    bound = bind("127.0.0.1:0", "test")
    port = int(address_of(bound).split(":")[1])
    async with serving(_app, bound, Connections("receiver", ConnectionMetrics(registry), most)):
        yield Listening(port, registry)


async def is_ended(stream: SocketStream) -> bool:
    """Reads to the end, which has to come."""
    with anyio.fail_after(10):
        try:
            while await stream.receive():
                pass
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.aclose()
            return True
    return False


SILENT = {
    "says nothing": (b"", "slow_head"),
    "stops within its head": (REQUEST[:20], "slow_head"),
    "stops within the head after an answer": (REQUEST + REQUEST[:20], "slow_head"),
    "is silent after an answer": (REQUEST, "idle"),
    "does not end its body": (b"GET / HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nonly", "idle"),
    "sends a head without an end": (b"GET / HTTP/1.1\r\nx: " + b"x" * 2**17, "large_head"),
    "sends no HTTP": (b"\0" * 100, "malformed"),
    "sends very many requests at once": (REQUEST * 1_000, "malformed"),
    "does not read the answer": (REQUEST.replace(b"/ ", b"/large "), "slow_reader"),
}


@pytest.mark.parametrize(("sent", "reason"), SILENT.values(), ids=SILENT)
async def test_a_connection_that_never_finishes_is_ended_and_counted(sent, reason, monkeypatch, caplog) -> None:
    monkeypatch.setattr(rules, "HEAD", 0.2)
    monkeypatch.setattr("tracescore.net.listener.IDLE", 0.4)
    monkeypatch.setattr(rules, "UNREAD", 0.4)
    async with listening() as at:
        stream = await at.connect(sent)
        if reason == "slow_reader":
            while not at.ended(reason):  # noqa: ASYNC110 - the connection tells nobody
                await anyio.sleep(0.01)
        assert await is_ended(stream)
        assert at.ended(reason) == 1
        said = [record.getMessage() for record in caplog.records]
        assert [f"reason={reason}" in each for each in said] == ([] if reason == "idle" else [True])


async def test_an_answer_that_comes_before_the_whole_body_reaches_the_sender() -> None:
    async with listening() as there:
        stream = await there.connect(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 3000000\r\n\r\n")
        for _ in range(30):
            await stream.send(bytes(100_000))
            await anyio.lowlevel.checkpoint()
        assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        await stream.send(REQUEST)
        assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        await stream.aclose()


async def test_at_the_most_connections_an_honest_sender_still_gets_in() -> None:
    async with listening(most=3) as at:
        silent = [await at.connect() for _ in range(5)]
        honest = await at.connect(REQUEST)
        assert (await honest.receive()).startswith(b"HTTP/1.1 200")
        assert [await is_ended(each) for each in silent[:3]] == [True] * 3
        assert at.ended("crowded") == 3
        assert at.registry.get_sample_value("tracescore_net_connections", {"listener": "receiver"}) == 3
        for each in (honest, *silent[3:]):
            await each.aclose()


async def test_all_listeners_together_leave_files_for_everything_else() -> None:
    files = sum(most_connections(each) for each in ("receiver", "grpc", "metrics", "page"))
    assert files <= 0.75 * rules.resource.getrlimit(rules.resource.RLIMIT_NOFILE)[0]
