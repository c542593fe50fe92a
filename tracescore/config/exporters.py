"""Settings of where scores and received requests go."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tracescore.config.types import Address, Duration, Secret, Section, Size, Url, target_of


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
    def _somewhere(self) -> Self:
        if self.http is None and self.grpc is None:
            raise ValueError("at least one of http and grpc expected")
        return self


class ExportersConfig(Section):
    """Where scores go, and what was received."""

    prometheus: PrometheusConfig = PrometheusConfig()
    otlp: OtlpExporterConfig | None = None
    phoenix: PhoenixExporterConfig | None = None
    forward: ForwardConfig | None = None
