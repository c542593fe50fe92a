"""Asks the service that runs, by the listener of its page: what `baseline`, `anchors` and `labels` share."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import typer

from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import TlsConfig, WebConfig

_SECONDS = 10


class Listens(Protocol):
    """The settings of a listener."""

    @property
    def listen(self) -> str:
        """HOST:PORT."""
        ...

    @property
    def tls(self) -> TlsConfig | None:
        """Its certificate, where it has one."""
        ...


PageUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where the page of the service is, if not where the configuration says."),
]


def address(settings: Listens, page: str | None, option: str = "--page", setting: str = "web.listen") -> str:
    """Base URL of a listener: `page`, as `option` gives it, or where the configuration has it listen.

    UsageError when that is any free port.
    """
    from tracescore.config.types import host_port

    if page is not None:
        if not page.startswith(("http://", "https://")):
            raise UsageError(f"{option}: a URL such as http://127.0.0.1:9465 expected; got {page!r}")
        return page.rstrip("/")
    host, port = host_port(settings.listen)
    if port == 0:
        raise UsageError(f"{setting} means any free port, so name the address with {option} URL")
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
        tls = trusting(settings.tls, known=page is not None) if base.startswith("https:") else None
        status, content = exchange("POST" if body is not None else "GET", f"{base}{path}", data, headers, tls)
        if status == HTTPStatus.OK:
            return json.loads(content)
    except (OSError, ValueError, HTTPException) as error:
        raise UsageError(
            f"{base}: no tracescore answers there ({error}); does it run with this configuration?"
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


def trusting(settings: TlsConfig | None, *, known: bool) -> ssl.SSLContext:
    """Trusts what the system does, and the certificate of the configuration, which is also shown when asked for one.

    That certificate may be for another name than the address of the listener; a URL that was given has to fit.
    """
    context = ssl.create_default_context()
    if settings is not None:
        context.load_verify_locations(settings.cert)
        context.load_cert_chain(settings.cert, settings.key)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.check_hostname = known
    return context


def exchange(
    method: str, url: str, body: str | None, headers: Mapping[str, str], tls: ssl.SSLContext | None
) -> tuple[int, bytes]:
    """Status and body of one HTTP exchange. Proxies that the environment names are not used, nor redirects."""
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


class Fetched(NamedTuple):
    """What a listener answered: status, body, and its `Date` header, empty where it sent none."""

    status: int
    body: bytes
    date: str


def fetch(url: str, token: str = "", tls: ssl.SSLContext | None = None) -> Fetched:
    """What a listener answers to the command line, which names itself. OSError."""
    _, host, path, _, _ = urlsplit(url)
    connection = HTTPSConnection(host, timeout=_SECONDS, context=tls) if tls else HTTPConnection(host, timeout=_SECONDS)
    authorization = {"authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request("GET", path, headers={"user-agent": "tracescore-doctor", **authorization})
        response = connection.getresponse()
        return Fetched(response.status, response.read(), response.headers.get("date", ""))
    finally:
        connection.close()
