"""Which exporters a configuration builds."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.results import SettableClock
from tracescore.config import Config, ExportersConfig, ForwardConfig, OtlpExporterConfig, PhoenixExporterConfig
from tracescore.exporters import EXPORTERS, build_exporters
from tracescore.exporters.otlp.transports import channel_target


def test_every_section_of_the_configuration_has_its_row() -> None:
    assert EXPORTERS.keys() == ExportersConfig.model_fields.keys() - {"forward"}  # it carries what came, not scores


OTLP = OtlpExporterConfig(endpoint="http://127.0.0.1:4318")
PHOENIX = PhoenixExporterConfig(endpoint="http://127.0.0.1:6006")
FORWARD = ForwardConfig(http="http://127.0.0.1:5318", grpc="http://127.0.0.1:5317")


@pytest.mark.parametrize(
    ("settings", "built"),
    [
        (ExportersConfig(), ["PrometheusExporter"]),
        (ExportersConfig(otlp=OTLP), ["PrometheusExporter", "OtlpExporter"]),
        (ExportersConfig(phoenix=PHOENIX), ["PrometheusExporter", "PhoenixExporter"]),
        (ExportersConfig(forward=FORWARD), ["PrometheusExporter", "OtlpExporter"]),
        (ExportersConfig(forward=FORWARD, otlp=OTLP), ["PrometheusExporter", "OtlpExporter"]),
    ],
)
def test_prometheus_always_and_the_others_where_configured(settings: ExportersConfig, built: list[str]) -> None:
    exporters = build_exporters(Config(exporters=settings), CollectorRegistry(), SettableClock())
    assert [type(exporter).__name__ for exporter in exporters] == built


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://collector:5317", "collector:5317"),
        ("http://collector", "collector:4317"),
        ("https://collector", "collector:443"),
        ("http://[::1]:4317", "[::1]:4317"),
        ("https://collector:4317/", "collector:4317"),
    ],
)
def test_a_grpc_endpoint_without_a_port_means_the_port_of_its_scheme(endpoint: str, target: str) -> None:
    assert channel_target(endpoint) == (target, endpoint.startswith("https"))
