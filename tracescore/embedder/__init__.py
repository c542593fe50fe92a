"""Text to vectors. `Embedder` is the contract; `build_embedder` picks one from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from tracescore.config import EmbedderConfig, LocalEmbedderConfig, OpenAIEmbedderConfig
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


def _openai(settings: OpenAIEmbedderConfig, registry: CollectorRegistry) -> Embedder:
    from tracescore.embedder.openai import OpenAIEmbedder  # noqa: PLC0415 - each embedder brings its own libraries

    return OpenAIEmbedder(settings, registry)


def _sentence_transformers(settings: LocalEmbedderConfig, _registry: CollectorRegistry) -> Embedder:
    from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder  # noqa: PLC0415

    return SentenceTransformersEmbedder(settings)


EMBEDDERS: Mapping[str, Callable[[Any, CollectorRegistry], Embedder]] = {
    "openai": _openai,
    "sentence_transformers": _sentence_transformers,
}
"""Embedders by `embedder.kind`."""


def build_embedder(settings: EmbedderConfig, registry: CollectorRegistry) -> Embedder:
    """The embedder that `settings` describe.

    Raises MissingExtra when it needs a package that is not installed, UsageError when its key is not there.
    """
    return EMBEDDERS[settings.kind](settings, registry)
