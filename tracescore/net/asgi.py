"""The little of ASGI that our three HTTP apps share."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from anyio.lowlevel import checkpoint

Scope = Mapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Response:
    """A response. The names of `headers` are in lower case; content-type and content-length are not in it.

    `pieces` follow the body, each made when the one before it is on its way.
    """

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    pieces: Iterable[bytes] | None = None


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request by lower-case name; values of a name that came twice are joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode(errors="replace")
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def address_of_client(scope: Scope) -> str:
    """Where a request came from, without its port; empty when that is not known."""
    client = scope.get("client")
    return client[0] if client else ""


async def respond(send: Send, response: Response, *, with_body: bool = True) -> None:
    """Sends a response; without its body where the request was HEAD."""
    headers = [
        (b"content-type", response.content_type.encode("latin-1")),
        *((name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers),
    ]
    if response.pieces is None:
        headers.append((b"content-length", str(len(response.body)).encode("latin-1")))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.pieces is not None and with_body:
        for piece in chain((response.body,), response.pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await checkpoint()  # sending may not wait for anything, and others want to go on
    body = response.body if with_body and response.pieces is None else b""
    await send({"type": "http.response.body", "body": body})
