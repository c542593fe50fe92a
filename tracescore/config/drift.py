"""The settings of estimates over time, and of what tells that they have changed."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from tracescore.config.types import Duration, Ratio, Section
from tracescore.model import MEASURES, Measure

DEFAULT_TARGETS: dict[Measure, float | dict[str, float]] = {
    "answer_relevancy": 0.5,
    "completeness": 0.5,
    "faithfulness": 0.8,
}

OF_EMBEDDED_JUDGE: dict[str, Any] = {"tolerance": 0.01, "targets": {"faithfulness": 0.7}}
"""What suits the embedded judge: supported and unsupported answers lie half as far apart in its values as in verdicts
of 0 and 1, and its mean is 0.7 to 0.8 where 0.8 of the claims are supported (docs/embedded-judge.md)."""


def suiting_embedded_judge(drift: object) -> object:
    """What is given for the section `drift`, over what suits the embedded judge."""
    if not isinstance(drift, dict) or not isinstance(drift.get("targets", {}), dict):
        return drift
    targets = OF_EMBEDDED_JUDGE["targets"] | drift.get("targets", {})
    for measure, target in OF_EMBEDDED_JUDGE["targets"].items():
        if isinstance(targets[measure], dict):
            targets[measure] = {OTHERS: target, **targets[measure]}
    return OF_EMBEDDED_JUDGE | drift | {"targets": targets}


def _over_defaults(value: object) -> object:
    """The targets that are given over the default ones, of measures and of services that are not named.

    Without those of known measures, or of `*`, that are null.
    """
    if not isinstance(value, dict):
        return value
    targets: dict[Any, Any] = DEFAULT_TARGETS | value
    for measure, given in targets.items():
        if isinstance(given, dict):
            every = {OTHERS: DEFAULT_TARGETS[measure]} if measure in DEFAULT_TARGETS else {}
            targets[measure] = {
                key: target for key, target in (every | given).items() if target is not None or key != OTHERS
            }
    return {measure: target for measure, target in targets.items() if target is not None or measure not in MEASURES}


OTHERS = "*"
"""Stands for the services that are not named."""
_Target = Annotated[float, Field(gt=0, lt=1)]
OwnTarget = Annotated[
    Annotated[_Target, Tag("number")] | Annotated[dict[str, _Target], Tag("by_service")],
    Discriminator(lambda value: "by_service" if isinstance(value, dict) else "number"),
]
"""One for all services, or one by the name of a service; `*` is for those that are not named."""
Targets = Annotated[dict[Annotated[Measure, "measure"], OwnTarget], BeforeValidator(_over_defaults)]


DetectorName = Annotated[str, "detector"]
"""One of DETECTORS, or a measure of the user's own."""
DETECTORS: tuple[DetectorName, ...] = (
    "answer_relevancy",
    "completeness",
    "faithfulness",
    "answered",
    "completeness_multipart",
    "context_precision",
)
"""What is watched. `answered` is the share of answers that do not evade their question; relevancy and completeness
are of those alone, as zeros of evasions would hide a fall; `completeness_multipart` of questions with several parts."""
GivenReferences = dict[str, dict[DetectorName, Annotated[float, Field(gt=0, lt=1)]]]
"""Service, or `*` for those that are not named -> detector -> what its mean has to stay above."""
References = Annotated[
    Annotated[GivenReferences, Tag("given")] | Annotated[str, Field(min_length=1), Tag("file")],
    Discriminator(lambda value: "file" if isinstance(value, str) else "given"),
]


class BaselineConfig(Section):
    """How much tracescore learns from before it knows for good what is normal."""

    scores: int = Field(default=1_000, ge=200)
    """Scores to learn from, at least."""
    days: int = Field(default=7, ge=1)
    """tracescore learns for a whole multiple of this many days, so that weekends do not look like drops."""


class LabelsConfig(Section):
    """Answers that people label on the page, to measure how far the judge is from people."""

    path: str = Field(min_length=1)
    """A file for the answers and their labels; it holds your users' texts while an answer waits."""
    ratio: Ratio = 0.05
    """The share of scored interactions that tracescore draws, whatever their scores."""
    window: Duration = Field(default=30 * 86_400.0, ge=2 * 86_400.0)
    """How far back the corrected mean reaches."""
    max_waiting: int = Field(default=200, ge=1)
    """Answers that wait for a label; beyond that the oldest leave unlabelled."""


class DriftConfig(Section):
    """Means over time, and how tracescore detects that one has dropped. See [drift](drift.md)."""

    window: Duration = 3600.0
    """The period that the gauges cover."""
    min_count: int = Field(default=20, ge=1)
    """Effective scores (see [glossary](glossary.md)) that a window needs before its gauges appear."""
    targets: Targets = Field(default=DEFAULT_TARGETS)
    """The value the mean of a measure should stay above: one number, or one by service, where `*` stands for the
    services you do not name. A measure you do not name keeps its default; `null` removes it. With a judge of kind
    `openai` the default of faithfulness is 0.8."""
    detector: bool = True
    """Whether this process watches for drops. Each replica sees only its own scores."""
    false_alarm_every: Duration = Field(default=30 * 86_400.0, ge=86_400.0)
    """The least mean time between false alarms, over all detectors together."""
    tolerance: float = Field(default=0.02, ge=0, lt=0.5)
    """The smallest drop of a mean that tracescore reports. With a judge of kind `openai` the default is 0.02."""
    reference: Literal["flat", "by_block"] = "flat"
    """`flat`: one reference for the whole day. `by_block`: one for each quarter of the day (UTC)."""
    references: References | None = None
    """References you give instead of letting tracescore learn them, by service (`*`: any other) and detector, or the
    file that holds them. For processes without a disk."""
    baseline: BaselineConfig = BaselineConfig()
    """How much tracescore learns from."""
    conversation_idle: Duration = Field(default=1800.0, gt=0)
    """A conversation ends after this silence; the detectors count it as one observation."""
    anchors: str | None = Field(default=None, min_length=1)
    """A file of fixed items that tracescore scores again when it suspects a drop, to tell whether the judge moved."""
    anchor_deadline: Duration = Field(default=300.0, gt=0)
    """How long the verdict (judge or product) waits for the anchors."""
    labels: LabelsConfig | None = None
    """Which answers people label."""

    def target(self, measure: Measure, service: str) -> float | None:
        """What the mean of a measure of a service should stay above; None without. `*`: of those without their own."""
        return (own := self.own_targets(measure)).get(service, own.get(OTHERS))

    def own_targets(self, measure: Measure) -> dict[str, float]:
        """The targets of a measure by the name of a service, or `*`."""
        given = self.targets.get(measure, {})
        return given if isinstance(given, dict) else {OTHERS: given}
