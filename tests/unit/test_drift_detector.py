"""When a fall is told, what is learned first, and what makes no difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import NOW
from tests.states import reread
from tracescore.config.drift import BaselineConfig, DriftConfig
from tracescore.drift.baseline import DAY, Sample, block_of
from tracescore.drift.detector import Detector
from tracescore.drift.stratum import BETS, LONGEST_GAP, grown, odds, threshold

LIMIT = threshold(30, 8)
MIDNIGHT = NOW - NOW % DAY


def settings(**more) -> DriftConfig:
    return DriftConfig(**({"baseline": BaselineConfig(scores=200, days=1)} | more))


class Stream:
    """Feeds a detector scores of 0 and 1 at a steady pace."""

    def __init__(self, detector: Detector, seed: int = 1, per_day: float = 500.0, at: float = MIDNIGHT) -> None:
        self.detector, self.per_day, self.at = detector, per_day, at
        self.rng = np.random.default_rng(seed)

    def send(self, mean: float, count: int, stratum: str = "default", weight: float = 1.0, most: float = 1.0) -> int:
        """Scores until the evidence passes the threshold, `count` at most."""
        for number in range(count):
            self.at += DAY / self.per_day
            score = float(self.rng.random() < mean)
            self.detector.take(self.at, stratum, score, weight=weight, max_weight=most, threshold=LIMIT)
            if self.detector.evidence >= LIMIT:
                return number + 1
        return count


def test_a_fall_is_told_and_its_onset_is_about_where_it_was() -> None:
    detector = Detector(settings())
    stream = Stream(detector)
    assert stream.send(0.9, 5_000) == 5_000
    fell = stream.at
    assert stream.send(0.6, 500) < 100
    assert detector.change is not None
    assert abs(detector.change.onset - fell) < 0.1 * DAY
    assert detector.change.scores < 150


def test_a_rise_is_no_fall() -> None:
    stream = Stream(Detector(settings()))
    stream.send(0.7, 1_000)
    assert stream.send(0.95, 3_000) == 3_000
    assert stream.detector.evidence < math.sqrt(LIMIT)


def test_a_release_that_is_bad_from_its_first_score_is_held_against_the_one_before() -> None:
    """Nothing here knows of releases: what was learned stays."""
    stream = Stream(Detector(settings()))
    stream.send(0.9, 600)
    assert not stream.detector.is_learning
    assert stream.send(0.7, 1_000) < 200


def test_learning_takes_whole_periods_and_enough_scores() -> None:
    few = Stream(Detector(settings()), per_day=100)
    few.send(0.9, 150)
    assert few.detector.is_learning, "a day, but 100 scores"
    few.send(0.9, 60)
    assert not few.detector.is_learning, "at the end of the second day there were 200"
    many = Stream(Detector(settings()), per_day=2_000)
    many.send(0.9, 1_900)
    assert many.detector.is_learning, "enough scores, but no whole day"
    many.send(0.9, 200)
    assert not many.detector.is_learning


def test_the_reference_is_below_the_mean_by_the_tolerance_or_by_what_is_not_known() -> None:
    sure, unsure = Sample(), Sample()
    for number in range(20_000):
        sure.add(NOW, float(number % 10 > 0), 1.0)
    for number in range(200):
        unsure.add(NOW, float(number % 10 > 0), 1.0)
    assert sure.baseline(0.02, by_block=False, doubt=0.01).references == pytest.approx((0.88,) * 4)
    assert unsure.baseline(0.02, by_block=False, doubt=0.01).references[0] < 0.86


def test_by_block_every_quarter_of_the_day_has_a_reference_of_its_own() -> None:
    sample = Sample()
    for number in range(8_000):
        at = MIDNIGHT + number % 4 * DAY / 4
        sample.add(at, 0.5 + 0.1 * block_of(at), 1.0)
    learned = sample.baseline(0.02, by_block=True, doubt=0.01)
    assert learned.means == pytest.approx((0.5, 0.6, 0.7, 0.8))
    assert learned.references == pytest.approx((0.48, 0.58, 0.68, 0.78), abs=0.02)
    assert learned.by_block == pytest.approx((0.5, 0.6, 0.7, 0.8))


def test_strata_have_references_of_their_own_so_that_a_ratio_makes_no_difference() -> None:
    stream = Stream(Detector(settings()))
    for _ in range(300):
        stream.send(0.95, 1, "default", 10.0, 10.0)
        stream.send(0.5, 1, "errors", 1.0, 10.0)
    assert set(stream.detector.tested) == {"default", "errors"}
    for _ in range(3_000):  # the good stratum becomes rare: the plain mean falls from .72 to .54
        stream.send(0.5, 9, "errors", 1.0, 10.0)
        stream.send(0.95, 1, "default", 100.0, 10.0)
    assert stream.detector.evidence < LIMIT


def test_small_strata_are_tested_together_by_weight() -> None:
    stream = Stream(Detector(settings()))
    for _ in range(150):
        for name, weight in (("a", 1.0), ("b", 2.0), ("default", 4.0)):
            stream.send(0.9, 2 if name == "default" else 1, name, weight, 4.0)
    assert set(stream.detector.tested) == {"default", ""}
    assert stream.send(0.2, 500, "b", 2.0, 4.0) < 500


def test_a_new_stratum_is_learned_while_the_others_are_tested() -> None:
    stream = Stream(Detector(settings()))
    stream.send(0.9, 600)
    stream.send(0.5, 700, "new")
    stream.send(0.5, 600, "new")
    assert set(stream.detector.tested) == {"default", "new"}
    assert stream.detector.evidence < LIMIT


def test_a_target_needs_no_learning_and_is_one_for_the_mean_of_all() -> None:
    met = Stream(Detector(settings(), target=0.8))
    for _ in range(1_000):
        met.send(0.95, 3)
        met.send(0.55, 1, "errors")
    assert met.detector.evidence < LIMIT
    missed = Stream(Detector(settings(), target=0.8))
    assert missed.send(0.6, 1_000) < 200


def test_a_silent_week_weighs_no_more_than_a_quarter_of_a_day() -> None:
    stream = Stream(Detector(settings(), target=0.8))
    stream.send(0.9, 10)
    stream.at += 7 * DAY
    stream.send(0.0, 1)
    assert stream.detector.evidence < LONGEST_GAP * (1 + BETS * 4).mean() + 1


def test_scores_that_come_late_add_no_time() -> None:
    detector = Detector(settings(), target=0.8)
    for at in (NOW, NOW - 5 * DAY, NOW - 3 * DAY, NOW):
        detector.take(at, "default", 0.8, weight=1.0, max_weight=1.0, threshold=LIMIT)
    assert detector.evidence == 0


def test_evidence_falls_again_after_the_cause_is_mended() -> None:
    stream = Stream(Detector(settings()))
    stream.send(0.9, 5_000)
    stream.detector.tested["default"].restart()
    for _ in range(2_000):
        stream.send(0.5, 1)
    assert stream.detector.evidence >= LIMIT
    for _ in range(3_000):
        stream.send(0.93, 1)
    assert stream.detector.evidence < LIMIT


def test_pin_ends_learning_early_but_not_on_next_to_nothing() -> None:
    stream = Stream(Detector(settings()))
    stream.send(0.9, 150)
    with pytest.raises(ValueError, match="at least 200 scores expected; got 150"):
        stream.detector.pin(1.0)
    stream.send(0.9, 60)
    stream.detector.pin(1.0)
    assert not stream.detector.is_learning
    assert stream.detector.reference(NOW) == pytest.approx(0.83, abs=0.05)


def test_a_pinned_reference_stands_and_evidence_begins_anew() -> None:
    stream = Stream(Detector(settings()))
    stream.send(0.9, 600)
    stream.send(0.5, 200)
    assert stream.detector.evidence >= LIMIT
    stream.detector.pin(1.0, at=0.4)
    assert (stream.detector.evidence, stream.detector.reference(NOW)) == (0.0, 0.4)
    assert stream.send(0.5, 1_000) == 1_000


scores = st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=1, max_size=60)


@given(scores, scores)
def test_a_restart_in_between_makes_no_difference(before: list[float], after: list[float]) -> None:
    def run(detector: Detector, values: list[float], start: int) -> None:
        for number, value in enumerate(values, start):
            how = {"weight": 2.0, "max_weight": 4.0, "threshold": LIMIT}
            detector.take(NOW + number * DAY / 20, f"rule{number % 2}", value, **how)

    for target in (None, 0.7):
        straight, first, second = (Detector(settings(), target) for _ in range(3))
        run(straight, before + after, 0)
        run(first, before, 0)
        second.resume(reread(first.state()))
        run(second, after, len(before))
        assert second.state() == straight.state()


@given(st.floats(0, 1), st.floats(0, 0.999), st.floats(0.001, 1))
def test_no_score_wins_or_loses_more_than_the_stake(score: float, reference: float, share: float) -> None:
    after = grown(np.ones(len(BETS)), odds(score, reference, share), 0.0)
    assert (after > 0).all()
    assert (after <= 1 + BETS * reference / (1 - reference) + 1e-9).all()


@given(st.floats(0.05, 0.95), st.floats(0.001, 1))
def test_a_score_at_the_reference_changes_nothing_on_average(reference: float, share: float) -> None:
    """Of 0 and 1 with that mean: this is what makes evidence less days a martingale."""
    bad, good = (grown(np.ones(len(BETS)), odds(x, reference, share), 0.0) for x in (0.0, 1.0))
    assert (1 - reference) * bad + reference * good == pytest.approx(np.ones(len(BETS)))


def test_many_streams_at_once_are_the_same_as_one_by_one() -> None:
    """What the benchmark relies on."""
    rng = np.random.default_rng(3)
    values, many = rng.beta(8, 2, (200, 5)), np.zeros((5, len(BETS)))
    single = [Detector(settings(), target=0.8) for _ in range(5)]
    for step, row in enumerate(values):
        many = grown(many, odds(row, 0.8), 0.01 if step else 0.0)
        for detector, value in zip(single, row, strict=True):
            at = NOW + step * 0.01 * DAY
            detector.take(at, "default", value, weight=1.0, max_weight=1.0, threshold=1e12)
    assert many.mean(axis=1) == pytest.approx([each.evidence for each in single])
