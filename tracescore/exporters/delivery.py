"""The one queue of everything that is delivered over the network: bounded, in batches, tried again, counted to its end.

`put` only queues. A task of the queue's own sends what waits in batches, tries again while the destination cannot
take it, and counts a record as sent when it has been acknowledged. A destination may also say that it does not know
yet what some records are about: those wait for a while beside the queue, and nothing waits for them.

The exporter that puts records learns when they are acknowledged or given up. What is left at `close` is dropped and
counted, unless it is kept for a next process, which is given it again: at least once, never silently less.

Pauses: `net/retry.py`. Which answers may change: `net/otlp_answers.py`, and `retry.is_transient` for others.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import anyio
from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore import logs
from tracescore.net.otlp_answers import OtlpOutcome
from tracescore.net.retry import REAL_TIME, Backoff, Timing

_log = logging.getLogger("tracescore.exporters")

R = TypeVar("R")

MAX_BATCH = 256
MAX_BATCH_BYTES = 1 << 20
"""A batch is closed beyond either; receivers take 4 MiB by default."""
BACKOFF = Backoff()

Dropped = Literal["queue_full", "refused", "rejected", "not_found", "retries_exhausted", "shutdown", "internal_error"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait, and for how long.

    `waiting`: results that a queue holds; those that come while it is full are dropped. In seconds, `flush`: what
    `close` waits at most for what is waiting; `give_up`: how long one batch, or one result that is not known yet, is
    tried at all. `split`: of a batch that is refused each result is tried alone, because what is wrong with one says
    nothing about the others.
    """

    waiting: float = 4_096
    flush: float = 4.0
    give_up: float = 300.0
    split: bool = False


DEFAULT_LIMITS = Limits()
UNTIL_TAKEN = Limits(waiting=math.inf, give_up=math.inf, split=True)
"""For what was acknowledged to its sender, and is bounded elsewhere: only the destination can end it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the destination said.

    `accepted`: `rejected` of the records were refused for good, the others are there. `again`: not taken, try
    later, `after` seconds if it said so. `refused`: never to be tried again. `unknown`: nothing was taken, because
    the destination does not know (yet) what the results at the places `unknown` are about. `failed`: a defect of
    ours, on the way there. `detail` is a status, safe to log.
    """

    outcome: Literal[OtlpOutcome, "unknown", "failed"]
    detail: str = ""
    rejected: int = 0
    after: float | None = None
    unknown: frozenset[int] = frozenset()


_GIVEN_UP: dict[str, Dropped] = {"again": "retries_exhausted", "refused": "refused", "failed": "internal_error"}
"""Why the records are dropped, where this was the last answer."""

Attempt = Callable[[Sequence[Sequence[R]]], Awaitable[Answer]]
"""One attempt to deliver the records of some results; never raises for what a destination can do."""


@dataclass(slots=True)
class _Parcel(Generic[R]):
    """The records of one result, their bytes, and what to call when they have been taken or given up.

    While the destination does not know what it is about: how often it has said so (`unknown`), since when and until
    when (`due`) it waits, in monotonic seconds.
    """

    records: Sequence[R]
    size: int
    end: Callable[[], None]
    unknown: int = 0
    since: float = 0.0
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """What one queue counts, and its name in the logs; without `failed`, the sender of an attempt counts it."""

    name: str
    sent: Counter
    failed: Counter | None
    dropped: dict[Dropped, Counter]
    waiting: Gauge


