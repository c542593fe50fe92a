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
    """Questions that an answer answers."""
    required_parts: PathBesideFile | None = None
    """What a question asks for."""
    claims: PathBesideFile | None = None
    """What an answer claims."""
    verify_support: PathBesideFile | None = None
    """Claims of the answer against the passages."""
    verify_coverage: PathBesideFile | None = None
    """Required parts against the answer."""
    verify_precision: PathBesideFile | None = None
    """Claims of the answer against the reference."""
    verify_recall: PathBesideFile | None = None
    """Claims of the reference against the answer."""
    verify_usefulness: PathBesideFile | None = None
    """Passages by what a right answer needs."""

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
    """Money per million tokens, in a currency of your choice."""

    input: float = Field(ge=0)
    """Money per million tokens that the judge reads."""
    output: float = Field(ge=0)
    """Money per million tokens that the judge writes."""


class BudgetConfig(Section):
    """What the judge may cost, in the currency of `price`."""

    per_day: float = Field(gt=0)
    """Money per day (UTC). tracescore lowers the sampling ratios, down to `sampling.min_ratio`, so that it lasts until
    midnight; once it is spent, tracescore scores nothing more that day."""


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
    budget: BudgetConfig | None = None
    """What the judge may cost; needs `price`."""
    prompts: Annotated[PromptVersion | PromptFiles, BeforeValidator(_version_or_files)] = "v1"
    """The instructions that the judge gets. Another choice starts another epoch."""

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
