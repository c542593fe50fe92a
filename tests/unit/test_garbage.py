"""Short pauses must not cost the memory: what errors leave behind in cycles goes when the process grows."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import anyio
import pytest

from tracescore import garbage

pytestmark = pytest.mark.anyio


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


async def test_a_cycle_that_was_taken_out_of_sight_goes_when_the_process_grows(monkeypatch) -> None:
    sizes = [100.0]
    monkeypatch.setattr(garbage, "_largest_size", lambda: sizes[-1])
    monkeypatch.setattr(garbage, "_FREEZE_EVERY", 0.001)
    monkeypatch.setattr(garbage, "_SWEEP_AT_MOST_EVERY", 0.0)
    frozen, gone, cycle = anyio.Event(), anyio.Event(), Cycle()
    really_freeze = gc.freeze
    monkeypatch.setattr(gc, "freeze", lambda: (really_freeze(), frozen.set()))
    weakref.finalize(cycle, gone.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(garbage.keep_pauses_short)
        await frozen.wait()
        del cycle
        gc.collect()
        assert not gone.is_set(), "the collector does not see it"
        sizes.append(150.0)
        with anyio.fail_after(30):
            await gone.wait()
        tasks.cancel_scope.cancel()
