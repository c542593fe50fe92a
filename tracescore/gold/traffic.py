"""Keeps what gold requests cause in the app out of everything live, also where this process runs no gold set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from tracescore.config import Config
from tracescore.drift.diagnosis import GoldCause
from tracescore.exporters.prometheus.families import from_zero
from tracescore.gold.live import LiveAnswers
from tracescore.gold.run import Evaluate
from tracescore.gold.runner import GoldRunner
from tracescore.gold.series import GoldSeries
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Clock, Interaction


def build_gold(
    config: Config, judge: str, evaluate: Evaluate, ready: Callable[[], bool], registry: CollectorRegistry, clock: Clock
) -> GoldTraffic:
    """With a runner and its series where the configuration has a gold set; see `GoldRunner` for what it needs."""
    runner, salt = None, config.sampling.salt
    if config.gold is not None:
        runner = GoldRunner(
            config.gold, config.spool.path, GoldTraceIds(salt), judge, evaluate, clock, ready, config.retain.gold
        )
        GoldSeries(runner, registry)
    return GoldTraffic(salt, runner, registry)


class GoldTraffic:
    """Asked about every trace that was read. `runner` is there in the process that runs a gold set."""

    def __init__(self, salt: str, runner: GoldRunner | None, registry: CollectorRegistry) -> None:
        """`salt` is what all replicas have in common."""
        self._trace_ids, self.runner = GoldTraceIds(salt), runner
        self.live = runner.live if runner is not None else LiveAnswers()
        about = "Traces of gold requests, not counted as live: read as answers, or kept out."
        self._read = from_zero(registry, "tracescore_gold_traces", about, "use", ("answer", "kept_out"))

    def fell(self, population: Sequence[str]) -> GoldCause | None:
        """Why the newest run found the answers of this service, the first of `population`, less correct, if it did."""
        return self.runner.fell(population[0]) if self.runner else None

    def or_gold(self, admits: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
        """Whether the spans of a trace (16 bytes of id) are wanted: as `admits` says, and all that we caused."""
        return lambda trace_id: admits(trace_id) or self._trace_ids.is_gold(trace_id)

    def claims(self, trace_id: bytes, interactions: Sequence[Interaction]) -> bool:
        """Whether the trace (16 bytes of id) is of a gold request; else it is live and may show a new release."""
        if not self._trace_ids.is_gold(trace_id):
            self.live.add(each.answer for each in interactions)
            if self.runner is not None:
                self.runner.observe(interactions)
            return False
        waited = self.runner is not None and self.runner.take(trace_id.hex(), interactions)
        self._read.labels("answer" if waited else "kept_out").inc()
        return True
