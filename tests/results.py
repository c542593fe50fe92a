"""Results as the evaluators make them, for tests of what becomes of them."""

from __future__ import annotations

from typing import Any

from tracescore.model import Evaluation, Interaction, Result, Score

NOW = 1_800_000_000.0


class SettableClock:
    """Unix seconds that move only when a test moves them."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def interaction(number: int = 1, *, ended: float = NOW - 10, **fields: Any) -> Interaction:
    """A complete interaction that ended at `ended`; `number` makes its ids."""
    known: dict[str, Any] = {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "state": "complete",
        "question": "How long is the return window?",
        "answer": "30 days.",
        "service": "shop",
        "release": "1.4.2",
        "environment": "production",
        "start_unix_nano": int((ended - 2) * 1e9),
        "end_unix_nano": int(ended * 1e9),
    }
    return Interaction(**(known | fields))


def result(*evaluations: Evaluation, number: int = 1, finished: float = NOW, **fields: Any) -> Result:
    """A result of the judge `embedded-v2`."""
    return Result(interaction(number, **fields), evaluations, "embedded-v2", epoch=0, finished=finished)


def relevancy(value: float) -> Score:
    return Score("answer_relevancy", value)
