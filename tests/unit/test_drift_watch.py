"""All detectors of a process together: what they share, what is told, and what outlives a restart."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW, SettableClock, interaction
from tests.states import reread
from tracescore.config import DEFAULT_MEASURES, SamplingConfig
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift.anchors import Anchors
from tracescore.drift.baseline import DAY
from tracescore.drift.family import MOST_POPULATIONS
from tracescore.drift.watch import DriftWatch
from tracescore.model import Interaction, Result, Score

pytestmark = pytest.mark.anyio

MEANS = {"answer_relevancy": 0.9, "completeness": 0.9, "faithfulness": 0.95}


class App:
    """An app whose answers score 0 or 1, 500 a day, and what watches it."""

    def __init__(self, **settings) -> None:
        self.clock, self.registry = SettableClock(), CollectorRegistry()
        known = {"baseline": BaselineConfig(scores=200, days=1), "targets": {"faithfulness": 0.5}}
        self.watch = self.watching(**(known | settings))
        self.rng, self.numbers = np.random.default_rng(5), itertools.count(1)

    def watching(self, targets: Mapping[str, float] = MappingProxyType({}), **settings) -> DriftWatch:
        """Measures that are not named in `targets` have none."""
        settings["targets"] = dict.fromkeys(DEFAULT_MEASURES) | targets
        args = (DriftConfig(**settings), SamplingConfig(), DEFAULT_MEASURES, self.clock)
        return DriftWatch(self.registry, *args)

    async def answer(
        self, count: int = 1, *, epoch: int = 0, judge: str = "embedded-v2", evading: float = 0.05, **more
    ):
        means = MEANS | {name: more.pop(name) for name in list(more) if name in MEANS}
        for _ in range(count):
            self.clock.now += DAY / 500
            scores = [Score(m, float(self.rng.random() < mean), details={"parts": 2}) for m, mean in means.items()]
            if self.rng.random() < evading:
                scores = [Score("answer_relevancy", 0.0, "noncommittal"), Score("completeness", 0.0)]
            told = interaction(next(self.numbers), ended=self.clock.now - 1, **more)
            await self.watch.export(Result(told, tuple(scores), judge, epoch, finished=self.clock.now))

    def metric(self, name: str, **labels: str) -> float | None:
        known = {"judge": "embedded-v2", "service_name": "shop", "deployment_environment": "production"}
        detector = labels.get("detector")
        if detector:
            measure = {"answered": "answer_relevancy", "completeness_multipart": "completeness"}.get(detector, detector)
            known |= {"measure": measure, "against": "baseline"}
        return self.registry.get_sample_value(f"tracescore_drift_{name}", known | labels)

    def states(self, name: str) -> set[str]:
        label = {"verdict": "verdict", "diagnosis": "pattern"}[name]
        found = [
            s for family in self.registry.collect() for s in family.samples if s.name == f"tracescore_drift_{name}"
        ]
        return {sample.labels[label] for sample in found if sample.value == 1}


async def test_steady_scores_change_nothing_and_learning_is_shown() -> None:
    app = App()
    await app.answer(100)
    assert app.metric("learning", detector="completeness") == 1
    assert app.metric("reference_ratio", detector="completeness") is None
    await app.answer(3_000)
    assert app.metric("learning", detector="completeness") == 0
    assert 0.8 < app.metric("reference_ratio", detector="completeness") < 0.9
    assert app.metric("detected", detector="completeness") == 0
    assert app.states("diagnosis") == app.states("verdict") == {"none"}


async def test_a_fall_of_one_measure_is_told_of_that_measure_and_names_its_pattern() -> None:
    app = App(tolerance=0.1)
    await app.answer(3_000)
    await app.answer(1_500, answer_relevancy=0.4)
    assert app.metric("detected", detector="answer_relevancy") == 1
    assert {app.metric("detected", detector=name) for name in ("completeness", "faithfulness", "answered")} == {0}
    assert app.states("diagnosis") == {"prompting"}
    assert app.states("verdict") == {"unattributed"}, "without anchors nobody knows"
    (service,) = app.watch.show()["services"]
    assert service["detectors"][0]["state"] == "changed"


async def test_more_evasions_are_told_as_such_and_hide_nothing() -> None:
    app = App(tolerance=0.05)
    await app.answer(3_000)
    await app.answer(400, evading=0.5)
    assert app.states("diagnosis") == {"abstaining"}
    assert app.metric("detected", detector="answer_relevancy") == 0


async def test_too_little_known_of_the_rest_is_unclear() -> None:
    app = App(tolerance=0.01)
    await app.answer(600)
    await app.answer(300, answer_relevancy=0.4)
    assert app.states("diagnosis") == {"unclear"}


async def test_the_log_says_when_a_change_began_and_where_to_look(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    began = app.clock.now
    await app.answer(300, faithfulness=0.2)
    (line,) = [each for each in caplog.messages if "against=target" in each]
    since = datetime.fromisoformat(re.findall(r" since=(\S+) ", line)[0]).timestamp()
    assert began - 1 <= since <= app.clock.now
    assert "tracescore baseline show" in line


async def test_a_target_that_is_missed_is_told_while_the_baseline_is_still_learned() -> None:
    app = App(targets={"faithfulness": 0.8})
    await app.answer(300, faithfulness=0.5)
    assert app.metric("detected", detector="faithfulness", against="target") == 1
    assert app.metric("learning", detector="faithfulness") == 1


async def test_the_threshold_counts_all_detectors_there_ever_were() -> None:
    app = App()
    await app.answer()
    one = app.watch.family.threshold
    await app.answer(service="bank")
    assert app.watch.family.threshold == pytest.approx(2 * one)


async def test_a_flood_of_names_leaves_those_that_are_known_and_is_counted() -> None:
    app = App()
    for number in range(MOST_POPULATIONS + 3):
        await app.answer(service=f"s{number}")
    assert len(app.watch.family.watched) == MOST_POPULATIONS
    assert app.registry.get_sample_value("tracescore_drift_unwatched_results_total") == 3
    app.clock.now += 8 * DAY
    await app.answer(service="late")
    assert ("late", "production") in app.watch.family.watched, "one that is silent and unlearned gave way"


async def test_a_new_judge_epoch_is_learned_anew_and_results_of_the_old_one_count_no_more() -> None:
    app = App()
    await app.answer(600)
    assert app.metric("learning", detector="completeness") == 0
    await app.answer(epoch=1)
    assert app.metric("learning", detector="completeness") == 1
    await app.answer(epoch=0)
    assert app.metric("scores", detector="completeness") == 1
    await app.answer(judge="gpt", epoch=0)
    assert app.metric("scores", detector="completeness", judge="gpt") == 1, "another judge is another scale"


async def test_a_new_release_changes_nothing() -> None:
    app = App()
    await app.answer(600)
    await app.answer(10, release="2.0.0")
    assert app.metric("learning", detector="completeness") == 0


async def test_all_of_it_outlives_a_restart() -> None:
    app = App()
    await app.answer(700)
    await app.answer(300, answer_relevancy=0.4)
    saved = reread(app.watch.state())
    app.registry = CollectorRegistry()
    before, app.watch = (
        app.watch,
        app.watching(baseline=BaselineConfig(scores=200, days=1), targets={"faithfulness": 0.5}),
    )
    app.watch.resume(saved)
    assert app.watch.show() == before.show()
    assert app.metric("detected", detector="answer_relevancy") == 1


async def test_a_target_that_was_changed_begins_anew_at_a_restart() -> None:
    app = App(targets={"faithfulness": 0.8})
    await app.answer(300, faithfulness=0.5)
    saved, app.registry = app.watch.state(), CollectorRegistry()
    app.watch = app.watching(baseline=BaselineConfig(scores=200, days=1), targets={"faithfulness": 0.4})
    app.watch.resume(saved)
    assert app.metric("evidence_days", detector="faithfulness", against="target") == 0
    assert app.metric("scores", detector="faithfulness") > 250, "what was learned is not lost"


async def test_a_change_that_was_told_by_a_detector_that_is_gone_is_none_after_a_restart() -> None:
    app = App(targets={"faithfulness": 0.9})
    await app.answer(1_200, faithfulness=0.3)
    assert app.metric("detected", detector="faithfulness", against="target") == 1
    saved, app.registry = app.watch.state(), CollectorRegistry()
    app.watch = app.watching(baseline=BaselineConfig(scores=200, days=1), targets={})
    app.watch.anchors = Anchors([interaction(1)], rescored, app.clock, DAY)
    app.watch.resume(saved)
    assert app.states("verdict") == {"none"}


async def rescored(anchor: Interaction) -> Result:
    raise AssertionError(anchor)


async def test_a_clock_that_was_years_ahead_does_not_blind_the_detectors() -> None:
    app = App()
    right = app.clock.now
    app.clock.now += 1_000 * DAY
    await app.answer(100)
    app.clock.now = right
    await app.answer(1_000)
    assert app.metric("learning", detector="faithfulness") == 0
    app.clock.now += 1_000 * DAY
    await app.answer(1)
    app.clock.now -= 1_000 * DAY
    app.watch.reset("shop", None)
    await app.answer(700)
    await app.answer(300, faithfulness=0.2)
    assert app.metric("detected", detector="faithfulness") == 1


async def test_reset_learns_anew_what_was_chosen_and_pin_ends_learning() -> None:
    app = App()
    await app.answer(600)
    assert app.watch.reset("shop", "completeness") == 1
    assert app.metric("learning", detector="completeness") == 1
    assert app.metric("learning", detector="answered") == 0
    assert app.watch.pin("shop", "completeness", None) == 0, "there is nothing to learn from yet"
    assert app.watch.pin("shop", "completeness", 0.7) == 1
    assert app.metric("reference_ratio", detector="completeness") == 0.7
    assert app.watch.reset("bank", None) == 0
    with pytest.raises(ValueError, match=re.escape("detector: one of answer_relevancy,")):
        app.watch.pin(None, "latency", 0.5)


async def test_a_swing_of_the_day_is_shown_and_by_block_advised() -> None:
    app = App(baseline=BaselineConfig(scores=200, days=4))
    for _ in range(4 * 500 + 20):
        day = (app.clock.now % DAY) / DAY < 0.5
        await app.answer(completeness=0.95 if day else 0.6)
    (service,) = app.watch.show()["services"]
    advised = {each["detector"] for each in service["detectors"] if each["by_block_advised"]}
    assert advised == {"completeness", "completeness_multipart"}
    assert app.metric("swing_ratio", detector="completeness") > 0.2


async def test_a_label_from_telemetry_is_made_safe() -> None:
    app = App()
    await app.answer(service="a\x00b" + "x" * 300, environment="")
    ((service, environment),) = app.watch.family.watched
    assert len(service) == 128
    assert service.isprintable()
    assert environment == "unknown"


async def test_time_is_that_of_the_interactions_but_never_the_future() -> None:
    app = App()
    await app.answer(3)
    told = interaction(99, ended=NOW + 400 * DAY)
    await app.watch.export(Result(told, (Score("faithfulness", 1.0),), "embedded-v2", finished=app.clock.now))
    (watched,) = app.watch.family.watched.values()
    assert watched.last == app.clock.now


async def test_a_change_that_was_told_does_not_flicker_and_ends_when_nothing_is_suspected_any_more() -> None:
    app = App()
    await app.answer(600)
    told = []
    for _ in range(200):
        await app.answer(answer_relevancy=0.6)
        told.append(app.metric("detected", detector="answer_relevancy"))
    assert told == sorted(told)
    assert told[-1] == 1
    for _ in range(100):
        await app.answer(30)
        if not app.metric("detected", detector="answer_relevancy"):
            break
    assert app.metric("evidence_days", detector="answer_relevancy") < app.watch.family.threshold**0.5
    assert app.states("diagnosis") == {"none"}


async def test_a_conversation_is_one_observation_once_it_is_over() -> None:
    app = App(conversation_idle="1h")
    for _ in range(4):
        app.clock.now -= DAY / 500 - 60  # a minute apart
        await app.answer(conversation_id="c", evading=0.0)
    assert app.metric("scores", detector="completeness") == 0
    app.clock.now += 2 * 3600
    await app.answer(evading=0.0)
    assert app.metric("scores", detector="completeness") == 2
