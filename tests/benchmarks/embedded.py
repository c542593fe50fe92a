"""How good the embedded judge is: `python -m tests.benchmarks.embedded DIR FOLDER [--sets a,b] [--limit N]`.

DIR holds labelled sets as `fit_embedded.py` describes them, FOLDER the coefficients that it wrote with `--each`: every
set is scored with those that were fitted without it. Prints the table of docs/embedded-judge.md: for the value that
is published, the AUC with its bootstrap 95 % interval, the mean of the good and of the bad rows, the AUC of the cosine
of MiniLM and of the overlap of content words on the same rows, and how far the AUC lies above the better of these.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.fit_embedded import passages
from tests.local_judge import embedder
from tracescore.config import EmbeddedJudgeConfig, EvaluatorsConfig
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.embedded.sentences import sentences
from tracescore.judge.embedded.terms import words
from tracescore.model import Interaction, Measure, Score

Row = dict[str, Any]
MEASURES: Mapping[str, tuple[Measure, str]] = {
    "faithfulness": ("faithfulness", ""),
    "relevancy": ("answer_relevancy", ""),
    "completeness": ("completeness", ""),
    "correctness": ("answer_correctness", "factual"),
}
"""The measure of a task, and the detail that is looked at instead of the value."""
ROUNDS = 1000


def auc(good: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Chance that a good row scores above a bad one; half a chance for a tie and for a row without a value."""
    a, b = scores[good][:, None], scores[~good][None, :]
    missing = np.isnan(a) | np.isnan(b)
    return float(np.where(missing, 0.5, (a > b) + (a == b) / 2).mean())


def interval(good: NDArray[np.bool_], scores: NDArray[np.float64], other: NDArray[np.float64] | None = None) -> str:
    """Bootstrap 95 % interval of the AUC, or of how far it lies above that of `other` on the same rows."""
    rng, found = np.random.default_rng(14), []
    for _ in range(ROUNDS):
        drawn = rng.integers(0, len(good), len(good))
        if 0 < good[drawn].sum() < len(good):
            less = 0.0 if other is None else auc(good[drawn], other[drawn])
            found.append(auc(good[drawn], scores[drawn]) - less)
    low, high = np.percentile(found, [2.5, 97.5])
    return f"{low:.2f} to {high:.2f}"


async def published(rows: Sequence[Row], task: str, judge: EmbeddedJudge) -> NDArray[np.float64]:
    """The published value of each row; nan where there is none."""
    measure, detail = MEASURES[task]
    evaluators = build_evaluators([measure], EvaluatorsConfig(), embedder())
    found = []
    for number, row in enumerate(rows):
        texts = {"question": row.get("question") or "What does the text say?", "answer": row["answer"]}
        contexts = tuple(passages(row)) if task == "faithfulness" else ()
        asked = Interaction("", str(number), "complete", **texts, contexts=contexts, reference=row.get("reference"))
        (score,) = (await evaluate_all(asked, evaluators, judge, time.time)).evaluations
        scored = isinstance(score, Score)
        found.append((score.details[detail] if detail else score.value) if scored else float("nan"))
    return np.array(found)


def sides(task: str, row: Row) -> tuple[list[str], list[str]]:
    """What the baselines compare: texts whose words or meaning should be found in the others."""
    if task == "faithfulness":
        return list(sentences(row["answer"])), [each for text in passages(row) for each in sentences(text)]
    return [row["reference" if task == "correctness" else "question"]], [row["answer"]]


def baselines(task: str, rows: Sequence[Row]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean cosine with the nearest text, and share of the content words that are found."""
    near, shared = [], []
    for row in rows:
        a, b = sides(task, row)
        x, y = (np.stack([each.vector for each in embedder().encode(texts)]) for texts in (a, b))
        near.append(float((x @ y.T).max(axis=1).mean()))
        known = {w.folded for text in b for w in words(text)}
        said = [w.folded for text in a for w in words(text) if not w.is_function]
        shared.append(sum(word in known for word in said) / max(1, len(said)))
    return np.array(near), np.array(shared)


def line(name: str, rows: Sequence[Row], coefficients: Path) -> str:
    """One row of the table, in Markdown."""
    task = rows[0]["task"]
    settings = EmbeddedJudgeConfig(coefficients=str(coefficients) if coefficients.exists() else None)
    scores = asyncio.run(published(rows, task, EmbeddedJudge(settings, embedder())))
    whole = 0.75 if any(row["label"] == 0.5 for row in rows) else 0.5
    good = np.array([row["label"] >= whole for row in rows])
    near, shared = baselines(task, rows)
    means, better = (np.nanmean(scores[good]), np.nanmean(scores[~good])), max(near, shared, key=lambda b: auc(good, b))
    over = auc(good, scores) - auc(good, better)
    return (
        f"| {name} | {len(rows)} | {np.isnan(scores).mean():.1%} | {auc(good, scores):.3f} ({interval(good, scores)}) "
        f"| {means[0]:.2f} / {means[1]:.2f} | {auc(good, near):.3f} | {auc(good, shared):.3f} "
        f"| {over:+.3f} ({interval(good, scores, better)}) |"
    )


def main() -> None:
    """Prints the table, a line as soon as its set is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("coefficients", type=Path)
    parser.add_argument("--sets", default="", help="beginnings of names, with commas")
    parser.add_argument("--limit", type=int, help="rows of each set")
    options = parser.parse_args()
    print("| set | n | without a value | AUC | mean of good / bad | cosine | words | over the better |")
    print("|---|---|---|---|---|---|---|---|")
    for path in sorted(options.folder.glob("*.jsonl")):
        if path.stem.startswith(tuple(options.sets.split(","))):
            rows = [json.loads(text) for text in path.open()][: options.limit]
            if rows[0].get("task") in MEASURES:
                print(line(path.stem, rows, options.coefficients / f"without-{path.stem}.json"), flush=True)


if __name__ == "__main__":
    main()
