"""Who put something to be sent learns its end, unless it is left for a next process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from prometheus_client import CollectorRegistry

from tests.results import relevancy, result
from tracescore.config import OtlpExporterConfig, PhoenixExporterConfig
from tracescore.exporters import Delivering
from tracescore.exporters.delivery import Answer, DeliveryMetrics, DeliveryQueue, Limits
from tracescore.exporters.otlp.exporter import OtlpExporter
from tracescore.exporters.phoenix import PhoenixExporter
from tracescore.model import SKIP_REASONS, Unscored

pytestmark = pytest.mark.anyio
REASONS = ("queue_full", "refused", "rejected", "not_found", "retries_exhausted", "shutdown", "internal_error")


class Rig:
    """A queue whose destination gives the same answer to everything; None: it never answers."""

    def __init__(self, answer: Answer | None, limits: Limits) -> None:
        self._answer, self.registry = answer, CollectorRegistry()
        metrics = DeliveryMetrics("test", "Things", self.registry, REASONS).queue("test")
        self.queue = DeliveryQueue(metrics, self._attempt, len, limits)
        self.ended: list[str] = []

    async def _attempt(self, results: Sequence[Sequence[bytes]]) -> Answer:
        if self._answer is None:
            await anyio.sleep_forever()
        assert self._answer
        return self._answer

    def put(self, name: str) -> None:
        self.queue.put([name.encode()], lambda: self.ended.append(name))


@pytest.mark.parametrize(
    "answer",
    [
        Answer("accepted"),
        Answer("accepted", rejected=1),
        Answer("refused"),
        Answer("again", after=1.0),
        Answer("unknown", unknown=frozenset({0, 1})),
    ],
    ids=["taken", "rejected", "refused", "tried long enough", "unknown for long enough"],
)
async def test_each_is_told_once_when_it_was_taken_or_given_up(answer: Answer) -> None:
    rig = Rig(answer, Limits(give_up=0.01))
    rig.put("a")
    rig.put("b")
    await rig.queue.close()
    assert rig.ended == ["a", "b"]


async def test_what_finds_no_room_is_told_at_once_and_what_is_left_at_the_end_never() -> None:
    rig = Rig(None, Limits(waiting=2, flush=0.01))
    for name in ("under way", "waiting", "too many"):
        rig.put(name)
        await anyio.sleep(0.01)
    await rig.queue.close()
    assert rig.ended == ["too many"]


async def test_what_is_not_known_yet_at_the_end_is_not_told() -> None:
    rig = Rig(Answer("unknown", unknown=frozenset({0})), Limits(flush=0.05))
    rig.put("early")
    await rig.queue.close()
    assert rig.ended == []


@pytest.mark.parametrize("kept", [False, True])
async def test_what_is_left_for_a_next_process_is_not_counted_as_dropped(kept: bool) -> None:
    rig = Rig(None, Limits(flush=0.05))
    for name in ("on its way", "waiting"):
        rig.put(name)
        await anyio.lowlevel.checkpoint()
    await rig.queue.close(durable=kept)
    dropped = rig.registry.get_sample_value("tracescore_exporters_test_dropped_total", {"reason": "shutdown"})
    assert dropped == (0 if kept else 2)
    assert rig.registry.get_sample_value("tracescore_exporters_test_sent_total") == 0


class Picky:
    """A queue whose destination does not take some texts, and remembers what it was given."""

    def __init__(self, bad: bytes, answer: Answer | None, *, split: bool) -> None:
        """`answer` to a batch that holds `bad`; None: our own attempt fails."""
        self._bad, self._answer, self.registry = bad, answer, CollectorRegistry()
        metrics = DeliveryMetrics("test", "Things", self.registry, REASONS).queue("test")
        self.queue = DeliveryQueue(metrics, self._attempt, len, Limits(split=split))
        self.given: list[list[bytes]] = []

    async def _attempt(self, results: Sequence[Sequence[bytes]]) -> Answer:
        self.given.append([text for (text,) in results])
        if self._bad not in self.given[-1]:
            return Answer("accepted")
        if self._answer is None:
            raise KeyError
        return self._answer

    async def deliver(self, *texts: bytes) -> list[bytes]:
        """The texts that have come to their end, in order."""
        ended: list[bytes] = []
        for text in texts:
            self.queue.put([text], partial(ended.append, text))
        await self.queue.close()
        return ended

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"tracescore_exporters_test_{name}_total", labels)


@pytest.mark.parametrize(("answer", "reason"), [(Answer("refused"), "refused"), (None, "internal_error")])
async def test_of_a_batch_that_is_refused_each_is_tried_alone_where_nothing_may_be_lost(
    answer: Answer | None, reason: str
) -> None:
    picky = Picky(b"bad", answer, split=True)
    assert await picky.deliver(b"a", b"bad", b"c") == [b"a", b"bad", b"c"]
    assert picky.given == [[b"a", b"bad", b"c"], [b"a"], [b"bad"], [b"c"]]
    assert (picky.count("sent"), picky.count("dropped", reason=reason)) == (2, 1)


@pytest.mark.parametrize(("answer", "reason"), [(Answer("refused"), "refused"), (None, "internal_error")])
async def test_elsewhere_a_refusal_ends_its_batch_and_no_other(answer: Answer | None, reason: str) -> None:
    picky = Picky(b"bad", answer, split=False)
    assert await picky.deliver(b"a", b"bad") == [b"a", b"bad"]
    assert await picky.deliver(b"c") == [b"c"]
    assert (picky.count("sent"), picky.count("dropped", reason=reason)) == (1, 2)


async def test_while_nothing_waits_there_is_no_task() -> None:
    rig = Rig(Answer("accepted"), Limits())
    for name in ("a", "b"):
        rig.put(name)
        await anyio.wait_all_tasks_blocked()
        assert rig.ended[-1] == name
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "exporter test"]
    await rig.queue.close()


@pytest.mark.parametrize("kind", ["otlp", "phoenix"])
async def test_a_result_is_settled_once_it_is_at_its_end_and_at_once_when_nothing_of_it_goes_out(kind: str) -> None:
    nowhere, limits = "http://127.0.0.1:9", Limits(waiting=1, flush=0.01)
    exporter: Delivering = (
        OtlpExporter(OtlpExporterConfig(endpoint=nowhere), CollectorRegistry(), limits)
        if kind == "otlp"
        else PhoenixExporter(PhoenixExporterConfig(endpoint=nowhere), CollectorRegistry(), limits, language_model=True)
    )
    assert exporter.name == kind
    skipped = result(Unscored("faithfulness", SKIP_REASONS[0]), number=1)
    await exporter.export(skipped)
    assert exporter.take_settled() == [skipped]
    left, too_many = (result(relevancy(0.5), number=number) for number in (2, 3))
    await exporter.export(left)
    await exporter.export(too_many)
    assert exporter.take_settled() == [too_many]
    await exporter.close()
    assert exporter.take_settled() == [], "what was not delivered belongs to the next process"
