"""`tracescore score`: a file of questions and answers, a JSON line each, and the same with its scores."""

from __future__ import annotations

import dataclasses
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import orjson
import typer

from tracescore import logs
from tracescore.cli.options import ConfigPath, configured, lines_of, print_json
from tracescore.cli.running import run_async
from tracescore.cli.score_rows import ScoreRow, already_scored, read_rows
from tracescore.errors import UsageError
from tracescore.model import MEASURES, Evaluation, Measure, Result, Score, Unscored, Usage
from tracescore.runtime import gather

if TYPE_CHECKING:
    from tracescore.config import Config
    from tracescore.judge.operations import Judge

_HELP = "A line each: question, answer, contexts?, reference?, history?"
_GROUP = 32
"""Rows scored side by side; the judge bounds its own concurrency."""


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help=_HELP)],
    config: ConfigPath = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation at run time
        typer.Option("--out", "-o", metavar="OUT.jsonl", help="Write the rows here instead of to standard output."),
    ] = None,
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Keep the rows that OUT.jsonl already has.")] = False,
    max_cost: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--max-cost", metavar="MONEY", min=0.0, help="Send no more requests after this, by judge.price."),
    ] = None,
) -> None:
    """Score a file of questions and answers: one JSON line in, the same line with its scores out."""
    logs.to_stderr(logging.WARNING)
    settings = configured(config)
    if resume and out is None:
        raise UsageError("--resume: name the file to go on with, as --out OUT.jsonl")
    if max_cost is not None and (settings.judge.kind == "embedded" or settings.judge.price is None):
        raise UsageError("--max-cost: set judge.price; without it tracescore cannot know the cost")
    refused: list[UsageError] = []
    rows = list(read_rows(lines_of(file), refused.append))
    run = _Run(settings, rows, out, max_cost)
    run_async(partial(run.score, resume=resume))
    for refusal in refused:
        sys.stderr.write(f"{file}: {refusal}\n")
    if refused:
        raise typer.Exit(2)
    if run.stopped:
        raise typer.Exit(1)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class _Run:
    """One run over the rows. `stopped`: money ended it."""

    def __init__(self, config: Config, rows: Sequence[ScoreRow], out: Path | None, max_cost: float | None) -> None:
        self._config = config
        self._rows = rows
        self._out = out
        self._max_cost = max_cost
        self._spent = self._probed = 0.0
        self._paid_rows = 0
        self._known: dict[bytes, Result] = {}
        self.stopped = False
        restricted = "measures" in config.model_fields_set
        self._measures: tuple[Measure, ...] = config.measures if restricted else MEASURES

    async def score(self, *, resume: bool) -> None:
        """Asks the judge whether it can do the work, says what is ahead, and scores the rows in their order."""
        from prometheus_client import CollectorRegistry

        from tracescore.cli.score_report import Means, estimate
        from tracescore.pipeline.scorer import Scorer
        from tracescore.redaction import Redactor

        registry = CollectorRegistry()
        scorer, redactor = Scorer(self._config, self._measures, registry), Redactor(self._config.redaction, registry)
        try:
            rows = self._left(scorer.judge.name, resume=resume)
            found = await scorer.judge.probe()
            self._limit(scorer.judge)
            judge = self._config.judge
            where = "in this process" if judge.kind == "embedded" else f"at {judge.where}: {found}"
            _say(f"judge {scorer.judge.name} {where}")
            different = {row.key: row.interaction for row in rows}
            _say(estimate(list(different.values()), len(rows), self._measures, judge))
            means = Means()
            await self._score_all(rows, scorer, redactor.interaction, means.add)
            for line in means.table():
                _say(line)
        finally:
            await scorer.close()

    def _limit(self, judge: Judge) -> None:
        """Tells the judge what may be spent; what the probe cost is spent already."""
        from tracescore.judge.client import OpenAIJudge

        if self._max_cost is not None and isinstance(judge, OpenAIJudge):
            judge.limit_cost(self._max_cost)
            self._spent = self._probed = judge.spent

    def _left(self, judge: str, *, resume: bool) -> list[ScoreRow]:
        """The rows that are not in the output yet, which begins anew unless this run resumes."""
        if self._out is not None and not resume:
            try:
                self._out.write_bytes(b"")
            except OSError as error:
                raise UsageError(f"{self._out}: cannot be written: {error.strerror}") from None
        done = already_scored(self._out, judge) if self._out is not None and resume else Counter[bytes]()
        left = []
        for row in self._rows:
            if done[row.key] > 0:
                done[row.key] -= 1
            else:
                left.append(row)
        return left

    async def _score_all(
        self,
        rows: Sequence[ScoreRow],
        scorer: Any,
        redacted: Callable[[Any], Any],
        add: Callable[[dict[str, Any]], None],
    ) -> None:
        from rich.console import Console
        from rich.progress import Progress

        from tracescore.evaluators import evaluate_all

        at, times = 0, Counter(row.key for row in rows)
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("scoring", total=len(rows))
            while at < len(rows):
                group = rows[at : at + self._affordable()]
                if not group:
                    self._stop(at)
                    return
                new = {row.key: row for row in group if row.key not in self._known}
                jobs = [
                    partial(evaluate_all, redacted(row.interaction), scorer.evaluators, scorer.judge, time.time)
                    for row in new.values()
                ]
                results = await gather(jobs)
                self._known |= dict(zip(new, results, strict=True))
                self._paid_rows += len(new)
                self._spent += sum(result.usage.cost or 0.0 for result in results)
                cut = next((n for n, row in enumerate(group) if _was_cut(self._known[row.key])), None)
                group = group[:cut]
                for row in group:
                    add(self._write(row, asked=new.pop(row.key, None) is not None))
                for row in group:
                    if times[row.key] == 1:
                        self._known.pop(row.key, None)
                at += len(group)
                progress.advance(task, len(group))
                if cut is not None:
                    self._stop(at)
                    return

    def _stop(self, at: int) -> None:
        """Says that money ended the run before the row `at`."""
        self.stopped = True
        _say(
            f"stopped after {at} rows: {self._spent:.4g} of --max-cost {self._max_cost:g} is spent; "
            "with --out FILE --resume and more money the run goes on there"
        )

    def _affordable(self) -> int:
        """Rows that the next group may have: as many as the money left pays for, at the cost of those so far."""
        if self._max_cost is None:
            return _GROUP
        if not self._paid_rows:
            return 1 if self._max_cost > self._spent else 0
        each = (self._spent - self._probed) / self._paid_rows
        return _GROUP if each == 0 else max(0, min(_GROUP, int((self._max_cost - self._spent) / each)))

    def _write(self, row: ScoreRow, *, asked: bool) -> dict[str, Any]:
        """Writes a row with its scores, which it returns; one that equals an earlier row has cost nothing."""
        result = self._known[row.key]
        scores: dict[str, Any] = {evaluation.measure: _shown(evaluation) for evaluation in result.evaluations}
        usage = dataclasses.asdict(result.usage if asked else Usage(cost=None if result.usage.cost is None else 0.0))
        line = {**row.given, "scores": scores, "judge": result.judge, "usage": usage}
        if self._out is None:
            print_json(line)
        else:
            with self._out.open("ab") as file:
                file.write(orjson.dumps(line) + b"\n")
        return scores


def _was_cut(result: Result) -> bool:
    """Whether the limit of money kept a request of this row back; such a row is left for the next run."""
    from tracescore.judge.chat import ALL_SPENT

    return any(isinstance(each, Unscored) and each.detail == ALL_SPENT for each in result.evaluations)


def _shown(evaluation: Evaluation) -> dict[str, Any]:
    """A score or the reason for none as plain JSON data; what a score is made of stands beside its value."""
    items = [dataclasses.asdict(item) for item in evaluation.items]
    if isinstance(evaluation, Score):
        head = {"value": evaluation.value, "reason": None, "label": evaluation.label, **evaluation.details}
    else:
        head = {"value": None, "reason": evaluation.reason, "detail": evaluation.detail}
        head |= {"lo": evaluation.lo, "hi": evaluation.hi}
    return {**head, "items": items}
