"""Both listeners for OTLP, each with its own TLS and tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import socket

from tracescore.config import ReceiverConfig
from tracescore.net.access import AccessMetrics, TokenGate, Tokens
from tracescore.net.connections import ConnectionMetrics, Connections
from tracescore.net.listener import serving
from tracescore.net.tls import server_tls
from tracescore.receiver.grpc import serving_grpc
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.intake import Intake


class Receiver:
    """UsageError when a token or certificate cannot be read."""

    def __init__(self, settings: ReceiverConfig, intake: Intake, net: ConnectionMetrics, access: AccessMetrics) -> None:
        self._settings, self._intake, self._net = settings, intake, net
        self._grpc_gate = TokenGate("grpc", Tokens(settings.grpc.tokens, "receiver.grpc.tokens"), access)
        self._http_gate = TokenGate("receiver", Tokens(settings.http.tokens, "receiver.http.tokens"), access)
        self._grpc_tls = server_tls(settings.grpc.tls, "receiver.grpc.tls")
        self._http_tls = server_tls(settings.http.tls, "receiver.http.tls")

    @asynccontextmanager
    async def serving(self, http: socket) -> AsyncIterator[str]:
        """Serves OTLP/HTTP on a bound socket and OTLP/gRPC while the block runs; yields the address of the latter."""
        app, address = HttpReceiver(self._intake, gate=self._http_gate), self._settings.grpc.listen
        async with (
            serving(app, http, Connections("receiver", self._net), self._http_tls),
            serving_grpc(self._intake, address, gate=self._grpc_gate, tls=self._grpc_tls) as grpc,
        ):
            yield grpc
