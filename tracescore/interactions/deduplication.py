"""Each interaction once, however often its trace is read.

A trace is read again when new spans of it come late: a long session, a slow service, a root that arrives after
its children had been read without it. The interaction may then have grown upwards, so a new reading is the same
interaction when its span is the one of an earlier reading or an ancestor of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter

from tracescore.model import REMEMBERED_TRACES, Interaction, State, Trace


class Deduplication:
    """Remembers what has been read, by trace, up to a fixed number of traces."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._read: OrderedDict[str, dict[str, State]] = OrderedDict()
        self._late = Counter(
            "tracescore_interactions_changed_late",
            "Interactions that late spans changed after sampling had decided; a longer assembly.idle avoids it.",
            registry=registry,
        )

    def resume(self, trace_id: str, span_id: str, state: State) -> None:
        """Remembers an interaction that an earlier process read."""
        self._read.setdefault(trace_id, {})[span_id] = state

    def resume_read(self, trace_id: str) -> None:
        """Remembers that an earlier process read a trace, whatever it held."""
        self._read.setdefault(trace_id, {})

    def has_read(self, trace_id: str) -> bool:
        """Whether the trace was read before."""
        return trace_id in self._read

    def new(self, trace: Trace, interactions: Sequence[Interaction]) -> list[Interaction]:
        """Those of `interactions` (all of one trace) that no earlier reading of the trace held."""
        known = self._read.setdefault(trace.trace_id, {})
        self._read.move_to_end(trace.trace_id)
        while len(self._read) > REMEMBERED_TRACES:
            self._read.popitem(last=False)
        grown = {above: span_id for span_id in known for above in _with_ancestors(trace, span_id)} if known else {}
        fresh = []
        for interaction in interactions:
            before = known.get(grown.get(interaction.span_id, interaction.span_id))
            if before is None:
                fresh.append(interaction)
            elif before != interaction.state:
                self._late.inc()
            known[interaction.span_id] = interaction.state
        return fresh


def _with_ancestors(trace: Trace, span_id: str) -> Iterator[str]:
    parents = {span.span_id: span.parent_span_id for span in trace.spans}
    seen: set[str] = set()
    while span_id and span_id not in seen:
        yield span_id
        seen.add(span_id)
        span_id = parents.get(span_id, "")
