"""How soon a change is told, as `check` says, against the formula and against the detector itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarks.drift_streams import BY_NAME, WARM, alarms
from tracescore.config import Config, OpenAIEmbedderConfig, OpenAIJudgeConfig, PriceConfig, SamplingConfig
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift.family import Family
from tracescore.drift.power import SPREAD, days_of_learning, gap, report, scores_to_detection


@pytest.mark.parametrize(("drop", "below", "limit", "spread"), [(0.1, 0.02, 1e4, 0.4), (0.05, 0.02, 1e6, 0.2)])
def test_the_time_to_a_detection_is_the_logarithm_of_what_is_at_stake_over_what_a_score_tells(
    drop: float, below: float, limit: float, spread: float
) -> None:
    told = (drop - below) ** 2 / (2 * spread**2)
    assert scores_to_detection(drop, below, limit, spread) == pytest.approx(math.log(limit * told) / told)


def test_a_fall_within_the_gap_is_never_told() -> None:
    assert scores_to_detection(0.02, 0.02, 1e4) is None
    assert scores_to_detection(0.021, 0.02, 1e4) > 0


@pytest.mark.parametrize("name", ["bernoulli .7", "beta10", "parts2 .7"])
@pytest.mark.parametrize("drop", [0.05, 0.10])
def test_the_detector_itself_takes_as_long_within_a_tenth(name: str, drop: float) -> None:
    shape, below, limit = BY_NAME[name], 0.02, 2_400.0
    rng, streams, drawn = np.random.default_rng(8), 400, 0

    def draw(steps: int, rows):
        nonlocal drawn
        mean = shape.mean - (drop if drawn >= WARM else 0)
        drawn += steps
        return shape.draw(rng, (steps, rows.size), mean)

    scores, _ = alarms(draw, shape.mean - below, limit, streams, WARM + 12_000)
    took = (scores - WARM)[scores > WARM]
    spread = shape.draw(rng, (100_000,), shape.mean - drop).std()
    assert took.size > 0.99 * streams
    assert scores_to_detection(drop, below, limit * 100, spread) == pytest.approx(took.mean(), rel=0.1)


@pytest.mark.parametrize(("per_day", "days"), [(10_000, 7), (143, 7), (142, 14), (50, 21), (1, 1001)])
def test_learning_takes_whole_weeks_until_there_are_enough_scores(per_day: int, days: int) -> None:
    assert days_of_learning(DriftConfig(), per_day) == days


def test_the_gap_is_the_tolerance_or_the_doubt_of_what_was_learned() -> None:
    assert gap(DriftConfig(), 1_000) == 0.02
    assert gap(DriftConfig(tolerance=0.0), 1_000) == pytest.approx(2.576 * SPREAD / math.sqrt(7_000), rel=1e-3)
    few = DriftConfig(baseline=BaselineConfig(scores=200, days=1))
    assert gap(few, 200) == pytest.approx(2.576 * SPREAD / math.sqrt(200), rel=1e-3)


def priced(**more) -> Config:
    judge = OpenAIJudgeConfig(kind="openai", model="m", price=PriceConfig(input=0.4, output=1.6))
    return Config(judge=judge, embedder=OpenAIEmbedderConfig(kind="openai", model="e"), **more)


def test_check_tells_scores_hours_and_cost_at_the_traffic_and_threshold_in_force() -> None:
    config = priced(sampling=SamplingConfig(ratio=0.1))
    head, *falls, assumed = report(config, 3_000)
    assert "3,000 scores a day, of 30,000 interactions at ratio 0.1" in head
    limit = Family(config.drift, config.sampling, config.measures).threshold * 3_000
    scores = scores_to_detection(0.1, 0.02, limit)
    each = (5_500 * 0.4 + 900 * 1.6) / 1e6
    assert falls[1] == (
        f"  tracescore reports a drop of 0.10 after {scores:,.0f} to {1.5 * scores:,.0f} scores, "
        f"{scores / 125:.1f} to {1.5 * scores / 125:.1f} hours; "
        f"the judge costs {scores * each:.2f} to {1.5 * scores * each:.2f}, as judge.price has it"
    )
    assert len(falls) == 3
    assert f"a standard deviation of {SPREAD}" in assumed
    assert "8 detectors" in assumed


@pytest.mark.parametrize(("per_day", "unit"), [(30, "days"), (3_000, "hours"), (100_000, "minutes")])
def test_check_tells_the_time_in_a_unit_that_people_read(per_day: int, unit: str) -> None:
    _, _, fall, *_ = report(priced(), per_day)
    assert f" {unit};" in fall


def test_a_fall_that_is_too_small_to_be_told_is_called_so_and_without_a_detector_nothing_is_said() -> None:
    lines = list(report(Config(drift=DriftConfig(tolerance=0.07)), 1_000))
    assert (
        lines[1]
        == "  tracescore does not report a drop of 0.05, only one above 0.070 (drift.tolerance, drift.baseline)"
    )
    assert list(report(Config(drift=DriftConfig(detector=False)), 1_000)) == []
