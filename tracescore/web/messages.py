"""What the page looks at of a request, and its two kinds of responses: pages, and JSON for the command line."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qs

import orjson

from tracescore.net.asgi import Receive, Response, Scope, address_of_client, headers_of
from tracescore.net.connections import CERTIFICATE
from tracescore.web.render import page

LARGEST_BODY = 4096
_LARGEST_FORM = 65_536
_MOST_FIELDS = 2_000


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is decoded and may hold anything."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    receive: Receive
    address: str = ""
    """Where it came from."""
    certified: str = ""
    """The common name of the client's certificate."""

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Self:
        """Reads an ASGI scope."""
        query = scope["query_string"].decode(errors="replace")
        headers, address = headers_of(scope), address_of_client(scope)
        return cls(scope["method"], scope["path"], query, headers, receive, address, _common_name(scope))

    async def body(self, most: int = LARGEST_BODY) -> bytes | None:
        """The body, or None when it is longer than anything that is expected here."""
        body = b""
        more = True
        while more:
            message = await self.receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                return None
        return body


def _common_name(scope: Scope) -> str:
    subject = scope.get(CERTIFICATE, {}).get("subject", ())
    return next((str(value) for part in subject for name, value in part if name == "commonName"), "")


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a form, each once; None when there is too much of it."""
    body = await request.body(_LARGEST_FORM)
    if body is None:
        return None
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError:
        return None
    return {name: values[0] for name, values in fields.items()}


def only_known(fields: Collection[str], known: Callable[[str], bool]) -> None:
    """Raises ValueError when a form has a field that no form of this page has: it is another one, or an older one."""
    unknown = [name for name in fields if not known(name)]
    if unknown:
        raise ValueError(f"only the fields of the form on this page expected; got {unknown[0][:40]!r} too")


def html(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A page."""
    return Response(status, body, "text/html; charset=utf-8", headers)


def message(status: int, title: str, text: str, headers: tuple[tuple[str, str], ...] = (), **about: Any) -> Response:
    """A page that says one thing; `about` is for the frame around it."""
    back = status in (400, 404, 500)
    return html(status, page("message.html", title=title, text=text, back=back, **about), headers)


def json_bytes(value: Any) -> bytes:
    """Plain data as JSON in UTF-8; what cannot be written in UTF-8 becomes a question mark."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, as judges write them
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def as_json(status: int, value: Any, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Plain data."""
    return Response(status, json_bytes(value), "application/json", headers)


def refused(status: int, why: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """What the command line prints as an error."""
    return as_json(status, {"error": why}, headers)


def is_call(request: Request) -> bool:
    """Whether a program asks, which reads JSON."""
    return request.path.startswith("/api/")


def told(
    request: Request, status: int, title: str, text: str, headers: tuple[tuple[str, str], ...] = (), **about: Any
) -> Response:
    """What cannot be answered: for a program as JSON, for people as a page."""
    return refused(status, text, headers) if is_call(request) else message(status, title, text, headers, **about)
