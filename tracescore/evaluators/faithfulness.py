"""Whether the answer says only what the contexts say."""

from __future__ import annotations

import math
from functools import partial

from tracescore import formulas
from tracescore.evaluators.grounding import grounded
from tracescore.evaluators.incomplete import incomplete
from tracescore.judge.operations import Session, Vocabulary
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored
from tracescore.runtime import gather_pair


class Faithfulness:
    """Claims of the answer that the contexts support, over all claims submitted; a graded one counts its credit.

    `details["contradicted"]` is the share of claims that the contexts contradict, `details["windows"]` how many
    different parts of them claims were judged against: 1 where the judge reads all of them at once,
    `details["traceable"]` the share of claims that are supported with words of a passage, and `details["uncovered"]`
    how many sentences of the answer the judge passed over, asked again or not. An answer
    that evades claims nothing about the world and is Unscored(`abstained`); whether it evades is the same question,
    asked once, that answer_relevancy asks, so `n` should be the same.
    """

    measure: Measure = "faithfulness"

    def __init__(self, n: int = 3) -> None:
        self._n = n

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        question, answer = interaction.question or "", interaction.answer or ""
        contexts = [context for context in interaction.contexts if context.strip()]
        if not answer.strip():
            return Unscored(self.measure, "no_claims")
        reading, claims = await gather_pair(
            partial(session.reverse_questions, answer, self._n), partial(session.claims, question, answer)
        )
        if reading.noncommittal:
            return Unscored(self.measure, "abstained")
        if not claims:
            return Unscored(self.measure, "no_claims")
        verdicts = await session.verify(claims, contexts, Vocabulary.SUPPORT, question)
        items = grounded("claim", claims, verdicts, interaction)
        windows = len({verdict.window for verdict in verdicts if verdict})
        return self._of(items, {"windows": windows, "uncovered": claims.uncovered})

    def _of(self, items: tuple[Item, ...], beside: dict[str, float]) -> Evaluation:
        if (unscored := incomplete(self.measure, items, "claims")) is not None:
            return unscored
        count = len(items)
        supported = math.fsum(item.credit or 0.0 for item in items)
        contradicted = sum(item.verdict == "contradicted" for item in items)
        value = formulas.faithfulness(supported, count)
        if value is None:
            return Unscored(self.measure, "no_claims")
        traceable = sum(item.verdict == "supported" and item.passage is not None for item in items) / count
        details = {"contradicted": contradicted / count, "traceable": traceable, "claims": count, **beside}
        return Score(self.measure, value, items=items, details=details)
