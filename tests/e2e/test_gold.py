"""The gold set from outside: an app as a real HTTP service, the service and the command as processes, Prometheus.

The second release of the app brings a stale price list along.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from deploy.grafana import gold as board
from tests.live import alerting
from tests.rag_service import (
    CUT,
    GOOD,
    LOST,
    OTHERS,
    PRICES,
    RELEASES,
    STALE,
    RagService,
    rag_service,
    write_gold_set,
    write_joined_gold_set,
)
from tests.running import FREE_PORTS, serving
from tests.servers import PrometheusServer, free_port, wait

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]

SIZE = len(PRICES) + len(OTHERS)
HTTP = '{{kind: http, url: "{url}", answer: answer, contexts: "passages.*.text", release: version}}'
TRACE = '{{kind: trace, url: "{url}", wait: 20s}}'


def gold_section(file: Path, target: str, **more: str) -> str:
    settings = {"set": str(file), "store": str(file.parent / "runs"), "service": "shop", "target": target} | more
    return "gold:\n" + "".join(f"  {name}: {value}\n" for name, value in settings.items())


def exporters(address: str) -> list[OTLPSpanExporter]:
    return [OTLPSpanExporter(endpoint=f"http://{address}/v1/traces") for _ in RELEASES]


def ask_live(app: RagService) -> None:
    """One question of an ordinary user."""
    app.answer("What is the price of the Fjord sofa?", {})


def means(server: PrometheusServer, suffix: str, release: str) -> dict[str, float]:
    """{measure: value} of a release's series of that suffix."""
    names = ("answer_correctness", "factual", "answer_relevancy", "completeness", "faithfulness")
    found = {name: server.query(f'tracescore_gold_{name}_{suffix}{{service_version="{release}"}}') for name in names}
    return {name: samples[0].value for name, samples in found.items() if samples}


