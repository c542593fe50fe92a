"""Settings of the judge, by its kind."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import Duration, PathBesideFile, Section

_INSTRUCTIONS = 900
"""Tokens that are kept free for a prompt, its data excluded; a longer one gets more."""

PromptVersion = Literal["v1", "v2"]
"""The prompts that come with tracescore."""


class PromptFiles(Section):
    """Files with rules of the user's own, by the operation they are for; all others are those of version 1."""

    reverse_questions: PathBesideFile | None = None
    required_parts: PathBesideFile | None = None
    claims: PathBesideFile | None = None
    verify_support: PathBesideFile | None = None
    verify_coverage: PathBesideFile | None = None
    verify_precision: PathBesideFile | None = None
    verify_recall: PathBesideFile | None = None

    @property
    def paths(self) -> Mapping[str, str]:
        """The files by operation."""
        return {name: path for name, path in self if path is not None}


def _version_or_files(value: object) -> object:
    """One of the two, told apart first: pydantic would try both and report both."""
    if not isinstance(value, dict | PromptFiles) and value not in get_args(PromptVersion):
        raise ValueError("v1, v2, or a mapping of operations to files expected, such as {claims: claims.md}")
    return value


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
    prompts: Annotated[PromptVersion | PromptFiles, BeforeValidator(_version_or_files)] = "v1"
    """What the judge is told to do. Another choice is another epoch."""

    def max_input(self, instructions: int) -> int:
        """Tokens of texts per request: with the longest instructions and a reply, they fit in the context."""
        if self.context is None:
            return self.max_input_tokens
        return min(self.max_input_tokens, (self.context - max(_INSTRUCTIONS, instructions)) * 2 // 3)

    @property
    def known_as(self) -> str:
        """Its name in metrics, scores and messages: at most 64 characters."""
        return self.name or self.model[:64]


JudgeConfig = Annotated[EmbeddedJudgeConfig | OpenAIJudgeConfig, Field(discriminator="kind")]
