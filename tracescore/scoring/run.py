"""Rows through a judge in their order, equal ones once, within a limit of money: what the command and Python share."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry

from tracescore.config import Config
from tracescore.datasets.rows import ScoreRow
from tracescore.evaluators import evaluate_all
from tracescore.judge.chat import ALL_SPENT
from tracescore.judge.client import OpenAIJudge
from tracescore.model import MEASURES, Measure, Result, Unscored, Usage
from tracescore.pipeline.scorer import Scorer
from tracescore.redaction import Redactor
from tracescore.runtime import gather
from tracescore.scoring.results import Measured, ScoredCase

_GROUP = 32
"""Rows scored side by side; the judge bounds its own concurrency."""


class ScoreRun:
    """One run; a context that holds judge and embedder. `stopped`: how many rows were scored before money ended it."""

    def __init__(
        self, config: Config, measures: Sequence[Measure] | None = None, max_cost: float | None = None
    ) -> None:
        """Without `measures`, those that the configuration names, or else all. UsageError when a part is missing."""
        configured = config.measures if "measures" in config.model_fields_set else MEASURES
        self.measures: tuple[Measure, ...] = tuple(measures or configured)
        registry = CollectorRegistry()
        self._scorer, self._redactor = Scorer(config, self.measures, registry), Redactor(config.redaction, registry)
        self._max_cost = max_cost
        self.spent = self._probed = 0.0
        self._paid_rows = 0
        self._known: dict[bytes, Result] = {}
        self.stopped: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._scorer.close()

    @property
    def judge(self) -> str:
        """The name of the judge."""
        return self._scorer.judge.name

    async def probe(self) -> str:
        """Asks the judge whether it can do the work, and says what was found; what that costs is spent. JudgeError."""
        found = await self._scorer.judge.probe()
        if self._max_cost is not None and isinstance(self._scorer.judge, OpenAIJudge):
            self._scorer.judge.limit_cost(self._max_cost)
            self.spent = self._probed = self._scorer.judge.spent
        return found or ""

    async def over(self, rows: Sequence[ScoreRow]) -> AsyncIterator[ScoredCase]:
        """The rows with their scores, in their order; it ends early, and `stopped` is set, when the money is spent."""
        at, times = 0, Counter(row.key for row in rows)
        while at < len(rows):
            group = rows[at : at + self._affordable()]
            new = await self._ask(group)
            cut = next((n for n, row in enumerate(group) if _was_cut(self._known[row.key])), None)
            for row in group[:cut]:
                yield self._scored(row, asked=new.pop(row.key, None) is not None)
                if times[row.key] == 1:
                    self._known.pop(row.key, None)
            at += len(group[:cut])
            if cut is not None or not group:
                self.stopped = at
                return

    async def _ask(self, group: Sequence[ScoreRow]) -> dict[bytes, ScoreRow]:
        """Has those of a group evaluated that no row before was equal to; these rows."""
        scorer = self._scorer
        new = {row.key: row for row in group if row.key not in self._known}
        jobs = [
            partial(
                evaluate_all, self._redactor.interaction(row.interaction), scorer.evaluators, scorer.judge, time.time
            )
            for row in new.values()
        ]
        results = await gather(jobs)
        self._known |= dict(zip(new, results, strict=True))
        self._paid_rows += len(new)
        self.spent += sum(result.usage.cost or 0.0 for result in results)
        return new

    def _affordable(self) -> int:
        """Rows that the next group may have: as many as the money left pays for, at the cost of those so far."""
        if self._max_cost is None:
            return _GROUP
        if not self._paid_rows:
            return 1 if self._max_cost > self.spent else 0
        each = (self.spent - self._probed) / self._paid_rows
        return _GROUP if each == 0 else max(0, min(_GROUP, int((self._max_cost - self.spent) / each)))

    def _scored(self, row: ScoreRow, *, asked: bool) -> ScoredCase:
        """A row with its scores; one that equals an earlier row has cost nothing."""
        result = self._known[row.key]
        scores = {str(each.measure): Measured.of(each) for each in result.evaluations}
        usage = result.usage if asked else Usage(cost=None if result.usage.cost is None else 0.0)
        return ScoredCase(row.case, row.given, scores, result.judge, usage)


def _was_cut(result: Result) -> bool:
    """Whether the limit of money kept a request of this row back; such a row is left for the next run."""
    return any(isinstance(each, Unscored) and each.detail == ALL_SPENT for each in result.evaluations)
