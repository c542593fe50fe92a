"""Settings of the judge, by its kind."""

from typing import Annotated, Literal

from pydantic import Field

from tracescore.config.types import Duration, Secret, Section, Url


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


class OpenAIJudgeConfig(Section):
    """Any endpoint that speaks the OpenAI chat completions API."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    name: str | None = Field(default=None, min_length=1, max_length=64)
    """The `judge` label; the model's name when not given."""
    base_url: Url = "https://api.openai.com/v1"
    api_key: Secret | None = None
    timeout: Duration = 60.0
    """Of one call."""
    deadline: Duration = 300.0
    """Of one interaction, retries included."""
    max_concurrency: int = Field(default=16, ge=1)
    max_retries: int = Field(default=4, ge=0)
    max_input_tokens: int = Field(default=24_000, ge=1_000)
    """Evidence beyond this is verified window by window."""
    price: PriceConfig | None = None
    parameters: dict[str, float | int | str | bool] = Field(default_factory=dict)
    """Sent with every call as they are (temperature, seed, reasoning_effort, ...)."""

    @property
    def known_as(self) -> str:
        """Its name in metrics, scores and messages: at most 64 characters."""
        return self.name or self.model[:64]


JudgeConfig = Annotated[EmbeddedJudgeConfig | OpenAIJudgeConfig, Field(discriminator="kind")]
