"""Settings of the judge, by its kind."""

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import Duration, Section

_INSTRUCTIONS = 900
"""Tokens of the longest prompt, its data excluded."""


class PriceConfig(Section):
    """Money per million tokens, in a currency of your choice."""

    input: float = Field(ge=0)
    """Money per million tokens that the judge reads."""
    output: float = Field(ge=0)
    """Money per million tokens that the judge writes."""


class EmbeddedJudgeConfig(Section):
    """A judge without a language model: no key, no network. See [embedded judge](embedded-judge.md)."""

    kind: Literal["embedded"] = "embedded"
    """Which judge."""
    name: str = Field(default="embedded-v2", min_length=1, max_length=64)
    """The label `judge` of every series."""
    coefficients: str | None = Field(default=None, min_length=1)
    """A file of coefficients that you fitted to your own labels."""

    @property
    def known_as(self) -> str:
        """Its name in metrics, scores and messages."""
        return self.name


class OpenAIJudgeConfig(OpenAIEndpointConfig):
    """Any endpoint that speaks the OpenAI chat completions API. See [judges](judges.md)."""

    kind: Literal["openai"]
    """Which judge."""
    name: str | None = Field(default=None, min_length=1, max_length=64)
    """The label `judge` of every series; without it the model's name."""
    deadline: Duration = 300.0
    """Time for one interaction, retries included."""
    context: int | None = Field(default=None, ge=2_048)
    """Tokens that the model can read and write in one request; set it below 32,000 (a local server)."""
    max_input_tokens: int = Field(default=24_000, ge=1_000)
    """Tokens of evidence per request; the judge gets longer evidence in windows. A smaller `context` lowers it."""
    price: PriceConfig | None = None
    """What tokens cost; without it tracescore counts tokens only."""

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
