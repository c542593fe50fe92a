"""Whatever happens in whatever order, and wherever it is cut short: the ledger adds up, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.otlp import raw_span, span
from tracescore.config import AssemblyConfig, Config, EvaluatorsConfig, SpoolConfig
from tracescore.errors import SpoolError
from tracescore.exporters import Delivering
from tracescore.model import Result, Score, Unscored
from tracescore.pipeline.budget import Budget
from tracescore.service import Service
from tracescore.spool.writer import Effect, FileSpool

MEASURES = ("answer_relevancy", "completeness", "faithfulness")
GROWING = re.compile(r"tracescore_(interactions_total|evaluations_(started_)?total|\w+_weight_total|\w+_score_count)")

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Sink(Delivering):
    """A destination that takes a result when it is told to, and remembers the ids."""

    name = "sink"

    def __init__(self, taken: dict[str, list[str]]) -> None:
        super().__init__(durable=True)
        self.waiting: list[Result] = []
        self._taken = taken

    async def export(self, result: Result) -> None:
        self.waiting.append(result)

    async def close(self) -> None:
        """Nothing to release."""

    def deliver(self) -> None:
        result = self.waiting.pop(0)
        ids = sorted(result.score_id(each.measure) for each in result.evaluations)
        self._taken.setdefault(result.interaction.key, []).append(" ".join(ids))
        self.settled(result)


class Judgeless:
    """Stands for judge and evaluators: results are made up here."""

    judge = SimpleNamespace(name="m", epochs=None)

    def __init__(self, *_: object) -> None:
        self.budget = Budget(Config(), CollectorRegistry(), lambda: 1_800_000_000.0)

    def ready(self) -> bool:
        return True


class Life:
    """One service after the other over one file, driven step by step: commits happen when the test says so."""

    def __init__(self, folder: str, evaluators: EvaluatorsConfig) -> None:
        self.config = Config(
            spool=SpoolConfig.model_construct(path=str(Path(folder) / "spool"), max_size=2**30),
            assembly=AssemblyConfig.model_construct(
                **(AssemblyConfig().model_dump() | {"idle": 1.0, "orphan_idle": 50.0})
            ),
            evaluators=evaluators,
        )
        self.now = 1_800_000_000.0
        self.acknowledged: set[tuple[int, int]] = set()
        self.taken: dict[str, list[str]] = {}
        self.seen: Samples = {}
        self.evaluated = 0

    async def start(self) -> None:
        self.sink = Sink(self.taken)
        with patch("tracescore.service.Scorer", Judgeless):
            self.service = Service(self.config, lambda: self.now, [self.sink])
        assert isinstance(self.service.spool, FileSpool)
        self.spool = self.service.spool
        self.spool.start = self._no_thread  # type: ignore[method-assign]
        self.tasks: set[asyncio.Task[Any]] = set()
        await self.service.journal.resume(self.service.reader)

    def _no_thread(self, take_effect: Effect) -> None:
        self.spool._loop, self.spool._effect = asyncio.get_running_loop(), take_effect

    async def end(self) -> None:
        """As if killed: what is not committed is gone."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.spool._file.db.close()
        self.service.queue.close()

    async def crash(self) -> None:
        await self.end()
        await self.start()

    # ------------------------------------------------------------ steps

    def send(self, trace: int, part: int) -> None:
        """Part 0: the answer without its root; 1: the root; 2: news that comes late."""
        spans = [raw_span(made) for made in _spans(trace, part)]

        async def request() -> None:
            with suppress(SpoolError):
                await self.service.journal.take(spans, [])
                self.acknowledged.add((trace, part))

        self._begin(request())

    def read(self) -> None:
        self._begin(self.service.reading._read_all(self.service.journal.closed()))

    def evaluate(self) -> None:
        interaction = self.service.queue.take_now()
        if interaction is not None:
            self.evaluated += 1
            last = Unscored("faithfulness", "judge_timeout") if self.evaluated % 3 else Score("faithfulness", 0.5)
            scores = (Score("answer_relevancy", 0.25), Score("completeness", 1.0), last)
            self._begin(self.service.evaluating._publish(Result(interaction, scores, "m", 0, finished=self.now)))

    def commit(self) -> None:
        group: list[Any] = []
        if not self.spool._queue.empty():
            self.spool._collect(group)
            assert not self.spool._write(group)

    def totals(self) -> None:
        self.service.journal._totals_due = 0.0
        self.service.journal.tick()

    def deliver(self) -> None:
        if self.sink.waiting:
            self.sink.deliver()

    def later(self) -> None:
        self.now += 1.0

    def much_later(self) -> None:
        self.now += 60.0

    def _begin(self, work: Any) -> None:
        self.tasks.add(asyncio.create_task(work))

    # ------------------------------------------------------------ what is seen

    def look(self) -> Samples:
        families = self.service.registry.collect()
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    def check(self) -> None:
        samples = self.look()
        for key, value in samples.items():
            if GROWING.fullmatch(key[0]):
                assert value >= self.seen.get(key, 0.0), f"{key} goes back from {self.seen[key]} to {value}"
                self.seen[key] = value
        for measure in MEASURES:
            started = total(samples, "evaluations_started_total", measure)
            ended, pending = (total(samples, f"evaluations_{name}", measure) for name in ("total", "pending"))
            assert started == ended + pending

    async def commit_and_total(self) -> None:
        """The totals are due at the very moment at which something takes effect."""
        self.commit()
        await asyncio.sleep(0)
        self.totals()

    async def queue_up(self) -> None:
        """What was sent comes as far as the queue of the judge."""
        for step in (self.commit, self.later, self.later, self.read, self.commit):
            step()
            await breathe()

    async def progress(self) -> None:
        """Everything goes on a good deal further."""
        await self.queue_up()
        for step in (self.evaluate, self.commit):
            for _ in range(3):
                step()
                await breathe()

    async def settle(self) -> None:
        """Everything that has begun comes to its end."""
        await self.progress()
        self.much_later()  # for traces whose root came long before and was let go
        for _ in range(5):
            await self.progress()
        while self.sink.waiting:
            self.deliver()
        self.totals()
        self.commit()
        await breathe()


