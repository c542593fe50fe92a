"""Where scores go. An exporter of a new kind is one file and one row of the table below.

Its class says what becomes of it: one that derives from `Continuing` is persisted, one that derives from `Delivering`
is owed what it has not delivered, and any other one is shown recent results again.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from tracescore.config import Config, ForwardConfig, OtlpExporterConfig
from tracescore.exporters.kinds import Continuing, Delivering, Exporter
from tracescore.exporters.otlp.exporter import OtlpExporter
from tracescore.exporters.phoenix import PhoenixExporter
from tracescore.exporters.prometheus.exporter import PrometheusExporter
from tracescore.exporters.relay.forward import Forwarder
from tracescore.exporters.relay.hold import Hold
from tracescore.model import Clock, RawSpan

__all__ = ["EXPORTERS", "Continuing", "Delivering", "Exporter", "build_exporters", "build_hold"]


def _prometheus(config: Config, registry: CollectorRegistry, clock: Clock) -> Exporter:
    settings, own = config.exporters.prometheus, config.evaluators.custom
    return PrometheusExporter(registry, settings, config.drift, config.sampling, clock, own)


def _otlp(config: Config, registry: CollectorRegistry, _clock: Clock) -> Exporter | None:
    settings = config.exporters.otlp or _beside_forward(config.exporters.forward)
    return OtlpExporter(settings, registry, durable=config.spool.path is not None) if settings else None


def _beside_forward(forward: ForwardConfig | None) -> OtlpExporterConfig | None:
    """Scores follow the spans to where they are passed on, unless a place of their own is named."""
    if forward is None:
        return None
    if forward.http is not None:
        return OtlpExporterConfig(endpoint=forward.http, protocol="http", headers=forward.headers)
    return OtlpExporterConfig(endpoint=forward.grpc or "", protocol="grpc", headers=forward.headers)


def _phoenix(config: Config, registry: CollectorRegistry, _clock: Clock) -> Exporter | None:
    settings, durable = config.exporters.phoenix, config.spool.path is not None
    language_model = config.judge.kind != "embedded"
    return PhoenixExporter(settings, registry, language_model=language_model, durable=durable) if settings else None


EXPORTERS: dict[str, Callable[[Config, CollectorRegistry, Clock], Exporter | None]] = {
    "prometheus": _prometheus,
    "otlp": _otlp,
    "phoenix": _phoenix,
}
"""Section of the configuration -> what builds its exporter; None where the section is not there."""


def build_exporters(config: Config, registry: CollectorRegistry, clock: Clock) -> list[Exporter]:
    """The exporters that the configuration asks for. UsageError when a secret cannot be read."""
    built = (build(config, registry, clock) for build in EXPORTERS.values())
    return [exporter for exporter in built if exporter is not None]


def build_hold(
    config: Config,
    forwarder: Forwarder | None,
    marked: Callable[[RawSpan], bool],
    registry: CollectorRegistry,
    clock: Clock,
) -> Hold | None:
    """What keeps spans back until they have their scores; None where the configuration does not ask for it."""
    forward = config.exporters.forward
    if forward is None or forwarder is None or forward.attach != "hold":
        return None
    return Hold(forward, forwarder, marked, registry, clock)
