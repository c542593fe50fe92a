"""Measures of one's own from span to alert, with the service as a process, a real Prometheus and an OTLP collector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from tests.live import alerting
from tests.openai_server import OpenAIServer, Reply, openai_server, sensible
from tests.otlp_sink import otlp_sink
from tests.running import FREE_PORTS, Running, run, serving
from tests.sample_app import GOOD, Asked, answer, provider
from tests.servers import wait

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

OWN = ("polite", "cites_a_source", "no_phone_numbers")
CHECKS = """\
import time

def cites_a_source(answer, contexts):
    while "for ever" in answer:
        time.sleep(1)
    return "[1]" in answer, "looked for [1]"
"""
SETTINGS = """\
measures: [completeness, polite, cites_a_source, no_phone_numbers]
assembly: {idle: 200ms, orphan_idle: 500ms}
drift: {min_count: 5, targets: {completeness: null, cites_a_source: 0.9}}
evaluators:
  custom:
    polite: {kind: rubric, reads: [question, answer], prompt: polite.md, scale: {rude: 0, polite: 1}}
    cites_a_source:
      {kind: python, reads: [answer, contexts], callable: "checks:cites_a_source", version: 1, timeout: 1s}
    no_phone_numbers: {kind: pattern, reads: [answer], matches: '\\d{6,}', value: 0}
