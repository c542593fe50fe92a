"""The files under deploy/: they are what their code writes, their own tools accept them, and they name what exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.grafana.boards import BOARDS
from deploy.grafana.panels import text
from deploy.prometheus import cases, rules
from deploy.prometheus.alerts import RUNBOOK
from deploy.prometheus.estimates import SUMS
from tests.results import relevancy, result
from tests.servers import binary
from tests.showcase import replicas
from tracescore.config import DEFAULT_MEASURES, Config, OpenAIJudgeConfig
from tracescore.config.drift import DriftConfig
from tracescore.config.file import load
from tracescore.config.gold import GoldConfig, HttpTargetConfig
from tracescore.config.judge import BudgetConfig, PriceConfig
from tracescore.config.types import host_port, is_loopback
from tracescore.exporters.otlp.messages import evaluation_span
from tracescore.model import LIVE_MEASURES, Score
from tracescore.service import Service

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
ALERTS = DEPLOY.parent / "docs" / "alerts.md"
DOCKERFILE = DEPLOY.parent / "Dockerfile"
METRIC = re.compile(r"\btracescore_\w+")
RECORDED = re.compile(r"\w+:\w+:\w+")


def _yaml(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def _rules() -> list[dict[str, Any]]:
    return [rule for group in _yaml(rules.FILE)["groups"] for rule in group["rules"]]


def _expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in _rules())
    for module in BOARDS:
        board = json.loads(module.FILE.read_text())
        yield from (target["expr"] for panel in board["panels"] for target in panel.get("targets", []))
        yield from (variable["query"] for variable in board["templating"]["list"])


def _accepts(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- rules and dashboards


@pytest.mark.parametrize(
    ("file", "render", "module"),
    [
        (rules.FILE, rules.render, rules),
        (cases.FILE, cases.render, cases),
        (cases.WEEK_FILE, cases.render_week, cases),
    ],
    ids=lambda part: part.name if isinstance(part, Path) else "",
)
def test_the_committed_file_is_what_its_code_writes(file: Path, render, module) -> None:
    assert file.read_text() == render(), f"run: python -m {module.__name__}"


@pytest.mark.parametrize("module", BOARDS, ids=lambda module: module.FILE.name)
def test_the_committed_dashboard_is_what_its_code_writes(module) -> None:
    assert module.FILE.read_text() == text(module.build()), "run: python -m deploy.grafana.boards"


def test_every_dashboard_is_committed_and_known_by_a_name_of_its_own() -> None:
    files = {module.FILE for module in BOARDS}
    assert files == set((DEPLOY / "grafana").glob("*.json"))
    assert len({json.loads(file.read_text())["uid"] for file in files}) == len(files)


def test_every_metric_named_in_rules_and_dashboards_is_exposed(tmp_path: Path) -> None:
    with replicas(1, drift=DriftConfig(targets=dict.fromkeys(LIVE_MEASURES, 0.6))) as (replica,):
        replica.score(dict.fromkeys(LIVE_MEASURES, 0.5))
        replica.ask_judge()
        families = list(replica.registry.collect())
    (tmp_path / "gold.yaml").write_text("[{question: q, reference: r}]")
    section = GoldConfig(set=str(tmp_path / "gold.yaml"), target=HttpTargetConfig(kind="http", url="http://elsewhere"))
    price, budget = PriceConfig(input=1, output=1), BudgetConfig(per_day=1)
    judge = OpenAIJudgeConfig(kind="openai", model="m", base_url="http://elsewhere", price=price, budget=budget)
    families += Service(Config(gold=section, judge=judge)).registry.collect()
    exposed = {sample.name for family in families for sample in family.samples}
    exposed |= {family.name for family in families if family.type == "gauge"}  # one has no series before anything moves
    of_each = {e.replace("${measure}", measure) for e in _expressions() for measure in LIVE_MEASURES}
    named = {name for expression in of_each for name in METRIC.findall(RECORDED.sub("", expression))}
    named = {name for name in named if not name.endswith("_")}  # how names begin that only a configuration knows
    assert len(named) > 40
    assert named <= exposed


def test_every_recorded_series_that_is_used_is_recorded() -> None:
    recorded = {rule["record"] for rule in _rules() if "record" in rule}
    used = {name for expression in _expressions() for name in RECORDED.findall(expression)}
    assert len(used) > 10
    assert used <= recorded


def test_every_alert_is_fired_by_some_case_and_withheld_by_another() -> None:
    alerts = {rule["alert"] for rule in _rules() if "alert" in rule}
    fired = [
        {re.findall(r'"(\w+)"', sample["labels"])[0] for sample in check["exp_samples"]}
        for case in _yaml(cases.FILE)["tests"]
        for check in case["promql_expr_test"]
        if "ALERTS" in check["expr"] and check["expr"].startswith("count by (alertname)")
    ]
    assert set().union(*fired) == alerts
    assert set() in fired


def test_every_alert_links_to_the_page_filtered_by_what_it_knows() -> None:
    for rule in _rules():
        if "alert" in rule:
            link = rule["annotations"]["page"]
            assert link.startswith(f"{rules.PAGE}/")
            assert ("?measure=" in link) == ("$labels.measure" in rule["annotations"]["summary"]), rule["alert"]


def test_the_rules_are_written_with_the_addresses_and_the_scale_that_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    rules.main(["--runbook", "https://wiki/alerts", "--page", "https://quality/", "--scale", "100", str(file)])
    groups = _yaml(file)["groups"]
    every = [rule for group in groups for rule in group["rules"]]
    told = {rule["alert"]: rule for rule in every if "alert" in rule}
    below = told["TracescoreBelowTarget"]
    assert below["annotations"]["runbook_url"] == "https://wiki/alerts#tracescorebelowtarget"
    assert below["annotations"]["page"].startswith("https://quality/?measure=")
    assert (below["for"], below["keep_firing_for"], groups[0]["interval"]) == ("6000ms", "9000ms", "600ms")
    text = " ".join(rule["expr"] for rule in every)
    assert "seconds(" not in text
    assert not re.findall(r"(?:\[|\[\d+ms:|offset )\d+[smhd]\b", text), "a duration was not divided"
    assert 'window="1d"' in text, "the value of a label is a name"
    assert "> 36\n" in told["TracescoreServiceStopped"]["expr"]
    assert 'measure="completeness", window="1d"}[6048000ms:864000ms]' in text
    _accepts(binary("promtool"), "check", "rules", file)


def test_every_alert_has_a_section_in_the_docs_and_does_not_flap() -> None:
    headings = re.findall(r"^## (Tracescore\w+)$", ALERTS.read_text(), re.MULTILINE)
    told = [rule for rule in _rules() if "alert" in rule]
    assert set(headings) == {rule["alert"] for rule in told}
    for rule in told:
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOK}#{rule['alert'].lower()}"
        assert rule["keep_firing_for"] == "15m"


def test_every_recorded_series_is_documented() -> None:
    text = ALERTS.read_text()
    for rule in _rules():
        if "record" in rule:
            prefix, name = rule["record"].rsplit(":", 1)
            generic = re.sub(rf"_({'|'.join(SUMS)})$", "_<sum>", prefix)
            assert f"`{generic}:{name}`" in text or (f"`{generic}:" in text and f"`:{name}`" in text), rule["record"]


@pytest.mark.server
@pytest.mark.parametrize(
    ("command", "file"),
    [
        (("check", "rules"), rules.FILE),
        (("test", "rules"), cases.FILE),
        (("test", "rules"), cases.WEEK_FILE),
        (("check", "config"), DEPLOY / "prometheus" / "scrape.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.name,
)
@pytest.mark.timeout(600)  # the rules are run over days
def test_promtool_accepts(command: tuple[str, str], file: Path) -> None:
    _accepts(binary("promtool"), *command, file)


@pytest.mark.server
def test_amtool_accepts_the_route() -> None:
    _accepts(binary("amtool"), "check-config", DEPLOY / "alertmanager" / "alertmanager.yaml")


def test_exemplars_lead_to_a_data_source_that_is_there() -> None:
    (prometheus,) = _yaml(DEPLOY / "grafana" / "datasource.yaml")["datasources"]
    ways = prometheus["jsonData"]["exemplarTraceIdDestinations"]
    assert {way["name"] for way in ways} == {"trace_id"}  # the label that exemplars carry: see test_prometheus.py
    (tempo,) = _yaml(DEPLOY / "compose" / "tempo-datasource.yaml")["datasources"]
    assert [way["datasourceUid"] for way in ways if "datasourceUid" in way] == [tempo["uid"]]


# ---------------------------------------------------------------- collector


def _merged(base: Any, over: Any) -> Any:
    """As the collector merges its files: maps key by key, everything else is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return base | {key: _merged(base.get(key), value) for key, value in over.items()}


