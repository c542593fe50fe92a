"""A real Prometheus scrapes real /metrics, under the labels that an operator sets on targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live import OPERATOR, scraping
from tests.servers import prometheus, wait
from tests.showcase import JUDGE, replicas
from tracescore.model import LIVE_MEASURES

pytestmark = pytest.mark.server

GOOD = dict.fromkeys(LIVE_MEASURES, 0.9)


def test_a_gauge_is_found_by_service_name_under_an_operators_labels(tmp_path: Path) -> None:
    with replicas(1) as scraped, prometheus(scraping([scraped[0].address]), tmp_path) as server:
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
    with replicas(1) as scraped, prometheus(scraping([scraped[0].address]), tmp_path) as server:
        low = scraped[0].score({"answer_relevancy": 0.03})
        for _ in range(5):
            scraped[0].score(GOOD)
        bucket = 'tracescore_answer_relevancy_score_bucket{service_name="shop", le="0.1"}'
        (exemplar,) = wait(lambda: server.exemplars(bucket), "no exemplar")
    assert exemplar["labels"]["trace_id"] == low
    assert float(exemplar["value"]) == pytest.approx(0.03)
