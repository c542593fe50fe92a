"""Short pauses must not cost the memory: what errors leave behind in cycles goes when the process grows."""

from __future__ import annotations

import gc
import time
import weakref

import anyio
import pytest

from tracescore import runtime

pytestmark = pytest.mark.anyio


class Cycle:
    def __init__(self) -> None:
        self.own = self


def _old() -> Cycle:
    """A cycle that has outlived what the collector looks at often."""
    cycle = Cycle()
    gc.collect()
    return cycle


async def test_full_collections_come_only_when_the_process_grows(monkeypatch) -> None:
    sizes = [100.0]
    looked = anyio.Event()
    monkeypatch.setattr(runtime, "_size", lambda: (looked.set(), sizes[-1])[1])
    monkeypatch.setattr(runtime, "_LOOK_EVERY", 0.001)
    gone = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.keep_pauses_short)
        await looked.wait()
        cycle = _old()
        weakref.finalize(cycle, gone.set)
        del cycle
        young = [[] for _ in range(200_000)]  # would have made for several full collections
        del young
        looked = anyio.Event()
        await looked.wait()
        assert not gone.is_set(), "nobody looks at it"
        sizes.append(201.0)
        with anyio.fail_after(30):
            await gone.wait()
        tasks.cancel_scope.cancel()


async def test_what_was_there_at_the_start_is_never_looked_at(monkeypatch) -> None:
    looked = anyio.Event()
    monkeypatch.setattr(runtime, "_size", lambda: (looked.set(), 1.0)[1])
    before = gc.get_freeze_count()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.keep_pauses_short)
        await looked.wait()
        assert gc.get_freeze_count() > before + 10_000
        tasks.cancel_scope.cancel()
    assert gc.get_freeze_count() == 0, "afterwards all is as it was"
    assert gc.get_threshold()[2] < 1000


async def test_a_full_collection_of_200_000_objects_is_over_within_the_bound_of_a_turn() -> None:
    gc.collect()
    gc.freeze()
    try:
        held = [{"of": [number]} for number in range(100_000)]
        spent = []
        for _ in range(3):
            before = time.thread_time()
            gc.collect()
            spent.append(time.thread_time() - before)
        assert len(gc.get_objects()) >= 2 * len(held)
        assert min(spent) < 0.1
    finally:
        gc.unfreeze()
