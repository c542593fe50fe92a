"""Whatever comes in whichever order: no counter jumps, nothing is counted twice, and the cap holds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.states import reread
from tracescore.exporters.prometheus.conversations import OpenConversations, Squares
from tracescore.exporters.prometheus.series import Live, Series
from tracescore.exporters.prometheus.table import SeriesTable, TableState

LIMIT, RESERVE, WINDOW = 60, 20, 3_600.0
COSTS = {"measure": 10, "slice": 4}

label = st.sampled_from("abc")
score = st.tuples(st.just("score"), label, st.sampled_from("1234"), st.lists(st.sampled_from("xyz"), max_size=2))
wait = st.tuples(st.just("wait"), st.sampled_from([1.0, 600.0, 1_000.0, 4_000.0]))
steps = st.lists(st.one_of(score, score, score, wait, st.tuples(st.just("restart"))), min_size=1, max_size=60)


def make(group: str) -> Any:
    live = Live(None, Buckets()) if group == "measure" else None  # type: ignore[arg-type]
    return lambda labels: Series(labels, None, live, COSTS[group])


class Buckets:
    def state(self) -> None:
        return None


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_counter_rises_or_is_gone_and_what_comes_back_starts_at_nothing(steps: list[Any]) -> None:
    table, now, shown = SeriesTable(LIMIT, RESERVE, WINDOW), 0.0, dict[Any, float]()
    for kind, *rest in steps:
        added: dict[Any, float] = defaultdict(float)
        if kind == "wait":
            now += rest[0]
        elif kind == "restart":
            state = table.state()
            assert reread(state) == state
            table = SeriesTable(LIMIT, RESERVE, WINDOW)
            table.resume(state, make)
            assert table.state() == state
        else:
            service, release, slices = rest
            labels = ("judge", service, "prod", release)
            for group, values in (("measure", labels), *(("slice", (*labels, each)) for each in slices)):
                series = table.get(group, values, make(group), now)
                series.add(1.0, 0.5, Squares(1.0, 0.5, 0.25))
                added[group, series.labels] += 1
        before, shown = shown, {
            (group, each.labels): each.sums["weight"] for group in COSTS for each in table.group(group)
        }  # fmt: skip
        for key, value in shown.items():
            assert value == before.get(key, 0.0) + added[key], "it moves by what was counted there now, and no more"
        assert sum(added.values()) == sum(shown[key] for key in added) - sum(before.get(key, 0.0) for key in added)
        assert len(table) <= LIMIT


def filled(table: SeriesTable, service: str, release: str, *slices: str, now: float = 0.0) -> list[Series]:
    labels = ("judge", service, "prod", release)
    found = [table.get("measure", labels, make("measure"), now)]
    return found + [table.get("slice", (*labels, each), make("slice"), now) for each in slices]


def named(table: SeriesTable) -> set[tuple[str, str]]:
    return {(s.labels[1], s.labels[3]) for s in table.group("measure")} - {("other", "other")}


def test_the_second_release_of_every_service_takes_the_place_of_the_first() -> None:
    table = SeriesTable(LIMIT, RESERVE, WINDOW)
    for release in "12":
        for service in "abcd":
            filled(table, service, release)
    assert named(table) == {(service, "2") for service in "abcd"}


def test_two_releases_in_use_do_not_drive_each_other_out_and_after_a_rollback_the_first_starts_anew() -> None:
    table = SeriesTable(RESERVE + 10, RESERVE, WINDOW)
    for now in range(0, 600, 10):
        for release in "12":
            filled(table, "a", release, now=float(now))
    assert named(table) == {("a", "2")}
    (series,) = filled(table, "a", "1", now=2_000.0)
    assert named(table) == {("a", "1")}
    assert series.sums["weight"] == 0


def test_a_version_of_every_request_takes_few_places_in_an_hour() -> None:
    table = SeriesTable(RESERVE + 10, RESERVE, WINDOW)
    taken = {tuple(named(table)) for number in range(200) if filled(table, "a", f"r{number}", now=float(number))}
    assert len(taken) <= 6


def test_a_service_beyond_its_budget_gives_way_to_one_within() -> None:
    table = SeriesTable(LIMIT, RESERVE, WINDOW)
    filled(table, "loud", "1", *map(str, range(20)))
    filled(table, "quiet", "1")
    assert named(table) == {("loud", "1"), ("quiet", "1")}
    assert len(table) <= LIMIT


turns = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.1, 100), st.floats(0, 1)), min_size=1, max_size=30)


@given(turns)
def test_what_the_squared_sums_grow_by_adds_up_to_the_squares_of_conversations(turns: list[Any]) -> None:
    open_, grown, sums = OpenConversations(), [0.0, 0.0, 0.0], defaultdict(lambda: [0.0, 0.0])
    for conversation, weight, value in turns:
        more = open_.add(("series",), conversation, weight, value, 0.0)
        assert min(more) >= 0
        grown = [old + new for old, new in zip(grown, more, strict=True)]
        sums[conversation][0] += weight
        sums[conversation][1] += weight * value
    expected = [sum(w * w for w, _ in sums.values()), sum(w * s for w, s in sums.values())]
    expected.append(sum(s * s for _, s in sums.values()))
    for got, wanted in zip(grown, expected, strict=True):
        assert abs(got - wanted) <= 1e-9 * max(1.0, wanted)


def test_conversations_are_bounded_parted_by_label_set_and_end_after_hours() -> None:
    open_ = OpenConversations(most=2)
    one = Squares(1.0, 1.0, 1.0)
    assert open_.add("x", "c", 1.0, 1.0, 0.0) == one
    assert open_.add("x", "c", 1.0, 1.0, 10.0) == Squares(3.0, 3.0, 3.0)
    assert open_.add("y", "c", 1.0, 1.0, 10.0) == one
    assert open_.add("x", "c", 1.0, 1.0, 30_000.0) == one
    assert open_.add("x", "", 1.0, 1.0, 30_000.0) == one
    for number in range(5):
        open_.add("x", str(number), 1.0, 1.0, 0.0)
    assert len(open_) == 2
    assert "c" not in str(TableState()) or open_.state()[0][0] != "c"