def shown(server: PrometheusServer) -> dict[str, dict[str, float]]:
    """What the panels of the dashboard show: {title: {legend: value}}."""
    chosen = {"$gold_set": "prices", "$judge": "embedded-v2", "${measure}": "factual"}
    panels: dict[str, dict[str, float]] = {}
    for panel in json.loads(board.FILE.read_text())["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in chosen.items():
                expression = expression.replace(name, value)
            for sample in server.query(expression):
                legend = re.sub(r"{{(\w+)}}", lambda found, of=sample.labels: of[found[1]], target["legendFormat"])
                panels.setdefault(panel["title"], {})[legend] = sample.value
    titles = {panel["title"] for panel in json.loads(board.FILE.read_text())["panels"] if panel["type"] != "row"}
    assert panels.keys() == titles
    return panels


@pytest.mark.server
@pytest.mark.timeout(300)  # the schedule fires once a minute
def test_a_release_with_a_stale_document_is_told_from_all_else_that_can_go_wrong(tmp_path: Path) -> None:
    receiving = f"127.0.0.1:{free_port()}"
    with rag_service(*exporters(receiving)) as app:
        target = HTTP.format(url=app.url)
        settings = FREE_PORTS.replace('http: {listen: "127.0.0.1:0"}', f'http: {{listen: "{receiving}"}}', 1)
        settings += "assembly: {idle: 200ms, orphan_idle: 500ms}\n"
        settings += gold_section(write_gold_set(tmp_path / "prices.jsonl"), target, schedule='"* * * * *"')
        with (
            serving(tmp_path, settings) as service,
            alerting(tmp_path, [service.addresses["metrics"]]) as (server, came),
        ):
            service.wait_log('trigger=overdue release="1.0"')
            wait(lambda: _runs(service.log, "schedule"), "the schedule does not fire", 120)
            server.wait_query('tracescore_gold_factual_ratio{service_version="1.0"}')
            server.wait_rules()
            assert server.alerts() == came == []

            app.release = RELEASES[1]
            ask_live(app)
            service.wait_log('event=new_release gold_set="prices" release="2.0"')
            wait(lambda: _runs(service.log, "release"), "a new release starts no run", 60)
            told = wait(lambda: _about(came, RELEASES[1]), "nobody is told", 60)[0]
            good, bad = (means(server, "ratio", release) for release in (GOOD, STALE))
            lower, upper = (means(server, f"{limit}_ratio", RELEASES[0]) for limit in ("lower", "upper"))
            tags = server.query('tracescore_gold_factual_by_slice_ratio{slice_key="tag",service_version="2.0"}')
            flips = server.query('tracescore_gold_flips{direction="worse"}')
            live = service.value("tracescore_interactions_total")
            # Traces close some time after their run has ended.
            service.wait_value(3 * SIZE, "tracescore_gold_traces_total", use="kept_out")
            page = service.get("page", "/gold")
            panels = shown(server)
    assert told["labels"]["alertname"] == "TracescoreGoldFell"
    assert (told["labels"]["service_name"], told["labels"]["gold_set"]) == ("shop", "prices")
    assert told["annotations"]["page"].endswith("/gold")
    assert good["factual"] == 1.0
    assert bad["factual"] == pytest.approx(len(OTHERS) / SIZE)
    assert bad["answer_correctness"] < good["answer_correctness"] - 0.5
    assert good["faithfulness"] == bad["faithfulness"] == 1.0
    for measure in ("answer_relevancy", "completeness"):
        assert lower[measure] <= bad[measure] <= upper[measure]
    assert [(sample.labels["slice"], sample.value) for sample in tags] == [("prices", 0.0)]
    assert [sample.value for sample in flips] == [len(PRICES)]
    assert live == 1  # of all that the app did, one answer was a user's
    assert f"{len(PRICES)} items became wrong" in " ".join(page.split())
    assert all(panels.values())
    assert panels["Gold: mean by release"]["shop 1.0"] == 1.0
    assert panels["Gold: mean by release"]["shop 2.0"] == pytest.approx(len(OTHERS) / SIZE)
    assert panels["Gold: change"]["factual"] < panels["Gold: change"]["tolerance"] == -0.02
    assert panels["Gold: claims"]["fp 2.0"] > panels["Gold: claims"]["fp 1.0"]
    assert panels["Gold: last run"] == {"good": 1.0}


def _about(came: list[dict[str, Any]], release: str) -> list[dict[str, Any]]:
    """Alerts that name the release; a run that the deployment fell into may have told of `mixed` before."""
    return [each for each in came if each["status"] == "firing" and each["labels"]["service_version"] == release]


def _runs(log: list[str], trigger: str) -> int:
    return sum(f'event=gold_run_done gold_set="prices" trigger={trigger}' in line for line in list(log))


# ---------------------------------------------------------------- tracescore gold run


def gold(tmp_path: Path, settings: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "tracescore.yaml"
    file.write_text(settings)
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "tracescore.cli.main", "gold", *arguments, "-c", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": root},
    )


def test_answers_read_from_real_traces_fail_the_check_and_the_report_names_the_items(tmp_path: Path) -> None:
    receiving = f"127.0.0.1:{free_port()}"
    with rag_service(*exporters(receiving)) as app:
        settings = f'receiver: {{http: {{listen: "{receiving}"}}, grpc: {{listen: "127.0.0.1:0"}}}}\n'
        settings += "assembly: {idle: 200ms, orphan_idle: 500ms}\n"
        settings += gold_section(write_gold_set(tmp_path / "prices.jsonl"), TRACE.format(url=app.url), concurrency="8")
        reports = [f"--report={tmp_path / name}" for name in ("out.md", "out.json", "out.xml")]
        good = gold(tmp_path, settings, "run", "--fail-under=0.9", *reports)
        assert good.returncode == 0, good.stderr
        before = json.loads((tmp_path / "out.json").read_text())["run"]
        (tmp_path / "before.json").write_bytes((tmp_path / "out.json").read_bytes())
        app.release = RELEASES[1]
        against = f"--compare-with={tmp_path / 'before.json'}"
        bad = gold(tmp_path, settings, "run", "--fail-under=0.9", "--fail-under=faithfulness=0.9", against, *reports)
    assert (before["release"], before["service"], before["state"]) == ("1.0", "shop", "done")
    assert all(len(item["contexts"]) == 2 for item in before["outcomes"])  # they were read from the trace
    assert bad.returncode == 1
    told = bad.stderr.splitlines()
    assert "tracescore gold run: factual: 0.167 is under 0.9" in told
    assert not [line for line in told if line.startswith("tracescore gold run: faithfulness")]
    assert [line for line in told if "factual: dropped from 1.000 to 0.167" in line]
    assert [line for line in told if "event=gold_run_done" in line and 'release="2.0"' in line]
    markdown = (tmp_path / "out.md").read_text()
    assert all(f"question: What is the price of the {name}?" in markdown for name in PRICES)
    assert "**dropped** | 0.00" in markdown
    junit = ET.fromstring((tmp_path / "out.xml").read_text())
    wrong = {case.get("name") for case in junit.iter("testcase") if case.find("failure") is not None}
    tags = {f"{item['id']}: {item['question']}": item["tags"] for item in before["outcomes"]}
    assert {name for name in wrong if name in tags} == {name for name, of in tags.items() if of == ["prices"]}


def test_what_a_bad_release_has_wrong_is_told_from_the_spans_of_its_answers(tmp_path: Path) -> None:
    receiving = f"127.0.0.1:{free_port()}"
    with rag_service(*exporters(receiving)) as app:
        settings = f'receiver: {{http: {{listen: "{receiving}"}}, grpc: {{listen: "127.0.0.1:0"}}}}\n'
        settings += "assembly: {idle: 200ms, orphan_idle: 500ms}\n"
        file = write_joined_gold_set(tmp_path / "joined.jsonl")
        settings += gold_section(file, TRACE.format(url=app.url), concurrency="8")
        assert gold(tmp_path, settings, "run").returncode == 0
        assert gold(tmp_path, settings, "pin").returncode == 0
        causes = {}
        for app.release in (STALE, LOST, CUT):
            done = gold(tmp_path, settings, "run")
            causes[app.release] = re.findall(rf'event=gold_fell .* release="{app.release}" cause=(\w+)', done.stderr)
    assert causes == {STALE: ["stale_context"], LOST: ["retriever_misses"], CUT: ["truncation"]}


def test_a_function_is_asked_without_any_network(tmp_path: Path) -> None:
    settings = gold_section(
        write_gold_set(tmp_path / "prices.jsonl"), '{kind: python, callable: "tests.rag_service:ask"}'
    )
    done = gold(tmp_path, settings, "run", "--fail-under", "answer_correctness=0.9")
    assert done.returncode == 1
    assert "tracescore gold run: answer_correctness: 0.36" in done.stderr
    assert 'release="2.0"' in done.stderr
    assert "faithfulness         1.000" in done.stdout
    pinned = gold(tmp_path, settings, "pin")
    assert "the reference is release 2.0, 1 run" in pinned.stdout
