"""Who may read the page: the token, the cookie that stands for it, and the name the page is called by."""

import hashlib
import hmac
import secrets

from tracescore.config import WebConfig
from tracescore.config.types import host_port, is_loopback

COOKIE = "tracescore"


class Guard:
    """Checks the Host header and the token of a request. UsageError when the token cannot be read."""

    def __init__(self, settings: WebConfig) -> None:
        self._local = is_loopback(host_port(settings.listen)[0])
        self._token = settings.token.read("web.token").encode() if settings.token else None
        # The browser keeps something that opens this page and nothing else: not the token itself.
        self.cookie = (
            hmac.new(self._token, b"tracescore page cookie", hashlib.sha256).hexdigest() if self._token else ""
        )
        self.form = secrets.token_hex(16)
        """Part of every form that changes something; no page of another site can read it."""

    def host_allowed(self, header: str) -> bool:
        """False when a page of another site made its own name point to this machine (DNS rebinding)."""
        try:
            return not self._local or is_loopback(host_port(header, default=80)[0])
        except ValueError:
            return False

    def token_allowed(self, token: str) -> bool:
        """Whether this is the token, in time that does not depend on how much of it is right."""
        return self._token is None or hmac.compare_digest(token.encode(errors="replace"), self._token)

    def form_allowed(self, given: str) -> bool:
        """Whether a form was made by this process, rather than by a page of another site in the same browser."""
        return hmac.compare_digest(given.encode(errors="replace"), self.form.encode())

    def allowed(self, authorization: str, cookies: str) -> bool:
        """Whether a request with these headers may read: by `Bearer TOKEN` or by the cookie that login has set."""
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.token_allowed(token.strip()):
            return True
        return hmac.compare_digest(_cookie_in(cookies).encode(errors="replace"), self.cookie.encode())


def _cookie_in(header: str) -> str:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")
