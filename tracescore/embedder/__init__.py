"""Text to vectors. `Embedder` is the contract; `build_embedder` picks one from the configuration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from tracescore.config import (
    EmbedderConfig,
    MiniLMEmbedderConfig,
    OpenAIEmbedderConfig,
    SentenceTransformersEmbedderConfig,
)
from tracescore.embedder.identity import Identity
from tracescore.formulas import Vector


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """The model's name as configured, to be shown."""
        ...

    @property
    def identity(self) -> Identity | None:
        """What answers under that name; None while that is not known. Part of the judge's fingerprint."""
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


def _minilm(settings: MiniLMEmbedderConfig, _registry: CollectorRegistry) -> Embedder:
    from tracescore.embedder.minilm import MiniLMEmbedder  # noqa: PLC0415

    return MiniLMEmbedder(settings)


def _sentence_transformers(settings: SentenceTransformersEmbedderConfig, _registry: CollectorRegistry) -> Embedder:
    from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder  # noqa: PLC0415

    return SentenceTransformersEmbedder(settings)


EMBEDDERS: Mapping[str, Callable[[Any, CollectorRegistry], Embedder]] = {
    "minilm": _minilm,
    "openai": _openai,
    "sentence_transformers": _sentence_transformers,
}
"""Embedders by `embedder.kind`."""


def build_embedder(settings: EmbedderConfig, registry: CollectorRegistry) -> Embedder:
    """The embedder that `settings` describe.

    Raises MissingExtra when it needs a package that is not installed, UsageError when its key is not there.
    """
    return EMBEDDERS[settings.kind](settings, registry)
