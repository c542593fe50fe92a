"""Settings of where scores and received requests go."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.access import ListenerConfig
from tracescore.config.types import Address, Duration, Secret, Section, Size, Url, target_of


class PrometheusConfig(ListenerConfig):
    """The metrics, and the probes `/-/healthy` and `/-/ready`, which need neither token nor certificate."""

    listen: Address = "127.0.0.1:9464"
    """Host and port of `/metrics`, `/-/healthy` and `/-/ready`."""
    max_series: int = Field(default=10_000, ge=100)
    """The most series of score metrics. Every service has an equal share; beyond its share, tracescore drops its old
    releases and counts further label sets as `other`. The default holds twenty-two releases with twenty slice values
    each; `tracescore check --scores-per-day N` says what yours holds. See [releases](releases.md)."""


class OtlpExporterConfig(Section):
    """Sends scores to an OTLP endpoint, as evaluation events and spans."""

    endpoint: Url
    """The OTLP endpoint of your trace store or collector."""
    protocol: Literal["grpc", "http"] = "http"
    """The OTLP protocol to send with."""
    headers: dict[str, Secret] = Field(default_factory=dict)
    """Headers of every request, by the names of their secrets."""
    timeout: Duration = 10.0
    """Time for one request."""
    explanations: bool = False
    """Whether claims, parts and quotes go along; they hold your users' texts."""

    @property
    def target(self) -> tuple[str, int]:
        """Host and port of the endpoint, with the usual port of the protocol if the URL names none."""
        return target_of(self.endpoint, 4317 if self.protocol == "grpc" else 80)


class PhoenixExporterConfig(Section):
    """Writes scores to Phoenix, as annotations on its spans."""

    endpoint: Url
    """Address of Phoenix."""
    api_key: Secret | None = None
    """An API key of Phoenix."""
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
    """Headers of every request, by the names of their secrets; they replace the sender's own. tracescore never stores
    a sender's credentials, so with `attach: hold` it holds only spans for which these headers replace them."""
    timeout: Duration = 10.0
    """Time for the destination to answer; after that tracescore asks the sender to come back later."""
    attach: Literal["span", "hold"] = "span"
    """`span`: scores follow as evaluation spans. `hold`: tracescore also holds a span until it is scored and adds the
    scores as attributes; needs `spool.path`."""
    deadline: Duration = 30.0
    """With `attach: hold`: the longest time tracescore holds a span."""
    max_held: Size = Field(default=128 * 2**20, ge=2**20)
    """With `attach: hold`: memory for held spans; when it is full, spans go on at once, without scores."""

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
