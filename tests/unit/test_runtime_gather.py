"""Calls side by side: whose error is told, and what is left of those that failed or were cancelled."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest

from tracescore.runtime import gather

pytestmark = pytest.mark.anyio


class Text:
    """Something that a frame can hold."""


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def call(text: Text, what: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    async def working() -> None:
        await what()
        assert text

    return working


async def fail() -> None:
    await anyio.lowlevel.checkpoint()
    raise ValueError("plain")


async def waiting_without_end() -> None:
    async with anyio.create_task_group():
        await anyio.sleep_forever()


async def test_what_the_calls_worked_on_is_freed_when_one_fails() -> None:
    gone = []
    for others in ([waiting_without_end], [fail, fail]):
        texts = [Text() for _ in range(3)]
        gone += [weakref.ref(text) for text in texts]
        with pytest.raises(ValueError, match="plain"):
            await gather([call(text, what) for text, what in zip(texts, [fail, *others], strict=False)])
        del texts
    assert [left() for left in gone] == [None] * 6


async def test_what_the_calls_worked_on_is_freed_when_whoever_waits_goes_away() -> None:
    texts = [Text() for _ in range(2)]
    gone = [weakref.ref(text) for text in texts]
    with anyio.move_on_after(0) as scope:
        await gather([call(text, waiting_without_end) for text in texts])
    assert scope.cancelled_caught
    del texts
    assert [left() for left in gone] == [None] * 2


async def test_a_call_that_was_cut_short_from_outside_gives_no_results() -> None:
    done: list[object] = []
    async with anyio.create_task_group() as tasks:

        async def asking() -> None:
            done.append(await gather([waiting_without_end, waiting_without_end]))

        tasks.start_soon(asking)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert done == []
