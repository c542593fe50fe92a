"""Text to vectors. `Embedder` is the contract; `build_embedder` picks one from the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tracescore.formulas import Vector


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """Names the model; part of the judge's fingerprint."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vector:
        """Array of shape (len(texts), d), float64, in the order given; EmbedderError when it cannot."""
        ...

    async def close(self) -> None:
        """Releases connections; may be called twice."""
        ...
