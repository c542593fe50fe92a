"""OTLP/HTTP as a raw ASGI app: POST /v1/traces, /v1/logs and /v1/metrics, in protobuf and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus

from grpc import StatusCode

from tracescore.asgi import Receive, Response, Scope, Send, headers_of, respond
from tracescore.model import Envelope
from tracescore.receiver import answers
from tracescore.receiver.intake import BODIES_IN_FLIGHT, Intake, Refused, Relay, Signal, crowded, too_large

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"


class HttpReceiver:
    """The ASGI app. Refuses before it reads wherever the headers tell enough."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._in_flight = 0  # bytes of bodies that are being read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        headers = headers_of(scope)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        json = media_type == _JSON
        signal = _SIGNALS.get(scope["path"])
        if signal is None:
            said = answers.status(StatusCode.NOT_FOUND, f"no such path; {', '.join(_SIGNALS)} expected", json)
            response = _response(HTTPStatus.NOT_FOUND, said, json)
        elif scope["method"] != "POST":
            said = answers.status(StatusCode.UNIMPLEMENTED, "POST expected", json)
            response = _response(HTTPStatus.METHOD_NOT_ALLOWED, said, json, ("allow", "POST"))
        else:
            try:
                if self._intake.relay is not None:
                    await _send_on(send, *await self._pass_on(self._intake.relay, signal, scope, headers, receive))
                    return
                rejected = await self._export(signal, media_type, headers, receive)
            except Refused as refused:
                self._intake.count_refused("http", refused.reason)
                if refused.reason == "disconnected":
                    return
                response = self._refusal(refused, json)
            else:
                response = _response(HTTPStatus.OK, answers.exported(signal, rejected, json), json)
        await respond(send, response)

    async def _export(self, signal: Signal, media_type: str, headers: Mapping[str, str], receive: Receive) -> int:
        """Takes in a request and returns how many of its pieces were rejected; raises Refused."""
        if media_type not in (_PROTOBUF, _JSON):
            raise Refused("unsupported_type", f"content type: {_PROTOBUF} or {_JSON} expected")
        if signal != "metrics":
            self._intake.check_room()
        body = await self._read(headers, receive)
        return await self._intake.accept("http", signal, body, _encoding(headers), json=media_type == _JSON)

    async def _pass_on(
        self, relay: Relay, signal: Signal, scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """What the destination answers to the request as it is, whatever scoring makes of it; raises Refused."""
        if not relay.over_http:
            raise Refused("no_destination", "exporters.forward.http is not set; send over gRPC")
        body = await self._read(headers, receive)
        path = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        is_json = headers.get("content-type", "").strip().lower().startswith(_JSON)
        encoding = _encoding(headers)
        if self._intake.hold is not None and signal == "traces":
            envelope = Envelope("http", path, tuple(scope["headers"]), is_json, encoding)
            rest = await self._intake.hold_back(self._intake.hold, envelope, body, encoding)
            if rest is None:
                media_type = (b"content-type", (_JSON if is_json else _PROTOBUF).encode())
                return HTTPStatus.OK, [media_type], answers.exported(signal, 0, is_json)
            answer = await relay.send_http(path, scope["headers"], rest)
        else:
            passing_on = partial(relay.send_http, path, scope["headers"], body)
            answer = await self._intake.accept_beside(passing_on, "http", signal, body, encoding, json=is_json)
        if answer is None:
            raise Refused("unreachable", "the destination gave no answer; send again later")
        return answer

    async def _read(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The whole body; raises Refused as soon as it is known to be too much."""
        limit = self._intake.max_request
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large(limit)
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
        verdict = refused.verdict
        extra = []
        if verdict.retryable:
            extra.append(("retry-after", str(math.ceil(self._intake.retry_after))))
        if refused.reason == "unsupported_encoding":
            extra.append(("accept-encoding", "gzip, deflate"))
        return _response(verdict.http, answers.status(verdict.grpc, refused.message, json), json, *extra)


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
