"""What a restart takes up again, in the order in which it had happened.

What cannot be taken up costs itself: it is lost, counted and said once, and the rest goes on.
"""

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import orjson

from tracescore.assembly import Assembly, assemble
from tracescore.exporters import Continuing, Delivering, Exporter
from tracescore.exporters.relay.hold import Hold
from tracescore.interactions.deduplication import Deduplication
from tracescore.judge.epoch import Epochs
from tracescore.model import Interaction, Measure, State
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.known_turns import KnownTurns
from tracescore.pipeline.ledger import Ledger
from tracescore.pipeline.queue import Queue
from tracescore.pipeline.trace_reader import TraceReader
from tracescore.spool.changes import Lost
from tracescore.spool.state import Part
from tracescore.spool.stored import COUNTED_ANEW, Known, Past, Stored

_log = logging.getLogger("tracescore.spool")

_LEDGER, _TURNS = "ledger", "known_turns"


@dataclass(frozen=True, slots=True)
class Parts:
    """What changes take effect on, and what a restart puts back."""

    assembly: Assembly
    deduplication: Deduplication
    ledger: Ledger
    queue: Queue
    exporters: Sequence[Exporter]
    hold: Hold | None = None
    epochs: Epochs | None = None
    erased: set[bytes] = field(default_factory=set)
    """Traces of which nothing more is to be taken in."""
    known_turns: KnownTurns = field(default_factory=KnownTurns)

    def persisted(self) -> dict[str, Part]:
        """Those whose figures go on, by name."""
        own: dict[str, Part] = {_LEDGER: self.ledger, _TURNS: self.known_turns}
        return own | {each.name: each for each in self.exporters if isinstance(each, Continuing)}


def totals(parts: Parts) -> bytes:
    """What all counters that go on after a restart show at this moment."""
    return orjson.dumps({name: part.codec.plain(part.state()) for name, part in parts.persisted().items()})


