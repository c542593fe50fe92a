"""What charts are drawn from: never of two judges, bounded, the same over a restart, and counted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.results import NOW, SettableClock, relevancy, result
from tests.states import reread
from tests.unit.test_restart import edit, path, publish, service
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.formulas import mean_and_variance
from tracescore.model import Result
from tracescore.spool.changes import Decided, Finished, TraceRead, TracesRead
from tracescore.web.history import DAY, HOUR, WEEK, WIDTHS, History
from tracescore.web.lines import mean_of, points

pytestmark = pytest.mark.anyio
__all__ = ["path"]

SHOP = ("shop", "production")


def scored(value: float, *, ended: float = NOW, finished: float = NOW, judge: str = "j", epoch: int = 0, **fields):
    made = result(relevancy(value), ended=ended, finished=finished, **fields)
    return replace(made, judge=judge, epoch=epoch)


def fill(results: list[Result], clock: SettableClock, *, restart_at: int = -1) -> History:
    history = History(clock)

    async def run() -> None:
        nonlocal history
        for number, each in enumerate(results):
            if number == restart_at:
                state = reread(history.state())
                history = History(clock)
                history.resume(state)
            clock.now = each.finished
            await history.export(each)

    anyio.run(run)
    return history


ONE = st.tuples(
    st.integers(0, 20).map(lambda n: n / 20),
    st.integers(0, 2 * 86_400),
    st.sampled_from(["j", "k"]),
    st.integers(0, 1),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from([1.0, 4.0]),
)


def of(rows: list[tuple]) -> list[Result]:
    at, made = NOW, []
    for value, later, judge, epoch, conversation, weight in rows:
        at += later / 10
        told = {"conversation_id": conversation, "weight": weight}
        made.append(scored(value, ended=at, finished=at, judge=judge, epoch=epoch, **told))
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(ONE, max_size=30), st.integers(0, 30))
def test_a_restart_anywhere_makes_no_difference(rows: list[tuple], cut: int) -> None:
    whole, parted = fill(of(rows), SettableClock()), fill(of(rows), SettableClock(), restart_at=cut)
    assert parted.state() == whole.state()


@settings(max_examples=60, deadline=None)
@given(st.lists(ONE, min_size=1, max_size=30))
def test_the_buckets_of_a_judge_in_an_epoch_add_up_to_its_scores_and_to_no_others(rows: list[tuple]) -> None:
    clock = SettableClock()
    history = fill(of(rows), clock)
    for length in WIDTHS:
        for series, buckets in history.series(SHOP, length).items():
            first = min(bucket.start for bucket in buckets)
            own = [
                each
                for each in of(rows)
                if (each.judge, each.epoch) == (series.judge, series.epoch) and each.ended >= first
            ]
            sums = [sum(pair) for pair in zip(*(bucket.sums[:2] for bucket in buckets), strict=True)]
            weights = [each.interaction.weight for each in own]
            assert sums[0] == pytest.approx(sum(weights))
            assert sums[1] == pytest.approx(
                sum(w * each.scores()[0].value for w, each in zip(weights, own, strict=True))
            )
            assert sum(bucket.scores for bucket in buckets) == len(own)


def test_mean_and_limits_are_those_of_the_formula_over_the_very_scores() -> None:
    values = [0.2, 0.4, 0.9] * 10
    history = fill([scored(value, number=number) for number, value in enumerate(values)], SettableClock())
    (buckets,) = history.series(SHOP, HOUR).values()
    mean = mean_of(buckets)
    sums = WeightedSums()
    for value in values:
        sums = sums.plus(value, 1.0)
    assert mean.value == pytest.approx(mean_and_variance(*sums)[0]) == pytest.approx(0.5)
    assert mean.lower < 0.5 < mean.upper
    assert (mean.scores, mean.effective) == (30, pytest.approx(30))


def test_turns_of_one_conversation_promise_no_more_than_one_answer() -> None:
    told = [scored(0.5, number=n, ended=NOW - 600 + n, conversation_id="one") for n in range(30)]
    (buckets,) = fill(told, SettableClock()).series(SHOP, DAY).values()
    mean = mean_of(buckets)
    assert (mean.scores, mean.effective, mean.lower) == (30, pytest.approx(1), None)


def test_what_is_older_than_a_curve_shows_leaves_it() -> None:
    clock = SettableClock()
    told = [scored(0.5, ended=NOW, finished=NOW), scored(0.7, ended=NOW + 2 * HOUR, finished=NOW + 2 * HOUR)]
    history = fill(told, clock)
    assert {length: sum(b.scores for s in history.series(SHOP, length).values() for b in s) for length in WIDTHS} == {
        HOUR: 1,
        DAY: 2,
        WEEK: 2,
    }
    clock.now += 2 * WEEK
    assert history.series(SHOP, WEEK) == {}


async def test_an_app_whose_clock_runs_fast_or_that_is_a_week_late_spoils_no_curve() -> None:
    history = History(lambda: NOW)
    await history.export(scored(0.5, ended=NOW + 9 * DAY))
    await history.export(scored(0.5, ended=NOW - 8 * DAY))
    (buckets,) = history.series(SHOP, WEEK).values()
    assert [bucket.scores for bucket in buckets] == [1]
    assert buckets[0].start <= NOW


async def test_a_flood_of_services_costs_neither_memory_nor_the_curves_of_the_others() -> None:
    history = History(lambda: NOW)
    await history.export(scored(0.9))
    for number in range(1_000):
        await history.export(scored(0.1, service=f"service-{number}"))
    assert len(history.populations()) == 200
    assert SHOP in history.populations()
    later = NOW + 2 * HOUR
    await history.export(scored(0.1, service="new", ended=later, finished=later))
    assert ("new", "production") in history.populations(), "what is silent gives way"
    assert len(orjson.dumps(History.codec.plain(history.state()))) < 200_000


def test_the_largest_state_stays_below_six_megabytes() -> None:
    history = History(lambda: NOW)
    told = [scored(0.123456789, number=n, service=f"service-{n}", weight=1.23456789) for n in range(200)]

    async def run() -> None:
        for each in told:
            await history.export(each)

    anyio.run(run)
    for held in history._held.values():
        for length, width in WIDTHS.items():
            (row,) = held.rows[width].values()
            held.rows[width] = {row[0] - back: (row[0] - back, *row[1:]) for back in range(int(length / width) + 2)}
    assert len(orjson.dumps(History.codec.plain(history.state()))) < 6_000_000


async def commit(path: Path, made: Result) -> None:
    """A process that dies by SIGKILL right after the commit of a result."""
    dying = service(path)
    await dying.journal.resume(dying.reader)
    decided = Decided(made.interaction.span_id, "complete", "done")
    dying.spool.note(TracesRead([TraceRead(bytes.fromhex(made.interaction.trace_id), 9, NOW, [decided])], ()))
    dying.spool.note(Finished(made, []))
    await publish(dying, made)
    await dying.spool.close()


async def scores_after_a_start(path: Path) -> int:
    begun = service(path)
    await begun.journal.resume(begun.reader)
    await begun.spool.close()
    return sum(b.scores for s in begun.pages.history.series(SHOP, DAY).values() for b in s)


async def test_what_was_committed_after_the_last_totals_is_counted_once(path: Path) -> None:
    assert await scores_after_a_start(path) == 1
    await commit(path, result(relevancy(0.7), number=2))
    assert await scores_after_a_start(path) == 2
    assert await scores_after_a_start(path) == 2


@pytest.mark.parametrize("left", [None, {"version": 99}, {"version": 1, "series": [["shop"]], "conversations": []}])
async def test_a_history_that_cannot_be_read_begins_anew_and_costs_nothing_else(path: Path, left: object) -> None:
    edit(path, lambda totals: totals.update(history=left))
    assert await scores_after_a_start(path) == 1
    begun = service(path)
    await begun.journal.resume(begun.reader)
    await begun.spool.close()
    assert begun.ledger.snapshot().interactions["complete"] == 1


async def test_a_spool_from_before_there_were_charts_is_read_and_charts_begin_with_what_comes(path: Path) -> None:
    edit(path, lambda totals: totals.pop("history") and None)
    assert await scores_after_a_start(path) == 0
    await commit(path, result(relevancy(0.7), number=2))
    assert await scores_after_a_start(path) == 1


def test_every_point_stands_on_twenty_scores_and_a_silence_interrupts_the_line() -> None:
    told = [scored(0.5, number=n, ended=NOW + 60 * n, finished=NOW + 60 * n) for n in range(30)]
    late = NOW + 12 * HOUR
    told += [scored(0.9, number=n, ended=late + 60 * n, finished=late + 60 * n) for n in range(15)]
    history = fill(told, SettableClock())
    (buckets,) = history.series(SHOP, DAY).values()
    first, second = points(buckets, WIDTHS[DAY], DAY)
    assert [point.mean.scores for point in first] == [30]
    assert first[0].mean.lower is not None
    assert [(point.mean.scores, point.mean.lower) for point in second] == [(15, None)]
