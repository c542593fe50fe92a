"""Where scores go. An exporter of a new kind is one file and one row of the table below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from prometheus_client import CollectorRegistry

from tracescore.config import Config
from tracescore.exporters.otlp import OtlpExporter
from tracescore.exporters.phoenix import PhoenixExporter
from tracescore.exporters.prometheus import PrometheusExporter
from tracescore.model import Clock, Result


class Exporter(Protocol):
    """Takes results to one place."""

    async def export(self, result: Result) -> None:
        """Takes one result. Never waits for a slow or dead destination. RuntimeError after `close`."""
        ...

    async def close(self) -> None:
        """Delivers what is waiting, within a deadline of its own; may be called twice."""
        ...


def _prometheus(config: Config, registry: CollectorRegistry, clock: Clock) -> Exporter:
    return PrometheusExporter(registry, config.exporters.prometheus, config.drift, config.sampling, clock)


def _otlp(config: Config, registry: CollectorRegistry, clock: Clock) -> Exporter | None:
    return OtlpExporter(config.exporters.otlp, registry, clock) if config.exporters.otlp else None


def _phoenix(config: Config, registry: CollectorRegistry, clock: Clock) -> Exporter | None:
    settings, language_model = config.exporters.phoenix, config.judge.kind != "embedded"
    return PhoenixExporter(settings, registry, clock, language_model=language_model) if settings else None


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
