"""A listener lets go of its socket, however its block is left, and of the requests that do not end."""

from __future__ import annotations

import socket

import anyio
import pytest

from tracescore.errors import ListenError
from tracescore.net.listener import address_of, bind, serving

pytestmark = pytest.mark.anyio


async def _app(_scope: object, _receive: object, _send: object) -> None:
    """Never asked."""


def _refuses(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


async def test_the_socket_is_closed_when_the_block_is_left_in_order() -> None:
    bound = bind("127.0.0.1:0", "test")
    port = bound.getsockname()[1]
    async with serving(_app, bound):
        assert not _refuses(port)
    assert bound.fileno() == -1
    assert _refuses(port)


async def test_the_socket_is_closed_when_an_error_leaves_the_block() -> None:
    bound = bind("127.0.0.1:0", "test")
    port = bound.getsockname()[1]
    with pytest.raises(ExceptionGroup) as raised:
        async with serving(_app, bound):
            raise ValueError("of the block")
    assert [str(error) for error in raised.value.exceptions] == ["of the block"]
    assert bound.fileno() == -1
    assert _refuses(port)


async def test_the_socket_is_closed_when_the_block_is_cancelled() -> None:
    bound = bind("127.0.0.1:0", "test")
    with anyio.CancelScope() as scope:
        async with serving(_app, bound):
            scope.cancel()
            await anyio.sleep_forever()
    assert bound.fileno() == -1


async def test_the_socket_is_closed_when_it_is_cancelled_before_it_serves() -> None:
    bound = bind("127.0.0.1:0", "test")
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with serving(_app, bound):
            await anyio.sleep_forever()
    assert bound.fileno() == -1


async def test_a_request_that_does_not_end_is_told_to_come_back_and_leaves_no_traceback(caplog) -> None:
    asked = anyio.Event()

    async def stalled(_scope: object, _receive: object, _send: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    bound = bind("127.0.0.1:0", "test")
    host, port = address_of(bound).split(":")
    async with serving(stalled, bound, grace=0):
        client = await anyio.connect_tcp(host, int(port))
        await client.send(b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 99\r\n\r\nonly this")
        await asked.wait()
    async with client:
        head = (await client.receive()).decode().lower()
    assert head.startswith("http/1.1 503")
    assert "retry-after: 2\r\n" in head
    assert not [record for record in caplog.records if record.exc_info]


def test_a_taken_address_is_told_with_what_may_be_running_there() -> None:
    with bind("127.0.0.1:0", "test") as taken:
        taken.listen()
        with pytest.raises(ListenError, match=r"already in use; another tracescore or a collector may use it"):
            bind(address_of(taken), "web.listen")


def test_a_host_name_that_cannot_be_one_is_told() -> None:
    with pytest.raises(ListenError, match=r"^web\.listen: cannot listen on a\.\.b:80: .*; set another address$"):
        bind("a..b:80", "web.listen")
