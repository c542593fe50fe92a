"""What a window says, and when it says nothing."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import NOW, SettableClock
from tracescore.exporters.prometheus.window import Window
from tracescore.formulas import effective_count, gaffke_interval, weighted_mean

HOUR = 3600.0


def window(clock: SettableClock | None = None, *, min_count: int = 1, max_weight: float = 1.0, **more) -> Window:
    return Window(HOUR, min_count, max_weight, clock or SettableClock(), **more)


def score(target: Window, value: float, *, at: float = NOW - 1, weight: float = 1.0, conversation: str = "") -> bool:
    return target.add(at, weight, value, value, scored=True, conversation=conversation)


def test_the_mean_weighs_every_score_by_its_weight() -> None:
    held = window(max_weight=9.0)
    score(held, 1.0, weight=1.0)
    score(held, 0.0, weight=9.0)
    assert held.estimate().mean == pytest.approx(0.1)
    assert held.estimate().effective_count == pytest.approx(100 / 82)


def test_a_ratio_that_moves_does_not_move_the_mean() -> None:
    """Half good and half bad traffic at every moment; in the second half only one in ten is scored, with weight 10."""
    held = window(max_weight=10.0)
    for second in range(1000):
        score(held, second % 2, at=NOW - 2000 + second)
    before = held.estimate().mean
    for second in range(100):
        score(held, second % 2, at=NOW - 1000 + second, weight=10.0)
    assert before == held.estimate().mean == pytest.approx(0.5)


def test_scores_that_resemble_their_neighbours_show_unless_a_conversation_explains_it() -> None:
    alike, mixed, sessions = window(min_count=20), window(min_count=20), window(min_count=20)
    for number in range(200):
        score(alike, number // 10 % 2, at=NOW - 300 + number)
        score(mixed, number % 2, at=NOW - 300 + number)
        score(sessions, number // 10 % 2, at=NOW - 300 + number, conversation=f"c{number // 10}")
    assert alike.estimate().lag1 == pytest.approx((180 - 19) / 200)
    assert mixed.estimate().lag1 == pytest.approx(-199 / 200)
    assert sessions.estimate().lag1 is None


def test_scores_that_are_all_alike_have_no_correlation() -> None:
    held = window()
    for _ in range(30):
        score(held, 0.1)
    assert held.estimate().lag1 is None


def test_zeros_and_ones_give_clopper_pearson() -> None:
    held = window()
    for number in range(20):
        score(held, number < 18)
    assert held.estimate().lower == pytest.approx(0.6830173, abs=0.0015)
    assert held.estimate().upper == pytest.approx(0.9876515, abs=0.0015)


def test_under_min_count_effective_scores_there_is_no_number() -> None:
    held = window(min_count=3)
    for number in range(2):
        score(held, 0.5)
        assert held.estimate().mean is None, number
    assert held.estimate().effective_count == 2
    score(held, 0.5)
    assert held.estimate().mean == 0.5


def test_scores_leave_by_the_clock_alone() -> None:
    clock = SettableClock()
    held = window(clock)
    score(held, 0.2, at=NOW - 100)
    score(held, 0.8, at=NOW - 50)
    clock.now = NOW + HOUR - 100
    assert held.estimate().mean == 0.8
    clock.now = NOW + HOUR - 50
    estimate = held.estimate()
    assert (estimate.mean, estimate.lower, estimate.worst, estimate.effective_count) == (None, None, None, 0)
    assert len(held) == 0


def test_what_comes_late_stays_out() -> None:
    held = window()
    score(held, 0.1, at=NOW - HOUR)
    assert len(held) == 0
    score(held, 0.1, at=NOW - HOUR + 0.001)
    assert len(held) == 1


def test_a_sender_whose_clock_runs_ahead_does_not_stay_longer() -> None:
    clock = SettableClock()
    held = window(clock)
    score(held, 0.1, at=NOW + 7 * 86400)
    clock.now = NOW + HOUR
    assert len(held) == 0


def test_what_could_not_be_scored_opens_the_worst_and_the_best_case() -> None:
    held = window()
    score(held, 0.6)
    held.add(NOW - 1, 1.0, 0.25, 0.75, scored=False)
    estimate = held.estimate()
    assert estimate.mean == pytest.approx(0.6)
    assert estimate.worst == pytest.approx((0.6 + 0.25) / 2)
    assert estimate.best == pytest.approx((0.6 + 0.75) / 2)


def test_a_judge_that_fails_every_time_still_shows_in_worst_and_best() -> None:
    held = window(min_count=5)
    for _ in range(5):
        held.add(NOW - 1, 1.0, 0.0, 1.0, scored=False)
    estimate = held.estimate()
    assert estimate.mean is None
    assert (estimate.worst, estimate.best, estimate.effective_count) == (0.0, 1.0, 0.0)


def test_a_conversation_is_one_observation_and_the_mean_stays_over_interactions() -> None:
    held = window()
    for value in (0.0, 0.2, 0.4, 0.6):
        score(held, value, conversation="c1")
    score(held, 0.9)
    score(held, 0.7)
    estimate = held.estimate()
    assert estimate.mean == pytest.approx((0.0 + 0.2 + 0.4 + 0.6 + 0.9 + 0.7) / 6)
    assert estimate.effective_count == pytest.approx(effective_count([4, 1, 1]))
    assert (estimate.lower, estimate.upper) == pytest.approx(gaffke_interval([0.3, 0.9, 0.7], [4, 1, 1], 4.0))


def test_one_endless_conversation_is_not_evidence_enough() -> None:
    held = window(min_count=20)
    for _ in range(500):
        score(held, 1.0, conversation="bot")
    assert held.estimate().mean is None


def test_memory_is_bounded_and_the_oldest_go_first() -> None:
    held = window(max_held=3)
    assert [score(held, value, at=NOW - at) for value, at in ((0.1, 9), (0.2, 30), (0.3, 8), (0.4, 7))] == [
        False,
        False,
        False,
        True,
    ]
    assert held.estimate().mean == pytest.approx((0.1 + 0.3 + 0.4) / 3)


def test_an_estimate_is_made_again_only_when_something_came_or_went() -> None:
    clock = SettableClock()
    held = window(clock)
    score(held, 0.5, at=NOW - 100)
    first = held.estimate()
    clock.now += 1
    assert held.estimate() is first
    score(held, 0.5)
    second = held.estimate()
    assert second is not first
    clock.now = NOW + HOUR - 50
    assert held.estimate() is not second


def test_a_full_window_is_estimated_without_drawing_a_bootstrap() -> None:
    """A scrape waits for it: it may take some arrays as long as the window, never one per draw."""
    held = window()
    for number in range(10_000):
        score(held, number / 10_000, at=NOW - number / 10)
    tracemalloc.start()
    held.estimate()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000 * 8 * 100


OBSERVATIONS = st.lists(
    st.tuples(
        st.floats(NOW - 2 * HOUR, NOW),
        st.sampled_from([1.0, 2.0, 10.0]),
        st.floats(0, 1),
        st.sampled_from(["", "", "a", "b"]),
    ),
    max_size=40,
)


@given(OBSERVATIONS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(observations, random) -> None:
    estimates = []
    for order in (observations, random.sample(observations, len(observations))):
        held = window(max_weight=10.0)
        for at, weight, value, conversation in order:
            score(held, value, at=at, weight=weight, conversation=conversation)
        estimates.append(held.estimate())
    for name in ("mean", "lower", "upper", "worst", "best", "effective_count"):
        assert getattr(estimates[0], name) == pytest.approx(getattr(estimates[1], name), abs=1e-6), name


@given(OBSERVATIONS)
def test_the_mean_is_the_weighted_mean_of_what_is_inside(observations) -> None:
    held = window(max_weight=10.0)
    for at, weight, value, conversation in observations:
        score(held, value, at=at, weight=weight, conversation=conversation)
    inside = [(value, weight) for at, weight, value, _ in observations if at > NOW - HOUR]
    expected = weighted_mean([value for value, _ in inside], [weight for _, weight in inside])
    estimate = held.estimate()
    assert estimate.mean == (None if expected is None else pytest.approx(expected, abs=1e-12))
    if estimate.mean is not None:
        assert estimate.worst == estimate.best == pytest.approx(estimate.mean)
