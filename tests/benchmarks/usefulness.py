"""How well the embedded judge tells useful passages: `python -m tests.benchmarks.usefulness DIR [--limit N]`.

DIR holds labelled sets as `fit_embedded.py` describes them. A passage that people found to support an answer fully (or
an answer that they found correct) is useful for its question; the passage of the question most like it in meaning is
not. `joined` puts two supported sentences into one reference, so that each passage holds half of it; `wrong answers`
are answers to the question itself that people found incorrect. Prints the table of docs/embedded-judge.md: the share of
useful and of other passages that the judge calls useful, the AUC of that word with its bootstrap interval, and the AUC
of the cosine of MiniLM and of the overlap of content words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.embedded import auc, interval
from tests.benchmarks.fit_embedded import passages
from tests.local_judge import embedder
from tracescore.config import EmbeddedJudgeConfig
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.embedded.sentences import sentences
from tracescore.judge.embedded.terms import words

Row = dict[str, Any]


class Labelled(NamedTuple):
    """A passage beside a question and, on a gold set, a reference; whether it holds something that is needed."""

    question: str
    reference: str
    passage: str
    useful: bool


def nearest(texts: Sequence[str]) -> list[int]:
    """For each text the other one that is most like it and not the same."""
    vectors = np.stack([each.vector for each in embedder().encode(list(texts))])
    near = vectors @ vectors.T
    near[near > 0.98] = -1
    return [int(i) for i in near.argmax(axis=1)]


def joined(reference: str, other: str) -> str:
    """Two sentences as one."""
    return f"{reference.rstrip(' .')}, and {other[:1].lower()}{other[1:]}"


def by_question(rows: Sequence[Row]) -> Iterator[Labelled]:
    """Without a reference, as on live traffic: what answers the question beside what answers the one most like it."""
    kept = [row for row in rows if row["label"] == 1]
    for row, other in zip(kept, nearest([row["question"] for row in kept]), strict=True):
        yield Labelled(row["question"], "", _text(row), True)
        yield Labelled(row["question"], "", _text(kept[other]), False)


def by_reference(rows: Sequence[Row]) -> Iterator[Labelled]:
    """With a reference: the passage that supports it beside the one that is most like it."""
    kept = [row for row in rows if row["label"] == 1]
    for row, other in zip(kept, nearest([row["answer"] for row in kept]), strict=True):
        yield Labelled(row.get("question", ""), row["answer"], _text(row), True)
        yield Labelled(row.get("question", ""), row["answer"], _text(kept[other]), False)


def by_half(rows: Sequence[Row]) -> Iterator[Labelled]:
    """With a reference that two passages hold together: each of them beside the one that is most like it."""
    kept = [row for row in rows if row["label"] == 1]
    near = nearest([row["answer"] for row in kept])
    for i in range(0, len(kept) - 1, 2):
        reference = joined(kept[i]["answer"], kept[i + 1]["answer"])
        for k in (i, i + 1):
            yield Labelled("", reference, _text(kept[k]), True)
            if near[k] not in (i, i + 1):
                yield Labelled("", reference, _text(kept[near[k]]), False)


def by_correctness(rows: Sequence[Row]) -> Iterator[Labelled]:
    """With a reference: answers to the same question that people found correct and incorrect."""
    return (Labelled(row["question"], row["reference"], row["answer"], row["label"] == 1) for row in rows)


def _text(row: Row) -> str:
    return "\n".join(passages(row)) if row["task"] == "faithfulness" else str(row["answer"])


SETS = {
    "question: answers of EVOUNA": ("relevancy_evouna_shuffled", by_question),
    "question: passages of ExpertQA": ("faithfulness_expertqa", by_question),
    "question: passages of BEGIN (Wizard of Wikipedia)": ("faithfulness_begin_wow", by_question),
    "reference: wrong answers of EVOUNA": ("correctness_evouna", by_correctness),
    "reference: passages of ExpertQA": ("faithfulness_expertqa", by_reference),
    "reference: passages of BEGIN (Wizard of Wikipedia)": ("faithfulness_begin_wow", by_reference),
    "reference: passages of BEGIN (CMU)": ("faithfulness_begin_cmu", by_reference),
    "reference joined of two: BEGIN (Wizard of Wikipedia)": ("faithfulness_begin_wow", by_half),
    "reference joined of two: BEGIN (CMU)": ("faithfulness_begin_cmu", by_half),
}


async def judged(rows: Sequence[Labelled], judge: EmbeddedJudge) -> list[float]:
    """1 for useful, 0 for not, nan where there is no verdict."""
    found = []
    for row in rows:
        (verdict,) = await judge.session("").usefulness([row.passage], row.question, "", row.reference)
        found.append(verdict.credit if verdict else float("nan"))
    return found


def baselines(row: Labelled) -> tuple[float, float]:
    """Cosine with the nearest sentence of the passage, and the share of content words found in it."""
    needed = row.reference or row.question
    told = list(sentences(row.passage)) or [row.passage]
    (asked,), found = embedder().encode([needed]), embedder().encode(told)
    known = {word.folded for word in words(row.passage)}
    said = [word.folded for word in words(needed) if not word.is_function]
    return max(float(asked.vector @ each.vector) for each in found), sum(w in known for w in said) / max(1, len(said))


def main() -> None:
    """Prints the table, a line as soon as its set is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, help="rows of each set")
    options = parser.parse_args()
    judge = EmbeddedJudge(EmbeddedJudgeConfig(), embedder())
    print("| needed by | n | useful, of good / bad | AUC | cosine | words |\n|---|---|---|---|---|---|")
    for name, (file, build) in SETS.items():
        rows = list(build([json.loads(line) for line in (options.folder / f"{file}.jsonl").open()]))[: options.limit]
        good = np.array([row.useful for row in rows])
        scores = np.array(asyncio.run(judged(rows, judge)))
        near, shared = np.array([baselines(row) for row in rows]).T
        print(
            f"| {name} | {len(rows)} | {np.nanmean(scores[good]):.0%} / {np.nanmean(scores[~good]):.0%} "
            f"| {auc(good, scores):.2f} ({interval(good, scores)}) | {auc(good, near):.2f} | {auc(good, shared):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
