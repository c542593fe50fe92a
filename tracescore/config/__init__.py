"""One YAML file -> one frozen `Config`, or a `ConfigError` that lists every problem with file:line.

A section of the file has the name of its schema file here, of the package or module it configures, of that one's
metrics and of its `stage` in the logs. Why so strict: a misspelt key that is quietly ignored shows up weeks later as a
number that is wrong.
"""

from typing import Any

from pydantic import Field, model_validator

from tracescore.config.access import ListenerConfig, TlsConfig
from tracescore.config.assembly import AssemblyConfig
from tracescore.config.custom import (
    CustomConfig,
    PatternMeasureConfig,
    PythonMeasureConfig,
    RubricMeasureConfig,
)
from tracescore.config.drift import BaselineConfig, DriftConfig, LabelsConfig, suiting_embedded_judge
from tracescore.config.embedder import (
    EmbedderConfig,
    MiniLMEmbedderConfig,
    OpenAIEmbedderConfig,
    SentenceTransformersEmbedderConfig,
)
from tracescore.config.evaluators import CorrectnessConfig, EvaluatorsConfig
from tracescore.config.exporters import (
    ExportersConfig,
    ForwardConfig,
    OtlpExporterConfig,
    PhoenixExporterConfig,
    PrometheusConfig,
)
from tracescore.config.gold import (
    GoldConfig,
    GoldTargetConfig,
    HttpTargetConfig,
    OpenAITargetConfig,
    PythonTargetConfig,
    TraceTargetConfig,
)
from tracescore.config.interactions import InteractionsConfig, MappingConfig
from tracescore.config.judge import EmbeddedJudgeConfig, JudgeConfig, OpenAIJudgeConfig, PriceConfig
from tracescore.config.receiver import ReceiverConfig, SenderLimitsConfig
from tracescore.config.redaction import ReadyMade, RedactionConfig
from tracescore.config.retain import RetainConfig
from tracescore.config.sampling import DEFAULT_RULE, SamplingConfig, SamplingRuleConfig
from tracescore.config.spool import SpoolConfig
from tracescore.config.types import Duration, Section
from tracescore.config.web import UserConfig, UserRole, WebConfig
from tracescore.model import Measure

DEFAULT_MEASURES: tuple[Measure, ...] = ("answer_relevancy", "completeness", "faithfulness")
"""What runs unless `measures` says otherwise: context_precision costs one more call of the judge."""


class Config(Section):
    """Everything that can be set. The defaults are a working service: embedded judge, every interaction scored."""

    receiver: ReceiverConfig = ReceiverConfig()
    spool: SpoolConfig = SpoolConfig()
    retain: RetainConfig = RetainConfig()
    assembly: AssemblyConfig = AssemblyConfig()
    interactions: InteractionsConfig = InteractionsConfig()
    redaction: RedactionConfig = RedactionConfig()
    sampling: SamplingConfig = SamplingConfig()
    measures: tuple[Measure, ...] = Field(default=DEFAULT_MEASURES, strict=False)
    """What tracescore scores on live traffic: `answer_relevancy`, `completeness`, `faithfulness`, `context_precision`,
    and the names of `evaluators.custom`."""
    judge: JudgeConfig = EmbeddedJudgeConfig()
    embedder: EmbedderConfig = MiniLMEmbedderConfig()
    evaluators: EvaluatorsConfig = EvaluatorsConfig()
    drift: DriftConfig = DriftConfig()
    exporters: ExportersConfig = ExportersConfig()
    web: WebConfig = WebConfig()
    gold: GoldConfig | None = None
    shutdown_grace: Duration = 25.0
    """Time after SIGTERM to finish what was received; orchestrators usually allow 30 s."""

    @model_validator(mode="before")
    @classmethod
    def _suit_the_judge(cls, given: Any) -> Any:
        """Where the embedded judge is configured, or none, what is not set of `drift` suits it."""
        if not isinstance(given, dict):
            return given
        judge = given.get("judge", EmbeddedJudgeConfig())
        is_embedded = isinstance(judge, EmbeddedJudgeConfig) or (
            isinstance(judge, dict) and judge.get("kind", "embedded") == "embedded"
        )
        return {**given, "drift": suiting_embedded_judge(given.get("drift", {}))} if is_embedded else given
