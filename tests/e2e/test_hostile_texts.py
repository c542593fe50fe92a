"""Texts of hostile size and shape against the process as it is started by default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.running import FREE_PORTS, serving
from tests.sample_app import GOOD, Asked, answer, provider

pytestmark = pytest.mark.local

NUMBERS = " ".join(f"about {n} days and {n}.5 %" for n in range(60_000))
"""One and a half megabytes of numbers without the end of a sentence: as much as is read at all."""
MEASURES = 3


def test_the_end_of_the_process_waits_for_none_of_them(tmp_path: Path) -> None:
    count = 16
    settings = f"{FREE_PORTS}assembly: {{idle: 200ms}}\nshutdown_grace: 1s\n"
    with serving(tmp_path, settings) as service:
        app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
        for n in range(count):
            answer(app.get_tracer("app"), Asked(f"What is the fee of {n}?", f"It is {n} %.", (f"{n} {NUMBERS}",)))
        service.wait_value(count, "tracescore_evaluations_started_total", measure="faithfulness")
        answer(app.get_tracer("app"), GOOD)
        app.shutdown()
        service.wait_value(count + 1, "tracescore_evaluations_started_total", measure="faithfulness")
        assert service.terminate() == 0  # waits for less than all the work takes
        service.join()
    lines = [dict(re.findall(r"(\w+)=(\w+)", line)) for line in service.log if "event=stopped" in line]
    assert len(lines) == MEASURES, service.log
    for row in lines:
        assert row["pending"] == "0"
        assert sum(int(row[name]) for name in ("scored", "unscored", "skipped", "shed")) == count + 1
    assert any(int(row["shed"]) for row in lines)
