"""What labels of some answers say about all of them, and about the judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_formulas_interval import CLOPPER_PEARSON
from tracescore.formulas import agreement, corrected_mean, judge_difference, mean_and_variance, weighted_mean

Rng = np.random.Generator


def _biased(rng: Rng, n: int):
    y = (rng.random(n) < 0.8).astype(float)
    return y, np.clip(0.55 + 0.3 * y + 0.15 * rng.standard_normal(n), 0, 1)


def _rarely_wrong(rng: Rng, n: int):
    y = (rng.random(n) < 0.9).astype(float)
    return y, np.where(rng.random(n) < 0.02, 1 - y, y)


def _in_parts(rng: Rng, n: int):
    y = rng.binomial(2, 0.7, n) / 2
    return y, np.clip(y + rng.choice([-0.5, 0, 0.5], n, p=[0.1, 0.7, 0.2]), 0, 1)


def _telling_nothing(rng: Rng, n: int):
    return (rng.random(n) < 0.6).astype(float), rng.random(n)


def _nearly_all_good(rng: Rng, n: int):
    return (rng.random(n) < 0.97).astype(float), np.clip(0.9 + 0.05 * rng.standard_normal(n), 0, 1)


JUDGES = {_biased: 0.8, _rarely_wrong: 0.9, _in_parts: 0.7, _telling_nothing: 0.6, _nearly_all_good: 0.97}


def survey(rng: Rng, judge, n: int, low: float):
    """About `n` labels of some 6,000 scores; answers that score high are scored less often, with `low`."""
    y, f = judge(rng, 20 * n)
    rare = rng.random(y.size) < 0.3 + 0.4 * (f > 0.7)
    kept = rng.random(y.size) < np.where(rare, low, 1.0)
    y, f, w = y[kept], f[kept], np.where(rare[kept], 1 / low, 1.0)
    drawn = rng.random(y.size) < n / y.size
    v, g = w[~drawn], f[~drawn]
    others = mean_and_variance(v.sum(), (v * g).sum(), (v * v).sum(), (v * v * g).sum(), (v * v * g * g).sum())
    return y[drawn], f[drawn], w[drawn] * y.size / n, others


@pytest.mark.parametrize("low", [1.0, 0.1], ids=["one weight", "weights 10:1"])
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.__name__)
def test_with_300_labels_the_limits_hold_what_people_would_say_in_93_of_100_cases(judge, low: float) -> None:
    rng = np.random.default_rng(4)
    found = [corrected_mean(*survey(rng, judge, 300, low)) for _ in range(500)]
    held = np.mean([each.lower <= JUDGES[judge] <= each.upper for each in found])
    assert held >= 0.93
    middle = np.mean([each.mean for each in found])
    assert middle == pytest.approx(JUDGES[judge], abs=0.006)


def test_labels_that_were_picked_from_the_worst_would_mislead_which_is_why_they_do_not_count() -> None:
    rng = np.random.default_rng(5)
    y, f = _biased(rng, 6_000)
    worst = np.argsort(f)[:300]
    others = float(f.mean()), float(f.var() / f.size)
    found = corrected_mean(y[worst], f[worst], np.ones(300), others)
    assert not found.lower <= 0.8 <= found.upper


def test_a_judge_who_tells_something_makes_limits_tighter_and_one_who_tells_nothing_costs_nothing() -> None:
    rng = np.random.default_rng(6)
    for judge, narrower in ((_rarely_wrong, 0.7), (_telling_nothing, 1.02)):
        y, f, w, others = survey(rng, judge, 400, 1.0)
        with_scores, labels_alone = corrected_mean(y, f, w, others), corrected_mean(y, f, w)
        assert with_scores.upper - with_scores.lower < narrower * (labels_alone.upper - labels_alone.lower)
        assert labels_alone.mean == pytest.approx(weighted_mean(y, w))


def test_labels_that_are_all_alike_do_not_promise_that_the_next_one_is() -> None:
    found = corrected_mean(np.ones(100), np.ones(100), np.ones(100), (1.0, 0.0))
    assert (found.mean, found.upper) == (1.0, 1.0)
    assert found.lower < 0.99


labels = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(1, 100)), min_size=1, max_size=30)


@given(labels, st.none() | st.tuples(st.floats(0, 1), st.floats(0, 0.1)), st.randoms(use_true_random=False))
def test_limits_enclose_the_mean_lie_within_0_and_1_and_know_no_order(rows, others, random) -> None:
    found = corrected_mean(*zip(*rows, strict=True), others)
    assert 0 <= found.lower <= found.mean <= found.upper <= 1
    shuffled = random.sample(rows, len(rows))
    again = corrected_mean(*zip(*shuffled, strict=True), others)
    assert (again.mean, again.lower, again.upper) == pytest.approx((found.mean, found.lower, found.upper), abs=1e-6)


@given(labels)
def test_a_judge_who_says_what_people_say_is_off_by_nothing(rows) -> None:
    said = [label for label, _, _ in rows]
    off = judge_difference(said, said, [weight for _, _, weight in rows])
    assert off.mean == pytest.approx(0, abs=1e-9)
    assert off.lower <= 0 <= off.upper


@pytest.mark.parametrize("case", [(5, 10), (18, 20), (50, 100)])
def test_agreement_over_answers_of_one_verdict_has_the_limits_of_a_share(case: tuple[int, int]) -> None:
    agreed, count = case
    found = agreement([1] * agreed + [0] * (count - agreed), [1] * count, [1.0] * count)
    assert found.mean == pytest.approx(agreed / count)
    assert (found.lower, found.upper) == pytest.approx(CLOPPER_PEARSON[case], abs=0.0025)


def test_agreement_counts_verdicts_but_its_limits_count_answers() -> None:
    singly = agreement([1] * 80 + [0] * 20, [1] * 100, [1.0] * 100)
    in_tens = agreement([10] * 8 + [0] * 2, [10] * 10, [1.0] * 10)
    assert singly.mean == in_tens.mean == pytest.approx(0.8)
    assert in_tens.upper - in_tens.lower > 2 * (singly.upper - singly.lower)


def test_sums_without_weight_have_no_mean() -> None:
    with pytest.raises(ValueError, match="needs a score"):
        mean_and_variance(0, 0, 0, 0, 0)
