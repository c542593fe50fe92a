"""Runs and sets as gold tests need them, and a way to score that knows the values beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.results import SettableClock
from tracescore.config.gold import GoldConfig
from tracescore.gold.results import ItemOutcome, Run
from tracescore.gold.runner import GoldRunner
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Evaluation, Interaction, Result, Score, Unscored

JUDGE = "scripted"


def write_set(file: Path, count: int = 12, **fields: Any) -> Path:
    """Questions q0, q1, ..., each of which is answered rightly by its own name."""
    rows = [{"id": f"i{n:02}", "question": f"q{n}", "reference": f"q{n}", **fields} for n in range(count)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


async def evaluate(interaction: Interaction) -> Result:
    """Right answers repeat their reference; what the judge cannot do is said in the answer (`unscored: REASON`)."""
    answer = interaction.answer or ""
    right = float(answer == interaction.reference)
    correctness: Evaluation = Score("answer_correctness", right, details={"factual": right, "similarity": 0.5})
    if answer.startswith("unscored: "):
        correctness = Unscored("answer_correctness", answer.removeprefix("unscored: "))  # type: ignore[arg-type]
    others = (Score("answer_relevancy", 1.0), Score("faithfulness", 1.0))
    return Result(interaction, (correctness, *others), JUDGE, epoch=1)


def runner(file: Path, target: Mapping[str, Any], clock: SettableClock | None = None, **settings: Any) -> GoldRunner:
    """The runner of the set in `file`, open, with its store beside it."""
    known = {"set": str(file), "store": str(file.parent / "runs"), "target": dict(target), "retries": 0} | settings
    made = GoldRunner(
        GoldConfig.model_validate(known), None, GoldTraceIds("salt"), JUDGE, evaluate, clock or SettableClock()
    )
    made.open()
    return made


def outcome(number: int, value: float | None, **fields: Any) -> ItemOutcome:
    """Item `number` with this factual part; None: not scored."""
    values = {} if value is None else {"factual": value, "answer_correctness": value}
    known: dict[str, Any] = {"mark": "m", "question": f"q{number}", "reference": "r", "values": values}
    known |= {"outcome": "unanswered" if value is None else "scored", "reason": "timeout" if value is None else ""}
    return ItemOutcome(id=f"i{number:02}", **known | fields)


def run(values: Sequence[float | None], number: int = 1, **fields: Any) -> Run:
    """A good run whose items have these values."""
    known: dict[str, Any] = {"gold_set": "faq", "hash": "h", "service": "shop", "release": "1", "judge": JUDGE}
    known |= {"trigger": "hand", "started": 0.0, "finished": 1.0, "state": "done", "size": len(values)}
    known |= {"outcomes": tuple(outcome(place, value) for place, value in enumerate(values))}
    return Run(id=number, **known | fields)
