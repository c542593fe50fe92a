"""What waits for the judge is bounded by number and by size, and comes in the order in which it was put."""

from __future__ import annotations

import anyio
import pytest
from prometheus_client import CollectorRegistry

from tests.scripted import interaction
from tracescore.config import EvaluatorsConfig
from tracescore.model import Message
from tracescore.pipeline.queue import Queue

pytestmark = pytest.mark.anyio


class Rig:
    def __init__(self, **settings: int | str) -> None:
        self.registry = CollectorRegistry()
        self.queue = Queue(EvaluatorsConfig(**settings), self.registry)

    def offer(self, *contexts: str) -> bool:
        offered = interaction(contexts=contexts)
        if not self.queue.room().take(offered):
            return False
        self.queue.put(offered)
        return True

    @property
    def size(self) -> float | None:
        return self.registry.get_sample_value("tracescore_evaluators_waiting_bytes")


async def test_no_more_wait_than_may() -> None:
    rig = Rig(max_pending=2)
    assert [rig.offer(), rig.offer(), rig.offer()] == [True, True, False]
    assert await rig.queue.take() is not None
    assert [rig.offer(), rig.offer()] == [True, False]


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u6587", "\U0001f600"], ids=["ascii", "latin", "chinese", "emoji"])
async def test_no_more_text_waits_than_may_whatever_the_script(letter: str) -> None:
    most, each = 2**20, 100_000
    rig = Rig(max_pending_size="1MiB")
    accepted = sum(rig.offer(letter * each) for _ in range(30))
    in_memory = accepted * each * {"a": 1, "\u00e9": 1, "\u6587": 2, "\U0001f600": 4}[letter]
    assert most <= in_memory + each <= (rig.size or 0) + each < most + 5 * each
    assert await rig.queue.take() is not None
    assert rig.offer(letter * each)


async def test_one_that_is_larger_than_all_may_be_waits_where_nothing_else_does() -> None:
    rig = Rig(max_pending_size="1KiB")
    assert rig.offer("a" * 5_000)
    assert not rig.offer("a")


async def test_every_text_counts() -> None:
    texts = {
        "question": "q" * 1_000,
        "answer": "a" * 1_000,
        "contexts": ("c" * 1_000,) * 2,
        "history": (Message("user", "h" * 1_000),),
    }
    assert 5_000 <= interaction(**texts).size < 6_000


async def test_whoever_waits_takes_one_without_needing_room() -> None:
    rig = Rig(max_pending=1)
    taken = []

    async def take() -> None:
        taken.append(await rig.queue.take())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        tasks.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert rig.queue.room().interactions == 3
        rig.offer("one")
        rig.queue.close()
    assert [each and each.contexts for each in taken] == [("one",), None]
    assert rig.size == 0


async def test_what_waits_can_be_taken_after_the_end() -> None:
    rig = Rig()
    rig.offer("one")
    rig.offer("two")
    rig.queue.close()
    left = [rig.queue.take_now() for _ in range(3)]
    assert [each and each.contexts for each in left] == [("one",), ("two",), None]
    assert rig.size == 0
    assert await rig.queue.take() is None


def test_what_is_erased_waits_no_longer_and_gives_its_room_back() -> None:
    queue = Queue(EvaluatorsConfig(max_pending=2), CollectorRegistry())
    for number in (1, 2):
        queue.put(interaction(trace_id=f"{number:032x}"))
    (removed,) = queue.remove({bytes.fromhex(f"{1:032x}")})
    assert removed.trace_id == f"{1:032x}"
    assert [each.trace_id for each in queue.waiting()] == [f"{2:032x}"]
    assert queue.room().interactions == 1
