"""What the assembly counts."""

from __future__ import annotations

from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from tracescore.model import ClosedBy

CLOSED_BY: tuple[ClosedBy, ...] = get_args(ClosedBy)


class AssemblyMetrics:
    """What the stage counts. At every moment, spans = read + dropped + duplicates + waiting.

    After a restart that holds for all processes together: what one took in, the next may read.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str) -> Counter:
            return Counter(f"tracescore_assembly_{name}", meaning, registry=registry)

        def counters(name: str, meaning: str, label: str, *values: str) -> dict[str, Counter]:
            family = Counter(f"tracescore_assembly_{name}", meaning, [label], registry=registry)
            return {value: family.labels(value) for value in values}

        self._spans = counter("spans", "Spans of admitted traces, duplicates included.")
        self._logs = counter("log_records", "Log records of admitted traces, duplicates included.")
        self._duplicate_spans = counter("duplicate_spans", "Spans that arrived before with the same id.")
        self._duplicate_logs = counter("duplicate_log_records", "Log records that arrived before.")
        self._read = counter("read_spans", "Spans in traces that were read, each counted once.")
        self._dropped = counters(
            "dropped_traces", "Traces closed without being read, by reason.", "reason", "no_marker"
        )
        self._dropped_spans = counters("dropped_spans", "Spans in dropped traces, by reason.", "reason", "no_marker")
        self._closed = counters("closed_traces", "Closed traces, by what closed them.", "closed_by", *CLOSED_BY)
        self.waiting = Gauge(
            "tracescore_assembly_waiting_spans", "Spans in open traces, not read yet.", registry=registry
        )
        self.reopened = counter("reopened_traces", "Closed traces that late spans opened again.")
        self.evictions = counters(
            "evictions",
            "Closed traces that left memory early because it was full: their spans, or their ids.",
            "what",
            *("spans", "ids"),
        )

    def count_pieces(self, spans: int, logs: int, new_spans: int, new_logs: int) -> None:
        """Counts pieces that came."""
        self._spans.inc(spans)
        self._duplicate_spans.inc(spans - new_spans)
        self.waiting.inc(new_spans)
        self._logs.inc(logs)
        self._duplicate_logs.inc(logs - new_logs)

    def closed_as(self, closed_by: ClosedBy, fresh: int, marked: bool) -> None:
        """Counts a trace that was closed, and its spans that had not been counted as read or dropped."""
        self._closed[closed_by].inc()
        self.waiting.dec(fresh)
        if marked:
            self._read.inc(fresh)
        else:
            self._dropped["no_marker"].inc()
            self._dropped_spans["no_marker"].inc(fresh)
