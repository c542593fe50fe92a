"""Keeps what gold requests cause in the app out of everything live, also where this process runs no gold set."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter

from tracescore.gold.marks import Marks
from tracescore.gold.runner import GoldRunner
from tracescore.model import Interaction


class GoldTraffic:
    """Asked about every trace that was read; `runner` is there in the process that runs a gold set."""

    def __init__(self, marks: Marks, runner: GoldRunner | None, registry: CollectorRegistry) -> None:
        self._marks, self._runner = marks, runner
        self._read = Counter(
            "tracescore_gold_traces",
            "Traces of gold requests that were read and not counted as live: taken as answers, or only kept out.",
            ["use"],
            registry=registry,
        )
        for use in ("answer", "kept_out"):
            self._read.labels(use)

    def took(self, trace_id: bytes, interactions: Sequence[Interaction]) -> bool:
        """Whether the trace (16 bytes of id) is of a gold request, and so no live traffic."""
        if not self._marks.known(trace_id):
            return False
        waited = self._runner is not None and self._runner.take(trace_id.hex(), interactions)
        self._read.labels("answer" if waited else "kept_out").inc()
        return True
