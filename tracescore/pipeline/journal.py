"""Between the stages and the spool: what happens is committed first and takes effect then, in the same order.

So whatever anybody was told or could see (an acknowledgement, a counter, a score) is there after a crash, and
nothing takes effect twice. See `tracescore.spool` for what a commit is without a file.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tracescore.assembly import Assembly
from tracescore.config import Config
from tracescore.exporters import Delivering, Exporter
from tracescore.exporters.relay.hold import Hold
from tracescore.interactions.deduplication import Once
from tracescore.judge.epoch import Epochs
from tracescore.model import Clock, Interaction, RawLog, RawSpan, RawTrace, Result
from tracescore.net.wire import Withheld
from tracescore.pipeline import recovery
from tracescore.pipeline.ledger import Ledger
from tracescore.pipeline.queue import Room
from tracescore.spool import Spool
from tracescore.spool.changes import (
    Change,
    Decided,
    Delivered,
    Fact,
    Fate,
    Finished,
    Gone,
    Lost,
    Owing,
    PassedOn,
    Pieces,
    Reading,
    Totals,
    TraceRead,
    key_of,
)
from tracescore.spool.stored import Stored

_log = logging.getLogger("tracescore.spool")

_TOTALS_EVERY = 10.0
"""Seconds between two commits of all totals. What was committed after the last ones is counted again at a recovery."""
_EPOCH = "judge epoch of "

Enqueue = Callable[[Interaction], None]


@dataclass(slots=True)
class Read:
    """What was read of one trace: new interactions, as sampling wants them (None: left out), and known ones."""

    fresh: list[tuple[Interaction, Interaction | None]] = field(default_factory=list)
    known: list[Interaction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Closed:
    """Traces that were closed when all changes up to `op` had taken effect, and those the assembly let go before."""

    traces: Sequence[RawTrace]
    op: int
    gone: Sequence[Gone]

    def one_by_one(self) -> Iterator[Closed]:
        """Each trace for itself, where nothing is gained by committing them together."""
        return (Closed([raw], self.op, ()) for raw in self.traces)


class Keeper:
    """The receiver's sink, and what the stages call where something must not be lost."""

    def __init__(
        self,
        spool: Spool,
        config: Config,
        assembly: Assembly,
        once: Once,
        ledger: Ledger,
        exporters: Sequence[Exporter],
        clock: Clock,
        hold: Hold | None = None,
    ) -> None:
        self._spool, self._config, self._clock, self._hold = spool, config, clock, hold
        self._assembly, self._once, self._ledger, self._exporters = assembly, once, ledger, exporters
        self._gone: list[Gone] = []
        self._unpublished = 0
        """Results that have been committed and are not yet in all figures."""
        self._totals_due = 0.0
        self._epoch: Fact | None = None
        if spool.durable:
            assembly.on_gone = self._let_go
        if hold is not None:
            hold.gone = self._passed_on
        for exporter in exporters:
            if isinstance(exporter, Delivering):
                exporter.settled, exporter.kept = partial(self._settled, exporter.name), spool.durable

    # ---------------------------------------------------------------- the receiver's sink

    def room(self) -> bool:
        """Whether memory and file have room for more."""
        return self._assembly.room() and self._spool.room()

    async def take(self, spans: Sequence[RawSpan], logs: Sequence[RawLog], withheld: Sequence[Withheld] = ()) -> None:
        """Takes the pieces of one request; SpoolError when they cannot be kept."""
        now = self._clock()

        def apply() -> None:
            self._assembly.take(spans, logs)
            if self._hold is not None:
                self._hold.take(withheld, now)

        await self._commit(Pieces(spans, logs, now, withheld), apply)

    # ---------------------------------------------------------------- traces

    def closed(self, *, flush: bool = False) -> Closed:
        """The traces that are ready to be read; with `flush`, all."""
        traces = self._assembly.flush() if flush else self._assembly.due()
        gone, self._gone = self._gone, []
        return Closed(traces, self._spool.applied, gone)

    async def read(self, closed: Closed, read: Sequence[Read], room: Room, enqueue: Enqueue) -> None:
        """The traces were read. New interactions are counted; those with `room` go to `enqueue`, others are shed."""
        now, evicted = self._clock(), {gone.trace_id: gone.op for gone in closed.gone}
        fates: list[tuple[Interaction, Fate]] = []
        traces = []
        targets: list[tuple[bytes, set[str]]] = []
        for raw, of_trace in zip(closed.traces, read, strict=True):
            decided = [Decided(each.span_id, each.state, "known") for each in of_trace.known]
            for interaction, sampled in of_trace.fresh:
                fate: Fate = "left_out" if sampled is None else "waiting" if room.take(sampled) else "queue_full"
                kept = sampled or interaction
                fates.append((kept, fate))
                decided.append(Decided(kept.span_id, kept.state, fate, kept.weight, kept.rule))
            targets.append((raw.trace_id, {each.span_id for each in decided if each.fate in ("known", "waiting")}))
            op = evicted.get(raw.trace_id, closed.op) if raw.closed_by == "evicted" else closed.op
            traces.append(TraceRead(raw.trace_id, op, now, decided))
        if traces or closed.gone:
            await self._commit(Reading(traces, closed.gone), partial(self._count, fates, enqueue))
        if self._hold is not None:
            for trace_id, span_ids in targets:
                self._hold.read(trace_id, span_ids)

    def _count(self, fates: Sequence[tuple[Interaction, Fate]], enqueue: Enqueue) -> None:
        measures = self._config.measures
        for interaction, fate in fates:
            self._ledger.read(interaction)
            if fate == "waiting":
                self._ledger.started(interaction, measures)
                enqueue(interaction)
            elif fate == "queue_full":
                self._ledger.shed(interaction, measures, "queue_full")

    # ---------------------------------------------------------------- results

    async def finished(self, result: Result, publish: Callable[[], Awaitable[None]]) -> None:
        """Commits the result, counts it, and calls `publish`, which shows it to all exporters."""
        owed = [exporter.name for exporter in self._exporters if isinstance(exporter, Delivering)]
        await self._commit(Finished(result, owed), self._begin)
        self._ledger.finished(result)
        await publish()
        self._unpublished -= 1

    def tick(self) -> None:
        """Commits the totals when they are due and all that was committed is in them; lets go what is kept too long."""
        if self._hold is not None:
            self._hold.tick()
        if self._clock() >= self._totals_due:
            self._note_totals()

    async def close(self) -> None:
        """Commits the last totals and what else is waiting."""
        self._note_totals()
        await self._spool.close()

    # ---------------------------------------------------------------- the start

    async def resume(self, epochs: Epochs | None, read: recovery.Read, enqueue: Enqueue) -> None:
        """Opens the spool and takes up what an earlier process left; UsageError when it cannot be opened.

        Interactions that wait for the judge go to `enqueue`.
        """
        stored = self._spool.open()
        if stored is not None:
            args = (stored, self._ledger, self._once, self._exporters, self._config.measures)
            recovery.resume_hold(stored, self._hold)  # first: what is owed may be about a span that is kept back
            waiting = await recovery.resume_counts(*args)
            if epochs is not None:
                self._resume_epochs(epochs, stored)
            recovery.resume_assembly(stored, self._assembly)
            self._spool.note(Owing([each.name for each in self._exporters if isinstance(each, Delivering)]))
            for known, interaction in recovery.reread(stored, waiting, read):
                self._wait_again(known.at, interaction, enqueue)
            shown = (self._config.spool.path, len(waiting), self._assembly.open_traces)
            _log.info('event=spool_open path="%s" waiting_interactions=%d open_traces=%d', *shown)
        self._spool.start()

    def _wait_again(self, since: float, interaction: Interaction | Lost, enqueue: Enqueue) -> None:
        measures = self._config.measures
        if isinstance(interaction, Interaction):
            self._ledger.started(interaction, measures, since)
            enqueue(interaction)
        else:
            unread = Interaction(interaction.trace_id.hex(), interaction.span_id, "complete", None, None)
            self._spool.note(interaction)
            self._ledger.shed(unread, measures, "shutdown")

    def _resume_epochs(self, epochs: Epochs, stored: Stored) -> None:
        def changed(value: bytes) -> None:
            self._epoch = Fact(_EPOCH + epochs.judge, value)
            self._spool.note(self._epoch)

        epochs.on_change = changed
        saved = stored.fact(_EPOCH + epochs.judge)
        if saved is not None:
            self._epoch = Fact(_EPOCH + epochs.judge, saved)
            try:
                epochs.resume(saved)
            except ValueError:
                self._epoch = None
                self._begin_epoch(epochs, stored)

    def _begin_epoch(self, epochs: Epochs, stored: Stored) -> None:
        """Drift and labels take scores of an epoch before the one they know for late ones: it has to be a later one."""
        latest = self._ledger.latest_epoch(epochs.judge)
        if latest is not None:
            epochs.begin_after(latest)
        stored.unreadable("judge epoch", f"epoch {epochs.number} begins")

    # ---------------------------------------------------------------- how

    async def _commit(self, change: Change, apply: Callable[[], None]) -> None:
        pending = self._spool.commit(change, apply)
        try:
            if pending is not None:
                await pending
        finally:
            del pending  # it keeps its error, and the traceback of that would keep this frame

    def _begin(self) -> None:
        self._unpublished += 1

    def _passed_on(self, spans: Sequence[Withheld]) -> None:
        self._spool.note(PassedOn(spans))

    def _let_go(self, trace_id: bytes, ids: array[int]) -> None:
        self._gone.append(Gone(trace_id, self._spool.applied, self._clock(), ids))

    def _settled(self, exporter: str, result: Result) -> None:
        self._spool.note(Delivered(exporter, key_of(result)))

    def _note_totals(self) -> None:
        """A result that is committed but not in all figures would be lost to them: then it is tried again later."""
        if self._spool.durable and not self._unpublished:
            now, keep = self._clock(), self._config.web.keep
            figures = recovery.totals(self._ledger, self._exporters)
            self._spool.note(Totals(figures, self._spool.applied, now, now - self._config.drift.window, keep))
            self._totals_due = now + _TOTALS_EVERY
            if self._epoch is not None:
                self._spool.note(self._epoch)  # again, as the file may have been replaced
