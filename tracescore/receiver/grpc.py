"""OTLP/gRPC: the Export methods of the three services, on raw bytes.

Generic handlers, without generated servicers: those would parse every request in full before anybody has asked
whether one of its traces is wanted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import cast

import anyio
import grpc

from tracescore.errors import ListenError
from tracescore.net.listener import bind
from tracescore.net.otlp_answers import retry_trailers
from tracescore.net.wire import Envelope
from tracescore.receiver import responses
from tracescore.receiver.intake import BODIES_IN_FLIGHT, PATIENCE, Intake, Relay, inflate
from tracescore.receiver.refusals import Refused, Signal, crowded

SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}

_SETTING = "receiver.grpc.listen"
_GRACE = 5.0
"""Seconds that requests in flight have at shutdown; as for the other listeners."""


Context = grpc.aio.ServicerContext[bytes, bytes]
Export = Callable[[AsyncIterator[bytes], Context], Awaitable[bytes]]
ReadBody = Callable[[AsyncIterator[bytes]], Awaitable[bytes]]


@asynccontextmanager
async def serving_grpc(intake: Intake, address: str, patience: float = PATIENCE) -> AsyncIterator[str]:
    """Serves on `address` while the block runs and yields the address really bound.

    A message must have come in within `patience` seconds.
    Requests in flight are answered before the block is left. ListenError when the address is taken or not ours.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", intake.max_request),
            ("grpc.so_reuseport", 0),  # or a second process would share the port, and each get half of every trace
            ("grpc.per_message_decompression", 0),  # inflated by `inflate`, which knows when to stop
        ]
    )
    readers = anyio.Semaphore(BODIES_IN_FLIGHT)
    for service, signal in SERVICES.items():
        read = partial(_read, readers=readers, patience=patience)
        relay, method = intake.relay, f"/{service}/Export"
        export = _export(intake, signal, read) if relay is None else _pass_on(intake, relay, signal, method, read)
        handler = grpc.stream_unary_rpc_method_handler(export)
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {"Export": handler})])
    bind(address, _SETTING).close()  # says what is wrong; gRPC itself only says that something is
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise ListenError(f"{_SETTING}: cannot listen on {address}; set another address") from None
    with anyio.CancelScope(shield=True):  # a start that is cancelled half-way leaves gRPC in a state it cannot leave
        await server.start()
    try:
        yield f"{address.rpartition(':')[0]}:{port}"
    finally:
        with anyio.CancelScope(shield=True):
            await server.stop(_GRACE)


def _export(intake: Intake, signal: Signal, read: ReadBody) -> Export:
    """The handler of a signal's Export.

    To gRPC its request is a stream, which looks the same on the wire, so that a message is read only when there is
    room for it: one of a unary method is read before anybody is asked.
    """

    async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            body = await read(messages)
            rejected = await intake.accept("grpc", signal, body, _encoding(body))
        except Refused as refused:
            return _refuse(intake, context, refused)
        return responses.exported(signal, rejected)

    return export


def _pass_on(intake: Intake, relay: Relay, signal: Signal, method: str, read: ReadBody) -> Export:
    """Answers with what the destination answers to the same message with the same metadata."""

    async def export(messages: AsyncIterator[bytes], context: Context) -> bytes:
        if not relay.over_grpc:
            return _refuse(intake, context, Refused("no_destination", "exporters.forward.grpc is not set; use HTTP"))
        try:
            body = await read(messages)
            encoding = _encoding(body)
            plain = inflate(body, encoding, intake.max_request)
        except Refused as refused:
            return _refuse(intake, context, refused)
        metadata = context.invocation_metadata() or ()
        send = partial(relay.send_grpc, method, metadata, gzip=bool(encoding), remaining=context.time_remaining())
        if intake.hold is not None and signal == "traces":
            envelope = Envelope("grpc", method, _as_bytes(metadata), json=False, encoding=encoding)
            rest = await intake.hold_back(intake.hold, envelope, plain)
            if rest is None:
                return responses.exported(signal, 0)
            code, message, trailers, reply = await send(rest)
        else:
            code, message, trailers, reply = await intake.accept_beside(partial(send, plain), "grpc", signal, plain)
        if code is not grpc.StatusCode.OK:
            if code is grpc.StatusCode.UNAVAILABLE and not trailers:
                trailers = retry_trailers(code, message, intake.retry_after)
            return _fail(context, code, message, trailers)
        return reply

    return export


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


async def _read(messages: AsyncIterator[bytes], readers: anyio.Semaphore, patience: float) -> bytes:
    """The one message of a request; raises Refused when there is no room for it in time, or none comes."""
    try:
        with anyio.fail_after(patience):
            async with readers, aclosing(_stream(messages)) as stream:
                return await anext(stream)
    except TimeoutError:
        raise crowded() from None
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
