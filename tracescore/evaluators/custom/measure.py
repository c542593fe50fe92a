"""What all measures of the user's own have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tracescore.judge.operations import Session
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored


class OwnMeasure(ABC):
    """A measure of the user's own, from its section of the configuration.

    `reads` are the fields of an Interaction that it sees, and it sees no others. `version` changes when its scores
    begin to mean something else, and `judge` names what scores it where that is not the judge.
    """

    kind = ""

    def __init__(self, measure: Measure, reads: Sequence[str], version: str, judge: str = "") -> None:
        self.measure, self.reads, self.version, self.judge = measure, tuple(reads), version, judge

    @abstractmethod
    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""

    async def close(self) -> None:
        """Releases what it holds, if it holds anything; may be called twice."""
        return

    def texts(self, interaction: Interaction) -> dict[str, Any]:
        """The fields that it reads: texts, a list of passages, and turns with `role` and `text`."""
        given = {
            "question": interaction.question,
            "answer": interaction.answer,
            "contexts": [text for text in interaction.contexts if text.strip()],
            "history": [{"role": turn.role, "text": turn.text} for turn in interaction.history],
            "reference": interaction.reference,
        }
        return {field: given[field] for field in self.reads}

    def scored(self, value: float | None, reason: str = "", label: str = "") -> Evaluation:
        """A score with its reason as evidence; without a value the measure does not apply."""
        if value is None:
            return Unscored(self.measure, "not_applicable", reason)
        items = (Item("reason", reason, label, credit=value),) if reason or label else ()
        return Score(self.measure, value, items=items)
