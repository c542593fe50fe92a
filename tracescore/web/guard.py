"""Who may read the page, and what they may change: tokens, the sessions they begin, and the name a proxy gives."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from tracescore.config import UserRole, WebConfig
from tracescore.config.types import host_port, is_loopback
from tracescore.logs import plain
from tracescore.net.access import AccessMetrics, Attempts, Tokens, bearer, digest_of
from tracescore.web.messages import Request

_log = logging.getLogger("tracescore.web")

COOKIE = "tracescore"
_MOST_SESSIONS = 1_000
_LOCAL, _TOKEN = "local", "token"
"""The names of a user on this machine who needs no login, and of `web.token`."""
_ROLES: tuple[UserRole, ...] = get_args(UserRole)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may read the page. `form` stands in every form that is made for them; no other site can read it."""

    name: str
    role: UserRole
    form: str
    session: str = ""
    """The cookie they came with."""

    def may(self, role: UserRole) -> bool:
        """Whether they may do what this role may."""
        return _ROLES.index(self.role) >= _ROLES.index(role)


@dataclass(frozen=True, slots=True)
class _Session:
    digest: bytes
    """The digest of the token that began the session, which ends with that token."""
    until: float


class Guard:
    """Checks the Host header and who asks. UsageError when a token cannot be read."""

    def __init__(self, settings: WebConfig, access: AccessMetrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._access, self._clock, self._attempts = access, clock, Attempts(clock)
        self._local = is_loopback(host_port(settings.listen)[0])
        kept = {user.name: user.token for user in settings.users if user.token is not None}
        self._users = Tokens(kept, "web.users")
        self._one = Tokens({"token": settings.token} if settings.token else {}, "web")
        self._roles: dict[str, UserRole] = {user.name: user.role for user in settings.users}
        self._header = settings.trust_header and settings.trust_header.lower()
        self._tls = settings.tls is not None
        self.session = settings.session
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._key = secrets.token_bytes(16)

    @property
    def has_logins(self) -> bool:
        """Whether anybody logs in here."""
        return bool(self._users or self._one)

    def host_allowed(self, header: str) -> bool:
        """False when a page of another site made its own name point to this machine (DNS rebinding)."""
        try:
            return not self._local or is_loopback(host_port(header, default=80)[0])
        except ValueError:
            return False

    def visitor(self, request: Request) -> Visitor | None:
        """Who asks: by the proxy's header, by the cookie of a login, or by `Bearer TOKEN`; None for nobody known.

        While too many wrong tokens have come from an address, no token from there is looked at.
        """
        named = request.headers.get(self._header, "").strip() if self._header else ""
        if named:
            return self._known(plain(named)[:100], self._roles.get(named, "reader"))
        if not self.has_logins:
            return None if self._header else self._known(plain(request.certified) or _LOCAL, "operator")
        session = _cookie_in(request.headers.get("cookie", ""))
        found = self._in_session(session)
        if found is not None:
            return found
        token = bearer(request.headers.get("authorization", ""))
        return self._known(*owner) if token and (owner := self._owner(token, request.address)) else None

    def wait(self, address: str) -> bool:
        """Whether too many wrong tokens have come from there in the last minute."""
        return self._attempts.exhausted(address)

    def login(self, token: str, request: Request) -> str | None:
        """The Set-Cookie header of the session that begins with a token; None when it is wrong."""
        owner = self._owner(token, request.address)
        if owner is None:
            return None
        name = secrets.token_urlsafe(32)
        self._sessions[name] = _Session(digest_of(token), self._clock() + self.session)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        audit(owner[0], "login")
        return self._cookie(name, request, int(self.session))

    def logout(self, visitor: Visitor, request: Request) -> str:
        """Ends a session; the Set-Cookie header that takes its cookie away."""
        self._sessions.pop(visitor.session, None)
        audit(visitor.name, "logout")
        return self._cookie("", request, 0)

    def form_allowed(self, visitor: Visitor, given: str) -> bool:
        """Whether a form was made for them, rather than by a page of another site in the same browser."""
        return hmac.compare_digest(given.encode(errors="replace"), visitor.form.encode())

    def _in_session(self, name: str) -> Visitor | None:
        session = self._sessions.get(name)
        if session is None:
            return None
        owner = self._owner_of(session.digest) if self._clock() < session.until else None
        if owner is None:  # over, or its token is none any more
            del self._sessions[name]
            return None
        return self._known(*owner, name)

    def _owner(self, token: str, address: str) -> tuple[str, UserRole] | None:
        """Name and role that a token stands for; None also while none from this address is looked at."""
        if self._attempts.exhausted(address):
            self._access.denied("page", "too_many", address)
            return None
        owner = self._owner_of(digest_of(token))
        if owner is None:
            self._attempts.wrong(address)
            self._access.denied("page", "wrong_token", address)
        return owner

    def _owner_of(self, digest: bytes) -> tuple[str, UserRole] | None:
        user, one = self._users.owner(digest), self._one.owner(digest)
        if user is not None:
            return user, self._roles[user]
        return None if one is None else (_TOKEN, "operator")

    def _known(self, name: str, role: UserRole, session: str = "") -> Visitor:
        form = hmac.new(self._key, f"{name}\n{session}".encode(), hashlib.sha256).hexdigest()
        return Visitor(name, role, form, session)

    def _cookie(self, value: str, request: Request, seconds: int) -> str:
        secure = self._tls or request.headers.get("x-forwarded-proto", "").strip().lower() == "https"
        cookie = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        return f"{cookie}; Secure" if secure else cookie


def audit(who: str, what: str, **facts: object) -> None:
    """One line, with its time, for what somebody has changed."""
    told = "".join(f' {name}="{plain(str(value))}"' for name, value in facts.items() if value is not None)
    _log.info('event=audit who="%s" what=%s%s', who, what, told)


def _cookie_in(header: str) -> str:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")
