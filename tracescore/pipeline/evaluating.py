"""The second stage: interactions that wait -> results, committed and then shown to every exporter."""

import math
from collections.abc import Sequence

import anyio

from tracescore.exporters import Exporter
from tracescore.model import Measure, Result
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.journal import Journal
from tracescore.pipeline.queue import Queue
from tracescore.pipeline.recovery import Parts
from tracescore.pipeline.scorer import Scorer

_PUBLISH_GRACE = 5.0
"""Seconds after the grace in which a result that is there can still be committed and published."""


class EvaluatingStage:
    """Started `evaluators.max_concurrency` times; each `run` evaluates one interaction at a time."""

    def __init__(
        self,
        queue: Queue,
        scorer: Scorer,
        journal: Journal,
        parts: Parts,
        measures: Sequence[Measure],
        defects: Defects,
    ) -> None:
        self._queue, self._scorer, self._journal = queue, scorer, journal
        self._exporters, self._ledger = parts.exporters, parts.ledger
        self._measures, self._defects = measures, defects
        self._publishing: set[anyio.CancelScope] = set()
        self._publish_until = math.inf
        """Until when results are published: while the disk is full they wait, and only the end cuts that short."""

    async def run(self) -> None:
        """Evaluates what waits until no more will come.

        Cancelled while the judge works, it sheds the interaction, or leaves it to the next process where there is a
        spool; cancelled while publishing, it finishes that first.
        """
        while (interaction := await self._queue.take()) is not None:
            try:
                result = await self._scorer.score_live(interaction)
            except anyio.get_cancelled_exc_class():
                if not self._journal.durable:
                    self._ledger.shed(interaction, self._measures, "shutdown")
                raise
            with anyio.CancelScope(shield=True, deadline=self._publish_until) as publishing:
                self._publishing.add(publishing)
                try:
                    await self._publish(result)
                finally:
                    self._publishing.discard(publishing)

    def end_by(self, deadline: float) -> None:
        """Nothing is evaluated after `deadline` (of the event loop's clock), nor published long after it."""
        self._publish_until = deadline + _PUBLISH_GRACE
        for publishing in self._publishing:
            publishing.deadline = self._publish_until

    def shed(self) -> None:
        """Counts what nobody came to evaluate, unless the next process will."""
        if self._journal.durable:
            return
        while (interaction := self._queue.take_now()) is not None:
            self._ledger.shed(interaction, self._measures, "shutdown")

    async def _publish(self, result: Result) -> None:
        try:
            async with self._journal.finished(result) as shown:
                for exporter in self._exporters:
                    await self._export(exporter, shown)
        except Exception as error:  # noqa: BLE001 - one bad result must not end the stage
            self._defects.count("evaluators", error)

    async def _export(self, exporter: Exporter, result: Result) -> None:
        try:
            await exporter.export(result)
        except Exception as error:  # noqa: BLE001 - one bad result or exporter must not end the stage
            self._defects.count("exporters", error)
