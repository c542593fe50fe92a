"""The metrics listener over a real socket, as Prometheus and Kubernetes ask it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tracescore.exporters.prometheus.exposition import Health, Scrapes, metrics_app
from tracescore.net.listener import address_of, bind, serving

pytestmark = pytest.mark.anyio


class Listener:
    """A running listener and the health it tells."""

    def __init__(self, base: str, health: Health) -> None:
        self.base, self.health = base, health

    async def ask(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        session = aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["accept-encoding"])
        async with session, session.request(method, self.base + path, headers=headers) as response:
            return response.status, response.headers, await response.read()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    registry, health = CollectorRegistry(), Health()
    Counter("tracescore_things", "Things.", ["kind"], registry=registry).labels("a").inc(3)
    bound = bind("127.0.0.1:0", "exporters.prometheus.listen")
    async with serving(metrics_app(registry, health, Scrapes(CollectorRegistry(), lambda: 0.0)), bound):
        yield Listener(f"http://{address_of(bound)}", health)


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
)


@pytest.mark.parametrize(
    "accept",
    [
        "text/html,*/*",
        "application/openmetrics-text; version=banana",
        "text/plain; version=1.0.0-\u0661",
        "application/openmetrics-text; version=2.banana",
        "application/openmetrics-text; version=2.\u4e00",
        ";,=;version",
    ],
)
async def test_a_browser_and_who_asks_for_what_there_is_not_get_the_text_format(
    listener: Listener, accept: str
) -> None:
    status, headers, body = await listener.ask("/metrics", headers={"accept": accept})
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    (family,) = parse_text(body.decode())
    assert [(s.name, s.labels, s.value) for s in family.samples] == [("tracescore_things_total", {"kind": "a"}, 3.0)]


async def test_prometheus_gets_openmetrics_which_alone_carries_exemplars(listener: Listener) -> None:
    status, headers, body = await listener.ask("/metrics", headers={"accept": PROMETHEUS_3})
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    (family,) = parse_openmetrics(body.decode())
    assert [s.name for s in family.samples] == ["tracescore_things_total"]


async def test_gzip_is_used_when_asked_for(listener: Listener) -> None:
    _, headers, body = await listener.ask("/metrics", headers={"accept-encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    _, plain_headers, plain = await listener.ask("/metrics")
    assert "content-encoding" not in plain_headers
    assert gzip.decompress(body) == plain


async def test_healthy_means_the_process_answers_and_ready_says_what_is_missing(listener: Listener) -> None:
    assert (await listener.ask("/-/healthy"))[::2] == (200, b"ok\n")
    listener.health.reason = "waiting for the judge"
    assert (await listener.ask("/-/ready"))[::2] == (503, b"not ready: waiting for the judge\n")
    listener.health.ready = True
    assert (await listener.ask("/-/ready"))[::2] == (200, b"ok\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metrics/", 404), ("POST", "/nowhere", 404), ("POST", "/metrics", 405)],
)
async def test_everything_else_is_refused(listener: Listener, method: str, path: str, status: int) -> None:
    got, headers, _ = await listener.ask(path, method)
    assert got == status
    assert headers.get("allow") == ("GET, HEAD" if status == 405 else None)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;version=1.0.0;q=0.0, text/plain", False),
        ("Application/OpenMetrics-Text; Version=1.0.0", True),
        ("text/plain;version=1.0.0;q=0.3, application/openmetrics-text;version=1.0.0;q=0.9", True),
        ("application/openmetrics-text;version=1.0.0;q=0.3, text/plain;version=1.0.0;q=0.9", False),
        ("application/openmetrics-text;q=banana", False),
    ],
)
async def test_media_types_have_no_case_and_a_weight_of_zero_is_a_no(
    listener: Listener, accept: str, openmetrics: bool
) -> None:
    status, headers, _ = await listener.ask("/metrics", headers={"accept": accept})
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text") is openmetrics


@pytest.mark.parametrize("path", ["/metrics", "/-/healthy"])
async def test_head_gets_the_headers_alone(listener: Listener, path: str) -> None:
    status, headers, body = await listener.ask(path, "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


async def test_a_scrape_is_noted_and_what_doctor_asks_is_none() -> None:
    registry, bound = CollectorRegistry(), bind("127.0.0.1:0", "exporters.prometheus.listen")
    last = "tracescore_exporters_prometheus_scrape_timestamp_seconds"
    async with serving(metrics_app(registry, Health(), Scrapes(registry, lambda: 7.0)), bound):
        listener = Listener(f"http://{address_of(bound)}", Health())
        await listener.ask("/metrics", headers={"user-agent": "tracescore-doctor"})
        assert registry.get_sample_value(last) == 0.0
        await listener.ask("/metrics", headers={"user-agent": "Prometheus/3.0"})
        assert registry.get_sample_value(last) == 7.0
