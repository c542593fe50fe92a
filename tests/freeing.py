"""What is left in memory that only the garbage collector can find: bodies and texts must not be."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Awaitable, Callable

import anyio

TEXT = "A text that is a large block. " * 10_000
"""Longer than anything that libraries keep for themselves."""
_LARGE = 100_000
_TIMES = 8


async def is_freed_at_once(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether calls, one after the other, leave no large block each that only the collector can free.

    The end of the last ones may still be on its way when they are looked at. What `call` itself sends must be made
    before, once: only blocks that are made meanwhile are counted.
    """
    await call()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(_TIMES):
            await call()
        await _settled()
        found = _large_blocks()
        gc.collect()
        await _settled()  # generators that the collector has found are closed in tasks of their own
        gc.collect()
        return found - _large_blocks() < _TIMES // 2
    finally:
        tracemalloc.stop()
        gc.enable()


async def _settled() -> None:
    for _ in range(3):
        await anyio.wait_all_tasks_blocked()
        await anyio.lowlevel.checkpoint()


def _large_blocks() -> int:
    return sum(trace.size >= _LARGE for trace in tracemalloc.take_snapshot().traces)
