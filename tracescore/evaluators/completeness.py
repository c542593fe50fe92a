"""Whether the answer contains everything that was asked for."""

from __future__ import annotations

from tracescore import formulas
from tracescore.evaluators.incomplete import incomplete
from tracescore.judge.operations import Session, Vocabulary
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored

STRICT = 0.75
"""Credit from which a part counts as covered where partly is not enough."""


class Completeness:
    """Mean credit over the parts that the question requires, which the judge lists without seeing the answer.

    Where the interaction brings its required parts along, those count. `details["strict"]` counts a partly
    covered part as missing: 1 for a credit of STRICT and more, else 0.
    """

    measure: Measure = "completeness"

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`. Whether what the answer tells is true does not matter here."""
        question, answer = interaction.question or "", interaction.answer or ""
        if not answer.strip():
            return Score(self.measure, 0.0, label="blank", details={"strict": 0.0})
        parts, standalone = interaction.required, question
        if not parts:
            required = await session.required_parts(question, interaction.history)
            parts, standalone = required.parts, required.standalone
        if not parts:
            return Unscored(self.measure, "no_parts")
        verdicts = await session.verify(parts, [answer], Vocabulary.COVERAGE, standalone)
        items = tuple(
            Item("part", part, verdict.value, verdict.quote, verdict.credit) if verdict else Item("part", part)
            for part, verdict in zip(parts, verdicts, strict=True)
        )
        return self._of(items)

    def _of(self, items: tuple[Item, ...]) -> Evaluation:
        if (unscored := incomplete(self.measure, items, "parts")) is not None:
            return unscored
        known = [item.credit for item in items if item.credit is not None]
        value = formulas.completeness(known)
        strict = formulas.completeness([float(credit >= STRICT) for credit in known])
        if value is None or strict is None:
            return Unscored(self.measure, "no_parts")
        return Score(self.measure, value, items=items, details={"strict": strict, "parts": len(items)})
