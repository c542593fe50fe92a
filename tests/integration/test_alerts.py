"""Alerts from end to end: what happens to the answers, and what a person is told, by a real Alertmanager."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deploy.prometheus.alerts import PAGE
from deploy.prometheus.estimates import MIN_COUNT
from tests.live import GOOD, IRRELEVANT, Deployment, alerting, deployment
from tests.servers import PrometheusServer, wait
from tests.showcase import Replica, replicas
from tracescore.model import LIVE_MEASURES

pytestmark = pytest.mark.server

WELL = dict.fromkeys(LIVE_MEASURES, 0.9)


@pytest.mark.parametrize("count", [1, 2])
def test_steady_traffic_alerts_nobody_and_a_drop_of_relevancy_tells_its_measure_and_a_page(
    tmp_path: Path, count: int
) -> None:
    with deployment(tmp_path, count) as run, alerting(tmp_path, run.scraped) as (server, came):
        run.ask(server, GOOD, 2)  # an increase needs a value from before
        run.ask(server, GOOD, 30)
        (count,) = server.query('service:tracescore_score:effective_count{measure="answer_relevancy", window="1h"}')
        assert count.value >= MIN_COUNT  # there were enough scores to alert on
        assert server.alerts() == came == []

        run.ask(server, IRRELEVANT, 60)
        told = wait(lambda: _named(came, "TracescoreBelowTarget"), "no alert came")[0]
        assert {alert["labels"]["measure"] for alert in came} == {"answer_relevancy"}
        assert told["labels"]["service_name"] == "shop"
        link = told["annotations"]["page"]
        assert link == f"{PAGE}/?measure=answer_relevancy&service=shop"
        shown = _page(run, link.removeprefix(PAGE))
    assert "<h1><bdi>shop</bdi></h1>" in shown
    assert 'id="answer_relevancy"' in shown


def _named(came: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [alert for alert in came if alert["labels"]["alertname"] == name]


def _page(run: Deployment, path: str) -> str:
    return run.replicas[0].get("page", path)


def test_two_replicas_of_which_none_suffices_raise_an_alert_that_reaches_people(tmp_path: Path) -> None:
    with replicas(2) as pair, alerting(tmp_path, [each.address for each in pair]) as (server, came):
        for replica in pair:
            replica.ask_judge()
        _score_badly(server, pair)
        (told,) = wait(lambda: came, "no alert came")
    assert told["labels"]["alertname"] == "TracescoreBelowTarget"
    assert told["labels"]["measure"] == "answer_relevancy"
    assert told["labels"]["service_name"] == "shop"
    assert told["annotations"]["page"].endswith("/?measure=answer_relevancy&service=shop")


def test_while_the_judge_is_down_only_the_measurement_is_said_to_be_broken(tmp_path: Path) -> None:
    with replicas(2) as pair, alerting(tmp_path, [each.address for each in pair]) as (server, came):
        _score_badly(server, pair)
        server.wait_query('service:tracescore_score:upper_below_target{measure="answer_relevancy"} < 0.5')
        wait(lambda: came, "no alert came")
        server.wait_rules()
        firing = {alert["labels"]["alertname"] for alert in server.alerts()}
    assert firing == {"TracescoreMeasurementBroken"}
    assert {alert["labels"]["cause"] for alert in came} == {"judge_not_ready"}


def _wait_scraped(server: PrometheusServer, scraped: Sequence[Replica], scores: int) -> None:
    """Until Prometheus knows of so many scores of every replica: a rate needs a value from before the change."""

    def known() -> bool:
        found = server.query("tracescore_completeness_weight_total")
        return len(found) == len(scraped) and all(sample.value >= scores for sample in found)

    wait(known, f"{scores} scores of each replica were not scraped")


def _score_badly(server: PrometheusServer, pair: Sequence[Replica]) -> None:
    """Too few bad scores of each replica to say anything, enough of both."""
    for replica in pair:
        replica.score(WELL)
    _wait_scraped(server, pair, 1)
    for replica in pair:
        for _ in range(14):
            replica.score(WELL | {"answer_relevancy": 0.1})
