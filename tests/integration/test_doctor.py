"""`tracescore doctor --prometheus` asks a real Prometheus, with and without what it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import alerting, scraping
from tests.openai_server import openai_server
from tests.running import FREE_PORTS, Running, run, serving
from tests.servers import free_port, prometheus, wait

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("doctor")
    with openai_server() as judge, serving(folder, FREE_PORTS + judge.settings) as running:
        running.wait_log("event=judge_ready")
        yield running


def examined(service: Running, url: str) -> dict[str, tuple[str, str, str]]:
    """{what: (state, said, fix)} of what was asked of Prometheus."""
    done = run("doctor", "--json", "--metrics", f"http://{service.addresses['metrics']}", "--prometheus", url)
    told = {
        each["name"]: (each["state"], each["said"], each["fix"])
        for each in map(json.loads, done.stdout.split("\n")[:-1])
    }
    assert done.returncode == int(any(state == "fail" for state, *_ in told.values()))
    return {name: told[name] for name in ("scrape", "rules", "alerts") if name in told}


def test_a_prometheus_that_does_all_it_should_is_well(service: Running, tmp_path: Path) -> None:
    with alerting(tmp_path, [service.addresses["metrics"]]) as (server, _):
        server.wait_query("tracescore_judge_ready")
        wait(lambda: examined(service, server.url)["alerts"][0] == "ok", "no Alertmanager is known", 30)
        told = examined(service, server.url)
    assert told["scrape"][:2] == ("ok", "Prometheus has the series of 1 replica(s)")
    assert told["rules"][0] == "ok"
    assert told["rules"][1].endswith("rules are evaluated, no alert fires")


def test_a_prometheus_without_target_rules_and_alertmanager_gets_a_fix_for_each(
    service: Running, tmp_path: Path
) -> None:
    with prometheus({"global": {}}, tmp_path) as server:
        told = examined(service, server.url)
    assert told["scrape"][0] == told["rules"][0] == "fail"
    assert "deploy/prometheus/scrape.yaml" in told["scrape"][2]
    assert "deploy/prometheus/tracescore.rules.yaml" in told["rules"][2]


def test_a_scrape_that_fails_is_shown_with_its_error(service: Running, tmp_path: Path) -> None:
    port = service.addresses["metrics"].rpartition(":")[2]
    config = scraping([f"localhost:{port}"])
    config["scrape_configs"][0]["scheme"] = "https"
    with prometheus(config, tmp_path) as server:
        wait(lambda: "a scrape fails" in examined(service, server.url)["scrape"][1], "no failed scrape is seen", 30)
        state, said, fix = examined(service, server.url)["scrape"]
    assert (state, fix) == ("fail", "check address, TLS and token of the job")
    assert f"https://localhost:{port}/metrics: " in said


def test_what_is_no_prometheus_is_said(service: Running) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    state, said, _ = examined(service, url)["scrape"]
    assert (state, said.startswith(f"{url}: no Prometheus answers there")) == ("fail", True)
    _, said, _ = examined(service, "ftp://x")["scrape"]
    assert "a URL such as http://127.0.0.1:9090 expected; got 'ftp://x'" in said
