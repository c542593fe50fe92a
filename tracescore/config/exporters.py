"""Settings of where scores and received requests go."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.access import ListenerConfig
from tracescore.config.types import Address, Duration, Secret, Section, Size, Url, target_of


class PrometheusConfig(ListenerConfig):
    """The metrics, and the probes beside them, which need neither token nor certificate."""

    listen: Address = "127.0.0.1:9464"
    """Host and port of `/metrics`, `/-/healthy` and `/-/ready`."""
    max_series: int = Field(default=10_000, ge=100)
    """Series of scores. Every service has an equal share; beyond it old releases give way, and label sets fold into
    `other`. The default holds twenty-two releases of services with twenty slice values each; `tracescore check
    --scores-per-day N` says what yours holds. See [releases](releases.md)."""


class OtlpExporterConfig(Section):
    """Scores as evaluation events and spans to an OTLP endpoint."""

    endpoint: Url
    """Where your traces go."""
    protocol: Literal["grpc", "http"] = "http"
    """How to send."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Headers of every request, by the names of their secrets."""
    timeout: Duration = 10.0
    """Time for one request."""
    explanations: bool = False
    """Whether claims, parts and quotes go along; they hold your users' texts."""

    @property
    def target(self) -> tuple[str, int]:
        """Host and port that are sent to; ports that are not given are the usual ones."""
        return target_of(self.endpoint, 4317 if self.protocol == "grpc" else 80)


class PhoenixExporterConfig(Section):
    """Scores as annotations on the spans that a Phoenix holds."""

    endpoint: Url
    """Address of Phoenix."""
    api_key: Secret | None = None
    """A key of Phoenix."""
    timeout: Duration = 10.0
    """Time for one request."""
    explanations: bool = False
    """Whether claims, parts and quotes go along; they hold your users' texts."""


class ForwardConfig(Section):
    """Where tracescore passes received requests on to, unchanged; it refuses a protocol that has no destination."""

    http: Url | None = None
    """Where OTLP/HTTP goes."""
    grpc: Url | None = None
    """Where OTLP/gRPC goes."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Headers of every request, by the names of their secrets, in place of the sender's own. tracescore never stores
    what senders are let in by: with `attach: hold` their spans are held only where these replace it."""
    timeout: Duration = 10.0
    """Time for the destination to answer; after it tracescore asks the sender to come back."""
    attach: Literal["span", "hold"] = "span"
    """`span`: scores follow as evaluation spans. `hold`: tracescore also holds a span until it is scored and adds the
    scores as attributes; needs `spool.path`."""
    deadline: Duration = 30.0
    """With `attach: hold`: the longest that tracescore holds a span."""
    max_held: Size = Field(default=128 * 2**20, ge=2**20)
    """With `attach: hold`: memory for held spans; beyond it spans go on at once, without scores."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.http is None and self.grpc is None:
            raise ValueError("at least one of http and grpc expected")
        return self


class ExportersConfig(Section):
    """Where scores go, and where received requests go."""

    prometheus: PrometheusConfig = PrometheusConfig()
    otlp: OtlpExporterConfig | None = None
    phoenix: PhoenixExporterConfig | None = None
    forward: ForwardConfig | None = None