SIDE_BRANCH = _yaml(DEPLOY / "collector" / "side-branch.yaml")


@pytest.mark.parametrize(
    "config",
    [SIDE_BRANCH, _merged(SIDE_BRANCH, _yaml(DEPLOY / "compose" / "collector.yaml"))],
    ids=["side branch", "compose"],
)
def test_every_part_of_a_collector_pipeline_is_configured(config: dict[str, Any]) -> None:
    for pipeline in config["service"]["pipelines"].values():
        assert "otlp/tracescore" in pipeline["exporters"]
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])


def test_side_branch_adds_an_exporter_that_can_lose_without_harm() -> None:
    added = SIDE_BRANCH["exporters"]["otlp/tracescore"]
    assert added["sending_queue"]["enabled"] is True
    assert added["retry_on_failure"]["max_elapsed_time"] != 0  # 0 would try for ever and keep the queue full
    for signal in ("traces", "logs"):
        pipeline = SIDE_BRANCH["service"]["pipelines"][signal]
        assert pipeline["exporters"] == ["otlp/backend", "otlp/tracescore"]
        assert "batch" in pipeline["processors"]


# ---------------------------------------------------------------- compose


@pytest.mark.server
def test_docker_compose_accepts_the_compose_file() -> None:
    _accepts(binary("docker-compose"), "-f", COMPOSE, "config", "--quiet")


