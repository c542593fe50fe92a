"""From a scored answer to people's label on the page, and to what the commands make of it."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.openai_server import OpenAIServer
from tests.running import FREE_PORTS, Running, run, serving
from tests.sample_app import GOOD, answer, provider


def settings(folder: Path, judge: OpenAIServer) -> str:
    return (
        f"{FREE_PORTS}assembly: {{idle: 200ms}}\nspool: {{path: '{folder}/spool'}}\n"
        f"drift: {{labels: {{path: '{folder}/labels', ratio: 1}}}}\n"
        f"{judge.settings}"
    )


def ask(service: Running, count: int) -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    for _ in range(count):
        answer(app.get_tracer("app"), GOOD)
    app.shutdown()
    service.wait_value(count, "tracescore_drift_labels", state="waiting")


def label(service: Running) -> None:
    """Says the best of everything that the page asks about one answer."""
    shown = service.get("page", "/labels")
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', shown))
    for name, value in re.findall(r'type="radio" name="([\w.]+)" value="(\w+)"', shown):
        fields.setdefault(name, value)
    body = urlencode(fields).encode()
    with urllib.request.urlopen(f"http://{service.addresses['page']}/labels", body, timeout=10) as response:
        assert response.status == 200  # of where the form leads to


def test_a_label_given_on_the_page_outlives_the_process_and_reaches_the_commands(
    tmp_path: Path, judge: OpenAIServer
) -> None:
    with serving(tmp_path, settings(tmp_path, judge)) as service:
        ask(service, 3)
        label(service)
        service.process.kill()
        service.process.wait()
    with serving(tmp_path, settings(tmp_path, judge)) as service:
        assert service.value("tracescore_drift_labels", state="labelled") == 1
        assert service.value("tracescore_drift_labels", state="waiting") == 2
        label(service)
        assert service.value("tracescore_faithfulness_effective_labels") == pytest.approx(2)
        assert service.value("tracescore_faithfulness_agreement_ratio") == 1
        done = run("labels", "--page", f"http://{service.addresses['page']}")
        assert done.returncode == 0, done.stderr
        assert service.terminate() == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len([row for row in rows if row["measure"] == "faithfulness" and "label" in row]) == 2
    assert all(row["unlabelled"]["weight"] == pytest.approx(1) for row in rows if "unlabelled" in row)
    file = tmp_path / "labels.jsonl"
    file.write_text(done.stdout)
    done = run("calibrate", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("labelled answers 2") == 3
    assert "no corrected mean: 2 effective labels of the 100 needed" in done.stdout
    assert done.stdout.count("verdicts: agree 1.000") == 2


def test_a_file_that_holds_no_labels_is_refused_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    done = run("calibrate", str(file))
    assert (done.returncode, done.stderr) == (2, f"tracescore: {file}: cannot be read: No such file or directory\n")
    file.write_text('{"measure": "tone"}\n')
    done = run("calibrate", str(file))
    assert done.returncode == 2
    assert re.fullmatch(r"tracescore: \S+: line 1: measure: one of .* expected; got 'tone'\n", done.stderr)


def test_check_tells_how_soon_a_change_is_told(tmp_path: Path, judge: OpenAIServer) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(settings(tmp_path, judge))
    done = run("check", str(file), "--scores-per-day", "500")
    assert done.returncode == 0, done.stderr
    assert "at 500 scores a day, after" in done.stdout
    assert done.stdout.count("reports a drop of") == 3
    assert not (tmp_path / "labels").exists()
