"""Asks the service that runs, by the listener of its page: what `baseline`, `anchors` and `labels` share."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import WebConfig

_SECONDS = 10

PageUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where the page of the service is, when the configuration does not tell."),
]


def address(settings: WebConfig, page: str | None) -> str:
    """Base URL of the page: `page` where it is given, else where the configuration has it listen.

    UsageError when that is any free port.
    """
    from tracescore.config.types import host_port

    if page is not None:
        if not page.startswith(("http://", "https://")):
            raise UsageError(f"--page: a URL such as http://127.0.0.1:9465 expected; got {page!r}")
        return page.rstrip("/")
    host, port = host_port(settings.listen)
    if port == 0:
        raise UsageError("web.listen is any free port: say where the page is with --page URL")
    host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - where all addresses listen, this does
    scheme = "http" if settings.tls is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def ask(settings: WebConfig, page: str | None, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """The JSON that the service answers with; with a body it is asked to change something.

    The token goes to the page and to nobody else: proxies that the environment names are not used, and redirects are
    not followed. UsageError when the service refuses or is not there.
    """
    base = address(settings, page)
    headers = {"x-tracescore": "1", "content-type": "application/json"}
    token = _token(settings)
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body)
    try:
        tls = _tls(settings, known=page is not None) if base.startswith("https:") else None
        status, content = _answer("POST" if body is not None else "GET", f"{base}{path}", data, headers, tls)
        if status == HTTPStatus.OK:
            return json.loads(content)
    except (OSError, ValueError, HTTPException) as error:
        raise UsageError(
            f"{base}: no tracescore answers there ({error}); is it running with this configuration?"
        ) from None
    raise UsageError(f"{base}: {_reason(status, content)}")


def _token(settings: WebConfig) -> str:
    """The token that may most: `web.token`, or that of an operator; empty when there is none."""
    if settings.token is not None:
        return settings.token.read("web.token").split()[0]
    order = ("operator", "labeller", "reader")
    users = sorted(settings.users, key=lambda user: order.index(user.role))
    tokens = (user.token for user in users if user.token is not None)
    return next((token.read("web.users.token").split()[0] for token in tokens), "")


def _tls(settings: WebConfig, *, known: bool) -> ssl.SSLContext:
    """Trusts what the system does, and the certificate of the configuration, which is also shown when asked for one.

    That certificate may be for another name than the address of the listener; a URL that was given has to fit.
    """
    context = ssl.create_default_context()
    if settings.tls is not None:
        context.load_verify_locations(settings.tls.cert)
        context.load_cert_chain(settings.tls.cert, settings.tls.key)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = known
    return context


def _answer(
    method: str, url: str, body: str | None, headers: Mapping[str, str], tls: ssl.SSLContext | None
) -> tuple[int, bytes]:
    _, host, path, query, _ = urlsplit(url)
    connection: HTTPConnection
    if tls is None:
        connection = HTTPConnection(host, timeout=_SECONDS)
    else:
        connection = HTTPSConnection(host, timeout=_SECONDS, context=tls)
    try:
        connection.request(method, f"{path}?{query}" if query else path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _reason(status: int, content: bytes) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return "wants its token: name the configuration of the service with -c"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "was sent too many wrong tokens from here; wait a minute"
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return f"answered {status}; is it a tracescore page of this version?"
