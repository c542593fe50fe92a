"""Between the stages and the spool: what happens is committed first and takes effect then, in the same order.

So whatever anybody was told or could see (an acknowledgement, a counter, a score) is there after a crash, and
nothing takes effect twice. See `tracescore.spool` for what a commit is without a file.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from tracescore.config import Config
from tracescore.exporters import Delivering
from tracescore.model import Clock, Interaction, RawLog, RawSpan, RawTrace, Result
from tracescore.net.wire import Withheld
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.recovery import Parts, Recovery, totals
from tracescore.pipeline.trace_reader import TraceReader
from tracescore.spool import Spool
from tracescore.spool.changes import (
    Change,
    Decided,
    Delivered,
    Disposition,
    Fact,
    Finished,
    Gone,
    Owing,
    PassedOn,
    Pieces,
    Totals,
    TraceRead,
    TracesRead,
    key_of,
)
from tracescore.spool.erasure import Erase, anonymous, digest_of_user
from tracescore.spool.stored import Stored

_log = logging.getLogger("tracescore.spool")

_TOTALS_EVERY = 10.0
"""Seconds between two commits of all totals. What was committed after the last ones is counted again at a recovery."""
_LATE = 1.0
"""Seconds by which what has happened by itself may be noted too late, where nothing is to be read before."""
_SAVING = 5.0
"""Seconds within which there is a moment for the totals, or a file that can be written."""
_EPOCH = "judge epoch of "


@dataclass(slots=True)
class ReadTrace:
    """What was read of one trace: new interactions, as sampling wants them (None: left out), and known ones."""

    fresh: list[tuple[Interaction, Interaction | None]] = field(default_factory=list)
    known: list[Interaction] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Closed:
    """Traces that were closed when all changes up to `op` had taken effect, and those the assembly let go before."""

    traces: Sequence[RawTrace]
    op: int
    gone: Sequence[Gone]


class Journal:
    """The receiver's sink, and what the stages call where something must not be lost."""

    def __init__(self, spool: Spool, config: Config, parts: Parts, defects: Defects, clock: Clock) -> None:
        self._spool, self._config, self._parts = spool, config, parts
        self._defects, self._clock = defects, clock
        self._delivering = [each for each in parts.exporters if isinstance(each, Delivering)]
        self._gone: list[Gone] = []
        self._unpublished = 0
        """Results that have been committed and are not yet in all figures."""
        self._published = anyio.Event()
        """Set, and made anew, whenever all results are in all figures."""
        self._totals_due = 0.0
        self._epoch: bytes | None = None

    @property
    def durable(self) -> bool:
        """Whether what waits at the end goes on in the next process."""
        return self._spool.keeps_texts

    # ---------------------------------------------------------------- the receiver's sink

    def room(self) -> bool:
        """Whether memory and file have room for more."""
        return self._parts.assembly.room() and self._spool.room()

    def fair(self, sender: str) -> bool:
        """Whether this sender holds less than half of what there is room for."""
        return self._parts.assembly.fair(sender)

    async def take(
        self, spans: Sequence[RawSpan], logs: Sequence[RawLog], withheld: Sequence[Withheld] = (), sender: str = ""
    ) -> None:
        """Takes the pieces of one request; SpoolError when they cannot be kept."""
        await self._spool.commit(Pieces(spans, logs, self._clock(), withheld, sender))

    # ---------------------------------------------------------------- traces

    @property
    def behind(self) -> bool:
        """Whether more is ready than `closed` has given: it gives some at a time."""
        return self._parts.assembly.behind

    def due_in(self) -> float:
        """Seconds for which `closed` has nothing to give; `_LATE` at most."""
        return min(self._parts.assembly.due_in(), _LATE)

    def closed(self, *, last: bool = False) -> list[Closed]:
        """Traces that are ready to be read; of the `last` ones all, unless the next process can go on with them.

        They are to be read together where they are committed together, and else each for itself.
        """
        assembly = self._parts.assembly
        handed_over = self.durable and self._config.spool.hand_over
        traces = assembly.flush() if last and not handed_over else assembly.due()
        self._note_gone()
        gone, self._gone = self._gone, []
        if self.durable:
            return [Closed(traces, self._spool.applied, gone)]
        return [Closed([raw], self._spool.applied, ()) for raw in traces]

    async def read(self, closed: Closed, read: Sequence[ReadTrace]) -> None:
        """The traces were read. New interactions are counted; those for which there is room wait, others are shed."""
        now, room, evicted = self._clock(), self._parts.queue.room(), {gone.trace_id: gone.op for gone in closed.gone}
        fresh: list[tuple[Interaction, Disposition]] = []
        traces = []
        for raw, of_trace in zip(closed.traces, read, strict=True):
            decided = [Decided(each.span_id, each.state, "known") for each in of_trace.known]
            for interaction, sampled in of_trace.fresh:
                what: Disposition = "left_out" if sampled is None else "waiting" if room.take(sampled) else "queue_full"
                kept = sampled or interaction
                fresh.append((kept, what))
                app = kept.service, kept.environment
                decided.append(Decided(kept.span_id, kept.state, what, kept.weight, kept.rule, app))
            op = evicted.get(raw.trace_id, closed.op) if raw.closed_by == "evicted" else closed.op
            traces.append(TraceRead(raw.trace_id, op, now, decided))
        if traces or closed.gone:
            await self._spool.commit(TracesRead(traces, closed.gone, fresh, list(self._users(fresh))))

    def _users(self, fresh: Sequence[tuple[Interaction, Disposition]]) -> Iterator[tuple[str, bytes]]:
        """Whose traces they are, so that they are found when somebody asks to be forgotten."""
        key, salt = self._config.retain.user, self._config.sampling.salt
        for interaction, _ in fresh:
            user = interaction.attributes.get(key)
            if user is not None:
                yield digest_of_user(salt, str(user)), bytes.fromhex(interaction.trace_id)

    # ---------------------------------------------------------------- results

    @asynccontextmanager
    async def finished(self, result: Result) -> AsyncIterator[Result]:
        """Commits the result and counts it; the block shows what it is given to all exporters.

        Until the block is left no totals are noted, and none at all once it was cut short: what some figures miss
        is counted by the next process.
        """
        self._note_epoch()
        if bytes.fromhex(result.interaction.trace_id) in self._parts.erased:
            result = anonymous(result)  # it was under way when its trace was erased
        await self._spool.commit(Finished(result, [each.name for each in self._delivering]))
        try:
            self._parts.ledger.finished(result)
            yield result
        except anyio.get_cancelled_exc_class():
            self._unpublished += 1
            raise
        finally:
            self._unpublished -= 1
            if not self._unpublished:
                self._published.set()
                self._published = anyio.Event()
        self._note_delivered()

    @property
    def has_file(self) -> bool:
        """Whether there is a spool to look into."""
        return self._spool.durable

    async def ask(self, change: Change) -> None:
        """Lets something look into the file, between two changes."""
        await self._spool.commit(change)

    async def erase(self, change: Erase) -> None:
        """Takes everything of some traces out of the file and of what is in memory for it."""
        await self._spool.commit(change)
        self._note_totals()  # those of the file counted waiting interactions that are gone

    async def save(self) -> None:
        """Commits the totals at once, as somebody changed by hand what is in them."""
        with anyio.move_on_after(_SAVING) as waiting:
            while self._spool.durable and self._unpublished:
                await self._published.wait()
            if noted := self._note_totals():
                await noted
        if waiting.cancelled_caught:
            _log.warning('event=not_saved_yet advice="a change made by hand is kept once the spool can be written"')

    def tick(self) -> None:
        """Notes what has happened by itself, and the totals when they are due; lets go what is kept back too long."""
        if self._parts.hold is not None:
            self._parts.hold.tick()
        self._note_epoch()
        self._note_delivered()
        if self._clock() >= self._totals_due:
            self._note_totals()

    async def close(self) -> None:
        """Commits the last totals and what else is waiting."""
        self._note_epoch()
        self._note_delivered()
        self._note_totals()
        await self._spool.close()

    # ---------------------------------------------------------------- the start

    async def resume(self, reader: TraceReader) -> None:
        """Opens the spool and takes up what an earlier process left; UsageError when it cannot be opened."""
        stored = self._spool.open()
        if stored is not None:
            recovery = Recovery(stored, self._parts, self._config.measures, self._defects)
            waiting = await recovery.resume_counts()
            self._resume_epoch(stored)
            recovery.resume_assembly(waiting)
            self._note_gone()
            self._spool.note(Owing([each.name for each in self._delivering]))
            for lost in recovery.wait_again(waiting, reader):
                self._spool.note(lost)
            shown = (self._config.spool.path, len(waiting), self._parts.assembly.open_traces)
            _log.info('event=spool_open path="%s" waiting_interactions=%d open_traces=%d', *shown)
        self._spool.start(self._take_effect)

    def _resume_epoch(self, stored: Stored) -> None:
        """Drift and labels take scores of an epoch before the one they know for late ones: it has to be a later one."""
        epochs = self._parts.epochs
        saved = stored.fact(_EPOCH + epochs.judge) if epochs else None
        if epochs is None or saved is None:
            return
        try:
            epochs.resume(saved)
            self._epoch = saved
        except ValueError:
            latest = self._parts.ledger.latest_epoch(epochs.judge)
            if latest is not None:
                epochs.begin_after(latest)
            stored.unreadable("judge epoch", f"epoch {epochs.number} begins")
        self._note_epoch()

    # ---------------------------------------------------------------- how

    def _take_effect(self, change: Change) -> None:
        """What the change does in memory, now that it is on the disk. All others matter to the next process alone."""
        match change:
            case Pieces(spans, logs, at, withheld, sender):
                self._parts.assembly.take(spans, logs, sender)
                self._note_gone()
                if self._parts.hold is not None:
                    self._parts.hold.take(withheld, at)
            case TracesRead():
                self._count(change.fresh)
                self._release(change.traces)
            case Finished():
                self._unpublished += 1
            case Erase():
                self._erased(change.known)

    def _erased(self, trace_ids: Collection[bytes]) -> None:
        parts = self._parts
        parts.erased.update(trace_ids)
        parts.assembly.erase(trace_ids)
        self._note_gone()
        for interaction in parts.queue.remove(trace_ids):
            parts.ledger.shed(interaction, self._config.measures, "erased")
        if parts.hold is not None:
            for trace_id in trace_ids:
                parts.hold.read(trace_id, ())

    def _count(self, fresh: Sequence[tuple[Interaction, Disposition]]) -> None:
        ledger, measures = self._parts.ledger, self._config.measures
        for interaction, what in fresh:
            ledger.read(interaction)
            if what == "waiting" and bytes.fromhex(interaction.trace_id) in self._parts.erased:
                ledger.shed(interaction, measures, "erased")  # it was being read meanwhile
            elif what == "waiting":
                ledger.started(interaction, measures)
                self._parts.queue.put(interaction)
            elif what == "queue_full":
                ledger.shed(interaction, measures, "queue_full")

    def _release(self, traces: Sequence[TraceRead]) -> None:
        """Passes on the held spans that no score will be attached to."""
        if self._parts.hold is not None:
            for trace in traces:
                targets = {each.span_id for each in trace.interactions if each.disposition in ("known", "waiting")}
                self._parts.hold.read(trace.trace_id, targets)

    def _note_gone(self) -> None:
        now, op = self._clock(), self._spool.applied
        self._gone += [Gone(trace_id, op, now, ids) for trace_id, ids in self._parts.assembly.take_gone()]

    def _note_delivered(self) -> None:
        if self._parts.hold is not None and (spans := self._parts.hold.take_passed_on()):
            self._spool.note(PassedOn(spans))
        for exporter in self._delivering:
            for result in exporter.take_settled():
                self._spool.note(Delivered(exporter.name, key_of(result)))

    def _note_epoch(self, *, again: bool = False) -> None:
        """Before any result of the epoch, as the notes are committed in order."""
        epochs = self._parts.epochs
        state = epochs.state() if epochs else None
        if epochs is not None and state is not None and (again or state != self._epoch):
            self._spool.note(Fact(_EPOCH + epochs.judge, state))
            self._epoch = state

    def _note_totals(self) -> Awaitable[None] | None:
        """A result that is committed but not in all figures would be lost to them: then it is tried again later."""
        if self._spool.durable and not self._unpublished:
            now, keep = self._clock(), self._config.web.keep
            figures = totals(self._parts)
            since, retained = now - self._config.drift.window, self._config.retain.spool
            texts_since = float("-inf") if retained is None else now - retained
            noted = self._spool.commit(Totals(figures, self._spool.applied, now, since, keep, texts_since))
            self._totals_due = now + _TOTALS_EVERY
            self._note_epoch(again=True)  # as the file may have been replaced
            return noted
        return None
