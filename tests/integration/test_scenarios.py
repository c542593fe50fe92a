"""What happens to a deployment of two replicas, and what people are told: the right alert, and only that.

Real parts of the service behind real /metrics, a real Prometheus and Alertmanager. The clock of the service runs SCALE
times as fast, and the rules are written with every duration divided by as much, so that hours pass in a minute. All
scenarios run side by side, each a deployment in a namespace of its own. docs/alerts.md has the table.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from deploy.prometheus import rules
from deploy.prometheus.scaling import in_seconds
from deploy.prometheus.silence import LAST
from tests.gold_runs import runner, write_set
from tests.openai_server import Reply, openai_server
from tests.results import interaction
from tests.servers import PrometheusServer, alertmanager, binary, free_port, prometheus, webhook
from tests.showcase import JUDGE, Replica, replica_at
from tests.states import reread
from tracescore.config import DEFAULT_MEASURES
from tracescore.errors import JudgeError
from tracescore.gold.series import GoldSeries
from tracescore.model import Evaluation, Result, Score, Unscored

pytestmark = [
    pytest.mark.server,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "TRACESCORE_SCENARIOS" not in os.environ,
        reason="takes minutes: TRACESCORE_SCENARIOS=100 runs it a hundred times as fast as life, on an idle machine",
    ),
]

SCALE = float(os.environ.get("TRACESCORE_SCENARIOS", "0")) or 100.0
TICK = 100 / SCALE
"""Seconds between the answers of the apps, and between scrapes."""
USUAL = {"answer_relevancy": 0.9, "completeness": 0.9, "faithfulness": 0.95}
EXPECTED: dict[str, set[tuple[str, ...]]] = {
    "relevancy falls in one of two services": {("TracescoreBelowTarget", "shop", "answer_relevancy")},
    "the judge is out": {("TracescoreMeasurementBroken", "judge_not_ready")},
    "one of two services is silent": {("TracescoreServiceStopped", "docs")},
    "a third of the answers evades": {("TracescoreChanged", "shop", "answer_relevancy", "answered")},
    "a bad release": {("TracescoreChanged", "shop", "answer_relevancy", "answer_relevancy")},
    "a rollback": {("TracescoreBelowTarget", "shop", "answer_relevancy")},
    "correctness on the gold set falls": {("TracescoreGoldFell", "shop", "factual")},
    "a replica restarts under another address": set(),
}
"""By what happens: the alerts that come, with what they are about."""
FALL, OUTAGE, SILENT, EVASIVE, RELEASE, ROLLBACK, GOLD, RESTART = EXPECTED
SERVICES = {FALL: ("shop", "docs"), OUTAGE: ("shop", "docs"), SILENT: ("shop", "docs")}
NO_CLAIMS = Unscored("faithfulness", "no_claims")
WRONG: set[str] = set()


def echo(question: str) -> str:
    """The app under the gold set."""
    return "no" if question in WRONG else question


class Deployment:
    """Two replicas and what their apps answer."""

    def __init__(self, name: str, clock: Callable[[], float], rng: np.random.Generator) -> None:
        self.name, self.clock, self.rng = name, clock, rng
        self.replicas: list[Replica] = []
        self.asked = 0
        self.traffic: dict[str, dict[str, Any]] = {service: {} for service in SERVICES.get(name, ("shop",))}
        """What each service answers at present."""

    def tick(self) -> None:
        """What all services answer in TICK seconds."""
        for service, how in self.traffic.items():
            for replica in self.replicas:
                replica.take(*(self._result(service, **how) for _ in range(how.get("count", 3))))

    def _result(
        self,
        service: str,
        *,
        count: int = 3,
        evading: float = 0.0,
        fails: bool = False,
        release: str = "1",
        **means: float,
    ) -> Result:
        del count
        self.asked += 1
        now = self.clock()
        of = interaction(self.asked, ended=now, service=service, release=release, environment="prod")
        scores: tuple[Evaluation, ...]
        if fails:
            scores = tuple(Unscored(measure, "judge_unreachable") for measure in DEFAULT_MEASURES)
        elif self.rng.random() < evading:
            scores = (Score("answer_relevancy", 0.0, "noncommittal"), Score("completeness", 0.0), NO_CLAIMS)
        else:
            of_each = ((m, self.rng.normal((USUAL | means)[m], 0.05)) for m in DEFAULT_MEASURES)
            scores = tuple(Score(measure, float(np.clip(value, 0, 1))) for measure, value in of_each)
        return Result(of, scores, JUDGE, finished=now)

    def pin(self) -> None:
        """What is usual is what is normal; nobody waits a week here."""
        for replica in self.replicas:
            assert replica.service.drift is not None
            for name, at in {**USUAL, "answered": 0.98}.items():
                assert replica.portal.call(replica.service.drift.family.pin, None, name, at)


class Stage:
    """All deployments, what scrapes them, and what people were told."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.stack, self.folder, self.begun = stack, folder, time.time()
        rng = np.random.default_rng(16)
        self.portal: BlockingPortal = stack.enter_context(start_blocking_portal())
        self.models, self.lost = (stack.enter_context(openai_server()) for _ in range(2))
        self.all = {name: Deployment(name, self.clock, rng) for name in EXPECTED}
        self.addresses: dict[str, list[str]] = {}
        for name, each in self.all.items():
            each.replicas += [self.replica("127.0.0.1:0", stack, out=name == OUTAGE) for _ in range(2)]
            self.addresses[name] = [replica.address for replica in each.replicas]
        self.restarting = ExitStack()
        self.all[RESTART].replicas[1] = self.replica("127.0.0.1:0", self.restarting)
        self.successor = f"127.0.0.1:{free_port()}"
        self.addresses[RESTART] = [*(each.address for each in self.all[RESTART].replicas), self.successor]
        self.server, self.came = self._watched()

    def clock(self) -> float:
        """Unix seconds that pass SCALE times as fast."""
        return self.begun + (time.time() - self.begun) * SCALE

    def replica(self, address: str, stack: ExitStack, *, out: bool = False) -> Replica:
        """One whose judge is ready."""
        models = (self.lost if out else self.models).url
        made = stack.enter_context(replica_at(address, self.portal, models, clock=self.clock))
        made.ask_judge()
        return made

    def _watched(self) -> tuple[PrometheusServer, list[dict[str, Any]]]:
        url, came = self.stack.enter_context(webhook())
        route = {"receiver": "people", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]}
        receivers = [{"name": "people", "webhook_configs": [{"url": url}]}]
        manager = self.stack.enter_context(alertmanager({"route": route, "receivers": receivers}, self.folder))
        (self.folder / "rules.yaml").write_text(rules.render(scale=SCALE))
        scraped = [
            {"targets": [address], "labels": {"namespace": name, "instance": f"pod-{number}"}}
            for name, addresses in self.addresses.items()
            for number, address in enumerate(addresses)
        ]
        config = {
            "global": {"scrape_interval": f"{TICK * 1000:.0f}ms", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "tracescore", "static_configs": scraped}],
            "rule_files": ["rules.yaml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager.url.removeprefix("http://")]}]}]},
        }
        self._remember_yesterday()
        return self.stack.enter_context(prometheus(config, self.folder)), came

    def _remember_yesterday(self) -> None:
        """That the services of one deployment were seen a day ago: a service has to be known to be missed."""
        day = in_seconds("1d") / SCALE
        lines = [f"# TYPE {LAST} gauge"]
        for service in ("docs", "shop"):
            labels = f'namespace="{SILENT}",job="tracescore",service_name="{service}",deployment_environment="prod"'
            moments = np.arange(self.begun - day - 60, self.begun - day + 600, 1)
            lines += [f"{LAST}{{{labels}}} {at:.3f} {at:.3f}" for at in moments]
        file = self.folder / "yesterday.txt"
        file.write_text("\n".join([*lines, "# EOF\n"]))
        command = [
            binary("promtool"),
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            str(file),
            str(self.folder / "data"),
        ]
        subprocess.run(command, check=True, capture_output=True)

    def go_on(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """The apps answer for so long, or `until` something is so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            next_tick = time.monotonic() + TICK
            for each in self.all.values():
                each.tick()
            time.sleep(max(0.0, next_tick - time.monotonic()))

    def told(self, status: str = "firing") -> dict[str, set[tuple[str, ...]]]:
        """What people were told of each deployment: the alert, and what it is about."""
        found: dict[str, set[tuple[str, ...]]] = {name: set() for name in EXPECTED}
        for alert in (alert for alert in self.came if alert["status"] == status):
            labels = alert["labels"]
            about = (labels[key] for key in ("service_name", "measure", "detector", "cause") if key in labels)
            found[labels["namespace"]].add((labels["alertname"], *about))
        return found

    def end_of_the_judge(self) -> None:
        """It answers nobody any more, and what waits for it fails."""
        self.lost.script = lambda _: Reply.error(503)
        for replica in self.all[OUTAGE].replicas:
            with suppress(JudgeError):
                self.portal.call(replica.service.scorer.judge.probe)
        for how in self.all[OUTAGE].traffic.values():
            how["fails"] = True

    def restart(self) -> None:
        """A replica ends, and another one goes on from its totals under another address."""
        before = self.all[RESTART].replicas[1]
        parts = before.service.journal._parts.persisted()
        states = {name: self.portal.call(part.state) for name, part in parts.items()}
        self.restarting.close()
        after = self.replica(self.successor, self.stack)
        for name, part in after.service.journal._parts.persisted().items():
            self.portal.call(part.resume, reread(states[name]))
        self.all[RESTART].replicas[1] = after

    def gold_falls(self) -> None:
        """A good run over the gold set and a bad one, of which one replica tells."""
        file, target = write_set(self.folder / "faq.jsonl"), {"kind": "python", "callable": f"{__name__}:echo"}
        for release, wrong in (("1", 0), ("2", 9)):
            WRONG.update(f"q{number}" for number in range(wrong))
            made = runner(file, target, release=release, service="shop")
            assert self.portal.call(made.run, "hand")
        self.portal.call(self._show_gold, made, self.all[GOLD].replicas[0])

    async def _show_gold(self, made: Any, replica: Replica) -> None:
        GoldSeries(made, replica.registry)


def test_each_trouble_is_told_by_its_alert_and_nothing_else_is(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stage = Stage(stack, tmp_path)
        of = stage.all
        stage.go_on(12 * TICK)
        for each in (of[EVASIVE], of[RELEASE]):
            each.pin()
        assert not any(stage.told().values())

        of[FALL].traffic["shop"] = {"answer_relevancy": 0.2}
        stage.end_of_the_judge()
        del of[SILENT].traffic["docs"]
        of[EVASIVE].traffic["shop"] = {"evading": 0.33}
        of[RELEASE].traffic["shop"] = {"release": "2", "answer_relevancy": 0.65}
        of[ROLLBACK].traffic["shop"] = {"release": "2", "answer_relevancy": 0.1}
        stage.gold_falls()
        stage.restart()
        stage.go_on(60 * TICK, lambda: bool(stage.told()[ROLLBACK]))
        of[ROLLBACK].traffic["shop"] = {"release": "1", "count": 6}
        stage.go_on(180 * TICK, lambda: stage.told() == EXPECTED and bool(stage.told("resolved")[ROLLBACK]))
        firing = {
            (a["labels"]["namespace"], a["labels"]["alertname"])
            for a in stage.server.alerts()
            if a["state"] == "firing"
        }
    assert stage.told() == EXPECTED
    assert stage.told("resolved")[ROLLBACK] == EXPECTED[ROLLBACK]
    assert not any(name == ROLLBACK for name, _ in firing)
