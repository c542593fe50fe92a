"""Days that differ as they always did are no change, and a change that is mended is soon over."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.states import reread
from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import DAY, SWINGS, Baseline, Sample
from tracescore.drift.detector import Detector
from tracescore.drift.stratum import threshold
from tracescore.drift.week import Day, spread_at_most, spread_between
from tracescore.formulas import Vector

MONDAY = 1_700_438_400.0
LIMIT = threshold(30, 8)
PER_DAY = 300


def day_of(scores: Vector) -> Day:
    return Day(scores.size, float(scores.sum()), float((scores**2).sum()))


def learned(sample: Sample) -> Baseline:
    return sample.baseline(0.02, by_block=False, doubt=0.005)


def sampled(means: list[float], scores: int = PER_DAY) -> Sample:
    """A day of scores around each mean."""
    rng, sample = np.random.default_rng(2), Sample()
    for day, mean in enumerate(means):
        for number, score in enumerate(rng.beta(10 * mean, 10 * (1 - mean), scores)):
            sample.add(MONDAY + (day + number / scores) * DAY, float(score), 1.0)
    return sample


@pytest.mark.parametrize(
    ("days", "spread"),
    [
        ([], None),
        ([[0.2, 0.4, 0.9]], None),  # one day
        ([[0.2], [0.9]], None),  # chance and difference cannot be told apart
        ([[0.5, 0.5], [0.5, 0.5]], 0.0),
        ([[0.4, 0.4], [0.6, 0.6]], math.sqrt(0.02)),  # no chance in the scores: the variance of 0.4 and 0.6
        ([[0.3, 0.5], [0.5, 0.7]], 0.1),  # the same less 0.02 / 2, the chance in a mean of two
        ([[0.0, 1.0], [0.1, 0.9]], 0.0),  # days more alike than chance would have them
    ],
)
def test_the_spread_between_days_is_what_is_beyond_chance(days: list[list[float]], spread: float | None) -> None:
    assert spread_between(dict(enumerate(day_of(np.array(each)) for each in days))) == pytest.approx(spread)


def test_the_spread_between_many_days_is_the_true_one_however_unequal_they_are() -> None:
    rng = np.random.default_rng(4)
    days = [day_of(rng.normal(rng.normal(0.7, 0.03), 0.1, rng.integers(5, 200))) for _ in range(2_000)]
    assert spread_between(dict(enumerate(days))) == pytest.approx(0.03, rel=0.1)


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=9), max_size=9))
def test_the_spread_between_days_is_never_more_than_scores_can_have(days: list[list[float]]) -> None:
    assert 0 <= (spread_between(dict(enumerate(day_of(np.array(each)) for each in days))) or 0) <= 1


def test_the_reference_lies_below_the_mean_by_the_swing_of_days_or_the_tolerance_whichever_is_more() -> None:
    even, uneven = learned(sampled([0.8] * 7)), learned(sampled([0.75, 0.85] * 3 + [0.8]))
    assert even.references[0] == pytest.approx(even.mean - 0.02)
    assert uneven.between_days is not None
    assert uneven.between_days == pytest.approx(0.05, abs=0.01)
    assert uneven.references[0] == pytest.approx(uneven.mean - SWINGS * uneven.between_days)


def test_days_are_kept_over_a_restart_and_added_up_where_samples_are_merged() -> None:
    first, second = sampled([0.8] * 5), sampled([0.5, 0.7])
    assert learned(Sample.of(reread(first.state()))) == learned(first)
    merged = learned(first.merged(second))
    assert merged.between_days == pytest.approx(learned(second.merged(first)).between_days)
    assert merged.between_days != learned(first).between_days


def test_a_sample_of_a_version_that_kept_no_days_goes_on_learning_with_the_days_to_come() -> None:
    old = Sample.of(reread(replace(sampled([0.8] * 7).state(), days=())))
    assert old.scores == 7 * PER_DAY
    assert learned(old).references[0] == pytest.approx(learned(old).mean - 0.02)


class Stream:
    """A detector with default settings, and scores around a mean, 300 a day from a Monday on."""

    def __init__(self, seed: int, weekend: float = 0.0) -> None:
        self.detector, self.rng, self.weekend = Detector(DriftConfig()), np.random.default_rng(seed), weekend
        self.at, self.alarmed, self.alarms = MONDAY, False, 0
        self.send(7 * PER_DAY + 2)
        assert not self.detector.is_learning

    def send(self, count: int, mean: float = 0.8, until: bool | None = None) -> int:
        """How many scores there were until the alarm was as `until` says, `count` at most."""
        for number in range(count):
            self.at += DAY / PER_DAY
            usual = mean - self.weekend * ((self.at - MONDAY) // DAY % 7 >= 5)
            score = float(self.rng.beta(10 * usual, 10 * (1 - usual)))
            self.detector.take(self.at, "default", score, weight=1.0, max_weight=1.0, threshold=LIMIT)
            evidence = self.detector.evidence
            self.alarms += not self.alarmed and evidence >= LIMIT
            self.alarmed = evidence >= (math.sqrt(LIMIT) if self.alarmed else LIMIT)
            if self.alarmed == until:
                return number + 1
        return count


def test_weekends_as_they_always_were_are_no_change() -> None:
    streams = [Stream(seed, weekend=0.05) for seed in range(3)]
    for stream in streams:
        stream.send(30 * PER_DAY)
    assert sum(stream.alarms for stream in streams) <= 1


def test_a_fall_beside_weekends_is_told_within_a_day() -> None:
    assert median(Stream(seed, weekend=0.05).send(3_000, mean=0.7, until=True) for seed in range(5)) <= PER_DAY


@pytest.mark.parametrize(("drop", "lasted"), [(0.2, 100), (0.1, 500), (0.2, 1_000), (0.05, 3_000)])
def test_the_alert_of_a_mended_fall_is_over_within_400_scores(drop: float, lasted: int) -> None:
    stayed = []
    for seed in range(5):
        stream = Stream(seed)
        stream.send(lasted, mean=0.8 - drop)
        assert stream.alarmed
        stayed.append(stream.send(3_000, until=False))
    assert median(stayed) <= 400


def test_the_alert_of_a_fall_that_lasts_does_not_come_and_go() -> None:
    streams = [Stream(seed) for seed in range(4)]
    for stream in streams:
        stream.send(4_000, mean=0.6)
    assert [stream.alarms for stream in streams] == [1] * 4


def test_few_days_that_happen_to_be_alike_may_still_differ_and_many_may_not() -> None:
    rng = np.random.default_rng(5)

    def at_most(days: int, spread: float) -> float:
        drawn = rng.normal(0.8, spread, days)
        return spread_at_most({n: day_of(rng.beta(10 * m, 10 * (1 - m), 300)) for n, m in enumerate(drawn)}) or 0.0

    seven = [at_most(7, 0.02) for _ in range(400)]
    assert np.mean(np.array(seven) >= 0.02) == pytest.approx(0.9, abs=0.04), "an upper limit of 90 %"
    assert at_most(200, 0.02) == pytest.approx(0.02, rel=0.2)
    assert at_most(200, 0.0) < 0.005
    assert spread_at_most({}) is None
