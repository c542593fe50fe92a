"""`tracescore score`: a file of questions and answers in, the same rows with their scores out, a JSON line each."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tracescore import logs
from tracescore.cli.options import ConfigPath, configured
from tracescore.cli.running import run_async
from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import Config
    from tracescore.datasets.rows import ScoreRow
    from tracescore.scoring.results import Measured, ScoredCase
    from tracescore.scoring.run import ScoreRun

_HELP = "JSONL, JSON, CSV or Parquet; a row each: question, answer, contexts?, reference?, history?"


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=_HELP)],
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
    """Score a file of questions and answers: rows in, the same rows with their scores out, a JSON line each."""
    from tracescore.datasets.keys import taken
    from tracescore.datasets.rows import read_rows

    logs.to_stderr(logging.WARNING)
    settings = configured(config)
    if resume and out is None:
        raise UsageError("--resume: name the file to go on with, as --out OUT.jsonl")
    if max_cost is not None and (settings.judge.kind == "embedded" or settings.judge.price is None):
        raise UsageError("--max-cost: set judge.price; without it tracescore cannot know the cost")
    refused: list[UsageError] = []
    rows = read_rows(file, refused.append)
    if keys := taken(row.given for row in rows):
        _say(keys)
    run = _Command(settings, rows, out, max_cost)
    run_async(partial(run.score, resume=resume))
    for refusal in refused:
        sys.stderr.write(f"{file}: {refusal}\n")
    if refused:
        raise typer.Exit(2)
    if run.stopped:
        raise typer.Exit(1)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class _Command:
    """The rows through a run, and what is written and said on the way. `stopped`: money ended it."""

    def __init__(self, config: Config, rows: Sequence[ScoreRow], out: Path | None, max_cost: float | None) -> None:
        self._config = config
        self._rows = rows
        self._out = out
        self._max_cost = max_cost
        self.stopped = False

    async def score(self, *, resume: bool) -> None:
        """Asks the judge whether it can do the work, says what is ahead, and scores the rows in their order."""
        from tracescore.cli.score_report import estimate
        from tracescore.scoring.results import MeanScore, table
        from tracescore.scoring.run import ScoreRun

        async with ScoreRun(self._config, max_cost=self._max_cost) as run:
            rows = self._left(run.judge, resume=resume)
            found = await run.probe()
            judge = self._config.judge
            where = "in this process" if judge.kind == "embedded" else f"at {judge.where}: {found}"
            _say(f"judge {run.judge} {where}")
            different = {row.key: row.interaction for row in rows}
            _say(estimate(list(different.values()), len(rows), run.measures, self._config))
            found_by_measure = await self._write_all(run, rows)
            if run.stopped is not None:
                self.stopped = True
                _say(
                    f"stopped after {run.stopped} rows: {run.spent:.4g} of --max-cost {self._max_cost:g} is spent; "
                    "with --out FILE --resume and more money the run goes on there"
                )
            for line in table({measure: MeanScore.of(each) for measure, each in found_by_measure.items()}):
                _say(line)

    def _left(self, judge: str, *, resume: bool) -> list[ScoreRow]:
        """The rows that are not in the output yet, which begins anew unless this run resumes."""
        from tracescore.datasets.rows import already_scored

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

    async def _write_all(self, run: ScoreRun, rows: Sequence[ScoreRow]) -> dict[str, list[Measured]]:
        """Writes each row when it is scored; what was measured, without the evidence."""
        from rich.console import Console
        from rich.progress import Progress

        values: dict[str, list[Measured]] = {}
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("scoring", total=len(rows))
            async for case in run.over(rows):
                self._write(case)
                for measure, found in case.scores.items():
                    values.setdefault(measure, []).append(replace(found, items=()))
                progress.advance(task)
        return values

    def _write(self, case: ScoredCase) -> None:
        from tracescore.datasets.rows import dumped

        line = dumped(case.to_dict())
        if self._out is None:
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
        else:
            with self._out.open("ab") as file:
                file.write(line + b"\n")
