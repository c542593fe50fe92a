"""Serves an ASGI app on one address, inside a task group of the caller's.

uvicorn installs its own signal handlers and exits the process by itself; neither is wanted in a service that
drains, so it is driven by events and given a socket that is bound beforehand: a taken port is one clear
line before anything starts.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from email.utils import formatdate
from typing import Any

import anyio
import uvicorn
from prometheus_client import CollectorRegistry
from uvicorn.server import ServerState

from tracescore.config.types import host_port
from tracescore.errors import ListenError
from tracescore.net.asgi import App, AsgiMessage, Receive, Response, Scope, Send, respond
from tracescore.net.connections import IDLE, ConnectionMetrics, Connections, QuietAboutSenders
from tracescore.net.tls import ServerTls


def bind(address: str, setting: str) -> socket.socket:
    """A bound socket for HOST:PORT; ListenError names the setting when the address is taken or not ours."""
    host, port = host_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, UnicodeError) as error:  # the latter for names that cannot be one
        bound.close()
        why = getattr(error, "strerror", None) or "no such host"
        hint = _TAKEN if getattr(error, "errno", None) == errno.EADDRINUSE else "set another address"
        raise ListenError(f"{setting}: cannot listen on {address}: {why}; {hint}") from None
    bound.set_inheritable(True)
    return bound


_TAKEN = "another tracescore or a collector may use it: stop that one or set another address"


def address_of(bound: socket.socket) -> str:
    """HOST:PORT that the socket really has (port 0 has become a number)."""
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_QUIET = QuietAboutSenders()


class _Dated(ServerState):
    """Makes the date of a response when there is one; uvicorn makes it every second, whether it is asked or not."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """What every response carries, also one to a request that cannot be read (RFC 9110, section 6.6.1)."""
        return [(b"date", formatdate(time.time(), usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, _of_uvicorn: list[tuple[bytes, bytes]]) -> None:
        """Ignored: uvicorn begins with none."""


class _Server(uvicorn.Server):
    """Waits for events where uvicorn ticks: three servers that tick cost an idle process more than all the rest."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = _Dated()
        self.listening, self.leaving = anyio.Event(), anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        await self.leaving.wait()

    def capture_signals(self) -> Any:
        """Signals belong to the service."""
        return nullcontext()


@asynccontextmanager
async def serving(
    app: App,
    bound: socket.socket,
    connections: Connections | None = None,
    tls: ServerTls | None = None,
    grace: int = 5,
) -> AsyncIterator[None]:
    """Serves `app` on `bound` while the block runs; requests in flight are answered before it is left.

    What is not done `grace` seconds later is answered with 503 and Retry-After.

    `connections` counts those that are open; without it they have the same limits.

    That is so also when the block is left by an error or a cancellation: the socket is closed.
    """
    connections = connections or Connections("receiver", ConnectionMetrics(CollectorRegistry()))
    config = uvicorn.Config(
        _cut_off(app),
        http=connections.protocol,  # type: ignore[arg-type]  # a class is declared, and called like this
        timeout_keep_alive=IDLE,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=grace,
    )
    config.load()
    config.ssl = None if tls is None else tls.context
    server = _Server(config)
    logging.getLogger("uvicorn.error").addFilter(_QUIET)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # it ends by `leaving`: only then does uvicorn close the socket
            await server.serve([bound])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await server.listening.wait()
            yield
        finally:
            server.leaving.set()


def _cut_off(app: App) -> App:
    """`app`, where a request that uvicorn cancels at the end is told so; uvicorn itself would log a traceback."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: AsgiMessage) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await app(scope, receive, sending)
        except asyncio.CancelledError:
            if not begun:
                headers = (("retry-after", "2"), ("connection", "close"))
                await respond(send, Response(503, b"stopping; send again later\n", headers=headers))

    return answering
