"""`tracescore compare` and the dashboard of releases, asked of a running service and of a real Prometheus.

What a Prometheus would have recorded over two days is put into its storage; that the rules record it is a case of
deploy/prometheus/release_cases.py.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from deploy.grafana import releases as board
from deploy.prometheus.releases import CHANGE, COUNT, HOUR, LOWER, MEAN, PAIR, RUNNING_HOUR, UPPER
from tests.results import NOW as RESULTS_NOW
from tests.results import result
from tests.servers import PrometheusServer, binary, prometheus
from tests.web_results import pages
from tracescore.cli.main import app
from tracescore.drift.comparing import Hours, ReleaseComparison, compare
from tracescore.drift.releases import Releases
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.errors import UsageError
from tracescore.model import Score
from tracescore.net.listener import address_of, bind, serving

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

LAST = int(time.time()) // 3_600
SHOP = {"job": "tracescore", "service_name": "shop", "deployment_environment": "prod"}
SCORED = SHOP | {"judge": "gpt", "measure": "completeness"}
RELEASES = {"service_version": "2.0", "before": "1.0"}


def sums(good: int, bad: int) -> WeightedSums:
    return WeightedSums().plus(1.0, 1.0, times=good).plus(0.0, 1.0, times=bad)


OLD: Hours = {LAST - back: sums(9, 1) for back in range(40, 2, -1)} | {LAST: sums(9, 1)}
NEW: Hours = {LAST - back: sums(6, 4) for back in range(20, 2, -1)} | {LAST: sums(6, 4)}
"""The last hour is the running one."""
MOVED: Hours = {LAST - back: sums(2, 8) for back in range(60, 50, -1)}
"""Of the first release, by the judge before it moved."""


def line(metric: str, labels: dict[str, str], value: float, at: int) -> str:
    told = ",".join(f"{name}={json.dumps(text)}" for name, text in labels.items())
    return f"{metric}{{{told}}} {value} {at}"


def recorded() -> Iterator[str]:
    """The text of OpenMetrics with all that the rules had recorded."""
    now = int(time.time())  # the module may have been read many minutes ago
    later = now // 3_600 - LAST
    of_hours = ("1.0", "a", OLD), ("2.0", "a", NEW), ("1.0", "older", MOVED)
    for metric, chosen in ((HOUR, lambda hour: hour < LAST), (RUNNING_HOUR, lambda hour: hour == LAST)):
        yield f"# TYPE {metric} gauge"
        for release, fingerprint, hours in of_hours:
            for name in WeightedSums._fields:
                labels = SCORED | {"service_version": release, "fingerprint": fingerprint, "sum": name}
                told = {
                    min(now, (hour + later + 1) * 3_600): getattr(each, name)
                    for hour, each in hours.items()
                    if chosen(hour)
                }
                yield from (line(metric, labels, value, at) for at, value in told.items())
    for metric, value in ((MEAN, 0.7), (LOWER, 0.6), (UPPER, 0.8), (COUNT, 90)):
        yield f"# TYPE {metric} gauge"
        for release in ("1.0", "2.0"):
            labels = SCORED | {"service_version": release, "fingerprint": "a", "traffic": "adjacent"}
            yield line(metric, labels, value, now)
    for name, value in (("mean", -0.3), ("lower", -0.4), ("upper", -0.2)):
        yield f"# TYPE {CHANGE}:{name} gauge"
        yield line(f"{CHANGE}:{name}", SCORED | RELEASES | {"traffic": "side_by_side"}, value, now)
    yield f"# TYPE {PAIR} gauge"
    yield line(PAIR, SHOP | RELEASES, 1, now)
    yield "# EOF\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("compare")
    (folder / "recorded.txt").write_text("\n".join(recorded()))
    made = [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", folder / "recorded.txt", folder / "data"]
    subprocess.run(made, check=True, capture_output=True)
    with prometheus({"global": {}}, folder) as started:
        yield started


def run(*options: str, catch_exceptions: bool = True) -> Any:
    return CliRunner().invoke(app, ["compare", "--service", "shop", *options], catch_exceptions=catch_exceptions)


def test_any_two_releases_are_compared_over_all_replicas_by_one_judge_and_hour_by_hour(
    server: PrometheusServer,
) -> None:
    expected = compare(NEW, OLD)
    assert isinstance(expected, ReleaseComparison)
    for two in ((), ("1.0", "2.0")):
        done = run("--prometheus", server.url, "--json", *two)
        found = json.loads(done.stdout)
        (row,) = found["measures"]
        assert (found["of"], found["release"], found["before"]) == ("all replicas", "2.0", "1.0")
        assert [row[name] for name in ("difference", "lower", "upper")] == pytest.approx(expected[:3])
        assert (row["traffic"], row["of_before"]["scores"]) == ("side_by_side", pytest.approx(expected.before[3]))
        assert done.exit_code == 1, "a release that is worse fails a pipeline"
    back = run("--prometheus", server.url, "2.0", "1.0")
    assert back.exit_code == 0
    assert re.search(r"completeness +\+0\.300 \(\+0\.\d+ to \+0\.\d+\)  better", back.stdout)
    assert run("--prometheus", server.url, "--hours", "20").exit_code == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("1.0",), "two releases expected, or none; got '1.0' alone"),
        (("1.0", "9.9"), "nothing to compare yet; 20 scores of 1.0 and of 9.9 by the same judge are needed"),
        (("--environment", "test"), "no two releases are known there"),
    ],
)
def test_what_cannot_be_compared_is_no_pass(server: PrometheusServer, options: tuple[str, ...], said: str) -> None:
    error = run("--prometheus", server.url, *options).exception
    assert isinstance(error, UsageError)
    assert said in str(error)


def test_without_a_prometheus_the_running_process_is_asked_for_what_it_knows_itself() -> None:
    releases = Releases(CollectorRegistry(), lambda: RESULTS_NOW)
    with start_blocking_portal() as portal:
        for number in range(120):
            made = result(
                Score("completeness", float(number % 4 > 0)), number=number, release=("1.0", "2.0")[number % 2]
            )
            portal.call(releases.export, made)
        bound = bind("127.0.0.1:0", "test")
        page = f"http://{address_of(bound)}"
        with portal.wrap_async_context_manager(serving(pages(releases=releases), bound)):
            done = run("--page", page)
            with pytest.raises(UsageError, match=r"release '9' of 'shop': not known; there are 2\.0, 1\.0"):
                run("--page", page, "9", "1.0", catch_exceptions=False)
    assert done.exit_code == 0
    assert "shop (production): 2.0 less 1.0, of this process, judge embedded-v2, last 168 hours" in done.stdout
    assert re.search(r"completeness +\+0\.500 .* better .* 1\.000 of 60 scores against 0\.500 of 60", done.stdout)


def test_another_server_is_told_from_a_prometheus() -> None:
    error = run("--prometheus", "http://127.0.0.1:9").exception
    assert isinstance(error, UsageError)
    assert "no Prometheus answers there" in str(error)


def test_every_panel_of_the_releases_has_data(server: PrometheusServer) -> None:
    chosen = {"$service_name": "shop", "$deployment_environment": "prod", "$judge": "gpt", "$measure": "completeness"}
    chosen |= {"$service_version": "2.0", "$before": "1.0"}
    panels = [each for each in json.loads(Path(board.FILE).read_text())["panels"] if each["type"] != "row"]
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in chosen.items():
                expression = expression.replace(name, value)
            found = {sample.value for sample in server.query(expression, int(time.time()))}
            assert len(found) == 1, (panel["title"], expression, found)
            (sample,) = found
            assert not math.isnan(sample), panel["title"]
