"""How the embedded judge scores a fixed table of rows: `python -m tests.benchmarks.behaviour` writes it down.

What it published for `tests/unit/data/embedded_written.jsonl` stands in `embedded_behaviour.json` beside it, and the
hash of that in the package, as the number of the rules: it is part of the judge's fingerprint, so that a judge whose
rules were changed is another judge. A test fails as long as the values are others than those written down.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.local_judge import embedder, judge
from tracescore.config import EvaluatorsConfig
from tracescore.evaluators import build_evaluators, evaluate_all
from tracescore.judge import embedded
from tracescore.model import Interaction, Measure, Score

DATA = Path(__file__).parents[1] / "unit" / "data"
BEHAVIOUR = DATA / "embedded_behaviour.json"
NUMBER = Path(embedded.__file__).parent / "behaviour.txt"
LIVE: tuple[Measure, ...] = ("answer_relevancy", "completeness", "faithfulness")
Row = Mapping[str, Any]
Values = dict[str, dict[str, float | None]]
"""By row and measure; None where there is no score."""
TOLERANCE = 0.005
"""How far a value may lie from the one written down: processors round differently."""


def written() -> list[Row]:
    """The rows: a question, an answer, and contexts or a reference, each with what is expected of its scores."""
    return [json.loads(line) for line in (DATA / "embedded_written.jsonl").read_text(encoding="utf-8").splitlines()]


def published(rows: Sequence[Row]) -> Values:
    """What the judge that comes with tracescore publishes for the rows; of correctness the factual part."""
    return asyncio.run(_published(rows))


async def _published(rows: Sequence[Row]) -> Values:
    found: Values = {}
    for row in rows:
        measures: tuple[Measure, ...] = ("answer_correctness",) if "reference" in row else LIVE
        evaluators = build_evaluators(measures, EvaluatorsConfig(), embedder())
        texts = {"question": row["question"], "answer": row["answer"], "contexts": tuple(row.get("contexts", ()))}
        asked = Interaction("", row["id"], "complete", **texts, reference=row.get("reference"))
        result = await evaluate_all(asked, evaluators, judge(), time.time)
        found[row["id"]] = {
            each.measure: round(each.details.get("factual", each.value), 3) if isinstance(each, Score) else None
            for each in result.evaluations
        }
    return found


def number(values: Values) -> str:
    """Eight hex digits for the values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def known() -> Values:
    """What is written down."""
    values: Values = json.loads(BEHAVIOUR.read_text(encoding="utf-8"))
    return values


def moved(values: Values, before: Values) -> list[str]:
    """The rows with a value that is not the one written down."""
    return [key for key, scores in values.items() if not _same(scores, before.get(key, {}))]


def _same(scores: Mapping[str, float | None], before: Mapping[str, float | None]) -> bool:
    return scores.keys() == before.keys() and all(
        (value is None) == (before[name] is None) and abs((value or 0.0) - (before[name] or 0.0)) <= TOLERANCE
        for name, value in scores.items()
    )


def main() -> None:
    """Writes values and number, unless nothing moved."""
    values = published(written())
    if BEHAVIOUR.exists() and not moved(values, known()) and values.keys() == known().keys():
        return
    BEHAVIOUR.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    NUMBER.write_text(number(values) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
