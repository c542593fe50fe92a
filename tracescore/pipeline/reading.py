"""The first stage: complete traces -> interactions that wait for the judge."""

import contextlib
import time
from collections.abc import Callable
from functools import partial

import anyio

from tracescore.gold.traffic import GoldTraffic
from tracescore.interactions.deduplication import Deduplication
from tracescore.interactions.report import Report
from tracescore.model import Interaction, RawTrace
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.journal import Closed, Journal, ReadTrace
from tracescore.pipeline.known_turns import KnownTurns
from tracescore.pipeline.queue import Queue
from tracescore.pipeline.trace_reader import TraceReader
from tracescore.redaction import Redactor
from tracescore.runtime import Fairness, aside
from tracescore.sampling import Sampler

_LOOK_EVERY = 0.1
"""Seconds between two looks at what has become complete, at least; at most until something can be."""
_POLITE = 0.5
"""Seconds per round in which reading yields to all other work; then it goes on, or a backlog would grow."""
_TURN = 0.003
"""Seconds of reading in a row: finding out that nobody else has work takes as long as reading a quarter of a trace."""

_MANY, _LONG = 500, 2**18
"""Pieces and bytes of a trace above which it is read beside the event loop."""


class ReadingStage:
    """Leaves out gold traffic and what is known already, lets sampling decide, and redacts what the judge will see."""

    def __init__(
        self,
        journal: Journal,
        queue: Queue,
        reader: TraceReader,
        gold: GoldTraffic,
        deduplication: Deduplication,
        known_turns: KnownTurns,
        report: Report,
        sampler: Sampler,
        redactor: Redactor,
        keep: Callable[[RawTrace], None],
        defects: Defects,
    ) -> None:
        """`keep` is given each trace that was read."""
        self._journal, self._queue, self._reader, self._gold = journal, queue, reader, gold
        self._deduplication, self._known_turns = deduplication, known_turns
        self._report, self._sampler = report, sampler
        self._redactor, self._keep, self._defects = redactor, keep, defects
        self._fairness = Fairness()
        self._polite, self._turn_ends, self._was_behind = 0.0, 0.0, False

    async def run(self, received_all: anyio.Event) -> None:
        """Reads what becomes complete until everything has been received, and what is then left; closes the queue."""
        with contextlib.closing(self._queue):
            while not received_all.is_set():
                await self._read_all(self._journal.closed())
                self._report.tick()
                self._journal.tick()
                pause = 0 if self._journal.behind else max(_LOOK_EVERY, self._journal.due_in())
                with anyio.move_on_after(pause):
                    await received_all.wait()
            await self._read_all(self._journal.closed(last=True))
            while self._journal.behind:
                await self._read_all(self._journal.closed(last=True))

    async def _read_all(self, closed: list[Closed]) -> None:
        if not self._was_behind:
            self._polite = time.monotonic() + _POLITE
        self._was_behind = self._journal.behind
        for batch in closed:
            read = []
            for raw in batch.traces:
                if time.monotonic() >= self._turn_ends:
                    await self._fairness.idle(until=self._polite)
                    self._turn_ends = time.monotonic() + _TURN
                read.append(await self._read(raw))
            try:
                await self._journal.read(batch, read)
            except Exception as error:  # noqa: BLE001 - some bad traces must not end the stage
                self._defects.count("interactions", error)

    async def _read(self, raw: RawTrace) -> ReadTrace:
        try:
            reading_it = partial(self._reader.read, raw)
            trace, reading = await aside(reading_it) if _is_large(raw) else reading_it()
            if self._gold.claims(raw.trace_id, reading.interactions):
                return ReadTrace()
            self._keep(raw)
            again = self._deduplication.has_read(trace.trace_id)
            fresh = list(map(self._known_turns.placed, self._deduplication.new(trace, reading.interactions)))
            self._report.trace(reading, fresh, again=again)
            fresh_ids = {interaction.span_id for interaction in fresh}
            known = [interaction for interaction in reading.interactions if interaction.span_id not in fresh_ids]
            return ReadTrace([(each, self._sampled(each)) for each in fresh], known)
        except Exception as error:  # noqa: BLE001 - one bad trace must not end the stage
            self._defects.count("interactions", error)
            return ReadTrace()

    def _sampled(self, interaction: Interaction) -> Interaction | None:
        """The interaction as the judge may see it, or None when sampling leaves it out."""
        sampled = self._sampler.decide(interaction)
        return self._redactor.interaction(sampled) if sampled else None


def _is_large(raw: RawTrace) -> bool:
    """Whether reading it takes so long that others must not wait for it."""
    if len(raw.spans) + len(raw.logs) > _MANY:
        return True
    return sum(len(each.span) for each in raw.spans) + sum(len(each.record) for each in raw.logs) > _LONG