class DeliveryMetrics:
    """The metrics of one exporter, by signal where it has several."""

    def __init__(
        self,
        exporter: str,
        things: str,
        registry: CollectorRegistry,
        reasons: Sequence[Dropped],
        signals: Sequence[str] = (),
    ) -> None:
        prefix, by = f"tracescore_exporters_{exporter}", ["signal"] if signals else []
        self._sent = Counter(f"{prefix}_sent", f"{things} that the destination acknowledged.", by, registry=registry)
        self._failed = Counter(
            f"{prefix}_failed_requests", "Requests that the destination did not accept.", by, registry=registry
        )
        self._dropped = Counter(
            f"{prefix}_dropped", f"{things} that tracescore gave up on, by reason.", [*by, "reason"], registry=registry
        )
        self._waiting = Gauge(f"{prefix}_waiting", "Results on their way to the destination.", by, registry=registry)
        self._reasons = reasons

    def queue(self, exporter: str, signal: str = "") -> QueueMetrics:
        """The metrics of one queue, all at 0."""
        by = [signal] if signal else []
        return QueueMetrics(
            name=f"{exporter} signal={signal}" if signal else exporter,
            sent=self._sent.labels(*by) if by else self._sent,
            failed=self._failed.labels(*by) if by else self._failed,
            dropped={reason: self._dropped.labels(*by, reason) for reason in self._reasons},
            waiting=self._waiting.labels(*by) if by else self._waiting,
        )


