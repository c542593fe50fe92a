"""`tracescore agree`: two judges side by side on the same rows, or one judge asked several times."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracescore import logs
from tracescore.cli.options import AsJson, configured, print_json
from tracescore.cli.running import run_async
from tracescore.errors import JudgeError, UsageError
from tracescore.model import Interaction, Result, Score
from tracescore.runtime import gather

if TYPE_CHECKING:
    from tracescore.calibration.agreement import Pair
    from tracescore.config import Config
    from tracescore.judge.operations import Vocabulary
    from tracescore.pipeline.scorer import Scorer

_GROUP = 16
"""Rows asked about side by side; the judges bound their own concurrency."""
_CONFIGS = "Configuration with a judge; give two for two judges."


def agree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Rows as for `tracescore score`.")],
    configs: Annotated[list[Path], typer.Option("--config", "-c", metavar="FILE", help=_CONFIGS)],
    *,
    repeat: Annotated[int, typer.Option("--repeat", metavar="K", min=1, help="Ask one judge K times.")] = 1,
    json: AsJson = False,
) -> None:
    """Compare two judges on the same rows, by verdict and by mean, or one judge with itself."""
    from tracescore.datasets.rows import read_rows

    logs.to_stderr(logging.WARNING)
    if (len(configs), repeat > 1) not in {(2, False), (1, True)}:
        raise UsageError("agree: give two judges (-c A -c B), or one and --repeat K with K of 2 or more")
    refused: list[UsageError] = []
    rows = [row.interaction for row in read_rows(file, refused.append)]
    if refused:
        raise UsageError(f"{file}: {refused[0]}")
    settings = [configured(path) for path in configs]
    found: list[dict[str, Any]] = []
    compare = partial(_compare, rows, settings, found)
    run_async(compare if repeat == 1 else partial(_repeat, rows, settings[0], repeat, found))
    from tracescore.calibration.agreement import compared_line, spread_line

    line = compared_line if repeat == 1 else spread_line
    for told in found:
        if json:
            print_json(told)
        else:
            typer.echo(line(told))


@asynccontextmanager
async def _scorers(configs: Sequence[Config]) -> AsyncIterator[list[Scorer]]:
    """Judges that can do the work, with their evaluators."""
    from prometheus_client import CollectorRegistry

    from tracescore.pipeline.scorer import Scorer

    async with AsyncExitStack() as stack:
        scorers = [Scorer(config, config.measures, CollectorRegistry()) for config in configs]
        for scorer in scorers:
            stack.push_async_callback(scorer.close)
            await scorer.judge.probe()
        yield scorers


async def _all(rows: Sequence[Interaction], scorer: Scorer, *, remembered: bool = True) -> list[Result]:
    from tracescore.evaluators import evaluate_all

    results: list[Result] = []
    for at in range(0, len(rows), _GROUP):
        ask = partial(evaluate_all, evaluators=scorer.evaluators, judge=scorer.judge, clock=time.time)
        results += await gather([partial(ask, row, remembered=remembered) for row in rows[at : at + _GROUP]])
    return results


async def _compare(rows: Sequence[Interaction], configs: Sequence[Config], told: list[dict[str, Any]]) -> None:
    from tracescore.calibration.agreement import Compared, compared

    async with _scorers(configs) as (first, second):
        ours, theirs = await _all(rows, first), await _all(rows, second)
        measures: dict[str, Compared] = {
            evaluation.measure: Compared() for result in ours for evaluation in result.evaluations
        }
        for one, other in zip(ours, theirs, strict=True):
            for mine, yours in zip(one.evaluations, other.evaluations, strict=True):
                found = measures[mine.measure]
                if isinstance(mine, Score) and isinstance(yours, Score):
                    found.scores.append((mine.value, yours.value))
                else:
                    found.unscored += 1
        for at in range(0, len(ours), _GROUP):
            asks = [partial(_verdicts, result, second) for result in ours[at : at + _GROUP]]
            for pairs in await gather(asks):
                for measure, pair in pairs:
                    measures[measure].verdicts.append(pair)
        typer.echo(f"{len(rows)} rows; {_cost(first, ours)}; {_cost(second, theirs)}", err=True)
    told += compared(measures)


async def _verdicts(result: Result, second: Scorer) -> list[tuple[str, Pair]]:
    """Verdicts of both on the statements that the first judge listed: each lists others, which cannot be compared."""
    from tracescore.judge.operations import Vocabulary

    asked = result.interaction
    session = second.judge.session(asked.key)
    by_measure: dict[str, tuple[Vocabulary, Sequence[str]]] = {
        "completeness": (Vocabulary.COVERAGE, [asked.answer or ""]),
        "faithfulness": (Vocabulary.SUPPORT, asked.contexts),
    }
    pairs: list[tuple[str, Pair]] = []
    for evaluation in result.evaluations:
        vocabulary, evidence = by_measure.get(evaluation.measure, (None, ()))
        items = [item for item in evaluation.items if vocabulary and item.verdict in vocabulary.value]
        if vocabulary is None or not items:
            continue
        try:
            texts = [item.text for item in items]
            verdicts = await session.verify(texts, evidence, vocabulary, asked.question or "")
        except JudgeError:
            continue
        pairs += [(evaluation.measure, (item.verdict, v.value)) for item, v in zip(items, verdicts, strict=True) if v]
    return pairs


async def _repeat(rows: Sequence[Interaction], config: Config, times: int, told: list[dict[str, Any]]) -> None:
    from tracescore.calibration.agreement import spread

    async with _scorers([config]) as (scorer,):
        runs = [await _all(rows, scorer, remembered=False) for _ in range(times)]
        typer.echo(f"{len(rows)} rows; {_cost(scorer, [result for run in runs for result in run])}", err=True)
    measures: dict[str, list[list[float]]] = {}
    for results in zip(*runs, strict=True):
        for evaluations in zip(*(result.evaluations for result in results), strict=True):
            scores = [evaluation.value for evaluation in evaluations if isinstance(evaluation, Score)]
            measures.setdefault(evaluations[0].measure, []).append(scores)
    told += spread(measures, times)


def _cost(scorer: Scorer, results: Sequence[Result]) -> str:
    calls = sum(result.usage.calls for result in results)
    costs: list[Any] = [result.usage.cost for result in results]
    paid = f", cost {sum(costs):.4g}" if costs and all(cost is not None for cost in costs) else ""
    return f"judge {scorer.judge.name}: {calls} calls{paid}"
