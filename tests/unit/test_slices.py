"""The lowest of many slices: a correction for how many were looked at, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest

from tracescore.exporters.prometheus.slices import lowest_slice, slice_means
from tracescore.formulas import gaffke_interval


@pytest.mark.parametrize("looked_at", [2, 5, 20])
def test_the_interval_of_the_lowest_is_wrong_with_its_share_of_the_chance(looked_at: int) -> None:
    scores = [0.2, 0.9, 0.8, 0.7] * 10
    slices = {f"s{n}": ([min(1.0, s + 0.01 * n) for s in scores], [1.0] * 40) for n in range(looked_at)}
    found = lowest_slice(slices, 1.0, 20)
    assert found is not None
    assert (found.of.slice, found.looked_at) == ("s0", looked_at)
    assert (found.of.lower, found.of.upper) == gaffke_interval(scores, [1.0] * 40, 1.0, 1 - 0.05 / looked_at)


def test_of_slices_that_are_all_alike_hardly_ever_one_is_surely_lower() -> None:
    rng, wrong, apart = np.random.default_rng(3), 0, 0
    for _ in range(200):
        slices = {f"s{n}": ((rng.random(40) < 0.8).astype(float).tolist(), [1.0] * 40) for n in range(15)}
        found = lowest_slice(slices, 1.0, 20)
        assert found is not None
        wrong += found.of.upper < 0.8
        apart += slice_means(slices, 1.0, 20)[0].upper < 0.8
    assert wrong <= 0.05 * 200
    assert apart > 2 * wrong, "without the correction chance alone would accuse somebody far more often"


@pytest.mark.parametrize(
    "slices",
    [
        {},
        {"only": ([0.5] * 30, [1.0] * 30)},
        {"a": ([0.5] * 30, [1.0] * 30), "few": ([0.0] * 19, [1.0] * 19)},
        {"a": ([0.5] * 30, [1.0] * 30), "one heavy answer": ([0.0] * 30, [100.0, *[1.0] * 29])},
    ],
)
def test_without_two_slices_with_scores_enough_nothing_is_the_lowest(slices: dict) -> None:
    assert lowest_slice(slices, 1.0, 20) is None
