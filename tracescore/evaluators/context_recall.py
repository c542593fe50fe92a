"""Whether the passages say what the reference says."""

from __future__ import annotations

import math

from tracescore import formulas
from tracescore.evaluators.grounding import grounded
from tracescore.evaluators.incomplete import incomplete
from tracescore.judge.operations import Session, Vocabulary
from tracescore.model import Evaluation, Interaction, Measure, Score, Unscored


class ContextRecall:
    """Claims of the reference that the passages support, over all of its claims.

    `details["contradicted"]` is the share that they contradict: a stale passage does not support the reference either,
    so recall alone cannot tell it from a missing one. Source: RAGAS `LLMContextRecall`.
    """

    measure: Measure = "context_recall"

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        question, reference = interaction.question or "", interaction.reference or ""
        claims = await session.claims(question, reference)
        if not claims:
            return Unscored(self.measure, "no_reference_claims")
        contexts = [context for context in interaction.contexts if context.strip()]
        verdicts = await session.verify(claims, contexts, Vocabulary.SUPPORT, question)
        items = grounded("reference_claim", claims, verdicts, interaction)
        if (unscored := incomplete(self.measure, items, "claims")) is not None:
            return unscored
        count = len(items)
        supported = math.fsum(item.credit or 0.0 for item in items)
        contradicted = sum(item.verdict == "contradicted" for item in items) / count
        value = formulas.coverage(supported, count) or 0.0
        return Score(self.measure, value, items=items, details={"contradicted": contradicted, "claims": count})