class Recovery:
    """One start over what an earlier process left."""

    def __init__(self, stored: Stored, parts: Parts, measures: Sequence[Measure], defects: Defects) -> None:
        self._stored, self._parts, self._measures, self._defects = stored, parts, measures, defects
        self._anew: set[str] = set()
        """Names of the parts whose totals are not there: everything is counted by them again."""

    async def resume_counts(self) -> list[Known]:
        """Puts ledger, windows and recent results back, and gives the interactions that wait for the judge.

        What the totals hold is shown to the windows and the page; what was committed after them is counted now, and
        so is everything by a part whose totals cannot be read.
        """
        self._parts.erased.update(self._stored.erased())
        self._resume_hold()  # first: what is owed may be about a span that is kept back
        self._resume_totals()
        waiting = []
        for known in self._stored.interactions():
            self._parts.deduplication.resume(known.trace_id.hex(), known.span_id, known.state)
            if not known.counted or _LEDGER in self._anew:
                self._count(known)
            if known.disposition == "waiting":
                waiting.append(known)
        for past in self._stored.results():
            if not past.counted or _LEDGER in self._anew:
                self._parts.ledger.finished(past.result)
            for exporter in self._parts.exporters:
                try:
                    await self._show(past, exporter)
                except Exception as error:  # noqa: BLE001 - an exporter that cannot take it misses it, and no start is lost
                    self._defects.count("exporters", error, once_for=f"refill of {type(exporter).__name__}")
        return waiting

    async def _show(self, past: Past, exporter: Exporter) -> None:
        if isinstance(exporter, Delivering):
            wanted = exporter.name in past.owed
        elif isinstance(exporter, Continuing):
            wanted = not past.counted or exporter.name in self._anew
        else:
            wanted = past.whole
        if wanted:
            await exporter.export(past.result)
        elif isinstance(exporter, Continuing):
            exporter.refill(past.result)

    def _resume_totals(self) -> None:
        found = self._stored.totals
        self._anew = {_LEDGER} - set(found)
        for name, part in self._parts.persisted().items():
            if name in found:
                try:
                    part.resume(part.codec.load(found[name]))
                except Exception as error:  # noqa: BLE001 - whatever is wrong with them, they cost no start
                    self._stored.unreadable(f"totals of {name}", f"{COUNTED_ANEW} ({type(error).__name__})")
                    self._anew.add(name)

    def _count(self, known: Known) -> None:
        ledger, interaction = self._parts.ledger, _unread(known, known.state)
        if known.disposition not in ("known", "lost"):
            ledger.read(interaction)
        if known.disposition in ("queue_full", "lost"):
            ledger.shed(interaction, self._measures, "queue_full" if known.disposition == "queue_full" else "shutdown")

    def resume_assembly(self, waiting: Iterable[Known]) -> None:
        """Puts back the traces that wait for more spans, those lately closed, and what is remembered of others.

        Of those that were read, spans that are kept back go on, but for those that `waiting` interactions are about.
        """
        assembly, read = self._parts.assembly, dict[bytes, set[str]]()
        for trace_id, at, ids in self._stored.gone():
            assembly.resume_gone(trace_id, ids, at)
            read[trace_id] = set()
        for held in self._stored.closed():
            assembly.resume_closed(held.spans, held.logs, held.at)
            read[(held.spans or held.logs)[0].trace_id] = set()
        for trace_id in read:
            self._parts.deduplication.resume_read(trace_id.hex())
        for held in self._stored.requests():
            assembly.resume(held.spans, held.logs, held.at)
            for trace_id in {each.trace_id for each in held.spans} | {each.trace_id for each in held.logs}:
                read.pop(trace_id, None)  # it is read again
        for known in waiting:
            read.get(known.trace_id, set()).add(known.span_id)
        if self._parts.hold is not None:
            for trace_id, targets in read.items():
                self._parts.hold.read(trace_id, targets)

    def _resume_hold(self) -> None:
        """Keeps spans back that an earlier process kept back and did not pass on."""
        spans, hold = 0, self._parts.hold
        for span, at in self._stored.withheld():
            spans += 1
            if hold is not None:
                hold.take([span], at)
        if spans and hold is None:
            advice = "exporters.forward.attach: hold passes them on"
            _log.warning('event=spans_kept_back spans=%d advice="%s"', spans, advice)

    def wait_again(self, waiting: Iterable[Known], reader: TraceReader) -> Iterator[Lost]:
        """Lets interactions wait again, read from the very pieces as before; gives those that are lost."""
        order = sorted(waiting, key=lambda known: (known.at, known.trace_id, known.read_op))
        for _, group in groupby(order, key=lambda known: (known.trace_id, known.read_op)):
            batch = list(group)
            found = self._read_again(batch[0], reader)
            for known in batch:
                if again := found.get(known.span_id):
                    interaction = dataclasses.replace(again, weight=known.weight, rule=known.rule)
                    self._parts.ledger.started(interaction, self._measures, known.at)
                    self._parts.queue.put(interaction)
                else:
                    _log.warning("event=interaction_lost trace_id=%s span_id=%s", known.trace_id.hex(), known.span_id)
                    self._parts.ledger.shed(_unread(known), self._measures, "shutdown")
                    yield Lost(known.trace_id, known.span_id)

    def _read_again(self, known: Known, reader: TraceReader) -> dict[str, Interaction]:
        """The interactions of its trace, by span; none where it cannot be read any more."""
        try:
            held = self._stored.pieces_of(known)
            if not held.spans and not held.logs:
                return {}
            found = reader.interactions(assemble(held.spans, held.logs), self._parts.known_turns.placed)
        except Exception as error:  # noqa: BLE001 - one bad trace costs itself, and no start
            self._defects.count("interactions", error, once_for="reading again")
            return {}
        return {each.span_id: each for each in found}


def _unread(known: Known, state: State = "complete") -> Interaction:
    """As much of an interaction as counting it needs."""
    unread = Interaction(known.trace_id.hex(), known.span_id, state, None, None)
    return dataclasses.replace(unread, service=known.service, environment=known.environment)
