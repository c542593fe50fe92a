"""What all exporters over the network share: a bounded queue, batches, retries, and a count of every record's end.

`put` only queues. A task of the sender's own sends what waits in batches, tries again while the destination cannot
take it, and counts a record as sent when it has been acknowledged. A destination may also say that it does not know
yet what some records are about: those wait for a while beside the queue, and nothing waits for them.

Whoever puts records learns when they have been acknowledged or given up. What is left at `close` is dropped and
counted, unless it is `kept` for a next process, which is given it again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import anyio
from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore import logs
from tracescore.net.retry import REAL_TIME, Timing

_log = logging.getLogger("tracescore.exporters")

R = TypeVar("R")

MAX_BATCH = 256
MAX_BATCH_BYTES = 1 << 20
"""A batch is closed beyond either; receivers take 4 MiB by default."""
FIRST_BACKOFF, MAX_BACKOFF = 0.5, 30.0
"""Seconds: the first pause, and the longest."""

Dropped = Literal["queue_full", "refused", "rejected", "not_found", "retries_exhausted", "shutdown", "internal_error"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait, and for how long.

    `waiting`: results that a sender holds; those that come while it is full are dropped. In seconds, `flush`: what
    `close` waits at most for what is waiting; `give_up`: how long one batch, or one result that is not known yet, is
    tried at all.
    """

    waiting: int = 4_096
    flush: float = 4.0
    give_up: float = 300.0


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the destination said.

    `accepted`: `rejected` of the records were refused for good, the others are there. `again`: not taken, try
    later, `after` seconds if it said so. `refused`: never to be tried again. `unknown`: nothing was taken, because
    the destination does not know (yet) what the results at the places `unknown` are about. `detail` is a status,
    safe to log.
    """

    outcome: Literal["accepted", "again", "refused", "unknown"]
    detail: str = ""
    rejected: int = 0
    after: float | None = None
    unknown: frozenset[int] = frozenset()


Send = Callable[[Sequence[Sequence[R]]], Awaitable[Answer]]
"""One attempt to deliver the records of some results; never raises for what a destination can do."""


@dataclass(slots=True)
class _Parcel(Generic[R]):
    """The records of one result, their bytes, and what to call when they have been taken or given up.

    While the destination does not know what it is about: `since` when and until when (`due`), in monotonic seconds,
    and the next pause (`wait`).
    """

    records: Sequence[R]
    size: int
    end: Callable[[], None]
    due: float = 0.0
    since: float | None = None
    wait: float = field(default_factory=lambda: FIRST_BACKOFF)


class Lanes:
    """The counters of one exporter, by signal where it has several."""

    def __init__(
        self,
        exporter: str,
        things: str,
        registry: CollectorRegistry,
        reasons: Sequence[Dropped],
        signals: Sequence[str] = (),
    ) -> None:
        prefix, by = f"tracescore_exporters_{exporter}", ["signal"] if signals else []
        self._sent = Counter(f"{prefix}_sent", f"{things} acknowledged.", by, registry=registry)
        self._failed = Counter(f"{prefix}_failed_requests", "Requests not accepted.", by, registry=registry)
        self._dropped = Counter(
            f"{prefix}_dropped", f"{things} given up, by reason.", [*by, "reason"], registry=registry
        )
        self._waiting = Gauge(f"{prefix}_waiting", "Results not yet delivered or given up.", by, registry=registry)
        self._reasons = reasons

    def lane(self, exporter: str, signal: str = "") -> Lane:
        """The counters of one sender, all at 0."""
        by = [signal] if signal else []
        return Lane(
            name=f"{exporter} signal={signal}" if signal else exporter,
            sent=self._sent.labels(*by) if by else self._sent,
            failed=self._failed.labels(*by) if by else self._failed,
            dropped={reason: self._dropped.labels(*by, reason) for reason in self._reasons},
            waiting=self._waiting.labels(*by) if by else self._waiting,
        )


@dataclass(frozen=True, slots=True)
class Lane:
    """What one sender counts, and its name in the logs."""

    name: str
    sent: Counter
    failed: Counter
    dropped: dict[Dropped, Counter]
    waiting: Gauge


class Sender(Generic[R]):
    """One queue and the task that empties it. The task begins with the first record."""

    def __init__(
        self,
        lane: Lane,
        send: Send[R],
        weigh: Callable[[R], int],
        limits: Limits = DEFAULT_LIMITS,
        timing: Timing = REAL_TIME,
    ) -> None:
        """`weigh` tells the bytes of a record."""
        self._lane, self._send, self._weigh = lane, send, weigh
        self._limits, self._timing = limits, timing
        self._ready: deque[_Parcel[R]] = deque()
        self._unknown: list[_Parcel[R]] = []
        self._held = 0  # parcels not yet at their end, those under way included
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._healthy, self._kept = True, False
        lane.waiting.set_function(lambda: self._held)

    def put(self, records: Sequence[R], end: Callable[[], None]) -> None:
        """Queues the records of one result, or drops and counts them.

        `end` is called once they have been taken or given up; never for those that are left at `close`.
        """
        if self._held >= self._limits.waiting:
            self._lane.dropped["queue_full"].inc(len(records))
            end()
            return
        self._ready.append(_Parcel(records, sum(map(self._weigh, records)), end))
        self._held += 1
        self._idle.clear()
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"exporter {self._lane.name}")

    async def close(self, *, kept: bool = False) -> None:
        """Waits a while for everything to be delivered, then ends the task.

        The rest is dropped and counted, or `kept` for a next process and not this one's to count.
        """
        self._kept = kept
        try:
            if self._held:
                with anyio.move_on_after(self._limits.flush):
                    await self._idle.wait()
        finally:
            if self._task is not None:
                self._task.cancel()
                with anyio.move_on_after(1, shield=True):
                    await asyncio.wait([self._task])
            for parcel in (*self._ready, *self._unknown):
                self._end([parcel], "shutdown")
            self._ready.clear()
            self._unknown.clear()

    async def _run(self) -> None:
        while True:
            await self._deliver(await self._next_batch())

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
        size = 0
        while self._ready and len(batch) < MAX_BATCH and size < MAX_BATCH_BYTES:
            batch.append(self._ready.popleft())
            size += batch[-1].size
        return batch

    async def _deliver(self, batch: list[_Parcel[R]]) -> None:
        """Brings a batch to its end; whatever the end, its records are counted."""
        reason: Dropped = "shutdown"
        rejected: int | None = None
        try:
            while batch:
                answer = await self._until_taken(batch)
                if answer.outcome == "accepted":
                    rejected, reason = answer.rejected, "rejected"
                    return
                if answer.outcome != "unknown":
                    reason = "refused" if answer.outcome == "refused" else "retries_exhausted"
                    return
                self._put_off([parcel for at, parcel in enumerate(batch) if at in answer.unknown])
                batch = [parcel for at, parcel in enumerate(batch) if at not in answer.unknown]
        except Exception as error:  # noqa: BLE001 - logged; the next batch must not suffer from this one
            reason = "internal_error"
            logs.defect(_log, error, exporter=self._lane.name)
        finally:
            self._end(batch, reason, rejected)

    async def _until_taken(self, batch: Sequence[_Parcel[R]]) -> Answer:
        """Tries until the batch is accepted, refused or unknown, or until it has been tried long enough."""
        wait, clock = FIRST_BACKOFF, self._timing.clock
        begun = clock()
        while True:
            answer = await self._send([parcel.records for parcel in batch])
            self._lane.failed.inc(answer.outcome != "accepted")
            self._say(answer)
            pause = answer.after or wait * jitter()  # "again in 0 s" says nothing
            if answer.outcome != "again" or clock() + pause - begun > self._limits.give_up:
                return answer
            await self._timing.sleep(pause)
            wait = min(MAX_BACKOFF, wait * 2)

    def _put_off(self, parcels: Sequence[_Parcel[R]]) -> None:
        """Results the destination does not know yet are tried again later, or given up."""
        now = self._timing.clock()
        for parcel in parcels:
            parcel.since = now if parcel.since is None else parcel.since
            parcel.due = now + parcel.wait * jitter()
            parcel.wait = min(MAX_BACKOFF, parcel.wait * 2)
            if parcel.due - parcel.since > self._limits.give_up:
                self._end([parcel], "not_found")
            else:
                self._unknown.append(parcel)

    def _end(self, parcels: Sequence[_Parcel[R]], reason: Dropped, lost: int | None = None) -> None:
        """Counts results that are done with: `lost` of their records (None: all) were dropped for `reason`."""
        records = sum(len(parcel.records) for parcel in parcels)
        lost = records if lost is None else min(lost, records)
        if lost and not (self._kept and reason == "shutdown"):
            self._lane.dropped[reason].inc(lost)
        self._lane.sent.inc(records - lost)
        self._held -= len(parcels)
        if not self._held:
            self._idle.set()
        if reason != "shutdown":
            for parcel in parcels:
                parcel.end()

    def _say(self, answer: Answer) -> None:
        """Logs when things change, not at every attempt."""
        if answer.outcome == "unknown":
            return  # told by the counters: what is not there yet is no trouble of the destination's
        healthy = answer.outcome == "accepted" and not answer.rejected
        if healthy == self._healthy:
            return
        self._healthy = healthy
        if healthy:
            _log.info("event=delivery_recovered exporter=%s", self._lane.name)
        else:
            state = "rejected" if answer.rejected else {"again": "retrying"}.get(answer.outcome, answer.outcome)
            what = (state, self._lane.name, answer.detail, answer.rejected)
            _log.warning('event=delivery_%s exporter=%s detail="%s" rejected=%d', *what)


def jitter() -> float:
    """Spreads the pauses of replicas."""
    return random.uniform(0.8, 1.2)  # noqa: S311 - hides nothing
