"""Settings of how the measures are computed."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.custom import Custom
from tracescore.config.types import Section, Size
from tracescore.formulas import check_weights


class CorrectnessConfig(Section):
    """How tracescore compares an answer with its reference."""

    method: Literal["claims", "verdict", "similarity"] = "claims"
    """`claims`: claim by claim. `verdict`: one verdict of the judge on the whole answer. `similarity`: cosine alone."""
    threshold: float = Field(default=0.8, gt=0, le=1)
    """With `similarity`: the cosine from which an answer is right."""


class EvaluatorsConfig(Section):
    """How tracescore computes the measures."""

    questions: int = Field(default=3, ge=1, le=10)
    """Questions that the judge generates from an answer for `answer_relevancy`."""
    count_abstentions_as: Literal["zero", "excluded"] = "zero"
    """Whether an answer that evades the question ("I don't know") enters `answer_relevancy` as 0 or not at all."""
    weights: tuple[float, float] = Field(default=(0.75, 0.25), strict=False)
    """Weights of the factual part and the similarity in `answer_correctness`."""
    beta: float = Field(default=1.0, ge=0)
    """Above 1, a missed claim of the reference weighs more than a wrong claim of the answer; below 1, less."""
    correctness: CorrectnessConfig = CorrectnessConfig()
    """How tracescore compares an answer with its reference."""
    custom: Custom = Field(default_factory=dict)
    """Measures of your own, by name; list them in `measures` as well. See [custom measures](custom-measures.md)."""
    max_pending: int = Field(default=10_000, ge=1)
    """Interactions that may wait for the judge; tracescore drops the newest beyond that and counts them as `shed`."""
    max_pending_size: Size = Field(default=256 * 2**20, ge=1)
    """Memory for the texts that wait; at about this size tracescore sheds the newest as well."""
    max_concurrency: int = Field(default=16, ge=1)
    """Interactions evaluated at the same time."""

    @model_validator(mode="after")
    def _weights_can_be_used(self) -> Self:
        check_weights(self.weights)
        return self
