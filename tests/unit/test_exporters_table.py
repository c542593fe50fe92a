"""Which exporters a configuration builds."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.results import SettableClock
from tracescore.config import Config, Exporters, OtlpExporter
from tracescore.exporters import EXPORTERS, build_exporters
from tracescore.exporters.otlp_transports import GrpcTransport


def test_every_section_of_the_configuration_has_its_row() -> None:
    assert EXPORTERS.keys() == Exporters.model_fields.keys()


@pytest.mark.parametrize(
    ("otlp", "built"),
    [
        (None, ["PrometheusExporter"]),
        (OtlpExporter(endpoint="http://127.0.0.1:4318"), ["PrometheusExporter", "OtlpExporter"]),
    ],
)
def test_prometheus_always_and_the_others_where_configured(otlp: OtlpExporter | None, built: list[str]) -> None:
    config = Config(exporters=Exporters(otlp=otlp))
    exporters = build_exporters(config, CollectorRegistry(), SettableClock())
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
    transport = GrpcTransport(OtlpExporter(endpoint=endpoint, protocol="grpc"), {})
    assert transport._target == target
    assert transport._secure == endpoint.startswith("https")
