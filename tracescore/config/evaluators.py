"""Settings of how the measures are computed."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.types import Section, Size
from tracescore.formulas import check_weights


class CorrectnessConfig(Section):
    """How an answer is held against its reference."""

    method: Literal["claims", "verdict", "similarity"] = "claims"
    """Claim by claim; one verdict of the judge; whether the two texts are alike."""
    threshold: float = Field(default=0.8, gt=0, le=1)
    """The cosine from which two texts are alike."""


class EvaluatorsConfig(Section):
    """How the measures are computed."""

    questions: int = Field(default=3, ge=1, le=10)
    """Questions generated per answer for answer_relevancy."""
    count_abstentions_as: Literal["zero", "excluded"] = "zero"
    """Whether a noncommittal answer enters answer_relevancy as 0 or not at all."""
    weights: tuple[float, float] = Field(default=(0.75, 0.25), strict=False)
    """Of the factual part and the similarity in answer_correctness."""
    beta: float = Field(default=1.0, ge=0)
    correctness: CorrectnessConfig = CorrectnessConfig()
    max_pending: int = Field(default=10_000, ge=1)
    """Interactions waiting for the judge; the newest beyond that are shed and counted."""
    max_pending_size: Size = Field(default=256 * 2**20, ge=1)
    """Memory for their texts; at about this size the newest are shed as well."""
    max_concurrency: int = Field(default=16, ge=1)
    """Interactions evaluated side by side."""

    @model_validator(mode="after")
    def _weights_can_be_used(self) -> Self:
        check_weights(self.weights)
        return self