def total(samples: Samples, name: str, measure: str) -> float:
    wanted = ("measure", measure)
    return sum(v for (found, labels), v in samples.items() if found == f"tracescore_{name}" and wanted in labels)


async def breathe() -> None:
    """Lets tasks run until they wait for something."""
    for _ in range(6):
        await asyncio.sleep(0)


def _spans(trace: int, part: int) -> list[Any]:
    times = {"start_time_unix_nano": 1_799_999_999 * 10**9, "end_time_unix_nano": 1_799_999_999 * 10**9 + 5}
    base = 10 * trace
    if part == 1:
        return [span(base + 1, 0, trace, name="POST /ask", kind=2, **times)]
    if part == 2:
        return [span(base + 4, base + 1, trace, name="late", **times)]
    rag = {"openinference.span.kind": "CHAIN", "input.value": "How do I reset it?", "output.value": "Choose Forgot."}
    found = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "The link resets it."}
    return [
        span(base + 2, base + 1, trace, rag, name="rag", **times),
        span(base + 3, base + 2, trace, found, name="retrieve", **times),
    ]


TRACES = (1, 2, 3)
sends = st.tuples(st.just("send"), st.sampled_from(TRACES), st.sampled_from((0, 1, 2)))
small = ["commit", "commit", "read", "evaluate", "evaluate", "totals", "deliver", "later", "much_later"]
large = ["queue_up", "progress", "crash", "crash", "commit_and_total"]
plain = st.sampled_from([*small, *large]).map(lambda name: (name,))


@settings(max_examples=25)
@given(st.lists(st.one_of(sends, plain), max_size=40))
@example([("send", 1, 0), ("send", 1, 1), ("queue_up",), ("evaluate",), ("commit_and_total",), ("commit",), ("crash",)])
@example([("send", 1, 0), ("send", 1, 1), ("progress",), ("much_later",), ("progress",), ("send", 1, 0), ("commit",)])
def test_any_interleaving_with_restarts_counts_everything_once(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(_lead(steps, EvaluatorsConfig()))


@settings(max_examples=10)
@given(st.lists(st.one_of(sends, plain), max_size=40))
@example([*(("send", trace, part) for trace in TRACES for part in (0, 1)), ("queue_up",), ("evaluate",), ("crash",)])
def test_the_ledger_adds_up_when_too_many_wait(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(_lead(steps, EvaluatorsConfig(max_pending=1)))


@settings(max_examples=10)
@given(st.lists(st.one_of(sends, plain), max_size=40))
@example([*(("send", trace, part) for trace in TRACES for part in (0, 1)), ("queue_up",), ("evaluate",), ("crash",)])
def test_the_ledger_adds_up_when_what_waits_is_too_large(steps: list[tuple[Any, ...]]) -> None:
    small = EvaluatorsConfig().model_dump() | {"max_pending_size": 1}
    asyncio.run(_lead(steps, EvaluatorsConfig.model_construct(**small)))


async def _lead(steps: list[tuple[Any, ...]], evaluators: EvaluatorsConfig) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(folder, evaluators)
        await life.start()
        for name, *arguments in steps:
            done = getattr(life, name)(*arguments)
            if done is not None:
                await done
            await breathe()
            life.check()
        acknowledged = set(life.acknowledged)
        for trace in TRACES:
            for part in (0, 1):
                if (trace, part) not in acknowledged:  # whoever got no answer sends again
                    life.send(trace, part)
        await life.settle()
        life.check()
        await life.crash()
        await life.settle()
        life.check()
        assert acknowledged <= life.acknowledged
        _everything_once(life, may_shed=evaluators != EvaluatorsConfig())
        for _ in range(3):
            life.much_later()
            await life.progress()
        assert life.spool._file.db.execute("SELECT count(*) FROM pieces").fetchone() == (0,), "nothing needs them"
        await life.end()


def _everything_once(life: Life, *, may_shed: bool) -> None:
    count, samples = len(TRACES), life.look()
    assert sum(v for (name, _), v in samples.items() if name == "tracescore_interactions_total") == count
    for measure in MEASURES:
        assert total(samples, "evaluations_total", measure) == count
        assert total(samples, "evaluations_pending", measure) == 0
    scored = {m: v for (name, labels), v in samples.items() if name == "tracescore_evaluations_total"
              for m in [dict(labels)["measure"]] if dict(labels)["outcome"] == "scored"}  # fmt: skip
    weights = sum(v for (name, _), v in samples.items() if name == "tracescore_answer_relevancy_weight_total")
    assert weights == scored["answer_relevancy"]
    tested = [v for (name, labels), v in samples.items() if name == "tracescore_drift_scores"
              and dict(labels)["detector"] == "completeness"]  # fmt: skip
    assert tested == [scored["completeness"]] * 2, "the detectors have seen every score once"
    if not may_shed:
        assert weights == count
    assert len(life.taken) == weights
    assert all(len(set(ids)) == 1 for ids in life.taken.values()), "a repeat has other ids"
