"""Changes from end to end: what becomes of the scores, and what a person is told, by a real Alertmanager.

Weeks pass in seconds, as the clock is the test's own; Prometheus has its own, and scrapes what is known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live import alerting
from tests.openai_server import OpenAIServer, Reply, Request, openai_server, sensible
from tests.results import SettableClock, interaction
from tests.servers import PrometheusServer, wait
from tests.showcase import JUDGE, Replica, replicas
from tracescore.config import DEFAULT_MEASURES, SamplingConfig
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift.baseline import DAY
from tracescore.evaluators import evaluate_all
from tracescore.model import Interaction, Result, Score

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

PER_DAY = 200
DRIFT = {"baseline": BaselineConfig(scores=400, days=2)}


class Weeks:
    """A replica whose scores come by the clock of the test; what is told about it, and what Prometheus says."""

    def __init__(self, replica: Replica, clock: SettableClock, server: PrometheusServer, came: list[Any]) -> None:
        self.replica, self.clock, self.server, self.came = replica, clock, server, came
        self.rng, self.asked = np.random.default_rng(11), 0

    def next(self, **fields: Any) -> Interaction:
        """The interaction that ends now, a little later than the one before."""
        self.clock.now += DAY / PER_DAY
        self.asked += 1
        return interaction(self.asked, ended=self.clock.now, environment="prod", **fields)

    def score(self, count: int, means: dict[str, float], **fields: Any) -> None:
        """So many interactions whose scores are 0 or 1, with these means."""
        results = []
        for _ in range(count):
            told = self.next(**fields)
            scores = (Score(m, float(self.rng.random() < means[m])) for m in DEFAULT_MEASURES)
            results.append(Result(told, tuple(scores), JUDGE, finished=self.clock.now))
        self.replica.portal.call(self._take, results)

    async def _take(self, results: Sequence[Result]) -> None:
        for result in results:
            for exporter in self.replica.service.exporters:
                await exporter.export(result)

    def firing(self) -> set[tuple[str, str]]:
        """(alert, detector) of what fires by now, with the rules having seen all scores."""
        self.server.wait_rules()
        return {(a["labels"]["alertname"], a["labels"].get("detector", "")) for a in self.server.alerts()}


@contextmanager
def weeks(tmp_path: Path, models: OpenAIServer | None = None, **settings: Any) -> Iterator[Weeks]:
    clock = SettableClock()
    clock.now -= clock.now % DAY
    with ExitStack() as stack:
        (replica,) = stack.enter_context(
            replicas(1, models, clock=clock, **({"drift": DriftConfig(**DRIFT)} | settings))
        )
        replica.ask_judge()
        server, came = stack.enter_context(alerting(tmp_path, [replica.address]))
        yield Weeks(replica, clock, server, came)


USUAL = {"answer_relevancy": 0.85, "completeness": 0.9, "faithfulness": 0.95}


def test_a_release_that_is_bad_from_its_first_request_is_told(tmp_path: Path) -> None:
    with weeks(tmp_path) as run:
        run.score(5 * PER_DAY, USUAL, release="1.0")
        assert run.firing() == set()
        run.score(150, USUAL | {"completeness": 0.6}, release="2.0")
        told = wait(lambda: run.came, "no alert came")[0]
        assert run.firing() == {("TracescoreChanged", "completeness")}
        shown = run.replica.service.drift.show()["services"][0]
        change = 'tracescore_drift_release_change{}_ratio{{measure="completeness", before="1.0"}}'
        lower, mean, upper = (run.server.query(change.format(end))[0].value for end in ("_lower", "", "_upper"))
    assert lower < -0.3 < upper
    assert lower < mean < upper < 0
    assert told["labels"]["service_name"] == "shop"
    assert told["annotations"]["page"].endswith("/?measure=completeness&service=shop")
    (changed,) = [each for each in shown["detectors"] if each["state"] == "changed"]
    first_seen = run.replica.service.releases.use(("shop", "prod")).known["2.0"].first
    assert abs(changed["change_timestamp_seconds"] - first_seen) < DAY / 4


def test_a_daily_cycle_and_a_ratio_that_changes_tell_nobody_anything(tmp_path: Path) -> None:
    """Mornings are better than evenings; half the traffic is of another rule and of other scores, and thins out."""
    drift = DriftConfig(baseline=BaselineConfig(scores=1_000, days=7), tolerance=0.05)
    with weeks(tmp_path, drift=drift, sampling=SamplingConfig(ratio=0.1)) as run:
        for number in range(21 * PER_DAY):
            errors = number % (2 if number < 14 * PER_DAY else 6) == 0
            swing = 0.03 * math.sin(2 * math.pi * run.clock.now / DAY)
            means = {measure: mean - 0.2 * errors + swing for measure, mean in USUAL.items()}
            run.score(1, means, rule="errors" if errors else "default", weight=1.0 if errors else 10.0)
        assert run.firing() == set()
        (service,) = run.replica.service.drift.show()["services"]
    assert run.came == []
    assert {each["state"] for each in service["detectors"] if each["scores"]} <= {"steady", "suspected"}


# ---------------------------------------------------------------- the judge


SUPPORTED = ("The window is 30 days long.", "Items go back by post.")
INVENTED = ("Elephants fly to Lisbon.", "Nobody pays anything.")


def harsher(request: Request) -> Reply:
    """The same model by its name, which does not believe the second claim any more."""
    reply = sensible(request)
    if request.prompt != "verify_support" or request.is_probe:
        return reply
    verdicts = json.loads(reply.content)
    for verdict in verdicts["verdicts"]:
        if verdict["id"] == "s2":
            verdict |= {"verdict": "not_found", "quote": ""}
    return Reply.json(verdicts)


def asked(run: Weeks, claims: tuple[str, str]) -> Interaction:
    return run.next(
        question=f"How long is window {run.asked}?",
        answer=" ".join(claims),
        contexts=(" ".join(SUPPORTED),),
        context_source="retrieval",
    )


def evaluate(run: Weeks, count: int, claims: tuple[str, str]) -> None:
    """So many answers, scored by the judge itself."""

    async def go() -> None:
        scorer = run.replica.service.scorer
        for _ in range(count):
            await run._take([await evaluate_all(asked(run, claims), scorer.evaluators, scorer.judge, run.clock)])

    run.replica.portal.call(go)


@pytest.mark.parametrize("who", ["judge", "product"])
def test_who_moved_is_told_from_items_that_stay_the_same(tmp_path: Path, who: str) -> None:
    anchors = tmp_path / "anchors.jsonl"
    rows = [
        {"question": f"What of {n}?", "answer": " ".join(SUPPORTED), "contexts": [" ".join(SUPPORTED)]}
        for n in range(40)
    ]
    anchors.write_text("\n".join(json.dumps(row) for row in rows))
    drift = DriftConfig(baseline=BaselineConfig(scores=200, days=1), anchors=str(anchors))
    with openai_server() as models, weeks(tmp_path, models, drift=drift, measures=("faithfulness",)) as run:
        watch = run.replica.service.drift
        run.replica.portal.call(run.replica.service.scorer.fit.set)
        serving = run.replica.portal.start_task_soon(watch.anchors.serve)
        try:
            wait(lambda: watch.anchors.passes >= 3, "the anchors are not scored", 60)
            evaluate(run, 210, SUPPORTED)
            if who == "judge":
                models.script = harsher
            evaluate(run, 45, SUPPORTED if who == "judge" else (SUPPORTED[0], INVENTED[0]))
            shown = wait(lambda: _verdict(run), "no verdict", 60)
            told = wait(lambda: run.came, "no alert came")
            (shift,) = run.server.query(
                'tracescore_drift_anchor_shift_ratio{detector="faithfulness", against="baseline"}'
            )
        finally:
            serving.cancel()
        names = {alert["labels"]["alertname"] for alert in told}
    assert shown == who
    assert shift.value == pytest.approx(-0.5 if who == "judge" else 0.0)
    assert names == ({"TracescoreJudgeMoved"} if who == "judge" else {"TracescoreChanged"})


def _verdict(run: Weeks) -> str:
    found = run.server.query("tracescore_drift_verdict == 1")
    verdicts = {sample.labels["verdict"] for sample in found} - {"none", "pending"}
    return verdicts.pop() if verdicts else ""
