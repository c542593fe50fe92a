"""The interval of a window's mean, against the exact one where there is an exact one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescore.formulas import gaffke_interval, weighted_mean

# Clopper-Pearson at 95 %: (successes, trials) -> limits; from R's binom.test.
CLOPPER_PEARSON = {
    (0, 10): (0.0, 0.3084971),
    (1, 10): (0.002528579, 0.4450161),
    (5, 10): (0.1870860, 0.8129140),
    (10, 10): (0.6915029, 1.0),
    (0, 1): (0.0, 0.975),
    (18, 20): (0.6830173, 0.9876515),
    (50, 100): (0.3983211, 0.6016789),
    (997, 1000): (0.9912579, 0.9993809),
}


@pytest.mark.parametrize("weight", [1.0, 10.0])
@pytest.mark.parametrize("case", CLOPPER_PEARSON)
def test_zeros_and_ones_of_one_weight_give_clopper_pearson(case: tuple[int, int], weight: float) -> None:
    successes, trials = case
    scores = [1.0] * successes + [0.0] * (trials - successes)
    lower, upper = gaffke_interval(scores, [weight] * trials, weight)
    assert (lower, upper) == pytest.approx(CLOPPER_PEARSON[case], abs=0.0025)


def test_the_limits_are_the_quantiles_of_the_weighted_bootstrap() -> None:
    rng = np.random.default_rng(7)
    scores, weights = rng.beta(6, 2, 40), rng.choice([1.0, 4.0, 20.0], 40)
    gamma = rng.standard_exponential((100_000, 41)) * np.append(weights, 20.0)
    known, mass = gamma[:, :-1] @ scores, gamma.sum(axis=1)
    drawn = np.quantile(known / mass, 0.025), np.quantile((known + gamma[:, -1]) / mass, 0.975)
    assert gaffke_interval(scores, weights, 20.0) == pytest.approx(drawn, abs=0.004)


@pytest.mark.parametrize("shape", [(8, 2), (1, 1), (0.2, 0.05)])
def test_the_interval_covers_the_mean_at_least_as_often_as_it_says(shape: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    mean, hits, streams = shape[0] / sum(shape), 0, 600
    for _ in range(streams):
        lower, upper = gaffke_interval(rng.beta(*shape, 30), np.ones(30), 1.0)
        hits += lower <= mean <= upper
    assert hits / streams >= 0.95 - 3 * (0.05 * 0.95 / streams) ** 0.5


def test_nothing_known_is_said_as_everything_possible() -> None:
    assert gaffke_interval([], [], 1.0) == (0.0, 1.0)


UNIT = st.floats(0, 1)
PAIRS = st.lists(st.tuples(UNIT, st.sampled_from([1.0, 2.5, 100.0])), min_size=1, max_size=60)


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_limits_do_not_depend_on_the_order(pairs: list[tuple[float, float]], random) -> None:
    shuffled = random.sample(pairs, len(pairs))
    limits = [gaffke_interval([s for s, _ in p], [w for _, w in p], 100.0) for p in (pairs, shuffled)]
    assert limits[0] == pytest.approx(limits[1], abs=1e-6)


@given(PAIRS)
def test_the_limits_lie_in_order_around_the_mean(pairs: list[tuple[float, float]]) -> None:
    scores, weights = [s for s, _ in pairs], [w for _, w in pairs]
    lower, upper = gaffke_interval(scores, weights, 100.0)
    mean = weighted_mean(scores, weights)
    assert mean is not None
    assert 0 <= lower <= mean + 1e-9
    assert mean - 1e-9 <= upper <= 1


@given(PAIRS)
def test_turning_the_scores_round_turns_the_interval_round(pairs: list[tuple[float, float]]) -> None:
    scores, weights = np.array([s for s, _ in pairs]), [w for _, w in pairs]
    lower, upper = gaffke_interval(scores, weights, 100.0)
    assert gaffke_interval(1 - scores, weights, 100.0) == pytest.approx((1 - upper, 1 - lower), abs=1e-6)


@given(PAIRS, st.sampled_from([0.001, 3.0, 1e6]))
def test_only_the_proportions_of_the_weights_matter(pairs: list[tuple[float, float]], factor: float) -> None:
    scores, weights = [s for s, _ in pairs], np.array([w for _, w in pairs])
    expected = gaffke_interval(scores, weights, 100.0)
    assert gaffke_interval(scores, weights * factor, 100.0 * factor) == pytest.approx(expected, abs=1e-6)
