"""OTLP/HTTP as a raw ASGI app: POST /v1/traces, /v1/logs and /v1/metrics, in protobuf and JSON."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from tracescore.receiver import answers
from tracescore.receiver.intake import Intake, Refused, Relay, Signal, too_large

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"

BODIES_IN_FLIGHT = 8
"""Bodies of the largest size that may be on their way in at once, over all connections."""


class HttpReceiver:
    """The ASGI app. Refuses before it reads wherever the headers tell enough."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._in_flight = 0  # bytes of bodies that are being read

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answers one request."""
        headers = dict(scope["headers"])
        media_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        json = media_type == _JSON
        signal = _SIGNALS.get(scope["path"])
        if signal is None:
            message = f"no such path; {', '.join(_SIGNALS)} expected"
            await _answer(send, 404, answers.status(5, message, json), json)
        elif scope["method"] != "POST":
            await _answer(send, 405, answers.status(12, "POST expected", json), json, (b"allow", b"POST"))
        else:
            try:
                if self._intake.relay is not None:
                    await _send(send, *await self._pass_on(self._intake.relay, signal, scope, headers, receive))
                    return
                rejected = await self._export(signal, media_type, headers, receive)
            except Refused as refused:
                self._intake.count_refused("http", refused.reason)
                await self._refuse(send, refused, json)
            else:
                await _answer(send, 200, answers.exported(signal, rejected, json), json)

    async def _export(self, signal: Signal, media_type: str, headers: Mapping[bytes, bytes], receive: Receive) -> int:
        """Takes in a request and returns how many of its pieces were rejected; raises Refused."""
        if media_type not in (_PROTOBUF, _JSON):
            raise Refused("unsupported_type", f"content type: {_PROTOBUF} or {_JSON} expected")
        if signal != "metrics":
            self._intake.check_room()
        body = await self._read(headers, receive)
        return await self._intake.accept("http", signal, body, _encoding(headers), json=media_type == _JSON)

    async def _pass_on(
        self, relay: Relay, signal: Signal, scope: Mapping[str, Any], headers: Mapping[bytes, bytes], receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """What the destination answers to the request as it is, whatever scoring makes of it; raises Refused."""
        if not relay.over_http:
            raise Refused("no_destination", "exporters.forward.http is not set; send over gRPC")
        body = await self._read(headers, receive)
        path = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        passing_on = partial(relay.send_http, path, scope["headers"], body)
        is_json = headers.get(b"content-type", b"").strip().lower().startswith(_JSON.encode())
        answer = await self._intake.accept_beside(passing_on, "http", signal, body, _encoding(headers), json=is_json)
        if answer is None:
            raise Refused("unreachable", "the destination gave no answer; send again later")
        return answer

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The whole body; raises Refused as soon as it is known to be too much."""
        limit = self._intake.max_request
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > limit:
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
                    raise Refused("full", "too many requests at once; send again later")
                more = event.get("more_body", False)
            return b"".join(chunks)
        finally:
            self._in_flight -= size

    async def _refuse(self, send: Send, refused: Refused, json: bool) -> None:
        if refused.reason == "disconnected":
            return
        verdict = refused.verdict
        extra = []
        if verdict.retryable:
            extra.append((b"retry-after", str(math.ceil(self._intake.retry_after)).encode()))
        if refused.reason == "unsupported_encoding":
            extra.append((b"accept-encoding", b"gzip, deflate"))
        body = answers.status(verdict.grpc_code, refused.message, json)
        await _answer(send, verdict.http_status, body, json, *extra)


async def _answer(send: Send, status: int, body: bytes, json: bool, *extra: tuple[bytes, bytes]) -> None:
    """Sends a response in the encoding of the request; protobuf where that had none."""
    await _send(send, status, [(b"content-type", (_JSON if json else _PROTOBUF).encode()), *extra], body)


def _encoding(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