@pytest.mark.server
def test_promtool_accepts_the_prometheus_of_the_compose_file(tmp_path: Path) -> None:
    for mounted in (DEPLOY / "compose" / "prometheus.yaml", rules.FILE):
        shutil.copy(mounted, tmp_path)
    _accepts(binary("promtool"), "check", "config", tmp_path / "prometheus.yaml")


def test_what_the_compose_file_mounts_exists_and_lands_where_it_is_read() -> None:
    for name, service in _yaml(COMPOSE)["services"].items():
        targets = []
        for volume in service.get("volumes", []):
            source, target, mode = volume.split(":")
            assert (COMPOSE.parent / source).is_file(), (name, source)
            assert mode == "ro"
            targets.append(target)
        given = [
            str(argument).partition("=")[2] for argument in service.get("command", []) if "config" in str(argument)
        ]
        assert set(given) <= set(targets), name
    grafana = _yaml(COMPOSE)["services"]["grafana"]["volumes"]
    (provider,) = _yaml(DEPLOY / "grafana" / "dashboards.yaml")["providers"]
    boards = {f"../grafana/{file}:{provider['options']['path']}/{file}:ro" for file in (b.FILE.name for b in BOARDS)}
    assert boards <= set(grafana)


def test_the_compose_file_publishes_on_this_machine_alone() -> None:
    published = [port for each in _yaml(COMPOSE)["services"].values() for port in each.get("ports", [])]
    assert len(published) == 4
    assert all(is_loopback(port.split(":")[0]) for port in published)


def test_in_the_compose_file_all_reach_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACESCORE_PAGE_TOKEN", "demo")
    services = _yaml(COMPOSE)["services"]
    ours = load(DEPLOY / "compose" / "tracescore.yaml")
    collector = _merged(SIDE_BRANCH, _yaml(DEPLOY / "compose" / "collector.yaml"))
    tempo = _yaml(DEPLOY / "compose" / "tempo.yaml")
    prometheus = _yaml(DEPLOY / "compose" / "prometheus.yaml")
    listening = {
        f"tracescore:{host_port(ours.receiver.grpc.listen)[1]}",
        f"tracescore:{host_port(ours.exporters.prometheus.listen)[1]}",
        "collector:" + collector["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].split(":")[1],
        "tempo:" + tempo["distributor"]["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].split(":")[1],
        f"tempo:{tempo['server']['http_listen_port']}",
        "prometheus:9090",
        "alertmanager:9093",
    }
    sources = [_yaml(DEPLOY / file) for file in ("grafana/datasource.yaml", "compose/tempo-datasource.yaml")]
    (alerting,), (scrape,) = prometheus["alerting"]["alertmanagers"], prometheus["scrape_configs"]
    called = {
        services["sample-app"]["command"][1],
        *(exporter["endpoint"] for exporter in collector["exporters"].values()),
        ours.exporters.otlp.endpoint.removeprefix("http://"),
        *scrape["static_configs"][0]["targets"],
        *alerting["static_configs"][0]["targets"],
        *(source["datasources"][0]["url"].removeprefix("http://") for source in sources),
    }
    assert called == listening
    assert {address.split(":")[0] for address in called} <= set(services)
    assert services["sample-app"]["image"] == services["tracescore"]["image"]


# ---------------------------------------------------------------- image


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
    assert found == {f"tracescore.{measure}": targets[measure] for measure in DEFAULT_MEASURES}


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


def test_hadolint_finds_nothing() -> None:
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent) or binary("hadolint")
    _accepts(hadolint, DOCKERFILE)


def test_what_the_image_pins_is_what_the_package_asks_for() -> None:
    package = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    project, pinned = package["project"], {}
    for file, asked in (
        ("build.txt", package["build-system"]["requires"]),
        ("base.txt", project["dependencies"]),
        ("local.txt", project["optional-dependencies"]["local"]),
    ):
        lines = (DEPLOY / "docker" / file).read_text().splitlines()
        assert all("--hash=sha256:" in line for line in lines)
        pinned |= dict(line.split()[0].split("==") for line in lines)
        for requirement in map(Requirement, asked):
            name = canonicalize_name(requirement.name)
            assert requirement.specifier.contains(pinned[name]), f"python deploy/docker/pins.py: {requirement}"
