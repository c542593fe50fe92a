"""OTLP/HTTP as a raw ASGI app: POST /v1/traces, /v1/logs and /v1/metrics, in protobuf and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus

import anyio
from grpc import StatusCode

from tracescore.net.access import TokenGate
from tracescore.net.asgi import Receive, Response, Scope, Send, address_of_client, headers_of, respond
from tracescore.net.wire import Envelope
from tracescore.receiver import responses
from tracescore.receiver.intake import BODIES_IN_FLIGHT, PATIENCE, Intake, Relay
from tracescore.receiver.refusals import Refused, Signal, crowded, too_large
from tracescore.receiver.senders import let_in

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_HERE = (
    f"this is an OTLP/HTTP receiver: POST to {', '.join(_SIGNALS)} expected. OTEL_EXPORTER_OTLP_ENDPOINT is the "
    "address without a path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT the address with /v1/traces; scores are on other ports"
)
"""What is said to those who asked for anything else."""


class HttpReceiver:
    """The ASGI app. Keeps no body in memory where the headers tell enough to refuse it.

    A body must have come in within `patience` seconds. `gate` says who gets in; without one everybody does.
    """

    def __init__(self, intake: Intake, patience: float = PATIENCE, gate: TokenGate | None = None) -> None:
        self._intake, self._patience, self._gate = intake, patience, gate
        self._in_flight = 0  # bytes of bodies that are being read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        headers = headers_of(scope)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        json = media_type == _JSON
        signal = _SIGNALS.get(scope["path"])
        if signal is None:
            response = _told(HTTPStatus.NOT_FOUND, StatusCode.NOT_FOUND, media_type)
        elif scope["method"] != "POST":
            response = _told(HTTPStatus.METHOD_NOT_ALLOWED, StatusCode.UNIMPLEMENTED, media_type, ("allow", "POST"))
        else:
            try:
                sender = let_in(self._gate, headers.get("authorization", ""), address_of_client(scope))
                self._intake.senders.asks(sender)
                if self._intake.relay is not None:
                    answer = await self._pass_on(self._intake.relay, signal, scope, headers, receive, sender)
                    await _send_on(send, *answer)
                    return
                rejected = await self._export(signal, media_type, headers, receive, sender)
            except Refused as refused:
                self._intake.count_refused("http", refused.reason)
                if refused.reason == "disconnected":
                    return
                response = self._refusal(refused, json)
            else:
                response = _response(HTTPStatus.OK, responses.exported(signal, rejected, json), json)
        await respond(send, response)

    async def _export(
        self, signal: Signal, media_type: str, headers: Mapping[str, str], receive: Receive, sender: str
    ) -> int:
        """Takes in a request and returns how many of its pieces were rejected; raises Refused."""
        if media_type not in (_PROTOBUF, _JSON):
            raise Refused("unsupported_type", f"content type: {_PROTOBUF} or {_JSON} expected")
        if signal != "metrics":
            try:
                self._intake.check_room(sender)
            except Refused:
                await self._let_in(receive)
                raise
        body = await self._read(headers, receive, sender)
        encoding = _encoding(headers)
        return await self._intake.accept("http", signal, body, encoding, json=media_type == _JSON, sender=sender)

    async def _pass_on(
        self, relay: Relay, signal: Signal, scope: Scope, headers: Mapping[str, str], receive: Receive, sender: str
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """What the destination answers to the request as it is, whatever scoring makes of it; raises Refused."""
        if not relay.over_http:
            raise Refused("no_destination", "exporters.forward.http is not set; send over gRPC")
        body = await self._read(headers, receive, sender)
        is_json = headers.get("content-type", "").strip().lower().startswith(_JSON)
        path = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        envelope = Envelope("http", path, self._theirs(scope), is_json, _encoding(headers))
        with self._intake.loops.passage(signal, envelope, body) as passage:
            answer = await self._passed_on(relay, signal, envelope, body, sender)
            passage.taken = 200 <= answer[0] < 300
        return answer

    def _theirs(self, scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
        """The headers of a request but the token that was meant for us."""
        ours = self._gate is not None and self._gate.guarded
        return tuple(each for each in scope["headers"] if not (ours and each[0] == b"authorization"))

    async def _passed_on(
        self, relay: Relay, signal: Signal, envelope: Envelope, body: bytes, sender: str
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        path, headers, is_json, encoding = envelope.target, envelope.headers, envelope.json, envelope.encoding
        if self._intake.hold is not None and signal == "traces":
            rest = await self._intake.hold_back(self._intake.hold, envelope, body, encoding, sender)
            if rest is None:
                media_type = (b"content-type", (_JSON if is_json else _PROTOBUF).encode())
                return HTTPStatus.OK, [media_type], responses.exported(signal, 0, is_json)
            answer = await relay.send_http(path, headers, rest)
        else:
            passing_on = partial(relay.send_http, path, headers, body)
            answer = await self._intake.accept_beside(
                passing_on, "http", signal, body, encoding, json=is_json, sender=sender
            )
        if answer is None:
            raise Refused("unreachable", "the destination gave no answer; send again later")
        return answer

    async def _read(self, headers: Mapping[str, str], receive: Receive, sender: str) -> bytes:
        """The whole body; raises Refused as soon as it is known to be too much, or when it does not come in time."""
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._intake.max_request:
            raise too_large(self._intake.max_request)
        try:
            with anyio.fail_after(self._patience):
                body = await self._chunks(receive)
        except TimeoutError:
            raise Refused("slow", f"body: all of it expected within {self._patience:g} s; send it again") from None
        self._intake.senders.sent(sender, len(body))
        return body

    async def _let_in(self, receive: Receive) -> None:
        """Lets a body come in and forgets it: a sender that still writes would see a broken connection, no answer."""
        with anyio.move_on_after(self._patience):
            while (await receive()).get("more_body", False):
                pass

    async def _chunks(self, receive: Receive) -> bytes:
        limit = self._intake.max_request
        chunks: list[bytes] = []
        size, more = 0, True
        try:
            while more:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise Refused("disconnected", "")
                chunk = event.get("body", b"")
                chunks.append(chunk)
                size += len(chunk)
                self._in_flight += len(chunk)
                if size > limit:
                    raise too_large(limit)
                if self._in_flight > BODIES_IN_FLIGHT * limit:
                    raise crowded()
                more = event.get("more_body", False)
            return b"".join(chunks)
        finally:
            self._in_flight -= size

    def _refusal(self, refused: Refused, json: bool) -> Response:
        status = refused.status
        extra = []
        if status.retryable:
            extra.append(("retry-after", str(math.ceil(self._intake.retry_after))))
        if refused.reason == "unsupported_encoding":
            extra.append(("accept-encoding", "gzip, deflate"))
        if refused.reason == "unauthenticated":
            extra.append(("www-authenticate", "Bearer"))
        if refused.reason == "too_many_attempts":
            extra.append(("retry-after", "60"))
        if refused.reason == "slow":
            extra.append(("connection", "close"))
        return _response(status.http, responses.status(status.grpc, refused.message, json), json, *extra)


def _encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "").strip().lower()


async def _send_on(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """The answer of another server as it is."""
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _response(status: HTTPStatus, body: bytes, json: bool, *extra: tuple[str, str]) -> Response:
    """A response in the encoding of the request; protobuf where that had none."""
    return Response(status, body, _JSON if json else _PROTOBUF, extra)


def _told(status: HTTPStatus, code: StatusCode, media_type: str, *extra: tuple[str, str]) -> Response:
    """The answer to what is no OTLP request, in words that also a person with a browser can read."""
    if media_type in (_PROTOBUF, _JSON):
        return _response(status, responses.status(code, _HERE, media_type == _JSON), media_type == _JSON, *extra)
    return Response(status, f"{_HERE}\n".encode(), headers=extra)