class DeliveryQueue(Generic[R]):
    """One queue and the task that empties it, which is there while something waits."""

    def __init__(
        self,
        metrics: QueueMetrics,
        attempt: Attempt[R],
        weigh: Callable[[R], int],
        limits: Limits = DEFAULT_LIMITS,
        timing: Timing = REAL_TIME,
    ) -> None:
        """`weigh` tells the bytes of a record."""
        self._metrics, self._attempt, self._weigh = metrics, attempt, weigh
        self._limits, self._timing = limits, timing
        self._ready: deque[_Parcel[R]] = deque()
        self._unknown: list[_Parcel[R]] = []
        self._alone = 0  # so many at the head go one by one
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._healthy, self._durable = True, False
        self.waiting = 0
        """Results not yet at their end, those under way included."""

    def put(self, records: Sequence[R], end: Callable[[], None]) -> None:
        """Queues the records of one result, or drops and counts them.

        `end` is called once they have been taken or given up; never for those that are left at `close`.
        """
        if self.waiting >= self._limits.waiting:
            self._metrics.dropped["queue_full"].inc(len(records))
            end()
            return
        self._ready.append(_Parcel(records, sum(map(self._weigh, records)), end))
        self._hold(1)
        self._idle.clear()
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"exporter {self._metrics.name}")

    async def close(self, *, durable: bool = False) -> int:
        """Waits a while for everything to be delivered, then ends the task; how many results are left.

        These are dropped and counted, or, where that is `durable`, kept for a next process and not this one's to count.
        """
        self._durable = durable
        try:
            if self.waiting:
                with anyio.move_on_after(self._limits.flush):
                    await self._idle.wait()
        finally:
            left = self.waiting
            if self._task is not None:
                self._task.cancel()
                with anyio.move_on_after(1, shield=True):
                    await asyncio.wait([self._task])
            for parcel in (*self._ready, *self._unknown):
                self._end([parcel], "shutdown")
            self._ready.clear()
            self._unknown.clear()
        return left

    async def _run(self) -> None:
        while self.waiting:
            await self._deliver(await self._next_batch())
        self._task = None

    async def _next_batch(self) -> list[_Parcel[R]]:
        while True:
            now = self._timing.clock()
            due = [parcel for parcel in self._unknown if parcel.due <= now]
            if due:
                self._unknown = [parcel for parcel in self._unknown if parcel.due > now]
                self._ready.extend(due)
            if self._ready:
                return self._batch()
            self._wake.clear()
            until = min((parcel.due for parcel in self._unknown), default=None)
            with anyio.move_on_after(None if until is None else max(0.01, until - now)):
                await self._wake.wait()

    def _batch(self) -> list[_Parcel[R]]:
        batch: list[_Parcel[R]] = []
        size, most = 0, 1 if self._alone else MAX_BATCH
        self._alone = max(0, self._alone - 1)
        while self._ready and len(batch) < most and size < MAX_BATCH_BYTES:
            batch.append(self._ready.popleft())
            size += batch[-1].size
        return batch

    async def _deliver(self, batch: list[_Parcel[R]]) -> None:
        """Brings a batch to its end; whatever the end, its records are counted."""
        reason: Dropped = "shutdown"
        rejected: int | None = None
        try:
            while batch:
                answer = await self._until_answered(batch)
                if answer.outcome == "accepted":
                    rejected, reason = answer.rejected, "rejected"
                    return
                if answer.outcome == "unknown":
                    self._put_off([parcel for at, parcel in enumerate(batch) if at in answer.unknown])
                    batch = [parcel for at, parcel in enumerate(batch) if at not in answer.unknown]
                elif self._limits.split and len(batch) > 1:
                    self._ready.extendleft(reversed(batch))
                    self._alone, batch = len(batch), []
                else:
                    reason = _GIVEN_UP[answer.outcome]
                    return
        finally:
            self._end(batch, reason, rejected)

    async def _until_answered(self, batch: Sequence[_Parcel[R]]) -> Answer:
        """Tries until there is an answer other than `again`, or until it has been tried long enough."""
        failures, begun = 0, self._timing.clock()
        while True:
            answer = await self._attempted(batch)
            self._note(answer)
            failures += 1
            pause = BACKOFF.pause(failures, answer.after)
            if answer.outcome != "again" or self._timing.clock() + pause - begun > self._limits.give_up:
                return answer
            await self._timing.sleep(pause)

    async def _attempted(self, batch: Sequence[_Parcel[R]]) -> Answer:
        try:
            return await self._attempt([parcel.records for parcel in batch])
        except Exception as error:  # noqa: BLE001 - logged; the next batch must not suffer from this one
            logs.defect(_log, error, exporter=self._metrics.name)
            return Answer("failed")

    def _put_off(self, parcels: Sequence[_Parcel[R]]) -> None:
        """Results the destination does not know yet are tried again later, or given up."""
        now = self._timing.clock()
        for parcel in parcels:
            parcel.since = parcel.since if parcel.unknown else now
            parcel.unknown += 1
            parcel.due = now + BACKOFF.pause(parcel.unknown)
            if parcel.due - parcel.since > self._limits.give_up:
                self._end([parcel], "not_found")
            else:
                self._unknown.append(parcel)

    def _end(self, parcels: Sequence[_Parcel[R]], reason: Dropped, lost: int | None = None) -> None:
        """Counts results that are done with: `lost` of their records (None: all) were dropped for `reason`."""
        records = sum(len(parcel.records) for parcel in parcels)
        lost = records if lost is None else min(lost, records)
        if lost and not (self._durable and reason == "shutdown"):
            self._metrics.dropped[reason].inc(lost)
        self._metrics.sent.inc(records - lost)
        self._hold(-len(parcels))
        if not self.waiting:
            self._idle.set()
        if reason != "shutdown":
            for parcel in parcels:
                parcel.end()

    def _hold(self, more: int) -> None:
        self.waiting += more
        self._metrics.waiting.inc(more)

    def _note(self, answer: Answer) -> None:
        """Counts failures, and logs when things change, not at every attempt."""
        if self._metrics.failed is None:
            return
        self._metrics.failed.inc(answer.outcome != "accepted")
        healthy = answer.outcome == "accepted" and not answer.rejected
        if answer.outcome in ("unknown", "failed") or healthy == self._healthy:
            return  # neither a span that is not there yet nor a defect here is trouble at the destination
        self._healthy = healthy
        if healthy:
            _log.info("event=delivery_recovered exporter=%s", self._metrics.name)
        else:
            state = "rejected" if answer.rejected else {"again": "retrying"}.get(answer.outcome, answer.outcome)
            what = (state, self._metrics.name, answer.detail, answer.rejected)
            _log.warning('event=delivery_%s exporter=%s detail="%s" rejected=%d', *what)
