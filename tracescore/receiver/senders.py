"""Who sends, and how much of it: nobody gets in without a token where one is asked for, nobody takes all the room.

A sender is known by the name of its token, or else by its address.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

from tracescore.config import SenderLimitsConfig
from tracescore.net.access import TokenGate
from tracescore.receiver.refusals import Refused

_log = logging.getLogger("tracescore.receiver")

BY_ADDRESS = "(address)"
"""The label of all senders without a token: addresses are without number, and in the logs."""
_MOST = 10_000
_SAY_EVERY = 60.0


def let_in(gate: TokenGate | None, authorization: str, address: str) -> str:
    """Whom a request is from; Refused when it may not come in. Without a gate everybody gets in."""
    if gate is None:
        return address
    sender, denied = gate.enter(authorization, address)
    if denied == "too_many":
        raise Refused("too_many_attempts", "too many wrong tokens; wait a minute, and send the right one")
    if denied is not None:
        given = "no token" if denied == "no_token" else "another one"
        raise Refused("unauthenticated", f"Authorization: Bearer TOKEN expected, one of this receiver; got {given}")
    return sender


class _Bucket:
    """What may be spent in a second. It may be overdrawn once, as nobody knows beforehand how much comes."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._at = rate, max(rate, 1.0), now

    def empty(self, now: float) -> bool:
        self._left = min(max(self._rate, 1.0), self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left <= 0

    def spend(self, amount: float) -> None:
        self._left -= amount


class Senders:
    """What each of them has sent lately, held against `per_sender`; refusals by the name of the sender."""

    def __init__(
        self,
        limits: SenderLimitsConfig | None,
        names: frozenset[str],
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names` are those of the tokens."""
        self._limits, self._names, self._clock = limits or SenderLimitsConfig(), names, clock
        self._buckets: OrderedDict[str, tuple[_Bucket | None, _Bucket | None]] = OrderedDict()
        self._refused = Counter(
            "tracescore_receiver_throttled_requests",
            "Requests of senders that were over their rate, or held half of assembly.max_held, by name of the token.",
            ["sender", "reason"],
            registry=registry,
        )
        for name in sorted({*names, BY_ADDRESS}):
            for reason in ("rate", "share"):
                self._refused.labels(name, reason)
        self._said: OrderedDict[tuple[str, str], float] = OrderedDict()

    def asks(self, sender: str) -> None:
        """A request begins; Refused when the sender is over its rate."""
        now = self._clock()
        requests, size = self._of(sender, now)
        if (requests and requests.empty(now)) or (size and size.empty(now)):
            raise self.refusal(sender, "rate")
        if requests:
            requests.spend(1)

    def sent(self, sender: str, size: int) -> None:
        """So many bytes of it have come."""
        _, bucket = self._of(sender, self._clock())
        if bucket:
            bucket.spend(size)

    def refusal(self, sender: str, reason: str) -> Refused:
        """The refusal of a sender that takes too much, counted; said once a minute for each."""
        self._refused.labels(sender if sender in self._names else BY_ADDRESS, reason).inc()
        now = self._clock()
        if now >= self._said.get((sender, reason), float("-inf")):
            self._said[sender, reason] = now + _SAY_EVERY
            _log.warning("event=sender_throttled sender=%s reason=%s", sender, reason)
            if len(self._said) > _MOST:
                self._said.popitem(last=False)
        what = "more than receiver.per_sender allows" if reason == "rate" else "half of assembly.max_held is yours"
        return Refused("throttled", f"{what}; send again later")

    def _of(self, sender: str, now: float) -> tuple[_Bucket | None, _Bucket | None]:
        limits = self._limits
        if limits.requests_per_second is None and limits.bytes_per_second is None:
            return None, None
        if sender not in self._buckets:
            rates = limits.requests_per_second, limits.bytes_per_second
            requests, size = (None if rate is None else _Bucket(rate, now) for rate in rates)
            self._buckets[sender] = requests, size
            if len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(sender)
        return self._buckets[sender]
