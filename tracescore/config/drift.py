"""The settings of estimates over time, and of what tells that they have changed."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tracescore.config.types import Duration, Ratio, Section
from tracescore.model import MEASURES, Measure

DEFAULT_TARGETS: dict[Measure, float] = {"answer_relevancy": 0.5, "completeness": 0.5, "faithfulness": 0.8}


def _over_defaults(value: object) -> object:
    """The targets that are given over the default ones; without those of known measures that are null."""
    if not isinstance(value, dict):
        return value
    targets = DEFAULT_TARGETS | value
    return {measure: target for measure, target in targets.items() if target is not None or measure not in MEASURES}


Targets = Annotated[dict[Measure, Annotated[float, Field(gt=0, lt=1)]], BeforeValidator(_over_defaults)]


class BaselineConfig(Section):
    """How much has to be seen before a change can be told."""

    scores: int = Field(default=1_000, ge=200)
    days: int = Field(default=7, ge=1)
    """Learning ends after a whole multiple of so many days, so that days and weeks do not look like changes."""


class LabelsConfig(Section):
    """Answers that people are asked to label on the page, to tell how far the judge is from them."""

    path: str = Field(min_length=1)
    """A file for them and their labels; it holds text of your users while an answer waits."""
    ratio: Ratio = 0.05
    """Of the scored interactions that are drawn, whatever their scores."""
    window: Duration = Field(default=30 * 86_400.0, ge=2 * 86_400.0)
    """The days that corrected means are of."""
    max_waiting: int = Field(default=200, ge=1)
    """Answers that wait for a label; beyond that the oldest leave."""


class DriftConfig(Section):
    """Estimates over time, and what tells that they have changed."""

    window: Duration = 3600.0
    min_count: int = Field(default=20, ge=1)
    """Effective scores a window needs before its gauges are shown at all."""
    targets: Targets = Field(default=DEFAULT_TARGETS)
    """A score below its target counts in tracescore_<measure>_below_target_weight_total. Measures that are not named
    keep their target; `null` takes one away."""
    detector: bool = True
    """Whether this process watches for changes; where several replicas run, each sees only its own scores."""
    false_alarm_every: Duration = Field(default=30 * 86_400.0, ge=86_400.0)
    """Mean time between false alarms of all detectors together, at least."""
    tolerance: float = Field(default=0.02, ge=0, lt=0.5)
    """A fall of a mean that is too small to be told."""
    reference: Literal["flat", "by_block"] = "flat"
    """One reference for the whole day, or one for each quarter of it (UTC)."""
    baseline: BaselineConfig = BaselineConfig()
    conversation_idle: Duration = Field(default=1800.0, gt=0)
    """A conversation that is silent for so long is one observation of the detectors."""
    anchors: str | None = Field(default=None, min_length=1)
    """A file of fixed items, scored again when a change is suspected, to tell the judge from the product."""
    anchor_deadline: Duration = Field(default=300.0, gt=0)
    """How long the word on who moved waits for them."""
    labels: LabelsConfig | None = None
