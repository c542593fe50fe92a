"""One run over a gold set: asks, has the answers scored, and notes an outcome per item as soon as it is known."""

import dataclasses
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from tracescore import logs
from tracescore.config.gold import GoldConfig
from tracescore.errors import TargetFailed
from tracescore.gold.items import GoldItem, GoldSet, mark_of
from tracescore.gold.results import COUNTS, ItemOutcome, Run, RunState, values_of
from tracescore.gold.store import Store
from tracescore.gold.targets import Target
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Clock, Interaction, Result, Score, Unscored
from tracescore.net.retry import REAL_TIME, Backoff, Timing

Evaluate = Callable[[Interaction], Awaitable[Result]]
"""Scores an interaction that carries its reference; never raises for what judge or embedder do."""
Progress = Callable[[], None]
"""Called for every item that is done."""

_log = logging.getLogger("tracescore.gold")

_FIRST = 2
"""Items that may fail before anything else is asked: one may be at fault itself, two mean the target."""
_BACKOFF = Backoff(longest=60.0)
_DETAIL = 300


@dataclass(frozen=True, slots=True)
class RunExecutor:
    """What all items of all runs have in common."""

    settings: GoldConfig
    target: Target
    trace_ids: GoldTraceIds
    evaluate: Evaluate
    store: Store
    clock: Clock
    timing: Timing = REAL_TIME

    async def run(self, run: Run, gold_set: GoldSet, progress: Progress) -> Run:
        """Asks what `run` (begun or resumed) has no outcome of, and ends it; returns it with all its outcomes."""
        left = [item for item in gold_set.items if item.id not in {each.id for each in run.outcomes}]
        found = list(run.outcomes)

        async def one(item: GoldItem) -> ItemOutcome:
            outcome, epoch = await self._outcome(item)
            if epoch is not None:
                nonlocal run
                run = replace(run, epoch=epoch)
            await self._in_thread(self.store.add, run, outcome)
            found.append(outcome)
            progress()
            return outcome

        items = iter(left)
        if not found and not await self._answers(itertools.islice(items, _FIRST), one):
            return await self._ended(run, found, "failed", found[-1].detail)
        await self._side_by_side(items, one)
        return await self._ended(run, found, *self._verdict(run, found))

    async def _answers(self, items: Iterator[GoldItem], one: Callable[[GoldItem], Awaitable[ItemOutcome]]) -> bool:
        """Whether the app answers one of the items; they are asked in turn, up to the first that it answers."""
        for item in items:
            if (await one(item)).outcome != "unanswered":
                return True
        return False

    async def _side_by_side(self, items: Iterator[GoldItem], one: Callable[[GoldItem], Awaitable[ItemOutcome]]) -> None:
        async def worker() -> None:
            for item in items:
                await one(item)

        async with anyio.create_task_group() as workers:
            for _ in range(self.settings.concurrency):
                workers.start_soon(worker)

    def _verdict(self, run: Run, found: list[ItemOutcome]) -> tuple[RunState, str]:
        """A run of which too little could be scored has failed: nothing of it would be published."""
        whole = replace(run, outcomes=tuple(found))
        scored = whole.count("scored")
        if scored and scored >= self.settings.min_scored * len(found):
            return "done", ""
        why = ", ".join(f"{reason} {count}" for reason, count in whole.reasons().items())
        return "failed", f"{scored} of {len(found)} items scored, {self.settings.min_scored:.0%} needed: {why}"

    async def _ended(self, run: Run, found: list[ItemOutcome], state: RunState, detail: str) -> Run:
        found.sort(key=lambda each: each.id)
        ended = replace(run, outcomes=tuple(found), state=state, detail=detail[:_DETAIL], finished=self.clock())
        answered = [each for each in found if each.outcome != "unanswered"]
        service, release = ({getattr(each, name) for each in answered} - {"unknown"} for name in ("service", "release"))
        if release:
            ended = replace(ended, release=release.pop() if len(release) == 1 else "mixed")
        if service and run.service == "unknown":
            ended = replace(ended, service=service.pop() if len(service) == 1 else "mixed")
        await self._in_thread(self.store.end, ended)
        return ended

    async def _in_thread(self, call: Callable[..., None], *values: object) -> None:
        await anyio.to_thread.run_sync(call, *values)

    async def _outcome(self, item: GoldItem) -> tuple[ItemOutcome, int | None]:
        """What became of the item, and the judge epoch of its scores."""
        bare = ItemOutcome(
            id=item.id,
            mark=mark_of(item),
            question=item.question,
            reference=item.reference,
            outcome="unanswered",
            tags=item.tags,
            weight=item.weight,
            service=self.settings.service or "unknown",
        )
        try:
            answered = await self._answered(item)
            result = await self.evaluate(_with_reference(answered, item))
        except TargetFailed as failed:
            return replace(bare, reason=failed.reason, detail=failed.detail[:_DETAIL]), None
        except Exception as error:  # noqa: BLE001 - one bad item must not end the run
            logs.defect(_log, error)
            return replace(bare, reason="internal_error", detail=type(error).__name__), None
        return _scored(bare, result), result.epoch

    async def _answered(self, item: GoldItem) -> Interaction:
        """The answer, at the latest after `retries` more attempts, each in a trace of its own; TargetFailed."""
        attempt = 0
        while True:
            try:
                return await self.target.ask(item, self.trace_ids.new())
            except TargetFailed as failed:
                attempt += 1
                if not failed.again or attempt > self.settings.retries:
                    raise
                await self.timing.sleep(_BACKOFF.pause(attempt, failed.wait))


def _with_reference(answered: Interaction, item: GoldItem) -> Interaction:
    """What the app did, judged as an answer to the item: its question is known, however the app recorded it."""
    hidden = answered.state in ("no_question", "content_not_captured", "redacted") and answered.answer is not None
    return replace(
        answered,
        state="complete" if hidden else answered.state,
        question=item.question,
        history=item.history,
        reference=item.reference,
        required=item.required,
        unusable=answered.unusable - {"question"},
        contexts=answered.contexts or item.contexts,
    )


def _scored(bare: ItemOutcome, result: Result) -> ItemOutcome:
    answered = result.interaction
    values = values_of(result.evaluations)
    correctness = next((each for each in result.evaluations if each.measure == "answer_correctness"), None)
    outcome = replace(
        bare,
        outcome="scored" if isinstance(correctness, Score) else "unscored",
        answer=answered.answer,
        contexts=answered.contexts,
        trace_id=answered.trace_id,
        service=bare.service if answered.service == "unknown" else answered.service,
        release=answered.release,
        values=values,
        versions={each.measure: each.version for each in result.evaluations if each.version},
        reasons={each.measure: each.reason for each in result.evaluations if isinstance(each, Unscored)},
    )
    if isinstance(correctness, Unscored):
        return replace(outcome, reason=correctness.reason, detail=correctness.detail[:_DETAIL])
    if correctness is None:
        return outcome
    return replace(
        outcome,
        label=correctness.label,
        counts={name: correctness.details[name] for name in COUNTS if name in correctness.details},
        claims=tuple(dataclasses.asdict(claim) for claim in correctness.items),
    )
