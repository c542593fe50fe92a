"""Waiting goes on as it would when somebody sets the clock of the machine."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from tests.results import relevancy, result
from tracescore.pipeline.ledger import Ledger
from tracescore.pipeline.steady import SteadyClock


class Machine:
    """Its two clocks."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 1_700_000_000.0, 50.0

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def steady(machine: Machine) -> SteadyClock:
    return SteadyClock(lambda: machine.wall, lambda: machine.monotonic)


@pytest.mark.parametrize("jump", [-3600.0, 7200.0])
def test_a_clock_that_is_set_changes_no_waiting_and_is_told_once(machine, steady, jump, caplog) -> None:
    began = steady()
    assert began == machine.wall
    machine.wall += jump
    machine.wait(5.0)
    assert steady() - began == 5.0
    machine.wait(5.0)
    assert steady() - began == 10.0
    assert [record.getMessage().partition(" detail")[0] for record in caplog.records] == [
        f"event=clock_set seconds={jump:+.0f}"
    ]


def test_a_clock_that_is_adjusted_slowly_is_left_alone(machine, steady, caplog) -> None:
    for _ in range(1_000):
        machine.wait(0.1)
        machine.wall += 0.00005
        steady()
    assert steady.settled()
    assert not caplog.records


def test_lag_is_not_measured_until_what_began_before_a_jump_has_ended(machine, steady) -> None:
    registry = CollectorRegistry()
    ledger = Ledger(registry, steady, steady.settled)

    def measured() -> float | None:
        return registry.get_sample_value("tracescore_evaluations_lag_seconds_count")

    machine.wall += 7200.0
    steady()
    ledger.finished(result(relevancy(0.5), ended=machine.wall - 7200, finished=machine.wall))
    assert measured() == 0
    machine.wait(601.0)
    ledger.finished(result(relevancy(0.5), ended=machine.wall - 1, finished=machine.wall))
    assert measured() == 1
