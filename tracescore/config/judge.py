"""Settings of the judge, by its kind."""

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import Duration, Section

_INSTRUCTIONS = 900
"""Tokens of the longest prompt, its data excluded."""


class PriceConfig(Section):
    """Money per million tokens, in one currency of the user's choice."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class EmbeddedJudgeConfig(Section):
    """The judge without a language model: no key, no network."""

    kind: Literal["embedded"] = "embedded"
    name: str = Field(default="embedded-v2", min_length=1, max_length=64)
    coefficients: str | None = Field(default=None, min_length=1)
    """A file of coefficients in place of those that come with the judge: fitted to labels of one's own."""

    @property
    def known_as(self) -> str:
        """Its name in metrics, scores and messages."""
        return self.name


class OpenAIJudgeConfig(OpenAIEndpointConfig):
    """Any endpoint that speaks the OpenAI chat completions API."""

    kind: Literal["openai"]
    name: str | None = Field(default=None, min_length=1, max_length=64)
    """The `judge` label; the model's name when not given."""
    deadline: Duration = 300.0
    """Of one interaction, retries included."""
    context: int | None = Field(default=None, ge=2_048)
    """Tokens that the model reads and writes in one request, where that is less than 32,000 (a local server)."""
    max_input_tokens: int = Field(default=24_000, ge=1_000)
    """Evidence beyond this is verified window by window; a smaller `context` lowers it."""
    price: PriceConfig | None = None

    @property
    def max_input(self) -> int:
        """Tokens of texts per request: with instructions and a reply, they fit in the context."""
        if self.context is None:
            return self.max_input_tokens
        return min(self.max_input_tokens, (self.context - _INSTRUCTIONS) * 2 // 3)

    @property
    def known_as(self) -> str:
        """Its name in metrics, scores and messages: at most 64 characters."""
        return self.name or self.model[:64]


JudgeConfig = Annotated[EmbeddedJudgeConfig | OpenAIJudgeConfig, Field(discriminator="kind")]
