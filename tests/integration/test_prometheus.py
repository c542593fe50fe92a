"""A real Prometheus scrapes real /metrics, under the labels that an operator sets on targets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.grafana import overview
from deploy.prometheus import rules
from tests.servers import PrometheusServer, alertmanager, prometheus, wait, webhook
from tests.showcase import JUDGE, Replica, replicas
from tracescore.model import LIVE_MEASURES

pytestmark = pytest.mark.server

GOOD = dict.fromkeys(LIVE_MEASURES, 0.9)
OPERATOR = {"service": "tracescore", "namespace": "rag"}


def _config(scraped: Sequence[Replica], **more: Any) -> dict[str, Any]:
    """What an operator would write for these replicas, with everything a second long."""
    targets = [
        {
            "targets": [replica.address],
            "labels": OPERATOR | {"pod": f"tracescore-{number}", "instance": f"pod-{number}"},
        }
        for number, replica in enumerate(scraped)
    ]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "tracescore", "static_configs": targets}],
        **more,
    }


def _rules(folder: Path) -> Path:
    """The rules as they are, but evaluated every second and without waiting."""
    document = yaml.safe_load(rules.FILE.read_text())
    for group in document["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if "alert" in rule:
                rule["for"] = "0s"
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def _wait_scraped(server: PrometheusServer, scraped: Sequence[Replica], scores: int) -> None:
    """Until Prometheus knows of so many scores of every replica: a rate needs a value from before the change."""

    def known() -> bool:
        found = server.query("tracescore_completeness_weight_total")
        return len(found) == len(scraped) and all(sample.value >= scores for sample in found)

    wait(known, f"{scores} scores of each replica were not scraped")


def test_a_gauge_is_found_by_service_name_under_an_operators_labels(tmp_path: Path) -> None:
    with replicas(1) as scraped, prometheus(_config(scraped), tmp_path) as server:
        for _ in range(25):
            scraped[0].score(GOOD, service="shop")
            scraped[0].score(dict.fromkeys(LIVE_MEASURES, 0.2), service="intranet")
        (found,) = server.wait_query('tracescore_answer_relevancy_ratio{service_name="shop"}')
    assert found.value == pytest.approx(0.9)
    assert found.labels == {
        "__name__": "tracescore_answer_relevancy_ratio",
        "job": "tracescore",
        "instance": "pod-0",
        "pod": "tracescore-0",
        **OPERATOR,
        "service_name": "shop",
        "deployment_environment": "prod",
        "service_version": "1.0",
        "judge": JUDGE,
    }


def test_an_exemplar_leads_to_the_trace_of_a_low_score(tmp_path: Path) -> None:
    with replicas(1) as scraped, prometheus(_config(scraped), tmp_path) as server:
        low = scraped[0].score({"answer_relevancy": 0.03})
        for _ in range(5):
            scraped[0].score(GOOD)
        bucket = 'tracescore_answer_relevancy_score_bucket{service_name="shop", le="0.1"}'
        (exemplar,) = wait(lambda: server.exemplars(bucket), "no exemplar")
    assert exemplar["labels"]["trace_id"] == low
    assert float(exemplar["value"]) == pytest.approx(0.03)


def test_two_replicas_of_which_none_suffices_raise_an_alert_that_reaches_people(tmp_path: Path) -> None:
    with replicas(2) as pair, webhook() as (url, came), _alerting(tmp_path, pair, url) as server:
        for replica in pair:
            replica.ask_judge()
        _score_badly(server, pair)
        (told,) = wait(lambda: came, "no alert came")
    assert told["labels"]["alertname"] == "TracescoreBelowTarget"
    assert told["labels"]["measure"] == "answer_relevancy"
    assert told["labels"]["service_name"] == "shop"
    assert told["annotations"]["page"].endswith("/?measure=answer_relevancy&service=shop")


def test_while_the_judge_is_down_only_the_measurement_is_said_to_be_broken(tmp_path: Path) -> None:
    with replicas(2) as pair, webhook() as (url, came), _alerting(tmp_path, pair, url) as server:
        _score_badly(server, pair)
        server.wait_query('service:tracescore_quality:upper{measure="answer_relevancy"} < 0.5')
        wait(lambda: came, "no alert came")
        evaluated = server.query("vector(time())")[0].value + 2  # two more evaluations of the rules, a second each
        server.wait_query(f"vector(time()) > {evaluated}")
        firing = {alert["labels"]["alertname"] for alert in server.alerts()}
    assert firing == {"TracescoreMeasurementBroken"}
    assert {alert["labels"]["cause"] for alert in came} == {"judge_not_ready"}


def _score_badly(server: PrometheusServer, pair: Sequence[Replica]) -> None:
    """Too few bad scores of each replica to say anything, enough of both."""
    for replica in pair:
        replica.score(GOOD)
    _wait_scraped(server, pair, 1)
    for replica in pair:
        for _ in range(14):
            replica.score(GOOD | {"answer_relevancy": 0.1})


@contextmanager
def _alerting(folder: Path, scraped: Sequence[Replica], url: str) -> Iterator[PrometheusServer]:
    """Prometheus with the rules, and an Alertmanager that tells `url` at once."""
    route = {"receiver": "people", "group_wait": "0s", "group_by": ["..."]}
    receivers = [{"name": "people", "webhook_configs": [{"url": url}]}]
    with alertmanager({"route": route, "receivers": receivers}, folder) as told:
        address = told.url.removeprefix("http://")
        alerting = {"alertmanagers": [{"static_configs": [{"targets": [address]}]}]}
        config = _config(scraped, rule_files=[str(_rules(folder))], alerting=alerting)
        with prometheus(config, folder) as server:
            yield server


def test_every_panel_of_the_dashboard_has_data(tmp_path: Path) -> None:
    rule_files = [str(_rules(tmp_path))]
    with replicas(2) as pair, prometheus(_config(pair, rule_files=rule_files), tmp_path) as server:
        for replica in pair:
            replica.score(GOOD)
            replica.ask_judge()
        _wait_scraped(server, pair, 1)
        for replica in pair:
            for _ in range(3):
                replica.score(GOOD)
            replica.score({"completeness": 0.5})
            replica.ask_judge()
        _wait_scraped(server, pair, 5)
        for panel in json.loads(overview.FILE.read_text())["panels"]:
            for target in panel.get("targets", []):
                found = server.wait_query(_filled_in(target["expr"]))
                for name in _placeholders(target.get("legendFormat", "")):
                    assert all(name in sample.labels for sample in found), (panel["title"], name)


def _filled_in(expression: str) -> str:
    """As Grafana would send it for what the replicas score."""
    values = {
        "$service_name": "shop",
        "$deployment_environment": "prod",
        "$judge": JUDGE,
        "$window": "1h",
        "$__rate_interval": "1m",
    }
    for name, value in values.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def _placeholders(legend: str) -> list[str]:
    return re.findall(r"{{(\w+)}}", legend)
