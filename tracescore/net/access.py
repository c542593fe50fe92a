"""Who gets in at a listener: tokens by name, and what happens to those who try wrong ones.

Tokens are compared in time that does not depend on how much of them is right, with all there are.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, get_args

from prometheus_client import CollectorRegistry, Counter

from tracescore.config.types import Secret
from tracescore.errors import UsageError
from tracescore.net.connections import Listener
from tracescore.net.tls import signature

_log = logging.getLogger("tracescore.net")

_Clock = Callable[[], float]
Door = Literal[Listener, "grpc"]
Denied = Literal["no_token", "wrong_token", "too_many", "no_certificate"]
"""None was given; it is none of ours; so many wrong ones came from there that none is looked at; and for TLS."""

_LOOK_EVERY = 1.0
"""Seconds between two looks at the file of a token."""
_MOST_WRONG, _WITHIN = 5, 60.0
_MOST_ADDRESSES = 10_000


class _Kept:
    """The tokens of one name, as digests, and the file they come from."""

    def __init__(self, secret: Secret, what: str, clock: _Clock) -> None:
        self._secret, self._what, self._clock = secret, what, clock
        self._files = [secret.file] if secret.file else []
        self._seen, self._looked = signature(self._files), clock()
        self._digests = self._read()

    def digests(self) -> list[bytes]:
        """Those in force. A file that cannot be read leaves the former ones so, and is logged."""
        now = self._clock()
        if self._files and now - self._looked >= _LOOK_EVERY:
            self._looked, seen = now, signature(self._files)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._digests = self._read()
                    _log.info("event=token_loaded setting=%s", self._what)
                except UsageError as error:
                    _log.error('event=token_not_loaded detail="%s" advice="the former one stays in force"', error)
        return self._digests

    def _read(self) -> list[bytes]:
        return [digest_of(each) for each in self._secret.read(self._what).split()]


class Tokens:
    """Bearer tokens by name, read again when their files change. UsageError when one cannot be read at the start.

    A secret may hold several, each on a line of its own: the former one and the next, while senders change over.
    """

    def __init__(self, secrets: Mapping[str, Secret], setting: str, clock: _Clock = time.monotonic) -> None:
        self._kept = {name: _Kept(secret, f"{setting}.{name}", clock) for name, secret in secrets.items()}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def owner(self, digest: bytes) -> str | None:
        """The name that a token of this digest belongs to; None for a wrong one."""
        found = None
        for name, kept in self._kept.items():
            for known in kept.digests():
                if hmac.compare_digest(digest, known):
                    found = name
        return found


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


def bearer(authorization: str) -> str:
    """The token of an Authorization header; empty when it holds none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class Attempts:
    """Wrong tokens of the last minute, by the address they came from."""

    def __init__(self, clock: _Clock = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def exhausted(self, address: str) -> bool:
        """Whether there were as many as anybody mistypes."""
        times = self._wrong.get(address)
        return times is not None and len(times) == _MOST_WRONG and self._clock() - times[0] < _WITHIN

    def wrong(self, address: str) -> None:
        """Another one."""
        self._wrong.setdefault(address, deque(maxlen=_MOST_WRONG)).append(self._clock())
        self._wrong.move_to_end(address)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)


class AccessMetrics:
    """What all listeners of a process count and log of those who do not get in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._denied = Counter(
            "tracescore_net_denied_requests",
            "Requests that did not get in, by listener and why.",
            ["listener", "reason"],
            registry=registry,
        )
        for door in (*get_args(Listener), "grpc"):
            for reason in get_args(Denied):
                self._denied.labels(door, reason)
        self._said: dict[tuple[Door, Denied], float] = {}

    def denied(self, door: Door, reason: Denied, address: str) -> None:
        """Counts one, and says so once a minute."""
        self._denied.labels(door, reason).inc()
        now = time.monotonic()
        if now >= self._said.get((door, reason), 0.0):
            self._said[door, reason] = now + _WITHIN
            _log.warning("event=access_denied listener=%s reason=%s address=%s", door, reason, address or "unknown")


class Entry(NamedTuple):
    """Who asks, by the name of the token or else the address; or why they do not get in."""

    sender: str
    denied: Denied | None = None


class TokenGate:
    """The tokens of one listener that machines ask; without any, everybody gets in.

    The right token gets in whatever else came from its address: an address may be a whole cluster, and tokens of
    machines are too long to be guessed. Wrong ones are told to wait after five of them.
    """

    def __init__(self, door: Door, tokens: Tokens, metrics: AccessMetrics, clock: _Clock = time.monotonic) -> None:
        self._door, self._tokens, self._metrics = door, tokens, metrics
        self._attempts = Attempts(clock)

    @property
    def guarded(self) -> bool:
        """Whether it asks for a token, so that `Authorization` is meant for us."""
        return bool(self._tokens)

    def enter(self, authorization: str, address: str) -> Entry:
        """Whether a request with this header may come in."""
        if not self._tokens:
            return Entry(address)
        token = bearer(authorization)
        owner = self._tokens.owner(digest_of(token)) if token else None
        if owner is not None:
            return Entry(owner)
        reason: Denied = "no_token" if not token else "too_many" if self._attempts.exhausted(address) else "wrong_token"
        if reason == "wrong_token":
            self._attempts.wrong(address)
        self.deny(reason, address)
        return Entry(address, reason)

    def deny(self, reason: Denied, address: str) -> None:
        """Counts somebody who does not get in."""
        self._metrics.denied(self._door, reason, address)
