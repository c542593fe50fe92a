"""A listener lets go of its socket, however its block is left."""

from __future__ import annotations

import socket

import anyio
import pytest

from tracescore.listener import bind, serving

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
