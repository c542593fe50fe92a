"""Which version of the prompts agrees better with labels, and at what cost, on a judge of one's own:

    python -m tests.benchmarks.judge_prompts CONFIG.yaml ROWS.jsonl [--limit N]

CONFIG has the section `judge` (kind: openai) with its key, and the measures; files that `judge.prompts` names are
compared as well (`own`). ROWS are those of `tracescore score` with `labels`, what people say the score should be:
`{"question": ..., "answer": ..., "contexts": [...], "labels": {"faithfulness": 1, "completeness": 0.5}}`.

A row counts as agreed on when score and label lie on the same side of 0.5, which itself is the good side. A row without
a score agrees with nobody. Nothing is remembered between versions; calls, tokens and money are those of the rows, the
probe excluded.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry

from tracescore.config import Config, OpenAIJudgeConfig
from tracescore.config.file import load
from tracescore.config.judge import PromptFiles, PromptVersion
from tracescore.datasets.rows import ScoreRow, read_rows
from tracescore.errors import UsageError
from tracescore.evaluators import evaluate_all
from tracescore.formulas import gaffke_interval
from tracescore.model import Result, Score, Usage
from tracescore.pipeline.scorer import Scorer
from tracescore.runtime import gather

_GROUP = 16
"""Rows asked about side by side; the judge bounds its own concurrency."""


@dataclass
class Agreement:
    """Of one measure: whether each labelled row was agreed on, and how far score and label lie apart."""

    agreed: list[bool] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)

    def add(self, score: float | None, label: float) -> None:
        """A row; `score` is None where there is none."""
        self.agreed.append(score is not None and (score >= 0.5) == (label >= 0.5))
        if score is not None:
            self.apart.append(abs(score - label))

    def cells(self) -> str:
        """Rows, share agreed on with its 95 % interval, mean distance, and rows without a score."""
        values = [float(each) for each in self.agreed]
        low, high = gaffke_interval(values, np.ones(len(values)), 1.0)
        apart = f"{np.mean(self.apart):.3f}" if self.apart else "-"
        without = len(self.agreed) - len(self.apart)
        return f"{len(values)} | {np.mean(values):.3f} ({low:.3f} to {high:.3f}) | {apart} | {without}"


def choices(judge: OpenAIJudgeConfig) -> Mapping[str, PromptVersion | PromptFiles]:
    """What is compared."""
    own = {"own": judge.prompts} if isinstance(judge.prompts, PromptFiles) else {}
    return {"v1": "v1", "v2": "v2", **own}


def labelled(file: Path) -> list[ScoreRow]:
    """The rows that have labels; UsageError for a broken one."""
    refused: list[UsageError] = []
    rows = [row for row in read_rows(file, refused.append) if row.given.get("labels")]
    if refused:
        raise refused[0]
    return rows


async def asked(config: Config, rows: Sequence[ScoreRow]) -> list[Result]:
    """What the judge of this configuration says of the rows."""
    scorer = Scorer(config, config.measures, CollectorRegistry())
    try:
        await scorer.judge.probe()
        ask = partial(evaluate_all, evaluators=scorer.evaluators, judge=scorer.judge, clock=time.time)
        results: list[Result] = []
        for at in range(0, len(rows), _GROUP):
            results += await gather([partial(ask, row.interaction) for row in rows[at : at + _GROUP]])
        return results
    finally:
        await scorer.close()


def agreements(rows: Sequence[ScoreRow], results: Sequence[Result]) -> dict[str, Agreement]:
    """By measure, over the rows that have a label for it."""
    found: dict[str, Agreement] = {}
    for row, result in zip(rows, results, strict=True):
        for evaluation in result.evaluations:
            label = row.given["labels"].get(evaluation.measure)
            if label is not None:
                score = evaluation.value if isinstance(evaluation, Score) else None
                found.setdefault(evaluation.measure, Agreement()).add(score, float(label))
    return found


def spent(name: str, usages: Sequence[Usage]) -> str:
    """Calls, tokens and money in a line."""
    costs = [usage.cost for usage in usages]
    money = "unknown (judge.price)" if None in costs else f"{sum(cost or 0.0 for cost in costs):.4g}"
    calls, read, written = (sum(getattr(u, key) for u in usages) for key in ("calls", "input_tokens", "output_tokens"))
    return f"{name}: {calls} calls, {read} tokens in, {written} out, cost {money}"


async def compared(config: Config, rows: Sequence[ScoreRow]) -> Iterator[str]:
    """The table in Markdown, then what each version cost. ValueError without a judge to ask or without labels."""
    judge = config.judge
    if not isinstance(judge, OpenAIJudgeConfig) or not rows:
        raise ValueError("a judge of kind openai and rows with labels expected")
    lines = [
        "| prompts | measure | rows | agreed on (95 %) | mean distance | without a score |",
        "|---|---|---|---|---|---|",
    ]
    costs = []
    for name, prompts in choices(judge).items():
        chosen = config.model_copy(update={"judge": judge.model_copy(update={"prompts": prompts})})
        results = await asked(chosen, rows)
        lines += [f"| {name} | {measure} | {each.cells()} |" for measure, each in agreements(rows, results).items()]
        costs.append(spent(name, [result.usage for result in results]))
    return iter([*lines, "", *costs])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--limit", type=int, help="rows")
    options = parser.parse_args()
    rows = labelled(options.rows)[: options.limit]
    for line in asyncio.run(compared(load(options.config), rows)):
        print(line)


if __name__ == "__main__":
    main()
