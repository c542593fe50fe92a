"""What a restart takes up again, in the order in which it had happened."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

import orjson

from tracescore.assembly import Assembly, put_together
from tracescore.exporters import Continuing, Delivering, Exporter
from tracescore.exporters.relay.hold import Hold
from tracescore.interactions.deduplication import Once
from tracescore.model import Interaction, Measure, RawTrace
from tracescore.pipeline.ledger import Ledger
from tracescore.spool.changes import Lost
from tracescore.spool.state import Part
from tracescore.spool.stored import COUNTED_ANEW, Known, Past, Stored

_log = logging.getLogger("tracescore.spool")

_LEDGER = "ledger"

Read = Callable[[RawTrace], Iterable[Interaction]]
"""Reads a trace again, counting nothing."""


def totals(ledger: Ledger, exporters: Sequence[Exporter]) -> bytes:
    """What all counters that go on after a restart show at this moment."""
    return orjson.dumps({name: part.codec.plain(part.state()) for name, part in _parts(ledger, exporters).items()})


def _parts(ledger: Ledger, exporters: Sequence[Exporter]) -> dict[str, Part]:
    return {_LEDGER: ledger} | {each.name: each for each in exporters if isinstance(each, Continuing)}


async def resume_counts(
    stored: Stored, ledger: Ledger, once: Once, exporters: Sequence[Exporter], measures: Sequence[Measure]
) -> list[Known]:
    """Puts ledger, windows and recent results back, and gives the interactions that wait for the judge.

    What the totals hold is shown to the windows and the page; what was committed after them is counted now, and so is
    everything by a part whose totals cannot be read.
    """
    anew = _resume_totals(stored, ledger, exporters)
    waiting = []
    for known in stored.interactions():
        trace_id = known.trace_id.hex()
        once.resume(trace_id, known.span_id, known.state)
        if not known.counted or _LEDGER in anew:
            _count(ledger, known, Interaction(trace_id, known.span_id, known.state, None, None), measures)
        if known.fate == "waiting":
            waiting.append(known)
    for past in stored.results():
        if not past.counted or _LEDGER in anew:
            ledger.finished(past.result)
        for exporter in exporters:
            if isinstance(exporter, Delivering):
                wanted = exporter.name in past.owed
            else:
                wanted = _anew(past, exporter, anew) if isinstance(exporter, Continuing) else past.whole
            if wanted:
                await exporter.export(past.result)
            elif isinstance(exporter, Continuing):
                exporter.refill(past.result)
    return waiting


def _resume_totals(stored: Stored, ledger: Ledger, exporters: Sequence[Exporter]) -> set[str]:
    """Puts the totals of every part back; the names of those that have to count anew as theirs cannot be read."""
    anew = {_LEDGER} - set(stored.totals)
    for name, part in _parts(ledger, exporters).items():
        if name in stored.totals:
            try:
                state = part.codec.load(stored.totals[name])
            except ValueError as error:
                stored.unreadable(f"totals of {name}", f"{COUNTED_ANEW} ({type(error).__name__})")
                anew.add(name)
            else:
                part.resume(state)
    return anew


def _anew(past: Past, part: Continuing, anew: Collection[str]) -> bool:
    return not past.counted or part.name in anew


def _count(ledger: Ledger, known: Known, interaction: Interaction, measures: Sequence[Measure]) -> None:
    if known.fate not in ("known", "lost"):
        ledger.read(interaction)
    if known.fate in ("queue_full", "lost"):
        ledger.shed(interaction, measures, "queue_full" if known.fate == "queue_full" else "shutdown")


def resume_assembly(stored: Stored, assembly: Assembly) -> None:
    """Puts back the traces that wait for more spans, those lately closed, and what is remembered of others."""
    for trace_id, at, ids in stored.gone():
        assembly.resume_gone(trace_id, ids, at)
    for held in stored.closed():
        assembly.resume_closed(held.spans, held.logs, held.at)
    for held in stored.requests():
        assembly.resume(held.spans, held.logs, held.at)


def resume_hold(stored: Stored, hold: Hold | None) -> None:
    """Keeps spans back that an earlier process kept back and did not pass on."""
    spans = 0
    for span, at in stored.withheld():
        spans += 1
        if hold is not None:
            hold.take([span], at)
    if spans and hold is None:
        _log.warning('event=spans_kept_back spans=%d advice="exporters.forward.attach: hold passes them on"', spans)


def reread(stored: Stored, waiting: Iterable[Known], read: Read) -> Iterator[tuple[Known, Interaction | Lost]]:
    """Reads the interactions that wait from the very pieces they were read from before."""
    order = sorted(waiting, key=lambda known: (known.at, known.trace_id, known.read_op))
    for _, group in groupby(order, key=lambda known: (known.trace_id, known.read_op)):
        batch = list(group)
        held = stored.pieces_of(batch[0])
        found: dict[str, Interaction] = {}
        if held.spans or held.logs:
            found = {each.span_id: each for each in read(put_together(held.spans, held.logs))}
        for known in batch:
            if again := found.get(known.span_id):
                yield known, dataclasses.replace(again, weight=known.weight, rule=known.rule)
            else:
                _log.warning("event=interaction_lost trace_id=%s span_id=%s", known.trace_id.hex(), known.span_id)
                yield known, Lost(known.trace_id, known.span_id)
