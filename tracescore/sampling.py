"""Which interactions are scored, and with what weight.

One value h per trace, a keyed hash of its id, makes both decisions: admission when the first span comes, before
anything is decoded, and the final one when the interaction has been read. So repeats, late spans and other
replicas decide alike, and a lower ratio keeps a subset of what a higher one keeps. The key is a salt of our own:
a sampler upstream that hashes the same ids must not choose with the same bits.
"""

from __future__ import annotations

import dataclasses
import hashlib

from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore.config import Sampling
from tracescore.model import Interaction

_RANGE = 2**64


class Sampler:
    """Decides by `settings.ratio`; every interaction it keeps carries the weight 1 / ratio."""

    def __init__(self, settings: Sampling, registry: CollectorRegistry) -> None:
        self._key = hashlib.sha256(settings.salt.encode()).digest()
        self._ratio = settings.ratio
        self._limit = int(settings.ratio * _RANGE)
        decided = Counter(
            "tracescore_sampling_interactions", "Interactions by decision.", ["decision"], registry=registry
        )
        self._kept, self._left = decided.labels("scored"), decided.labels("left_out")
        Gauge("tracescore_sampling_ratio", "Share of the traces that is scored.", registry=registry).set(self._ratio)

    def admits(self, trace_id: bytes) -> bool:
        """Whether any interaction of the trace (16 bytes of id) can still be scored."""
        if self._limit >= _RANGE:
            return True
        digest = hashlib.blake2b(trace_id, digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "big") < self._limit

    def decide(self, interaction: Interaction) -> Interaction | None:
        """The interaction with its weight, or None when it is left out."""
        if not self.admits(bytes.fromhex(interaction.trace_id)):
            self._left.inc()
            return None
        self._kept.inc()
        return dataclasses.replace(interaction, weight=1.0 / self._ratio)
