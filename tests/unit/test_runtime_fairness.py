"""Scoring lets others go first, and is never kept waiting for ever."""

from __future__ import annotations

import math
import time

import anyio
import anyio.lowlevel
import pytest

from tracescore.runtime import Fairness

pytestmark = pytest.mark.anyio


async def _work_in_steps(steps: int, done: anyio.Event) -> None:
    """What a request is to the event loop: many short pieces of work in a row."""
    for _ in range(steps):
        end = time.monotonic() + 0.0002
        while time.monotonic() < end:
            pass
        await anyio.lowlevel.checkpoint()
    done.set()


async def test_a_turn_comes_after_all_steps_of_what_is_under_way() -> None:
    done = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work_in_steps, 50, done)
        await Fairness().idle(until=math.inf)
        assert done.is_set()


async def test_a_turn_comes_at_its_latest_however_busy_the_others_are() -> None:
    done = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work_in_steps, 10**9, done)
        await Fairness().idle(until=time.monotonic() + 0.01)
        assert not done.is_set()
        tasks.cancel_scope.cancel()


async def test_others_get_in_between_even_when_it_is_late() -> None:
    steps: list[str] = []

    async def other() -> None:
        for _ in range(3):
            steps.append("other")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        for _ in range(3):
            await Fairness().idle(until=-math.inf)
            steps.append("late")
    assert "other" in steps[steps.index("late") :]
    assert steps[-1] == "late"


async def test_those_who_wait_go_on_one_by_one_in_the_order_in_which_they_came() -> None:
    fairness, order = Fairness(), []

    async def waiting(number: int) -> None:
        await fairness.idle(until=math.inf)
        order.append(f"{number} begins")
        await anyio.lowlevel.checkpoint()
        order.append(f"{number} ends")

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(waiting, number)
    assert order == ["0 begins", "0 ends", "1 begins", "1 ends", "2 begins", "2 ends"]


async def test_one_who_no_longer_waits_does_not_keep_the_next_one_waiting() -> None:
    fairness = Fairness()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work_in_steps, 10**9, anyio.Event())
        with anyio.move_on_after(0.01):
            await fairness.idle(until=math.inf)
        await fairness.idle(until=time.monotonic() + 0.01)
        tasks.cancel_scope.cancel()
