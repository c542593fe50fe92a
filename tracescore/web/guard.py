"""Who may read the page: the token, the cookie that stands for it, and the name the page is called by."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress

from tracescore.config import Web
from tracescore.errors import UsageError

COOKIE = "tracescore"
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def host_of(address: str) -> str:
    """The host of `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`, in lower case."""
    if address.startswith("["):
        return address[1:].partition("]")[0].lower()
    return address.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Checks the Host header and the token of a request.

    Raises UsageError when the page would be open to other machines without a token.
    """

    def __init__(self, settings: Web) -> None:
        host = host_of(settings.listen)
        if settings.token is None and not is_loopback(host):
            raise UsageError(
                f"web.token: missing, and the page shows your users' texts to whoever reaches {settings.listen}; "
                "set web.token (env or file), or let web.listen be an address such as 127.0.0.1:9465"
            )
        self._hosts = LOCAL_NAMES | {host} if is_loopback(host) else None
        self._token = settings.token.read("web.token").encode() if settings.token else None
        self.cookie = _cookie_value(self._token) if self._token else ""

    def host_allowed(self, host: str) -> bool:
        """False when a page of another site made its own name point to this machine (DNS rebinding)."""
        return self._hosts is None or host_of(host) in self._hosts

    def token_allowed(self, token: str) -> bool:
        """Whether this is the token, in time that does not depend on how much of it is right."""
        return self._token is None or hmac.compare_digest(token.encode(errors="replace"), self._token)

    def allowed(self, authorization: str, cookies: str) -> bool:
        """Whether a request with these headers may read: by `Bearer TOKEN` or by the cookie that login has set."""
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.token_allowed(token.strip()):
            return True
        return hmac.compare_digest(_cookie_in(cookies).encode(errors="replace"), self.cookie.encode())


def _cookie_value(token: bytes) -> str:
    # The browser keeps something that opens this page and nothing else: not the token itself.
    return hmac.new(token, b"tracescore page cookie", hashlib.sha256).hexdigest()


def _cookie_in(header: str) -> str:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")