"""


def choosing(request) -> Reply:
    """Whoever says please is polite."""
    if request.body.get("messages") and "Is it polite?" in request.body["messages"][0]["content"]:
        polite = "please" in request.data["answer"]
        return Reply.json({"reason": "It says so.", "choice": "polite" if polite else "rude"})
    return sensible(request)


def written(folder: Path, judge: OpenAIServer) -> str:
    (folder / "checks.py").write_text(CHECKS)
    (folder / "polite.md").write_text("Is it polite?")
    judge.script = choosing
    return f"{FREE_PORTS}{judge.settings}{SETTINGS}"


def ask(service: Running, *answers: str) -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    for told in answers:
        answer(app.get_tracer("app"), Asked(GOOD.question, told, GOOD.contexts))
    app.shutdown()


def ended(service: Running, count: int, measure: str, **labels: str) -> None:
    service.wait_value(count, "tracescore_evaluations_total", measure=measure, **labels)


def test_the_three_kinds_run_from_span_to_alert_and_on_after_a_restart(tmp_path: Path) -> None:
    with openai_server() as judge, otlp_sink() as sink:
        settings = written(tmp_path, judge) + f"spool: {{path: {tmp_path / 'spool'}}}\n"
        with serving(tmp_path, settings, "--otlp-out", sink.http) as service:
            service.wait_log("event=judge_ready")
            with alerting(tmp_path, [service.addresses["metrics"]]) as (server, came):
                ask(service, "Done, please [1].")
                server.wait_query("tracescore_custom_polite_weight_total")  # an increase needs a value from before
                ask(service, *["Done, call 1234567."] * 30)
                for measure in OWN:
                    ended(service, 31, measure, outcome="scored")
                told = wait(lambda: [each for each in came if "cites_a_source" in str(each["labels"])], "no alert", 90)
                (mean,) = server.wait_query('service:tracescore_score:mean{measure="no_phone_numbers", window="1h"}')
            assert {alert["labels"]["measure"] for alert in came} == {"cites_a_source"}
            assert told[0]["labels"]["alertname"] in ("TracescoreBelowTarget", "TracescoreTargetMissed")
            assert told[0]["annotations"]["page"].endswith("/?measure=cites_a_source&service=shop")
            assert mean.labels["judge"] == "pattern:no_phone_numbers"
            for measure in OWN:
                lower, ratio, upper = (
                    service.value(f"tracescore_custom_{measure}_{suffix}", measure=measure)
                    for suffix in ("lower_ratio", "ratio", "upper_ratio")
                )
                assert ratio == pytest.approx(1 / 31)
                assert 0 <= lower < ratio < upper < 0.3
            assert service.value("tracescore_custom_polite_by_slice_weight_total", slice="/ask") == 31
            assert "Cites a source" in service.get("page", "/?measure=cites_a_source")
            assert service.terminate() == 0
        events = [log["attributes"] for log in sink.received().logs]
        judges = {each["gen_ai.evaluation.name"]: each["tracescore.judge"] for each in events}
        assert judges["polite"] == judges["completeness"] != ""
        assert (judges["cites_a_source"], judges["no_phone_numbers"]) == (
            "python:cites_a_source",
            "pattern:no_phone_numbers",
        )
        assert len({each["tracescore.score_id"] for each in events}) == len(events) == 4 * 31
        (span, *_) = [each for each in sink.received().spans if each["name"] == "evaluate"]
        assert {f"tracescore.{measure}" for measure in OWN} <= span["attributes"].keys()

        with serving(tmp_path, settings.replace("'\\d{6,}'", "'\\d{7,}'")) as service:
            service.wait_value(31, "tracescore_custom_cites_a_source_weight_total")
            service.wait_log("event=judge_ready")
            ask(service, "Done, please [1].")
            for measure in OWN:
                ended(service, 32, measure, outcome="scored")
            service.wait_log("event=baseline_reset cause=measure_changed measure=no_phone_numbers")
            learned = {
                measure: service.value("tracescore_drift_scores", detector=measure, against="baseline")
                for measure in ("completeness", *OWN)
            }
            assert learned == {"completeness": 32, "polite": 32, "cites_a_source": 32, "no_phone_numbers": 1}


def test_a_function_that_hangs_costs_itself_alone(tmp_path: Path) -> None:
    with openai_server() as judge, serving(tmp_path, written(tmp_path, judge)) as service:
        service.wait_log("event=judge_ready")
        ask(service, *(["Wait for ever.", "Done [1]."] * 3), *["Done [1]."] * 20)
        ended(service, 23, "cites_a_source", outcome="scored")
        ended(service, 3, "cites_a_source", outcome="unscored", reason="internal_error")
        for measure in ("completeness", "polite", "no_phone_numbers"):
            ended(service, 26, measure, outcome="scored")
        assert not [line for line in service.log if "for ever" in line]


def test_the_gold_set_the_commands_and_python_measure_them_too(tmp_path: Path) -> None:
    gold = "gold: {set: gold.jsonl, target: {kind: python, callable: 'shop:reply'}, schedule: null}\n"
    (tmp_path / "gold.jsonl").write_text(
        "".join(json.dumps({"question": f"{GOOD.question} {n}", "reference": GOOD.answer}) + "\n" for n in range(6))
    )
    (tmp_path / "shop.py").write_text(f"def reply(question):\n    return {{'answer': 'Done, please [1].', "
                                      f"'contexts': [{GOOD.contexts[0]!r}]}}\n")  # fmt: skip
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": GOOD.question, "answer": "Call 1234567.", "contexts": ["C."]}))
    with openai_server() as judge:
        file = tmp_path / "tracescore.yaml"
        file.write_text(written(tmp_path, judge) + gold.replace("gold.jsonl", str(tmp_path / "gold.jsonl")))
        checked = run("check", "--probe", str(file), PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
        ran = run(
            "gold",
            "run",
            "-c",
            str(file),
            "--json",
            "--fail-under",
            "polite=0.9",
            PYTHONPATH=f"{tmp_path}:{Path.cwd()}",
        )
        scored = run("score", str(rows), "-c", str(file))
    assert checked.returncode == 0, checked.stderr
    lines = [line.split(", ")[-1] for line in checked.stdout.splitlines() if "adds" in line]
    assert lines == ["and 1 judge call for each interaction", "and no judge calls", "and no judge calls"]
    assert "evaluators.custom.polite: no examples to try" in checked.stdout
    assert ran.returncode == 0, ran.stderr
    means = {row["measure"]: row["mean"] for row in map(json.loads, ran.stdout.splitlines()) if "measure" in row}
    assert {measure: means[measure] for measure in OWN} == dict.fromkeys(OWN, 1.0)
    assert scored.returncode == 0, scored.stderr
    found = json.loads(scored.stdout)["scores"]
    assert {measure: found[measure]["value"] for measure in OWN} == dict.fromkeys(OWN, 0.0)
