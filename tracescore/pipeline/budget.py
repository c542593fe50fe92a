"""What the judge may cost in a day (UTC): what has been spent, and the share of the traffic that the rest pays for.

The pace follows the demand of the day before, hour by hour: demand is what the judge would have cost had sampling kept
everything that its rules name. Sampling is lowered to what the money that is left pays for of the demand that is still
to come, and never below `sampling.min_ratio`. Once all is spent, nothing is scored until midnight.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from tracescore.config import DEFAULT_RULE, Config
from tracescore.exporters.kinds import Continuing
from tracescore.exporters.prometheus.families import counter, gauge
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import Clock, Result
from tracescore.spool.state import Persisted, StateCodec

_HOUR, _DAY = 3_600.0, 86_400.0
_FIRST = 600.0
"""Seconds of a first day from which its rate says something."""
_TRUST = 0.1
"""Share of yesterday's demand that has to come before today's own counts as much as yesterday's."""
_MOST_SERVICES = 200
_OTHER = "other"

Demand = Annotated[tuple[NonNegativeFloat, ...], Field(min_length=24, max_length=24)]
"""Money by hour of the day."""


@dataclass(frozen=True, slots=True)
class BudgetState(Persisted):
    """What is kept: the day (since the epoch), when it was first seen (Unix seconds), its figures, and yesterday's."""

    day: NonNegativeInt
    since: NonNegativeFloat
    spent: NonNegativeFloat
    scored: NonNegativeInt
    demand: Demand
    before: Demand | None
    by_service: tuple[tuple[str, NonNegativeFloat], ...]


class Budget(Continuing):
    """See the module. An exporter: it learns what each result has cost."""

    name = "budget"
    codec = StateCodec(BudgetState)

    def __init__(self, config: Config, registry: CollectorRegistry, clock: Clock) -> None:
        price = config.judge.price if config.judge.kind == "openai" else None
        self._per_day = config.judge.budget.per_day if config.judge.kind == "openai" and config.judge.budget else None
        self._judge, self._clock = config.judge.known_as, clock
        self._ratios = {DEFAULT_RULE: config.sampling.ratio} | {each.name: each.ratio for each in config.sampling.rules}
        self._day, self._since = int(clock() // _DAY), clock()
        self._spent, self._scored = 0.0, 0
        self._demand = [0.0] * 24
        self._before: list[float] | None = None
        self._by_service: defaultdict[str, float] = defaultdict(float)
        if price is not None:
            registry.register(self)

    @property
    def allowed(self) -> Callable[[], float] | None:
        """What gives the share of the traffic that the budget pays for; None without a budget."""
        return self._allowed if self._per_day is not None else None

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of today's budget."""
        self._turn(self._clock())
        return self._per_day is not None and self._spent >= self._per_day

    async def export(self, result: Result) -> None:
        """Takes in what a result of live traffic has cost, and what it says about the demand."""
        told, cost = result.interaction, result.usage.cost or 0.0
        skipped = any(getattr(each, "reason", "") == "budget" for each in result.evaluations)
        self.spend(result)
        if int(result.finished // _DAY) != self._day:
            return
        self._scored += not skipped
        if skipped:  # nothing was paid for it: what one costs on the average
            cost = self._spent / max(self._scored, 1)
        hour = int(result.finished % _DAY // _HOUR)
        self._demand[hour] += cost * told.weight * self._ratios.get(told.rule, 1.0)

    def spend(self, result: Result) -> Result:
        """Takes in what a result has cost, of live traffic or not; gives it back."""
        self._turn(result.finished)
        if cost := result.usage.cost:
            name = label_value(result.interaction.service)
            known = name in self._by_service or len(self._by_service) < _MOST_SERVICES
            self._by_service[name if known else _OTHER] += cost
            if int(result.finished // _DAY) == self._day:
                self._spent += cost
        return result

    def _allowed(self) -> float:
        """In [0, 1]."""
        now = self._clock()
        self._turn(now)
        left, ahead = max(0.0, (self._per_day or 0.0) - self._spent), self._ahead(now)
        return min(1.0, left / ahead) if ahead > 0 else float(left > 0)

    def _ahead(self, now: float) -> float:
        """The money that everything would cost from now to midnight."""
        into = now % _DAY
        hour, rest = int(into // _HOUR), 1 - into % _HOUR / _HOUR
        if self._before is None:
            rate = sum(self._demand) / max(now - max(self._since, self._day * _DAY), _FIRST)
            return rate * (_DAY - into)
        whole = sum(self._before)
        gone = sum(self._before[:hour]) + self._before[hour] * (1 - rest)
        swell = (sum(self._demand) + _TRUST * whole) / (gone + _TRUST * whole) if whole > 0 else 1.0
        return swell * (whole - gone)

    def _turn(self, now: float) -> None:
        """Begins a new day. Of a day in the middle of which this process was first started, the hours are not known."""
        day = int(now // _DAY)
        if day <= self._day:
            return
        seen_whole = day == self._day + 1 and self._since <= self._day * _DAY + _FIRST
        self._before = self._demand if seen_whole else None
        if not seen_whole:
            self._since = max(now, self._since) if day > self._day + 1 else day * _DAY
        self._day, self._spent, self._scored, self._demand = day, 0.0, 0, [0.0] * 24

    def state(self) -> BudgetState:
        """The figures at this moment."""
        spent = tuple(self._by_service.items())
        before = None if self._before is None else tuple(self._before)
        figures = (self._spent, self._scored, tuple(self._demand), before, spent)
        return BudgetState(self._day, self._since, *figures)

    def resume(self, state: BudgetState) -> None:
        """Goes on from the figures of an earlier process; a day that is over by now ends."""
        self._day, self._since, self._spent, self._scored = state.day, state.since, state.spent, state.scored
        self._demand, self._before = list(state.demand), None if state.before is None else list(state.before)
        self._by_service.update(state.by_service)
        self._turn(self._clock())

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        self._turn(self._clock())
        judge = [self._judge]
        about = "Money that the judge has cost since midnight UTC."
        yield gauge("tracescore_judge_spent_today", about, ["judge"], [(judge, self._spent)])
        used = None if self._per_day is None else min(1.0, self._spent / self._per_day)
        about = "Share of today's budget (judge.budget) that is spent; at 1 nothing is scored until midnight UTC."
        yield gauge("tracescore_judge_budget_used_ratio", about, ["judge"], [(judge, used)])
        about = "Money that the judge has cost, by service; unlike tracescore_judge_cost_total it outlives a restart."
        rows = [([self._judge, service], spent) for service, spent in self._by_service.items()]
        yield counter("tracescore_judge_spent", about, ["judge", "service_name"], rows)
