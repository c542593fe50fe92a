"""The money a judge may cost in a day: sampling is paced so that it lasts, and it is never overdrawn unseen."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests import results
from tests.results import SettableClock
from tests.states import reread
from tracescore.config import Config
from tracescore.formulas import weighted_mean
from tracescore.model import Result, Score, Unscored, Usage
from tracescore.pipeline.budget import Budget
from tracescore.sampling import Sampler

MIDNIGHT = 86_400.0 * 20_000
COST = 0.001
PEAKS = [0.2] * 7 + [2.0] * 4 + [1.0] * 9 + [0.2] * 4
"""How much comes in each hour of an office's day."""


def config(per_day: float | None, **sampling: float) -> Config:
    judge = {"kind": "openai", "model": "m", "price": {"input": 1, "output": 1}}
    return Config.model_validate(
        {"judge": judge | ({"budget": {"per_day": per_day}} if per_day else {}), "sampling": sampling}
    )


class Day:
    """Traffic that is sampled and paid for, interaction by interaction."""

    def __init__(self, per_day: float | None, start: float = MIDNIGHT, **sampling: float) -> None:
        self.clock, self.registry = SettableClock(start), CollectorRegistry()
        self.config = config(per_day, **sampling)
        self.budget = Budget(self.config, self.registry, self.clock)
        self.sampler = Sampler(self.config.sampling, self.registry, self.clock, self.budget.allowed)
        self.random = random.Random(7)
        self.number = 0
        self.by_hour = [0] * 24
        self.skipped = 0
        self.scores: list[tuple[float, float]] = []

    async def hours(self, per_hour: list[float]) -> None:
        """So many interactions in each of the hours to come."""
        for count in per_hour:
            begun = self.clock.now
            for n in range(round(count)):
                self.clock.now = begun + 3_600 * n / count
                await self.one()
            self.clock.now = begun + 3_600

    async def one(self) -> None:
        self.number += 1
        trace_id = f"{self.random.getrandbits(128):032x}"
        kept = self.sampler.decide(results.interaction(self.number, trace_id=trace_id, ended=self.clock.now))
        if kept is None:
            return
        if self.budget.is_spent:
            self.skipped += 1
            await self.budget.export(Result(kept, (Unscored("completeness", "budget"),), "m", finished=self.clock.now))
            return
        value = self.random.random()
        self.scores.append((value, kept.weight))
        self.by_hour[int(self.clock.now % 86_400 // 3_600)] += 1
        cost = Usage(calls=5, cost=COST * self.random.uniform(0.5, 1.5))
        await self.budget.export(Result(kept, (Score("completeness", value),), "m", 0, cost, self.clock.now))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    @property
    def spent(self) -> float:
        return self.value("tracescore_judge_spent_today", judge="m") or 0.0


pytestmark = pytest.mark.anyio


async def test_the_second_day_spends_all_of_its_budget_at_one_ratio_over_all_hours() -> None:
    day = Day(per_day=0.8)
    traffic = [400 * each for each in PEAKS]
    await day.hours(traffic)
    day.by_hour = [0] * 24
    await day.hours(traffic[:23])
    assert 0.7 < day.spent <= 0.8
    ratios = [scored / came for scored, came in zip(day.by_hour[7:20], traffic[7:20], strict=True)]
    assert max(ratios) < 3 * min(ratios)


async def test_a_first_day_keeps_to_its_budget_until_the_evening() -> None:
    day = Day(per_day=2.0)
    await day.hours([500.0] * 24)
    assert day.skipped == 0
    assert min(day.by_hour) > 0


async def test_traffic_ten_times_that_of_the_day_before_costs_no_more() -> None:
    day = Day(per_day=0.8)
    await day.hours([80.0] * 24)
    await day.hours([800.0] * 23)
    assert day.spent <= 0.8 + 1.5 * COST
    assert day.by_hour[22] > 0


async def test_once_the_budget_is_spent_nothing_is_scored_until_midnight() -> None:
    day = Day(per_day=0.02, min_ratio=0.5)
    await day.hours([100.0] * 10)
    assert day.spent <= 0.02 + 1.5 * COST
    assert day.skipped > 100
    assert day.value("tracescore_judge_budget_used_ratio", judge="m") == 1
    assert day.value("tracescore_sampling_ratio", rule="default") == 0.5
    await day.hours([0.0] * 14)
    assert not day.budget.is_spent
    assert day.spent == 0


async def test_a_budget_moves_no_mean() -> None:
    day = Day(per_day=1.0)
    await day.hours([1_000 * each for each in PEAKS])
    values, weights = zip(*day.scores, strict=True)
    assert weighted_mean(values, weights) == pytest.approx(0.5, abs=0.06)
    assert sum(weights) == pytest.approx(day.number, rel=0.25)


async def test_without_a_budget_money_is_only_counted() -> None:
    day = Day(per_day=None)
    await day.hours([100.0])
    assert len(day.scores) == 100
    assert day.value("tracescore_judge_spent_total", judge="m", service_name="shop") == pytest.approx(day.spent)
    assert day.value("tracescore_judge_budget_used_ratio", judge="m") is None


async def test_what_a_gold_set_costs_is_spent_too() -> None:
    day = Day(per_day=1.0)
    day.budget.spend(Result(results.interaction(1), (), "m", 0, Usage(calls=5, cost=1.0), day.clock.now))
    assert day.budget.is_spent


async def test_a_restart_goes_on_with_the_day() -> None:
    day = Day(per_day=2.0)
    await day.hours([200.0] * 30)
    again = Budget(day.config, CollectorRegistry(), day.clock)
    again.resume(reread(day.budget.state()))
    assert again.state() == day.budget.state()
    assert again.allowed is not None
    assert day.budget.allowed is not None
    assert again.allowed() == day.budget.allowed()
    day.clock.now += 86_400 * 3
    again.resume(reread(day.budget.state()))
    assert again.state().before is None, "nobody knows the days between"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 80), min_size=1, max_size=40),
    st.floats(0.001, 3),
    st.floats(0, 86_399),
)
async def test_whatever_comes_the_ratio_stays_in_its_bounds(traffic: list[float], per_day: float, start: float) -> None:
    day = Day(per_day, start=MIDNIGHT + start)
    for count in traffic:
        await day.hours([count])
        ratio = day.value("tracescore_sampling_ratio", rule="default")
        assert ratio is not None
        assert day.config.sampling.min_ratio <= ratio <= 1
        assert math.isfinite(day.spent)
        assert day.spent <= per_day + 1.5 * COST
