"""Nobody gets in: the service with TLS, client certificates and tokens, among those who use it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from tests.certificates import Certificates
from tests.openai_server import openai_server
from tests.running import serving
from tests.sample_app import GOOD, answer, provider
from tests.servers import prometheus, rotel, wait
from tracescore.cli.page_client import ask
from tracescore.config.file import load

SHOP, SCRAPER, PAGE = "a-token-of-the-shop", "a-token-of-prometheus", "page"


def settings(folder: Path, certificates: Certificates, judge: str) -> str:
    for name, token in (("shop", SHOP), ("scraper", SCRAPER), ("page", PAGE)):
        (folder / name).write_text(token)
    listener = {"listen": "127.0.0.1:0", "tls": certificates.settings(clients=True)}
    by_grpc = {**listener, "tokens": {"shop": {"file": str(folder / "shop")}}}
    by_http = {**by_grpc, "tls": certificates.settings()}  # rotel 0.0.1a15 reads no certificate files
    scraped = {**listener, "tls": certificates.settings(), "tokens": {"scraper": {"file": str(folder / "scraper")}}}
    users = [{"name": "olu", "role": "operator", "token": {"file": str(folder / "page")}}]
    config = {
        "receiver": {"grpc": by_grpc, "http": by_http},
        "exporters": {"prometheus": scraped},
        "web": {"listen": "127.0.0.1:0", "tls": certificates.settings(), "users": users},
        "assembly": {"idle": "200ms"},
        "judge": {"kind": "openai", "model": "m", "base_url": judge},
        "embedder": {"kind": "openai", "model": "e", "base_url": judge},
    }
    return yaml.safe_dump(config)


@pytest.mark.server
def test_a_collector_a_scraper_and_a_reader_get_in_and_nobody_else(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with openai_server() as judge, serving(tmp_path, settings(tmp_path, certificates, judge.url)) as service:
        metrics = service.addresses["metrics"]
        scraping = {
            "job_name": "tracescore",
            "scheme": "https",
            "authorization": {"credentials_file": str(tmp_path / "scraper")},
            "tls_config": {"ca_file": certificates.ca},
            "scrape_interval": "1s",
            "static_configs": [{"targets": [metrics]}],
        }
        without = {**scraping, "job_name": "stranger", "authorization": {"credentials": "of-somebody-else"}}
        options = (
            "--otlp-exporter-tls-skip-verify",
            *("--otlp-exporter-custom-headers", f"Authorization=Bearer {SHOP}"),
        )
        with (
            rotel(f"https://{service.addresses['http']}", tmp_path, *options) as collector,
            prometheus({"scrape_configs": [scraping, without]}, tmp_path) as server,
        ):
            app = provider(OTLPSpanExporter(endpoint=collector.grpc, insecure=True))
            answer(app.get_tracer("app"), GOOD)
            app.shutdown()
            server.wait_query('tracescore_evaluations_total{outcome="scored",job="tracescore"} > 0', 60)
            assert [sample.value for sample in server.query('up{job="tracescore"}')] == [1]
            wait(lambda: [sample.value for sample in server.query('up{job="stranger"}')] == [0], "a stranger is told")

        config = load(tmp_path / "tracescore.yaml")
        page = f"https://{service.addresses['page']}"
        assert ask(config.web, page, "/api/v1/drift")["services"][0]["service"] == "shop"
        context = ssl.create_default_context(cafile=certificates.ca)
        for request in (
            urllib.request.Request(f"{page}/"),
            urllib.request.Request(f"{page}/", headers={"authorization": f"Bearer {SHOP}"}),
        ):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(request, timeout=5, context=context)
        done = ask(config.web, page, "/api/v1/baseline", {"action": "reset"})
        service.wait_log('event=audit who="olu" what=baseline_reset')
        assert json.dumps(done)
        secrets = (SHOP, SCRAPER, "of-somebody-else")
        assert not [line for line in service.log if any(secret in line for secret in secrets)]
