"""Two runs over the same items: what changed, whether chance explains it, and which items changed sides."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.gold_runs import outcome, run
from tracescore.formulas import mcnemar_p, sign_flip_p
from tracescore.gold.compare import P_LIMIT, compare

GOOD = [1.0] * 12


def test_a_fall_of_many_items_is_news_and_names_them() -> None:
    found = compare(run([0.0] * 9 + [1.0] * 3, 4), [run(GOOD, n) for n in range(1, 4)], "pinned")
    assert found is not None
    change = found.changes["factual"]
    assert (change.before, change.after, change.difference, change.pairs) == (1.0, 0.25, -0.75, 12)
    assert change.p == pytest.approx(2.0**-9)
    assert change.fell(0.02)
    assert not change.fell(0.8)
    assert [flip.item.id for flip in found.flips] == [f"i{number:02}" for number in range(9)]
    assert all(flip.worse for flip in found.flips)
    assert found.flip_p == pytest.approx(2.0**-9)


@pytest.mark.parametrize(("fallen", "news"), [(7, False), (8, True)])
def test_it_takes_eight_items(fallen: int, news: bool) -> None:
    found = compare(run([0.0] * fallen + [1.0] * 92, 2), [run([1.0] * (fallen + 92), 1)], "pinned")
    assert found is not None
    assert found.changes["factual"].fell(0.02) == news


def test_as_many_rises_as_falls_are_chance() -> None:
    found = compare(run([0.0, 1.0] * 6, 2), [run([1.0, 0.0] * 6, 1)], "pinned")
    assert found is not None
    assert found.changes["factual"].p > 0.5
    assert [flip.worse for flip in found.flips] == [True] * 6 + [False] * 6


def test_the_reference_is_the_mean_of_its_runs() -> None:
    references = [run([value], number) for number, value in enumerate((1.0, 1.0, 0.4), start=1)]
    found = compare(run([0.8], 4), references, "pinned")
    assert found is not None
    assert found.changes["factual"].before == pytest.approx(0.8)
    assert found.changes["factual"].p == 1.0  # rounding is no difference
    assert found.flips == ()


def test_only_the_same_items_scored_by_the_same_judge_are_compared() -> None:
    new = run([1.0, 0.0, None, 1.0], 2)
    changed = (outcome(0, 1.0), outcome(1, 1.0, mark="another question"), outcome(2, 1.0), outcome(9, 1.0))
    found = compare(new, [run([], 1, outcomes=changed)], "pinned")
    assert found is not None
    assert found.changes["factual"].pairs == 1
    assert compare(new, [run(GOOD, 1, judge="another")], "pinned") is None
    assert compare(new, [new], "itself") is None


def test_weights_of_items_count() -> None:
    old = run([], 1, outcomes=(outcome(0, 1.0), outcome(1, 1.0)))
    new = run([], 2, outcomes=(outcome(0, 0.0, weight=3.0), outcome(1, 1.0)))
    found = compare(new, [old], "pinned")
    assert found is not None
    assert found.changes["factual"].difference == -0.75


def test_without_a_factual_part_correctness_tells_the_sides() -> None:
    old, new = (
        run([], n, outcomes=(outcome(0, v, values={"answer_correctness": v}),)) for n, v in ((1, 1.0), (2, 0.0))
    )
    found = compare(new, [old], "pinned")
    assert found is not None
    assert [flip.worse for flip in found.flips] == [True]


# ---------------------------------------------------------------- the tests behind it


def brute_force(differences: list[float], weights: list[float]) -> float:
    moved = [d * w for d, w in zip(differences, weights, strict=True)]
    sums = [
        math.fsum(s * m for s, m in zip(signs, moved, strict=True))
        for signs in itertools.product((1, -1), repeat=len(moved))
    ]
    return sum(each <= math.fsum(moved) + 1e-9 for each in sums) / len(sums)


@pytest.mark.parametrize("seed", range(5))
def test_the_sign_flip_test_counts_all_signs(seed: int) -> None:
    random = np.random.default_rng(seed)
    differences, weights = random.normal(-0.2, 0.5, 8).tolist(), random.uniform(0.5, 3, 8).tolist()
    assert sign_flip_p(differences, weights) == pytest.approx(brute_force(differences, weights))


def test_where_signs_are_drawn_the_p_value_is_that_of_all_signs() -> None:
    differences = [-1.0] * 13 + [1.0] * 7
    exact = mcnemar_p(13, 7)  # on differences of one size the two tests are one
    assert sign_flip_p(differences, [1.0] * 20) == pytest.approx(exact, abs=0.01)
    assert sign_flip_p([-1.0] * 40, [1.0] * 40) == pytest.approx(1 / 20_001)


def test_nothing_that_moved_is_no_news() -> None:
    assert sign_flip_p([], []) == sign_flip_p([0.0, 0.0], [1.0, 1.0]) == mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize(
    ("worse", "better", "p"), [(1, 0, 0.5), (8, 0, 2.0**-8), (5, 2, 29 / 128), (0, 5, 1.0), (10, 10, 0.588099)]
)
def test_mcnemar_is_the_binomial_tail(worse: int, better: int, p: float) -> None:
    assert mcnemar_p(worse, better) == pytest.approx(p, abs=1e-6)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        mcnemar_p(-1, 2)


def test_without_change_few_nights_are_called_a_fall() -> None:
    """30 items with a retest sd of .1, 400 nights: about as many falls as p < .005 promises."""
    random = np.random.default_rng(1)
    falls = sum(sign_flip_p(random.normal(0, 0.1, 30), np.ones(30), draws=2_000) < P_LIMIT for _ in range(400))
    assert falls <= 6  # 2 are expected
