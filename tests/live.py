"""A deployment as an operator has it: `tracescore serve` as processes, their judge, and a Prometheus with the rules.

Nothing is replaced but the judge, which compares words (tests/openai_server.py), and time: what the rules look at
every minute and tell after ten is looked at every second and told at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider

from deploy.prometheus import rules
from tests.openai_server import OpenAIServer, openai_server
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import Asked, answer, answer_silently, provider
from tests.servers import PrometheusServer, alertmanager, prometheus, wait, webhook

JUDGE = "gpt"
OPERATOR = {"service": "tracescore", "namespace": "rag"}
"""Labels that an operator sets on every target, beside those of the pod."""

SETTINGS = """
assembly: {{idle: 200ms}}
judge: {{kind: openai, model: m, name: gpt, base_url: "{url}", max_retries: 0, price: {{input: 1, output: 1}}}}
embedder: {{kind: openai, model: e, base_url: "{url}"}}
drift: {{min_count: 5, targets: {{{targets}}}}}
"""

WINDOW = ("How long is the return window?", ("The return window is 30 days long.", "It is open to all."))
GOOD = Asked(WINDOW[0], "The return window is 30 days.", WINDOW[1])
BAD = Asked(WINDOW[0], "Our warehouse closes on Sundays.", WINDOW[1])
"""Answers something else: every measure falls."""
RAMBLING = "The return window, Martha says, matters less than parking, weather, lunch menus, Sundays and holidays."
IRRELEVANT = Asked(WINDOW[0], RAMBLING, (f"{RAMBLING} It is open to all.",))
"""Holds what was asked, and its context supports it; but it answers other questions: relevancy alone falls."""


def one_second_rules(folder: Path) -> Path:
    """The rules as they are, but evaluated every second and told at once."""
    document = yaml.safe_load(rules.FILE.read_text())
    for group in document["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if "alert" in rule:
                rule["for"] = "0s"
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def scraping(addresses: Sequence[str], **more: Any) -> dict[str, Any]:
    """What an operator would write for replicas at these addresses, with everything a second long."""
    targets = [
        {"targets": [address], "labels": OPERATOR | {"pod": f"tracescore-{number}", "instance": f"pod-{number}"}}
        for number, address in enumerate(addresses)
    ]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "tracescore", "static_configs": targets}],
        **more,
    }


@contextmanager
def alerting(folder: Path, addresses: Sequence[str]) -> Iterator[tuple[PrometheusServer, list[dict[str, Any]]]]:
    """Prometheus with the rules, and an Alertmanager that tells a webhook at once; also what the webhook was told."""
    with ExitStack() as stack:
        url, came = stack.enter_context(webhook())
        route = {"receiver": "people", "group_wait": "0s", "group_by": ["..."]}
        receivers = [{"name": "people", "webhook_configs": [{"url": url}]}]
        told = stack.enter_context(alertmanager({"route": route, "receivers": receivers}, folder))
        managers = {"alertmanagers": [{"static_configs": [{"targets": [told.url.removeprefix("http://")]}]}]}
        config = scraping(addresses, rule_files=[str(one_second_rules(folder))], alerting=managers)
        yield stack.enter_context(prometheus(config, folder)), came


class Deployment:
    """Replicas with a judge, scraped by one Prometheus. `ask` sends to them in turn."""

    def __init__(self, replicas: Sequence[Running], judge: OpenAIServer) -> None:
        self.replicas, self.judge = replicas, judge
        self.asked = 0
        self._apps: list[TracerProvider] = [
            provider(OTLPSpanExporter(endpoint=f"http://{each.addresses['grpc']}", insecure=True)) for each in replicas
        ]

    @property
    def scraped(self) -> list[str]:
        """Addresses of /metrics."""
        return [each.addresses["metrics"] for each in self.replicas]

    def ask(self, server: PrometheusServer, asked: Asked | None, count: int, *, ends: bool = True) -> None:
        """So many answers; returns when Prometheus knows of all, and, if it `ends`, of what became of them.

        None: answers whose text is not recorded.
        """
        for number in range(count):
            tracer = self._apps[number % len(self._apps)].get_tracer("app")
            if asked:
                answer(tracer, asked)
            else:
                answer_silently(tracer)
        self.asked += count
        wait(lambda: _sum(server, "tracescore_interactions_total") >= self.asked, "interactions do not arrive", 60)
        if ends:
            started, ended = "tracescore_evaluations_started_total", "tracescore_evaluations_total"
            wait(
                lambda: _sum(server, ended) >= max(3 * self.asked, _sum(server, started)), "evaluations do not end", 60
            )
        server.wait_rules()

    def close(self) -> None:
        """Ends the apps."""
        for app in self._apps:
            app.shutdown()


def _sum(server: PrometheusServer, metric: str) -> float:
    return sum(sample.value for sample in server.query(f"sum({metric})"))


@contextmanager
def deployment(folder: Path, count: int, more: str = "", targets: str = "") -> Iterator[Deployment]:
    """That many replicas, whose judge is ready; `more` settings, and `targets` of further measures."""
    with ExitStack() as stack:
        judge = stack.enter_context(openai_server())
        running = []
        for number in range(count):
            place = folder / f"replica-{number}"
            place.mkdir()
            settings = FREE_PORTS + SETTINGS.format(url=judge.url, targets=targets) + more
            running.append(stack.enter_context(serving(place, settings)))
        for each in running:
            each.wait_log("event=judge_ready")
        made = Deployment(running, judge)
        stack.callback(made.close)
        yield made
