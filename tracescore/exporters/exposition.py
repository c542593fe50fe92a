"""The metrics listener: /metrics, /-/healthy and /-/ready. Holds no user text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import anyio.lowlevel
from isal import igzip
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.metrics_core import Metric

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

_EOF = b"# EOF\n"
_TEXT = "text/plain; charset=utf-8"


@dataclass(slots=True)
class Health:
    """Whether the service takes traces in, and one line that says why not."""

    ready: bool = False
    reason: str = "starting"


@dataclass(frozen=True, slots=True)
class _Response:
    status: HTTPStatus
    body: bytes
    content_type: str = _TEXT
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class _One:
    """A registry that holds one family, for an encoder that wants a registry."""

    family: Metric

    def collect(self) -> Iterable[Metric]:
        return [self.family]


def metrics_app(registry: CollectorRegistry, health: Health) -> App:
    """ASGI app for the listener of metrics and health."""

    async def app(scope: Message, _receive: object, send: Callable[[Message], Awaitable[None]]) -> None:
        response = await _answer(registry, health, scope)
        headers = [
            (b"content-type", response.content_type.encode()),
            (b"content-length", str(len(response.body)).encode()),
            *response.headers,
        ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    return app


async def _answer(registry: CollectorRegistry, health: Health, scope: Message) -> _Response:
    path = scope["path"]
    if path not in {"/metrics", "/-/healthy", "/-/ready"}:
        return _Response(HTTPStatus.NOT_FOUND, b"not found; there are /metrics, /-/healthy and /-/ready\n")
    if scope["method"] != "GET":
        return _Response(HTTPStatus.METHOD_NOT_ALLOWED, b"use GET\n", headers=((b"allow", b"GET"),))
    if path == "/metrics":
        return await _metrics(registry, scope)
    if path == "/-/healthy" or health.ready:
        return _Response(HTTPStatus.OK, b"ok\n")
    return _Response(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {health.reason}\n".encode())


async def _metrics(registry: CollectorRegistry, scope: Message) -> _Response:
    content_type, body = await render(registry, _header(scope, b"accept"))
    vary = (b"vary", b"accept, accept-encoding")
    if not gzip_accepted(_header(scope, b"accept-encoding")):
        return _Response(HTTPStatus.OK, body, content_type, (vary,))
    packed = igzip.compress(body, compresslevel=1)
    return _Response(HTTPStatus.OK, packed, content_type, (vary, (b"content-encoding", b"gzip")))


async def render(registry: CollectorRegistry, accept: str) -> tuple[str, bytes]:
    """(content type, text) in the best format that `accept` names.

    One family at a time, with a chance for everything else in between: ten thousand series take about 0.1 s,
    during which the receiver must answer.
    """
    encode, content_type = choose_encoder(accept)
    parts = []
    for family in registry.collect():
        parts.append(encode(_One(_without_created(family))).removesuffix(_EOF))
        await anyio.lowlevel.checkpoint()
    if content_type.startswith("application/openmetrics-text"):
        parts.append(_EOF)
    return content_type, b"".join(parts)


def _without_created(family: Metric) -> Metric:
    """Drops `_created`: one series more per counter, for a moment that `resets()` knows anyway."""
    family.samples = [sample for sample in family.samples if sample.name != f"{family.name}_created"]
    return family


def _header(scope: Message, name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)
