"""The newest release beside the one before it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.results import NOW
from tracescore.drift.observations import DetectorKind
from tracescore.drift.releases import Releases

KIND = DetectorKind("completeness", "baseline")


def filled(*releases: tuple[str, float, int]) -> Releases:
    made = Releases()
    for number, (name, good, count) in enumerate(releases):
        made.note(name, NOW + number)
        for each in range(count):
            made.add(name, KIND, float(each < good * count), 2.0)
    return made


def test_the_difference_is_that_of_the_means_with_the_normal_interval_of_two_samples() -> None:
    found = filled(("1", 0.9, 100), ("2", 0.7, 100)).compared(KIND)
    half = 1.96 * np.sqrt(0.9 * 0.1 / 100 + 0.7 * 0.3 / 100)
    assert found == pytest.approx((-0.2, -0.2 - half, -0.2 + half))


def test_without_two_releases_that_have_scores_enough_nothing_is_compared() -> None:
    assert filled(("1", 0.9, 100)).compared(KIND) is None
    assert filled(("1", 0.9, 100), ("2", 0.7, 19)).compared(KIND) is None
    assert filled(("1", 0.9, 100), ("2", 0.7, 20)).compared(KIND) is not None


def test_the_oldest_of_many_is_forgotten_and_its_late_scores_are_left_out() -> None:
    made = filled(*((str(number), 0.5, 20) for number in range(7)))
    assert list(made.first_seen) == ["2", "3", "4", "5", "6"]
    made.add("0", KIND, 0.5, 1.0)
    assert len(made.state()) == 5


def test_a_restart_in_between_makes_no_difference() -> None:
    first, second = filled(("1", 0.9, 30), ("2", 0.5, 30)), Releases()
    second.resume(first.state())
    assert second.state() == first.state()
    assert second.compared(KIND) == first.compared(KIND)
