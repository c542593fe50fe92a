"""What is learned: how weekdays differ, and, with little traffic, a provisional reference that no fall can lower."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.states import reread
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift.baseline import DAY, Baseline, Sample, Sums
from tracescore.drift.detector import Detector
from tracescore.drift.stratum import threshold
from tracescore.drift.week import ALIKE, Day, grouping_of, spread_between, weekday

MONDAY = 1_700_438_400.0
LIMIT = threshold(30, 8)
WEEKEND, FRIDAY = (0, 0, 0, 0, 0, 1, 1), (0, 0, 0, 0, 1, 1, 0)


def days_of(means: list[float], scores: int = 300, seed: int = 2) -> dict[int, Day]:
    rng, first = np.random.default_rng(seed), int(MONDAY // DAY)
    found = {}
    for number, mean in enumerate(means):
        drawn = rng.beta(10 * mean, 10 * (1 - mean), scores)
        found[first + number] = Day(scores, float(drawn.sum()), float((drawn**2).sum()))
    return found


def sample_of(means: list[float], scores: int = 300) -> Sample:
    rng, sample = np.random.default_rng(2), Sample()
    for day, mean in enumerate(means):
        for number, score in enumerate(rng.beta(10 * mean, 10 * (1 - mean), scores)):
            sample.add(MONDAY + (day + number / scores) * DAY, float(score), 1.0)
    return sample


def learned(sample: Sample) -> Baseline:
    return sample.baseline(0.02, by_block=False, doubt=0.005)


def test_the_first_of_january_1970_was_a_thursday() -> None:
    assert weekday(0) == 3
    assert weekday(MONDAY // DAY) == 0


@pytest.mark.parametrize(
    ("means", "grouping"),
    [
        ([0.8] * 7, ALIKE),
        ([0.8] * 5 + [0.75] * 2, WEEKEND),
        ([0.8] * 5 + [0.85] * 2, WEEKEND),
        ([0.8] * 4 + [0.72] * 2 + [0.8], FRIDAY),
        ([0.83, 0.77, 0.8, 0.84, 0.78, 0.81, 0.79], ALIKE),
        ([0.8] * 4 + [0.7] + [0.8] * 2, ALIKE),  # one day: it may have been that day alone
        (([0.8] * 4 + [0.7] + [0.8] * 2) * 2, (0, 1, 2, 3, 4, 5, 6)),  # the same again a week later
        ([0.8] * 5 + [0.7], ALIKE),  # one Saturday is no weekend
        ([], ALIKE),
    ],
)
def test_weekdays_are_told_apart_where_more_than_chance_speaks_for_it(means: list[float], grouping: tuple) -> None:
    assert grouping_of(days_of(means)) == grouping


def test_days_that_differ_by_chance_alone_hardly_ever_make_a_weekend() -> None:
    rng = np.random.default_rng(9)
    weeks = [days_of((0.8 + rng.normal(0, 0.02, 7)).tolist(), 100, seed) for seed in range(300)]
    assert sum(grouping_of(week) != ALIKE for week in weeks) <= 12  # 2 % and three standard deviations


def test_with_a_weekend_the_working_days_keep_a_reference_that_is_near() -> None:
    found = learned(sample_of([0.8] * 5 + [0.7] * 2))
    monday, saturday = MONDAY, MONDAY + 5 * DAY
    assert found.mean_at(monday) == pytest.approx(0.8, abs=0.01)
    assert found.mean_at(saturday) == pytest.approx(0.7, abs=0.01)
    assert found.reference_at(monday) == pytest.approx(found.mean_at(monday) - 0.02, abs=0.003)
    assert found.reference_at(saturday) <= found.mean_at(saturday) - 0.02
    assert found.between_days is not None
    assert found.between_days < 0.01, "the weekend is no spread between days that are alike"


def test_a_spread_that_was_not_measured_is_none() -> None:
    assert spread_between({}) is None
    assert learned(sample_of([0.8])).between_days is None


def test_the_difference_to_another_baseline_moves_sums_as_if_they_had_been_made_so() -> None:
    made = Sums(3, 0.5 - 0.1 + 0.2, 0.25 + 0.01 + 0.04, 3)
    again = Sums(3, 0.6 + 0.0 + 0.3, 0.36 + 0.0 + 0.09, 3)
    assert made.shifted(0.1) == pytest.approx(again)


class Small:
    """A detector at 50 scores a day, from a Monday on."""

    def __init__(self, seed: int = 1, **settings) -> None:
        self.detector, self.rng, self.at = Detector(DriftConfig(**settings)), np.random.default_rng(seed), MONDAY

    def send(self, days: float, mean: float = 0.8, until: Callable[[Detector], bool] = lambda _: False) -> int:
        for number in range(round(50 * days)):
            self.at += DAY / 50
            score = float(self.rng.beta(10 * mean, 10 * (1 - mean)))
            self.detector.take(self.at, "default", score, weight=1.0, max_weight=1.0, threshold=LIMIT)
            if until(self.detector):
                return number + 1
        return round(50 * days)

    @property
    def reference(self) -> float:
        found = self.detector.reference(self.at)
        assert found is not None
        return found

    @property
    def changed(self) -> bool:
        return self.detector.evidence >= LIMIT


def test_little_traffic_has_a_provisional_reference_after_a_week_and_the_last_word_after_four() -> None:
    small = Small()
    small.send(6.9)
    assert small.detector.is_learning
    small.send(0.2)
    assert not small.detector.is_learning
    assert small.detector.is_provisional
    assert 0.77 < small.reference < 0.8
    assert small.detector.learned_at is not None
    small.send(21)
    assert not small.detector.is_provisional
    assert small.detector.learned_from >= 1_000
    assert small.detector.learned_at is None


def test_fewer_than_200_scores_of_a_week_are_no_reference() -> None:
    detector = Detector(DriftConfig())
    for number in range(199):
        detector.take(MONDAY + number * 8 * DAY / 199, "d", 0.8, weight=1, max_weight=1, threshold=LIMIT)
    assert detector.is_learning
    detector.take(MONDAY + 8 * DAY, "d", 0.8, weight=1, max_weight=1, threshold=LIMIT)
    detector.take(MONDAY + 8 * DAY, "d", 0.8, weight=1, max_weight=1, threshold=LIMIT)
    assert detector.is_provisional


def test_a_fall_of_the_second_week_is_reported_and_never_learned() -> None:
    small = Small()
    small.send(7.5)
    before = small.reference
    assert small.send(13, mean=0.65, until=lambda d: d.evidence >= LIMIT) <= 60
    small.send(21, mean=0.65)
    assert small.detector.is_provisional, "there are no thousand scores of before the fall"
    assert small.reference == before
    assert small.changed


def test_while_a_fall_is_suspected_at_the_last_word_the_reference_does_not_become_lower() -> None:
    small = Small(seed=4)
    small.send(20.5)
    assert small.detector.is_provisional
    before = small.reference
    small.send(1.0, mean=0.62, until=lambda d: d.evidence >= 2 * math.sqrt(LIMIT))
    assert math.sqrt(LIMIT) < small.detector.evidence < LIMIT
    small.send(1.5, mean=0.74)
    assert small.reference >= before


def test_what_was_a_mended_fall_is_left_out_and_what_came_after_it_is_learned() -> None:
    small = Small()
    small.send(7.5)
    small.send(2, mean=0.5)
    assert small.changed
    held = small.detector.state().held
    assert not held or held[-1][0] < MONDAY + 7.9 * DAY
    small.send(30)
    assert not small.detector.is_provisional
    assert small.detector.baseline == pytest.approx(0.8, abs=0.01)


def test_the_state_of_a_provisional_reference_goes_on_after_a_restart() -> None:
    small = Small()
    small.send(10)
    again = Detector(DriftConfig())
    again.resume(reread(small.detector.state()))
    assert again.state() == small.detector.state()
    small.send(19)
    other = Small()
    other.send(10)
    other.detector = again
    other.send(19)
    assert other.detector.reference(MONDAY) == small.detector.reference(MONDAY)
    assert not other.detector.is_provisional


def test_a_state_of_before_provisional_references_is_read_and_goes_on_learning() -> None:
    small = Small()
    small.send(6)
    state = small.detector.state()
    again = Detector(DriftConfig())
    again.resume(reread(replace(state, began=None, held=(), provisional=False, fallen=False, given=None)))
    small.detector = again
    small.send(1.2)
    assert again.is_provisional
    assert again.learned_from == 360


def test_what_is_held_back_is_bounded_and_a_suspicion_lets_nothing_more_in() -> None:
    detector = Detector(DriftConfig(baseline=BaselineConfig(scores=300, days=30)))
    for number in range(2_000):
        detector.take(MONDAY + number * DAY / 60, "d", 0.8, weight=1, max_weight=1, threshold=LIMIT)
        assert len(detector.state().held) <= 300
    assert detector.learned_from == 300 + 7 * 60 or not detector.is_provisional


def test_a_given_reference_is_in_force_at_once_and_stands_when_the_state_says_the_same() -> None:
    detector = Detector(DriftConfig(), given=0.7)
    assert not detector.is_learning
    assert detector.reference(MONDAY) == 0.7
    assert detector.baseline is None
    assert detector.state().given == 0.7


def test_where_days_differ_by_more_than_the_tolerance_four_weeks_have_the_last_word() -> None:
    rng, detector, at = np.random.default_rng(12), Detector(DriftConfig()), MONDAY
    references, means = [], rng.normal(0.8, 0.03, 29)
    for day, mean in enumerate(means):
        for score in rng.beta(10 * mean, 10 * (1 - mean), 200):
            at += DAY / 200
            detector.take(at, "default", float(score), weight=1.0, max_weight=1.0, threshold=LIMIT)
        assert detector.is_learning == (day < 7)
        assert detector.is_provisional == (7 <= day < 28), day
        references.append(detector.reference(at))
    assert len({reference for reference in references[7:] if reference is not None}) >= 3, "each week is learned"
    assert detector.baseline == pytest.approx(means[:28].mean(), abs=0.01)


def test_of_days_that_are_surely_alike_one_week_has_the_last_word() -> None:
    rng, detector = np.random.default_rng(3), Detector(DriftConfig())
    for number, score in enumerate(rng.beta(8, 2, 8 * 600)):
        detector.take(MONDAY + number * DAY / 600, "d", float(score), weight=1, max_weight=1, threshold=LIMIT)
    assert not detector.is_learning
    assert not detector.is_provisional
