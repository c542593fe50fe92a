"""A retriever that goes wrong and a prompt that does are told apart, from real spans to the page and the metrics."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.running import run
from tracescore.demo.releases import RELEASES
from tracescore.drift.diagnosis import ADVICE

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as response:
        return str(response.read().decode())


def test_page_and_metrics_name_retrieval_in_one_release_and_prompting_in_another() -> None:
    command = [sys.executable, "-m", "tracescore.cli.main", "demo", "--releases"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        try:
            links = dict(re.findall(r"(?m)^(page|metrics) +(http\S+)", "".join(lines)))
            page, metrics = fetched(links["page"]), fetched(links["metrics"])
        finally:
            demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    found = {
        (sample.labels["service_name"], sample.labels["pattern"])
        for family in text_string_to_metric_families(metrics)
        if family.name == "tracescore_drift_diagnosis"
        for sample in family.samples
        if sample.value == 1
    }
    assert found == {("shop-help", "retrieval"), ("hr-assistant", "prompting")}
    for bad in RELEASES:
        assert f"{bad.service.name} {bad.release}: {bad.pattern}. {ADVICE[bad.pattern]}\n" in lines
        assert ADVICE[bad.pattern] in page


def test_too_few_answers_to_tell_fail_with_a_line_for_each_release() -> None:
    done = run("demo", "--releases", "--exit-after", "4")
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("tracescore demo: ")]
    assert told == [
        "tracescore demo: shop-help 2.5.0: retrieval expected; got none",
        "tracescore demo: hr-assistant 1.9.0: prompting expected; got none",
    ]
