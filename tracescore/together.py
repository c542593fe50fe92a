"""Runs a few calls side by side and returns their results in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

import anyio

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


async def together(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Results in the order of `calls`. The first error cancels the rest and is raised by itself, not in a group."""
    results: dict[int, T] = {}
    errors: list[Exception] = []

    async def run(index: int, scope: anyio.CancelScope) -> None:
        try:
            results[index] = await calls[index]()
        except Exception as error:  # noqa: BLE001 - raised again below, where the caller can see it plainly
            errors[:] = errors or [error]
            scope.cancel()
        except anyio.get_cancelled_exc_class():
            pass  # the group is cancelled whatever comes of it; the group's callback would keep it, and its frames

    if len(calls) == 1:
        return [await calls[0]()]
    async with anyio.create_task_group() as tasks:
        for index in range(len(calls)):
            tasks.start_soon(run, index, tasks.cancel_scope)
    if errors:
        raise errors.pop()  # kept in the list, it would be held by frames that its traceback holds
    return [results[index] for index in range(len(calls))]


async def both(first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """`together` for two calls with results of different types."""
    a, b = await together(cast("Sequence[Callable[[], Awaitable[A | B]]]", (first, second)))
    return cast("A", a), cast("B", b)
