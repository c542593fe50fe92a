"""How good the embedded judge is on labelled samples: `python -m tests.benchmarks.embedded DIR [--every N]`.

DIR holds JSON lines files with a `task` and a `label` each row: faithfulness (context, answer), correctness
(question, reference, answer), relevancy (question, answer), completeness (question, answer), decompose (question,
n_parts). AUC is the chance that a good row scores above a bad one; it needs scores, so the inner ones are used
where the judge's operations give a word only. Balanced accuracy is that of the words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracescore import formulas
from tracescore.config import EmbeddedJudgeConfig, MiniLMEmbedderConfig
from tracescore.embedder.minilm import MiniLMEmbedder
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.embedded.sentences import claims
from tracescore.judge.embedded.steps import Steps, advance
from tracescore.judge.embedded.support import Support
from tracescore.judge.embedded.terms import words
from tracescore.judge.embedded.verdicts import supports
from tracescore.judge.operations import Vocabulary

Row = dict[str, Any]
CREDITS = {"covered": 1.0, "partial": 0.5, "missing": 0.0}


def auc(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Chance that a row labelled 1 scores above one labelled 0; half a chance for a tie."""
    s, y = np.asarray(scores), np.asarray(labels)
    good, bad = s[y == 1][:, None], s[y == 0][None, :]
    return float((good > bad).mean() + (good == bad).mean() / 2)


def balanced(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Mean of the shares found right among good and bad rows, at the score 1."""
    s, y = np.asarray(scores) >= 1, np.asarray(labels) == 1
    return float((s[y].mean() + (~s[~y]).mean()) / 2)


def finish(steps: Steps[list[Support]]) -> list[Support]:
    """What all steps come to, taken at once."""
    while (done := advance(steps)) is None:
        pass
    return done[0]


class Bench:
    """The judge and its model, asked by blocking calls."""

    def __init__(self) -> None:
        self.embedder = MiniLMEmbedder(MiniLMEmbedderConfig())
        self.judge = EmbeddedJudge(EmbeddedJudgeConfig(), self.embedder)

    def support(self, row: Row) -> tuple[float, float]:
        """Mean support of the claims by their length, and the share that is supported."""
        found = claims(row["answer"])
        support = finish(supports(found, [row["context"]], row.get("question", ""), self.embedder, compared=False))
        weights = [max(1, len(words(claim))) for claim in found]
        score = float(np.average([s.score for s in support], weights=weights))
        return score, formulas.faithfulness(sum(s.supported for s in support), len(found)) or 0.0

    def recall(self, row: Row) -> tuple[float, float]:
        """Best support of one of the alternatives of the reference by the answer."""
        names = row["reference"].split("/")
        found = finish(supports(names, [row["answer"]], row["question"], self.embedder, compared=True))
        best = max(found, key=lambda s: s.score)
        return best.score, float(best.supported)

    def relevancy(self, row: Row) -> tuple[float, float]:
        """The measure itself."""
        reply = asyncio.run(self.judge.session("").reverse_questions(row["answer"], 3))
        if not reply.questions:
            return 0.0, 0.0
        vectors = asyncio.run(self.embedder.embed([row["question"], *reply.questions]))
        score = formulas.answer_relevancy(vectors[0], vectors[1:], reply.noncommittal) or 0.0
        return score, float(score >= 0.5)

    def completeness(self, row: Row) -> float:
        """The measure itself."""
        session = self.judge.session("")
        parts = asyncio.run(session.required_parts(row["question"], ())).parts
        verdicts = asyncio.run(session.verify(parts, [row["answer"]], Vocabulary.COVERAGE, row["question"]))
        return formulas.completeness([CREDITS[v.value] for v in verdicts if v]) or 0.0

    def parts(self, row: Row) -> int:
        """How many parts the question is split into."""
        return len(asyncio.run(self.judge.session("").required_parts(row["question"], ())).parts)


def ranked(name: str, rows: Sequence[Row], score: Callable[[Row], tuple[float, float]]) -> None:
    """One line of the table: AUC and balanced accuracy."""
    started = time.process_time()
    scores, decided = zip(*map(score, rows), strict=True)
    labels = [row["label"] for row in rows]
    cost = (time.process_time() - started) / len(rows) * 1000
    ranks, decides = auc(scores, labels), balanced(decided, labels)
    print(f"{name:32} {len(rows):4}  AUC {ranks:.3f}  balanced {decides:.3f}  {cost:5.0f} ms")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every Nth row only")
    options = parser.parse_args()
    rows: dict[str, list[Row]] = defaultdict(list)
    for path in sorted(options.folder.glob("*.jsonl")):
        for line in list(path.open())[:: options.every]:
            row = json.loads(line)
            kind = row.get("perturbation", "")
            rows[f"{row['task']} {kind}" if kind else row["task"]].append(row)
    bench = Bench()
    for name, found in rows.items():
        task = name.split()[0]
        if task == "faithfulness":
            ranked(name, found, bench.support)
        elif task == "correctness":
            ranked(name, found, bench.recall)
        elif task == "relevancy":
            ranked(name, found, bench.relevancy)
        elif task == "completeness":
            error = np.mean([abs(bench.completeness(row) - row["label"]) for row in found])
            print(f"{name:32} {len(found):4}  mean absolute error {error:.3f}")
        elif task == "decompose":
            right = sum(bench.parts(row) == row["n_parts"] for row in found)
            print(f"{name:32} {len(found):4}  parts right {right} of {len(found)}")
    asyncio.run(bench.embedder.close())


if __name__ == "__main__":
    main()
