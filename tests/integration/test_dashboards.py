"""Every panel of every dashboard, asked of a real Prometheus: it has data, and it moves when something is wrong.

Grafana itself takes no part: queries go to Prometheus as Grafana would send them, with its variables filled in.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
import yaml

from deploy.grafana import gold, releases, services
from deploy.grafana.boards import BOARDS
from deploy.grafana.panels import MARKS
from tests.live import BAD, GOOD, JUDGE, Deployment, alerting, deployment
from tests.openai_server import Reply, by
from tests.servers import PrometheusServer, Sample
from tracescore.cli import page_client
from tracescore.config import DEFAULT_MEASURES, WebConfig
from tracescore.config.drift import DETECTORS
from tracescore.model import LIVE_MEASURES

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

CHOICES = {
    "${datasource}": "Prometheus",
    "${measure}": "answer_relevancy",
    "$measure": "answer_relevancy",
    "$service_name": "shop",
    "$deployment_environment": "test",
    "$judge": JUDGE,
    "$slice_key": "route",
    "$window": "1h",
    "$__rate_interval": "4m",  # as long as the whole test, so that nothing leaves it
}
COUNT = 24
OWN = """
measures: [answer_relevancy, completeness, faithfulness, on_topic]
evaluators: {custom: {on_topic: {kind: pattern, reads: [answer], matches: window, value: 1}}}
"""

Values = dict[tuple[str, str], dict[str, float]]
"""What the panels show: (dashboard, title) -> {legend: value}."""

OF_A_MEASURE = ("mean", "scores", "scores behind the mean", "share below target")
RISES, FALLS = "rises", "falls"
FAULTS: Mapping[tuple[str, str], tuple[str, str, str]] = {
    **{
        ("overview", f"{measure}: {panel}"): ("bad answers", series + source, moves)
        for measure, source in (("answer_relevancy", ""), ("completeness", ""), ("faithfulness", " retrieval"))
        for panel, series, moves in (
            ("mean", "mean", FALLS),
            ("scores behind the mean", "scores", RISES),
            ("share below target", "below target", RISES),
        )
    },
    **{
        ("overview", f"{measure}: scores"): ("bad answers", "0.4", RISES)
        for measure in ("answer_relevancy", "completeness", "faithfulness")
    },
    ("overview", "Own measures: mean"): ("bad answers", "on_topic", FALLS),
    ("overview", "Own measures: scores behind the mean"): ("bad answers", "on_topic", RISES),
    ("overview", "Own measures: share below target"): ("bad answers", "on_topic", RISES),
    ("overview", "Evaluations that gave a score"): ("unreadable judge", "completeness", FALLS),
    ("overview", "Replicas whose judge answers"): ("judge down", JUDGE, FALLS),
    ("overview", "Alerts"): ("judge down", "TracescoreMeasurementBroken  judge_not_ready", RISES),
    ("drift", "Diagnosis"): ("bad answers", "unclear", RISES),
    ("drift", "Who moved"): ("bad answers", "unattributed", RISES),
    ("drift", "Drops reported"): ("bad answers", "answer_relevancy baseline", RISES),
    ("drift", "Evidence, as a share of what a report takes"): ("bad answers", "completeness baseline", RISES),
    ("drift", "References"): ("baselines pinned", "completeness baseline", RISES),
    ("drift", "Observations"): ("bad answers", "completeness baseline", RISES),
    ("drift", "Still learning"): ("baselines pinned", "completeness", FALLS),
    ("services", "All services"): ("bad answers", "mean", FALLS),
    ("services", "Mean above its target"): ("bad answers", "shop test", FALLS),
    ("slices", "Mean by release"): ("bad answers", "1.4 ", FALLS),
    ("slices", "Interval by release"): ("bad answers", "upper 1.4 ", FALLS),
    ("slices", "Share below target by release"): ("bad answers", "1.4 ", RISES),
    ("slices", "Scores by release"): ("bad answers", "1.4 ", RISES),
    ("slices", "Mean by route"): ("bad answers", "/ask ", FALLS),
    ("slices", "Share below target by route"): ("bad answers", "/ask ", RISES),
    ("slices", "Scores by route"): ("bad answers", "/ask ", RISES),
    ("coverage", "Spans"): ("no content", "GenAI", RISES),
    ("coverage", "Refused"): ("no content", "malformed", RISES),
    ("coverage", "Interactions"): ("no content", "content_not_captured", RISES),
    ("coverage", "Interactions that hold everything"): ("no content", "complete", FALLS),
    ("coverage", "Interactions without their text"): ("no content", "without text", RISES),
    ("coverage", "Evaluations"): ("unreadable judge", "completeness unscored", RISES),
    ("coverage", "Why there is no score"): ("no content", "completeness skipped content_not_captured", RISES),
    ("coverage", "Evaluations that gave no score though there was something to score"): (
        "unreadable judge",
        "completeness",
        RISES,
    ),
    ("coverage", "Waiting"): ("judge down", "completeness", RISES),
    ("coverage", "Age of what waits longest"): ("judge down", "completeness", RISES),
    ("slices", "Surely low by route"): ("bad answers", "all", FALLS),
    ("coverage", "From the answer to its score"): ("unreadable judge", "95 %", RISES),
    ("judge", "Replicas whose judge answers"): ("judge down", "ready", FALLS),
    ("judge", "Which judge"): ("another judge", "epoch 1 other", RISES),
    ("judge", "Replicas that stopped asking"): ("judge down", "not asking", RISES),
    ("judge", "Requests"): ("judge down", "judge_unreachable", RISES),
    ("judge", "Time of a request"): ("unreadable judge", "reverse_questions", RISES),
    ("judge", "Replies that were not as asked"): ("another judge", "repaired", RISES),
    ("judge", "Money within a day"): ("bad answers", "spent", RISES),
    ("judge", "Tokens within a day"): ("bad answers", "used", RISES),
    ("judge", "Tokens"): ("bad answers", "input", RISES),
    ("judge", "Money by operation"): ("bad answers", "claims", RISES),
    ("judge", "Money per 1,000 scored interactions"): ("unreadable judge", "per 1,000", RISES),
    ("judge", "Requests to the embedder"): ("bad answers", "ok", RISES),
}
"""Per panel, the fault that must move it, the series that moves, and where to."""
STEADY = {("coverage", "Sampling ratio"), ("drift", "Swing of the day")}
"""What no fault moves."""
ELSEWHERE = {("overview", f"context_precision: {panel}") for panel in OF_A_MEASURE} | {
    ("drift", name) for name in ("Shift of the judge", "Difference between days")
}
"""What needs a measure that is scored only where it is asked for; anchors, or days: test_drift.py."""


LIVE_BOARDS = [module for module in BOARDS if module not in (gold, releases)]
"""The panels of the gold set are looked at where there is one: tests/e2e/test_gold.py; those of releases, which need
hours, in test_compare.py."""


VARIABLES = {
    module.FILE.stem: variable
    for module in BOARDS
    for variable in json.loads(module.FILE.read_text())["templating"]["list"]
    if variable["name"] == "measure"
}
"""The variable of each dashboard that looks at one measure at a time."""


def _panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for module in LIVE_BOARDS:
        for panel in json.loads(module.FILE.read_text())["panels"]:
            if panel["type"] != "row":
                yield module.FILE.stem, panel


def _filled_in(text: str) -> str:
    for name, value in CHOICES.items():
        text = text.replace(name, value)
    assert "$" not in text
    return text


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), pattern)


def _shown(server: PrometheusServer) -> Values:
    """What all panels show now."""
    values: Values = {}
    for board, panel in _panels():
        series = values.setdefault((board, _filled_in(panel["title"])), {})
        for target in panel["targets"]:
            for sample in server.query(_filled_in(target["expr"])):
                if sample.value == sample.value:  # a quantile of nothing is NaN, which Grafana does not draw
                    series[_legend(target.get("legendFormat", target["refId"]), sample.labels)] = sample.value
    return values


def _garble(run: Deployment) -> None:
    run.judge.script = lambda _: Reply(content="I would rather not say.", delay=0.3)


def _replace_judge(run: Deployment) -> None:
    """Another model answers under the same name, and wraps its JSON in a fence."""
    other = by("other")

    def fenced(request: Any) -> Reply:
        reply = other(request)
        return replace(reply, content=f"Here it is:\n```json\n{reply.content}\n```")

    run.judge.script = fenced


def _send_nonsense(run: Deployment) -> None:
    url = f"http://{run.replicas[0].addresses['http']}/v1/traces"
    request = urllib.request.Request(url, b"\x0a", {"Content-Type": "application/x-protobuf"})
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=10)


def _pin_baselines(run: Deployment) -> None:
    """Nobody waits a week here."""
    for each in run.replicas:
        page = f"http://{each.addresses['page']}"
        for name in DETECTORS:
            page_client.ask(WebConfig(), page, "/api/v1/baseline", {"action": "pin", "detector": name, "at": 0.95})


@dataclass(frozen=True)
class Seen:
    """`phases`: per fault, what the panels showed before it and with it. `exemplars`: behind each heatmap; `marks`.

    `measures`: what each dashboard lets people choose.
    """

    phases: Mapping[str, tuple[Values, Values]]
    exemplars: Mapping[str, list[dict[str, Any]]]
    marks: Mapping[str, list[Sample]]
    measures: Mapping[str, set[str]]


def _exemplars(server: PrometheusServer) -> dict[str, list[dict[str, Any]]]:
    """The dots, by the title of their panel: Grafana asks for them with the expression of the panel."""
    asked = {panel["title"]: target for _, panel in _panels() for target in panel["targets"] if target["exemplar"]}
    return {title: server.exemplars(_filled_in(target["expr"])) for title, target in asked.items()}


def _measures(server: PrometheusServer) -> dict[str, set[str]]:
    """The choices of the variable `measure`, as Grafana asks for them and cuts them out."""
    found: dict[str, set[str]] = {}
    for board, variable in VARIABLES.items():
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
        assert asked
        values = server.ask(f"/api/v1/label/{asked[2]}/values", **{"match[]": asked[1]})["data"]
        cut = re.compile(variable.get("regex", "").strip("/") or "(.+)")
        found[board] = {match[1] for match in map(cut.match, values) if match}
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("dashboards")
    with deployment(folder, 2, OWN, "on_topic: 0.5") as run, alerting(folder, run.scraped) as (server, _):
        run.ask(server, GOOD, 2)  # a rate needs a value from before
        run.ask(server, GOOD, 2 * COUNT)
        shown = {"": _shown(server)}

        def after(fault: str) -> None:
            shown[fault] = _shown(server)

        _pin_baselines(run)
        server.wait_query("tracescore_drift_learning{against='baseline'} == 0")
        server.wait_rules()
        after("baselines pinned")
        run.ask(server, BAD, COUNT)
        after("bad answers")
        _replace_judge(run)
        run.ask(server, GOOD, COUNT)
        after("another judge")
        _send_nonsense(run)
        run.ask(server, None, COUNT)
        after("no content")
        _garble(run)
        run.ask(server, GOOD, COUNT)
        after("unreadable judge")
        run.judge.script = lambda _: replace(Reply.error(503), delay=0.3)  # by then all that may ask do
        run.ask(server, GOOD, COUNT, ends=False)
        after("judge down")
        exemplars = _exemplars(server)
        marks = {name: server.query(f"last_over_time(({when})[10m:1s])") for name, (when, *_) in MARKS.items()}
        measures = _measures(server)
    phases = {fault: (shown[before], shown[fault]) for before, fault in pairwise(shown)}
    return Seen(phases, exemplars, marks, measures)


def test_every_panel_has_an_expectation() -> None:
    shown = {(board, _filled_in(panel["title"])) for board, panel in _panels()}
    assert shown == FAULTS.keys() | STEADY | ELSEWHERE


@pytest.mark.parametrize("panel", FAULTS, ids=" / ".join)
def test_a_panel_moves_with_the_fault_that_it_is_there_for(seen: Seen, panel: tuple[str, str]) -> None:
    fault, series, moves = FAULTS[panel]
    before, with_it = (shown[panel] for shown in seen.phases[fault])
    assert series in with_it
    was, now = before.get(series, 0.0), with_it[series]
    assert now > was if moves == RISES else now < was


@pytest.mark.parametrize("panel", sorted(STEADY), ids=" / ".join)
def test_a_panel_about_settings_has_data(seen: Seen, panel: tuple[str, str]) -> None:
    assert all(shown[panel] for pair in seen.phases.values() for shown in pair)


@pytest.mark.parametrize(("board", "own"), [("services", "on_topic"), ("slices", "custom_on_topic")])
def test_the_choice_of_measures_holds_those_of_ones_own(seen: Seen, board: str, own: str) -> None:
    assert seen.measures[board] == {"answer_relevancy", "completeness", "faithfulness", own}


def test_a_band_has_both_its_edges_and_its_mean_between_them(seen: Seen) -> None:
    _, shown = seen.phases["bad answers"]
    for measure, source in (("answer_relevancy", ""), ("completeness", ""), ("faithfulness", " retrieval")):
        panel = shown["overview", f"{measure}: mean"]
        assert 0 <= panel[f"lower{source}"] < panel[f"mean{source}"] < panel[f"upper{source}"] <= 1
        assert panel["target"] == {"faithfulness": 0.8}.get(measure, 0.5)


def test_the_table_of_services_fills_its_columns_and_marks_an_alert(seen: Seen) -> None:
    before, _ = (shown["services", "All services"] for shown in seen.phases["judge down"])
    later = {"week", "release"}  # what there is after a week, and with a second release
    assert before.keys() | later == services.ABOUT.keys()
    assert before["lower"] < before["mean"] < before["upper"]
    assert before["course"] == before["mean"]
    assert before["target"] == 0.5
    _, bad = (shown["services", "All services"] for shown in seen.phases["bad answers"])
    assert bad["alerts"] > 0


def test_the_marks_of_the_dashboards_are_queries_that_prometheus_answers(seen: Seen) -> None:
    assert {"TracescoreChanged"} <= {sample.labels["alertname"] for sample in seen.marks["Alerts"]}
    assert seen.marks["Releases"] == [], "no release appeared while the replicas were scraped"


def test_the_dots_of_every_panel_of_scores_are_named_as_the_data_source_expects(seen: Seen) -> None:
    (source,) = yaml.safe_load((BOARDS[0].FILE.parent / "datasource.yaml").read_text())["datasources"]
    names = {way["name"] for way in source["jsonData"]["exemplarTraceIdDestinations"]}
    assert seen.exemplars.keys() == {f"{measure}: scores" for measure in LIVE_MEASURES}
    for found in (seen.exemplars[f"{measure}: scores"] for measure in DEFAULT_MEASURES):
        assert min(float(each["value"]) for each in found) < 0.5  # the bad answers are among them
        assert all(re.fullmatch("[0-9a-f]{32}", each["labels"][name]) for each in found for name in names)
