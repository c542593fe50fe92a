"""OTLP/gRPC: the Export methods of the three services, on raw bytes.

Generic handlers, without generated servicers: those would parse every request in full before anybody has asked
whether one of its traces is wanted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import cast
from urllib.parse import unquote

import anyio
import grpc

from tracescore.errors import ListenError
from tracescore.net.access import TokenGate
from tracescore.net.connections import most_connections
from tracescore.net.listener import bind
from tracescore.net.otlp_answers import retry_trailers
from tracescore.net.tls import ServerTls
from tracescore.net.wire import Envelope
from tracescore.receiver import responses
from tracescore.receiver.inflate import inflate
from tracescore.receiver.intake import PATIENCE, Intake, Relay
from tracescore.receiver.refusals import Refused, Signal
from tracescore.receiver.senders import let_in

SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}

_SETTING = "receiver.grpc.listen"
_CONNECTIONS = (
    ("grpc.max_concurrent_streams", 16),  # calls of one connection
    ("grpc.max_metadata_size", 2**14),
    ("grpc.absolute_max_metadata_size", 2**15),
    ("grpc.server_handshake_timeout_ms", 10_000),  # also of a connection that says nothing
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.max_connection_age_ms", 3_600_000),  # so that a load balancer gets to spread them anew
    ("grpc.max_connection_age_grace_ms", 60_000),
    ("grpc.keepalive_time_ms", 60_000),  # asks a silent peer whether it is there
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
)
"""What one connection may do and for how long. Against a flood of connections a proxy has to stand in front."""
_GRACE = 5.0
"""Seconds that requests in flight have at shutdown; as for the other listeners."""


_Answer = tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...], bytes]
Context = grpc.aio.ServicerContext[bytes, bytes]
Export = Callable[[AsyncIterator[bytes], Context], Awaitable[bytes]]
ReadBody = Callable[[AsyncIterator[bytes]], Awaitable[bytes]]


@asynccontextmanager
async def serving_grpc(
    intake: Intake,
    address: str,
    patience: float = PATIENCE,
    gate: TokenGate | None = None,
    tls: ServerTls | None = None,
) -> AsyncIterator[str]:
    """Serves on `address` while the block runs and yields the address really bound.

    A message must have come in within `patience` seconds. `gate` says who gets in; without one everybody does.
    Requests in flight are answered before the block is left. ListenError when the address is taken or not ours.
    """
    options = [
        ("grpc.max_receive_message_length", intake.max_request),
        ("grpc.so_reuseport", 0),  # or a second process would share the port, and each get half of every trace
        ("grpc.per_message_decompression", 0),  # inflated by `inflate`, which knows when to stop
        ("grpc.max_allowed_incoming_connections", most_connections("grpc")),
    ]
    server = grpc.aio.server(options=[*options, *_CONNECTIONS])
    for service, signal in SERVICES.items():
        read = partial(_read, patience=patience)
        relay, method = intake.relay, f"/{service}/Export"
        door = _Door(intake, gate)
        export = _export(door, signal, read) if relay is None else _pass_on(door, relay, signal, method, read)
        handler = grpc.stream_unary_rpc_method_handler(export)
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {"Export": handler})])
    bind(address, _SETTING).close()  # says what is wrong; gRPC itself only says that something is
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, tls.grpc_credentials())
    except RuntimeError:
        raise ListenError(f"{_SETTING}: cannot listen on {address}; set another address") from None
    with anyio.CancelScope(shield=True):  # a start that is cancelled half-way leaves gRPC in a state it cannot leave
        await server.start()
    try:
        yield f"{address.rpartition(':')[0]}:{port}"
    finally:
        with anyio.CancelScope(shield=True):
            await server.stop(_GRACE)


@dataclass(frozen=True, slots=True)
class _Door:
    """Behind it is the intake."""

    intake: Intake
    gate: TokenGate | None

    async def read(self, read: ReadBody, messages: AsyncIterator[bytes], context: Context) -> tuple[str, bytes]:
        """Who sends, and the message; raises Refused."""
        given = (str(value) for key, value in context.invocation_metadata() or () if key == "authorization")
        sender = let_in(self.gate, next(given, ""), _address(context.peer()))
        self.intake.senders.asks(sender)
        body = await read(messages)
        self.intake.senders.sent(sender, len(body))
        return sender, body

    def theirs(self, metadata: Iterable[tuple[str, str | bytes]]) -> tuple[tuple[str, str | bytes], ...]:
        """The metadata of a request but the token that was meant for us."""
        ours = self.gate is not None and self.gate.guarded
        return tuple(each for each in metadata if not (ours and each[0] == "authorization"))


def _address(peer: str) -> str:
    """The address in what gRPC says of a peer: `ipv4:127.0.0.1:4711`, `ipv6:%5B::1%5D:4711`."""
    return unquote(peer.partition(":")[2]).rpartition(":")[0].strip("[]")


def _export(door: _Door, signal: Signal, read: ReadBody) -> Export:
    """The handler of a signal's Export.

    To gRPC its request is a stream, which looks the same on the wire, so that a message has to come in time: one of a
    unary method is waited for without end.
    """
    intake = door.intake

    async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            sender, body = await door.read(read, messages, context)
            rejected = await intake.accept("grpc", signal, body, _encoding(body), sender=sender)
        except Refused as refused:
            return _refuse(intake, context, refused)
        return responses.exported(signal, rejected)

    return export


def _pass_on(door: _Door, relay: Relay, signal: Signal, method: str, read: ReadBody) -> Export:
    """Answers with what the destination answers to the same message with the same metadata."""
    intake = door.intake

    async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
        if not relay.over_grpc:
            return _refuse(intake, context, Refused("no_destination", "exporters.forward.grpc is not set; use HTTP"))
        try:
            sender, body = await door.read(read, messages, context)
            encoding = _encoding(body)
            plain = inflate(body, encoding, intake.max_request)
        except Refused as refused:
            return _refuse(intake, context, refused)
        metadata = door.theirs(context.invocation_metadata() or ())
        send = partial(relay.send_grpc, method, metadata, gzip=bool(encoding), remaining=context.time_remaining())
        envelope = Envelope("grpc", method, _as_bytes(metadata), json=False, encoding=encoding)
        try:
            with intake.loops.passage(signal, envelope._replace(encoding=""), plain) as passage:
                code, message, trailers, reply = await _passed_on(intake, send, signal, envelope, plain, sender)
                passage.taken = code is grpc.StatusCode.OK
        except Refused as refused:
            return _refuse(intake, context, refused)
        if code is not grpc.StatusCode.OK:
            if code is grpc.StatusCode.UNAVAILABLE and not trailers:
                trailers = retry_trailers(code, message, intake.retry_after)
            return _fail(context, code, message, trailers)
        return reply

    return export


async def _passed_on(
    intake: Intake,
    send: Callable[[bytes], Awaitable[_Answer]],
    signal: Signal,
    envelope: Envelope,
    plain: bytes,
    sender: str,
) -> _Answer:
    if intake.hold is None or signal != "traces":
        return await intake.accept_beside(partial(send, plain), "grpc", signal, plain, sender=sender)
    rest = await intake.hold_back(intake.hold, envelope, plain, sender=sender)
    if rest is None:
        return grpc.StatusCode.OK, "", (), responses.exported(signal, 0)
    return await send(rest)


def _refuse(intake: Intake, context: Context, refused: Refused) -> bytes:
    intake.count_refused("grpc", refused.reason)
    code, message = refused.status.grpc, refused.message
    trailers = retry_trailers(code, message, intake.retry_after) if refused.status.retryable else ()
    return _fail(context, code, message, trailers)


def _fail(context: Context, code: grpc.StatusCode, message: str, trailers: Iterable[tuple[str, str | bytes]]) -> bytes:
    """Ends a request with an error; what it returns is not sent.

    Not by `abort`: the call keeps the exception that this raises, and the exception the call, with the whole request,
    until the garbage collector comes.
    """
    context.set_code(code)
    context.set_details(message)
    context.set_trailing_metadata(tuple(trailers))
    return b""


async def _read(messages: AsyncIterator[bytes], patience: float) -> bytes:
    """The one message of a request; raises Refused when none comes in time.

    Whoever sends nothing takes nobody's place: the calls of a connection are few, and what has come in is counted.
    """
    try:
        with anyio.fail_after(patience):
            async with aclosing(_stream(messages)) as stream:
                return await anext(stream)
    except TimeoutError:
        raise Refused("slow", f"a message expected within {patience:g} s; send it again") from None
    except StopAsyncIteration:
        raise Refused("malformed", "a message expected; got none") from None


def _stream(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """What gRPC's iterator reads from. The two hold each other, and the last message until the stream is closed."""
    return cast("AsyncGenerator[bytes, None]", aiter(messages))


def _as_bytes(metadata: Iterable[tuple[str, str | bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((key.encode(), value if isinstance(value, bytes) else value.encode()) for key, value in metadata)


def _encoding(body: bytes) -> str:
    """How a message is compressed. gRPC hides the header from handlers, but no OTLP request begins like these."""
    return "gzip" if body.startswith(b"\x1f\x8b") else "deflate" if body.startswith(b"\x78") else ""
