"""Which interactions are scored, and with what weight.

One value h per trace, a keyed hash of its id, makes both decisions: admission when the first span comes, before
anything is decoded, and the final one when the interaction has been read. So repeats, late spans and other
replicas decide alike, and a lower ratio keeps a subset of what a higher one keeps. The key is a salt of our own:
a sampler upstream that hashes the same ids must not choose with the same bits.

Every interaction that is kept carries the weight 1 / p of its own probability p, so that ratios may differ by rule
and move with a rate limit without moving any mean.
"""

import dataclasses
import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore.config import DEFAULT_RULE, SamplingConfig, SamplingRuleConfig
from tracescore.model import REMEMBERED_TRACES, AttributeValue, Clock, Interaction

_RANGE = 2**64
_MEMORY = 60.0
"""Seconds over which the rate limit averages what came."""


class Sampler:
    """Decides by the first rule that matches; a rate limit lowers all ratios, visibly, instead of dropping.

    `budget` gives what the judge's budget allows of them, in [0, 1]; None where there is none.
    """

    def __init__(
        self,
        settings: SamplingConfig,
        registry: CollectorRegistry,
        clock: Clock,
        budget: Callable[[], float] | None = None,
    ) -> None:
        self._settings, self._clock, self._budget = settings, clock, budget
        key = hashlib.sha256(settings.salt.encode()).digest()
        self._hash = hashlib.blake2b(digest_size=8, key=key)  # copied for each id: that is half the work of a new one
        self._highest = max(settings.ratio, *(rule.ratio for rule in settings.rules), 0.0)
        self.attributes = frozenset(key for rule in settings.rules for key in rule.attributes)
        """Attributes that interactions must carry to be decided on."""
        self._limit = _RateLimit(settings.max_per_minute)
        self._factors: OrderedDict[str, float] = OrderedDict()
        self._decided = Counter(
            "tracescore_sampling_interactions",
            "Interactions that sampling decided on, by rule and decision.",
            ["rule", "decision"],
            registry=registry,
        )
        ratios = Gauge(
            "tracescore_sampling_ratio",
            "Share of interactions that tracescore scores now.",
            ["rule"],
            registry=registry,
        )
        for name, ratio in ((DEFAULT_RULE, settings.ratio), *((rule.name, rule.ratio) for rule in settings.rules)):
            ratios.labels(name).set_function(partial(self._at_present, ratio))
            for decision in ("scored", "left_out"):
                self._decided.labels(name, decision)

    def admits(self, trace_id: bytes) -> bool:
        """Whether any interaction of the trace (16 bytes of id) can still be scored."""
        return self._highest >= 1 or self._position(trace_id) < self._highest

    def decide(self, interaction: Interaction) -> Interaction | None:
        """The interaction with its weight and rule, or None when it is left out."""
        rule = next((rule for rule in self._settings.rules if matches(rule, interaction)), None)
        name, ratio = (rule.name, rule.ratio) if rule else (DEFAULT_RULE, self._settings.ratio)
        probability = self._probability(ratio, self._factor(interaction.trace_id))
        self._limit.observe(ratio, self._clock())
        scored = self._position(bytes.fromhex(interaction.trace_id)) < probability
        self._decided.labels(name, "scored" if scored else "left_out").inc()
        return dataclasses.replace(interaction, weight=1.0 / probability, rule=name) if scored else None

    def _position(self, trace_id: bytes) -> float:
        """Where the trace stands in [0, 1)."""
        keyed = self._hash.copy()
        keyed.update(trace_id)
        return int.from_bytes(keyed.digest(), "big") / _RANGE

    def _at_present(self, ratio: float) -> float:
        return self._probability(ratio, self._lowered())

    def _lowered(self) -> float:
        """What all ratios are multiplied with at this moment."""
        allowed = self._budget() if self._budget else 1.0
        return min(allowed, self._limit.factor(self._clock()))

    def _probability(self, ratio: float, factor: float) -> float:
        return max(self._settings.min_ratio, ratio * factor)

    def _factor(self, trace_id: str) -> float:
        """The factor when the trace was first decided on: its later interactions follow it."""
        if self._settings.max_per_minute is None and self._budget is None:
            return 1.0
        factor = self._factors.setdefault(trace_id, self._lowered())
        while len(self._factors) > REMEMBERED_TRACES:
            self._factors.popitem(last=False)
        return factor


def matches(rule: SamplingRuleConfig, interaction: Interaction) -> bool:
    """Whether everything that the rule names fits."""
    found = {
        "service": interaction.service,
        "environment": interaction.environment,
        "route": interaction.slices.get("route", ""),
        "tenant": interaction.slices.get("tenant", ""),
        "status": "error" if interaction.state == "app_error" else "ok",
    }
    wanted = {name: getattr(rule, name) for name in found if getattr(rule, name) is not None}
    return all(fnmatchcase(found[name], pattern) for name, pattern in wanted.items()) and all(
        key in interaction.attributes and fnmatchcase(_written(interaction.attributes[key]), pattern)
        for key, pattern in rule.attributes.items()
    )


def _written(value: AttributeValue) -> str:
    """An attribute as one writes it in a rule."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _RateLimit:
    """The factor that brings the rate of what would be scored down to the limit.

    It knows only what came before, never the interaction it is asked about: otherwise 1 / p would not be its weight.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._per_second = per_minute / 60 if per_minute is not None else math.inf
        self._rate, self._at = 0.0, 0.0  # per second, an exponentially weighted mean

    def factor(self, now: float) -> float:
        """In (0, 1]."""
        rate = self._decayed(now)
        return min(1.0, self._per_second / rate) if rate > 0 else 1.0

    def observe(self, ratio: float, now: float) -> None:
        """Takes in an interaction that would be scored with probability `ratio`."""
        self._rate, self._at = self._decayed(now) + ratio / _MEMORY, max(now, self._at)

    def _decayed(self, now: float) -> float:
        return self._rate * math.exp(-max(0.0, now - self._at) / _MEMORY)
