"""When a gold set is run: by the clock of its time zone, once when that was missed, and for a new release."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tracescore.config.gold import GoldConfig, HttpTargetConfig
from tracescore.gold.schedule import Schedule

HOUR = 3600.0
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
NIGHT = datetime(2026, 12, 1, 3, tzinfo=UTC).timestamp()
"""When `0 3 * * *` comes next."""


def schedule(last_success: float | None = NOON - HOUR, releases: tuple[str, ...] = ("1",), **settings: Any) -> Schedule:
    made = GoldConfig(
        set="s.yaml", target=HttpTargetConfig(kind="http", url="http://app"), **{"service": "shop"} | settings
    )
    return Schedule(made, last_success, list(releases), NOON)


def test_a_run_is_due_at_its_moment_and_once() -> None:
    of = schedule()
    assert (of.due(NOON), of.due(NIGHT - 1), of.due(NIGHT), of.due(NIGHT + 30)) == (None, None, "schedule", "schedule")
    of.began(NIGHT + 30)
    assert of.due(NIGHT + 40) is None
    assert of.due(NIGHT + 24 * HOUR) == "schedule"


@pytest.mark.parametrize(
    ("last_success", "trigger"), [(None, "overdue"), (NOON - 30 * HOUR, "overdue"), (NOON - HOUR, None)]
)
def test_what_was_missed_while_nothing_ran_is_made_up_for_once(last_success: float | None, trigger: str | None) -> None:
    of = schedule(last_success)
    assert of.due(NOON) == trigger
    of.began(NOON)
    assert of.due(NOON + 1) is None


def test_a_run_that_failed_leaves_it_overdue_and_is_tried_again_at_the_next_moment() -> None:
    of = schedule()
    of.began(NIGHT)
    assert of.expected == NIGHT
    assert of.due(NIGHT + 23 * HOUR) is None
    of.began(NIGHT + 24 * HOUR)
    of.succeeded(NIGHT + 24 * HOUR)
    assert of.expected == NIGHT + 48 * HOUR


def test_an_app_that_answered_nothing_is_asked_again_before_long() -> None:
    of = schedule(None)
    of.began(NOON)
    of.unanswered(NOON + 2)
    assert of.due(NOON + 60) is None
    assert of.due(NOON + 302) == "again"
    of.began(NOON + 302)
    assert of.due(NOON + 900) is None


def test_a_good_run_of_another_process_counts() -> None:
    of = schedule(None)
    of.succeeded(NOON)
    assert of.due(NOON + 1) is None
    of.succeeded(NIGHT + 1)
    assert of.due(NIGHT + 2) is None


YEARS = 9_000 * 24 * HOUR


def test_a_clock_that_was_ahead_puts_nothing_off() -> None:
    of = schedule(NOON + YEARS)
    assert of.expected == NIGHT, "the last good run is of a time to come"
    assert of.due(NIGHT) == "schedule"
    of = schedule()
    assert of.due(NOON + YEARS) == "overdue"
    of.began(NOON + YEARS)
    of.succeeded(NOON + YEARS)
    assert of.due(NOON) is None
    assert of.expected == NIGHT
    assert of.due(NIGHT) == "schedule"


def test_the_first_sight_of_a_new_release_is_a_reason_and_only_the_first() -> None:
    of = schedule()
    assert not of.observe("shop", "1")
    assert not of.observe("other", "2")
    assert not of.observe("shop", "unknown")
    assert of.due(NOON) is None
    assert of.observe("shop", "2")
    assert (of.due(NOON), of.release) == ("release", "2")
    of.began(NOON)
    assert not of.observe("shop", "1")  # a rollback, or a rollout that goes on
    assert (of.due(NOON), of.release) == (None, "1")


def test_runs_for_releases_keep_their_distance_and_the_newest_release_gets_the_next() -> None:
    of = schedule()
    began = []
    for second in range(3 * 3600):
        of.observe("shop", f"request-{second}")
        if of.due(NOON + second) == "release":
            began.append((second, of.release))
            of.began(NOON + second)
    assert began == [(second, f"request-{second}") for second in range(0, 3 * 3600, 1800)]
    assert len(of._known) == 1_000


def test_a_release_that_goes_on_answering_stays_known_however_many_others_do() -> None:
    of = schedule()
    for number in range(1_500):
        assert of.observe("shop", f"request-{number}")
        assert not of.observe("shop", "1")
    assert of.observe("shop", "request-0")


def test_a_run_for_another_reason_is_not_put_off_by_releases() -> None:
    of = schedule()
    of.observe("shop", "2")
    of.began(NIGHT - 60)
    of.observe("shop", "3")
    assert (of.due(NIGHT - 1), of.due(NIGHT)) == (None, "schedule")


def test_a_clock_that_was_ahead_holds_no_release_back_for_longer() -> None:
    of = schedule()
    of.observe("shop", "2")
    assert of.due(NOON + 24 * HOUR) == "release"
    of.began(NOON + 24 * HOUR)
    of.observe("shop", "3")
    assert (of.due(NOON), of.due(NOON + 1800)) == (None, "release")


def test_releases_start_nothing_where_they_are_not_to() -> None:
    of = schedule(on_release=False)
    assert of.observe("shop", "2")
    assert of.due(NOON) is None


def test_without_a_schedule_only_releases_and_people_start_runs() -> None:
    of = schedule(None, schedule=None)
    assert (of.due(NOON), of.due(NIGHT + 9e6), of.expected) == (None, None, None)


@pytest.mark.parametrize(
    ("zone", "first", "moments"),
    [
        # The night that has no 02:30 is served at 03:00, the one that has it twice once.
        ("Europe/Berlin", "2027-03-27T12:00", ["2027-03-28T01:00", "2027-03-29T00:30"]),
        ("Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("Asia/Kathmandu", "2026-10-23T12:00", ["2026-10-23T20:45", "2026-10-24T20:45"]),
    ],
)
def test_moments_are_those_of_the_time_zone_also_when_its_clocks_change(
    zone: str, first: str, moments: list[str]
) -> None:
    of = schedule(schedule="30 2 * * *", timezone=zone)
    moment: float | None = datetime.fromisoformat(f"{first}+00:00").timestamp()
    for expected in moments:
        assert moment is not None
        moment = of.after(moment)
        assert moment == datetime.fromisoformat(f"{expected}+00:00").timestamp()
