"""Planned changes, references that are given, and the words for what is known."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW
from tests.states import reread
from tests.unit.test_drift_watch import App
from tracescore.cli.baseline import _references
from tracescore.config import Config, SamplingConfig
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift import build_watch
from tracescore.drift.baseline import DAY
from tracescore.drift.family import Family
from tracescore.drift.pauses import Pauses, until
from tracescore.drift.power import measured
from tracescore.drift.references import given_reference, with_references
from tracescore.drift.watch import DriftWatch
from tracescore.errors import UsageError
from tracescore.model import LIVE_MEASURES

pytestmark = pytest.mark.anyio

SMALL = {"baseline": BaselineConfig(scores=200, days=1), "targets": {"faithfulness": 0.5}}


def detector(app: App, name: str = "faithfulness", against: str = "baseline") -> dict:
    shown = app.watch.show()["services"][0]["detectors"]
    return next(each for each in shown if (each["detector"], each["against"]) == (name, against))


# ---------------------------------------------------------------- pauses


async def test_a_planned_change_is_silent_and_what_comes_after_it_is_normal() -> None:
    app = App()
    await app.answer(700)
    app.watch.pause("shop", app.clock.now + DAY / 2, "a new prompt")
    await app.answer(200, faithfulness=0.2)
    assert app.metric("detected", detector="faithfulness") == 0
    assert app.registry.get_sample_value("tracescore_drift_paused", {"service_name": "shop"}) == 1
    assert detector(app)["state"] == "paused"
    assert detector(app, against="target")["state"] == "paused"
    await app.answer(100, faithfulness=0.4)
    assert app.registry.get_sample_value("tracescore_drift_paused", {"service_name": "shop"}) == 0
    assert detector(app)["state"] == "learning"
    assert 20 < detector(app)["scores"] < 60, "what was scored during the change is not learned"
    await app.answer(1_000, faithfulness=0.4)
    assert detector(app)["state"] == "steady"
    assert detector(app)["baseline_ratio"] == pytest.approx(0.4, abs=0.1)


async def test_a_change_that_was_reported_is_none_any_more_once_it_is_planned() -> None:
    app = App()
    await app.answer(700)
    await app.answer(200, faithfulness=0.3)
    assert app.metric("detected", detector="faithfulness") == 1
    app.watch.pause("shop", app.clock.now + DAY, "known to the team")
    assert app.metric("detected", detector="faithfulness") == 0
    assert app.states("diagnosis") == app.states("verdict") == {"none"}
    (service,) = app.watch.show()["services"]
    assert (service["pause"]["why"], service["pause"]["over"]) == ("known to the team", False)


async def test_a_pause_outlives_a_restart_and_can_be_ended_early(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    await app.answer(700)
    app.watch.pause("shop", app.clock.now + DAY, 'the "new" index')
    assert 'event=baseline_paused service="shop"' in caplog.text
    assert 'why="the ?new? index"' in caplog.text
    saved, app.registry = reread(app.watch.state()), CollectorRegistry()
    app.watch = app.watching(**SMALL)
    app.watch.resume(saved)
    await app.answer(50, faithfulness=0.2)
    assert detector(app)["state"] == "paused"
    assert app.watch.end_pause("shop") == 6
    assert 'cause=planned_change_over service="shop"' in caplog.text
    assert detector(app)["state"] == "learning"
    (service,) = app.watch.show()["services"]
    assert (service["pause"]["until"], service["pause"]["over"]) == (app.clock.now, True)
    with pytest.raises(ValueError, match="service: a paused one expected; got 'shop'"):
        app.watch.end_pause("shop")


async def test_a_pause_that_ends_while_nothing_comes_is_over_all_the_same() -> None:
    app = App()
    await app.answer(700)
    app.watch.pause("shop", app.clock.now + 60, "a minute")
    app.clock.now += 61
    assert detector(app)["state"] == "learning"


async def test_what_comes_late_of_a_planned_change_is_not_learned() -> None:
    app = App()
    await app.answer(700)
    app.watch.pause("shop", app.clock.now + 3_600, "an hour")
    app.clock.now += 3_700
    app.watch.show()
    app.clock.now -= 2 * DAY / 500  # the next answer ended during the change
    late = app.clock.now
    await app.answer(1)
    assert late + DAY / 500 < NOW + 700 * DAY / 500 + 3_600
    assert detector(app)["scores"] == 0


async def test_other_services_are_watched_on_while_one_is_paused() -> None:
    app = App()
    await app.answer(700)
    await app.answer(1, service="bank")
    app.watch.pause("bank", app.clock.now + DAY, "moving")
    await app.answer(200, faithfulness=0.3)
    assert app.metric("detected", detector="faithfulness") == 1


async def test_a_service_that_nobody_knows_is_refused_with_those_that_are() -> None:
    app = App()
    await app.answer(1)
    with pytest.raises(ValueError, match=r"service: a watched one expected \(shop\); got 'shpo'"):
        app.watch.pause("shpo", app.clock.now + 60, "why not")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("2h", NOW + 7_200),
        ("30m", NOW + 1_800),
        ("2027-01-15T09:00Z", NOW + 3_600),
        ("2027-01-15T10:00+01:00", NOW + 3_600),
        ("2027-01-15 09:00", NOW + 3_600),  # of UTC
    ],
)
def test_the_end_of_a_pause_is_a_duration_or_a_moment(text: str, ends: float) -> None:
    assert until(text, NOW) == ends


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "until: a duration such as 2h or a time such as 2027-01-31T08:00Z expected; got ''"),
        ("tomorrow", "until: a duration such as 2h"),
        ("2", "until: a duration such as 2h"),
        ("900d", "until: a duration such as 2h"),
        ("2027-01-15T08:00Z", "until: a time within the next 366 days expected"),
        ("2030-01-01", "until: a time within"),
    ],
)
def test_an_end_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        until(text, NOW)


@pytest.mark.parametrize("why", ["", "  ", "x" * 201, "two\nlines"])
def test_a_pause_needs_a_reason_of_one_line(why: str) -> None:
    with pytest.raises(ValueError, match="why: one line of 1 to 200 characters expected"):
        Pauses().begin("shop", NOW, NOW + 60, why)


# ---------------------------------------------------------------- references that are given


async def test_a_given_reference_is_watched_from_the_first_score_on() -> None:
    app = App(references={"shop": {"faithfulness": 0.9}, "*": {"completeness": 0.7}})
    await app.answer(200, faithfulness=0.5)
    assert app.metric("detected", detector="faithfulness") == 1
    assert app.metric("reference_ratio", detector="completeness") == 0.7
    assert app.metric("learning", detector="answer_relevancy") == 1
    assert "Dropped from the reference that was given by 0." in detector(app)["says"]


async def test_a_given_reference_that_changes_takes_the_place_of_the_old_one_at_a_restart() -> None:
    app = App(references={"shop": {"faithfulness": 0.9}})
    await app.answer(50)
    saved = reread(app.watch.state())
    for given, kept in (({"shop": {"faithfulness": 0.9}}, 50), ({"shop": {"faithfulness": 0.8}}, 0)):
        app.registry = CollectorRegistry()
        app.watch = app.watching(**SMALL, references=given)
        app.watch.resume(saved)
        assert app.metric("reference_ratio", detector="faithfulness") == given["shop"]["faithfulness"]
        assert (app.metric("scores", detector="faithfulness") > 40) == bool(kept)


def test_references_stand_in_a_file_as_well(tmp_path: Path) -> None:
    file = tmp_path / "references.yaml"
    file.write_text('"shop": {answer_relevancy: 0.780}\n"*": {faithfulness: 0.9}\n')
    settings = with_references(DriftConfig(references=str(file)))
    assert given_reference(settings, "shop", "answer_relevancy") == 0.78
    assert given_reference(settings, "shop", "faithfulness") == 0.9
    assert given_reference(settings, "bank", "answer_relevancy") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        ("shop: 0.5", "shop: Input should be a valid dictionary; {service: {detector: number between 0 and 1}}"),
        ("shop: {latency: 0.5}", "shop.latency: one of answer_relevancy"),
        ("shop: {faithfulness: 2}", "shop.faithfulness: Input should be less than 1"),
        ("shop: {", "references.yaml:1"),
    ],
)
def test_a_file_of_references_that_is_wrong_says_where_in_one_line(tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "references.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError) as refused:
        with_references(DriftConfig(references=str(file)))
    assert str(refused.value).startswith("drift.references: ")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_what_is_exported_can_be_given_and_is_the_lower_reference_of_two_environments(tmp_path: Path) -> None:
    app = App(references={"shop": {"faithfulness": 0.9}})
    await app.answer(1)
    app.watch.pin("shop", "faithfulness", 0.8)
    await app.answer(1, environment="test")
    await app.answer(1, service='b"k')
    file = tmp_path / "references.yaml"
    file.write_text("\n".join(_references(app.watch.show(), None)))
    assert with_references(DriftConfig(references=str(file))).references == {"shop": {"faithfulness": 0.8}}


# ---------------------------------------------------------------- how long a change lasts


async def test_a_change_is_over_once_nothing_was_suspected_for_fifty_scores_and_not_before() -> None:
    app, quiet = App(), 0
    await app.answer(700)
    await app.answer(100, faithfulness=0.3)
    assert detector(app)["state"] == "changed"
    while detector(app)["state"] == "changed":
        await app.answer(1, faithfulness=1.0, evading=0.0)
        suspected = detector(app)["evidence_days"] >= app.watch.family.threshold**0.5
        quiet = 0 if suspected else quiet + 1
        assert quiet <= 51
    assert quiet >= 50
    assert app.metric("detected", detector="faithfulness") == 0


@pytest.mark.parametrize("end", ["reset", "pin"])
async def test_a_change_that_somebody_ends_is_over_at_once(end: str) -> None:
    app = App()
    await app.answer(700)
    await app.answer(100, faithfulness=0.3)
    assert app.watch.reset("shop", None) if end == "reset" else app.watch.pin("shop", None, None)
    assert app.metric("detected", detector="faithfulness") == 0
    await app.answer(1)
    assert app.metric("detected", detector="faithfulness") == 0


async def test_a_new_judge_ends_every_change_at_once() -> None:
    app = App()
    await app.answer(300, faithfulness=0.2)
    assert app.metric("detected", detector="faithfulness", against="target") == 1
    await app.answer(1, epoch=1)
    assert app.metric("detected", detector="faithfulness", against="target") == 0


async def test_an_upgrade_with_other_evaluators_keeps_what_was_learned_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App()
    await app.answer(700)
    reference, saved = detector(app)["reference_ratio"], reread(app.watch.state())
    judge, epoch, version = saved.family.epoch
    app.registry = CollectorRegistry()
    app.watch = app.watching(**SMALL)
    app.watch.resume(replace(saved, family=replace(saved.family, epoch=(judge, epoch, version - 1))))
    await app.answer(20)
    assert detector(app)["reference_ratio"] == reference
    assert caplog.text.count("event=evaluators_changed") == 1
    assert "baseline_reset" not in caplog.text


# ---------------------------------------------------------------- words


async def test_a_process_that_keeps_nothing_says_so(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO")

    async def rescore(_: object) -> object:
        raise NotImplementedError

    def built(config: Config) -> DriftWatch:
        watch = build_watch(config, CollectorRegistry(), lambda: NOW, rescore, lambda _: False)
        assert watch is not None
        return watch

    kept = built(Config.model_validate({"spool": {"path": str(tmp_path / "spool")}}))
    assert kept.show()["forgot_before"] is None
    assert "changes_unknown" not in caplog.text
    assert built(Config()).show()["forgot_before"] == NOW
    assert "a change reported before is unknown here" in caplog.text


async def test_each_state_is_said_with_the_size_of_the_fall_since_when_and_over_how_many_answers() -> None:
    app = App()
    await app.answer(100)
    assert re.fullmatch(
        r"Learning what is normal, from \d+ of 200 answers so far, until 2027-01-16 08:0\d UTC at the earliest\.",
        detector(app)["says"],
    )
    await app.answer(900)
    steady = detector(app)
    assert re.fullmatch(
        r"No drop: 0\.\d{3} (\(0\.\d{3} to 0\.\d{3}\) )?(below|above) what is normal, over \d{3} answers of the last "
        r"seven days\. tracescore reports a drop of more than 0\.\d{3}\. The reference is provisional, from \d+ "
        r"answers of days that may differ, until .+ at the earliest\.",
        steady["says"],
    )
    whole = steady["gap"]["tolerance"] + steady["gap"]["swing"] + steady["gap"]["doubt"]
    assert (
        steady["gap"]["whole"]
        == pytest.approx(whole)
        == pytest.approx(steady["baseline_ratio"] - steady["reference_ratio"])
    )
    await app.answer(120, faithfulness=0.3)
    fell = detector(app)
    found = re.fullmatch(
        r"Dropped by (0\.\d{3}) \((0\.\d{3}) to (0\.\d{3})\) since about 2027-01-17 \d\d:\d\d UTC, "
        r"over (\d+) answers\.",
        fell["says"],
    )
    assert found is not None
    assert 0.4 < float(found[2]) < float(found[1]) < float(found[3]) < 0.85
    assert 90 < int(found[4]) < 140


async def test_the_log_says_how_much_it_fell_and_what_to_look_at(caplog: pytest.LogCaptureFixture) -> None:
    app = App(tolerance=0.1)
    await app.answer(1_000)
    await app.answer(100, faithfulness=0.3)
    (line,) = [each for each in caplog.messages if "detector=faithfulness against=baseline" in each]
    assert re.search(r"since=\S+ drop=0\.\d{3} from=0\.\d{3} to=0\.\d{3} answers=\d+ advice=", line)
    assert "read the lowest interactions first" in line, "so few answers name no pattern"
    assert "tracescore baseline show" in line


# ---------------------------------------------------------------- how soon, from what was measured


async def test_how_soon_a_fall_is_reported_comes_from_the_spread_and_the_traffic_that_were_measured() -> None:
    app = App()
    await app.answer(2_000)
    family = Family(DriftConfig(**SMALL), SamplingConfig(), LIVE_MEASURES)
    family.resume(reread(app.watch.state()).family)
    head, *lines = measured(Config(), family)
    assert head == "shop (production), as it has been measured:"
    told = next(line for line in lines if line.startswith("  faithfulness: "))
    per_day, spread, below = re.findall(
        r"(\d+) answers a day, spread (0\.\d\d); no report of a drop by up to (0\.\d{3})", told
    )[0]
    assert int(per_day) == pytest.approx(475, abs=15)  # 500, of which 5 % evade
    assert float(spread) == pytest.approx(0.22, abs=0.03)
    assert 0.02 <= float(below) < 0.06
    assert re.search(r"one by 0\.20 after \d+ to \d+ scores, [\d.]+ to [\d.]+ hours", told)
