"""Whether the passages that a right answer needs were ranked first."""

from __future__ import annotations

import math

from tracescore import formulas
from tracescore.evaluators.grounding import document_of
from tracescore.judge.operations import Session, Verdict
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored


class ContextPrecision:
    """Average precision over the passages of a retrieval, by whether each holds something that a right answer needs.

    Where several retrievals ran it is the mean of theirs. The judge is asked about the question, and the answer only
    helps to understand it, so an answer that misses its question does not make the retriever look bad; a reference
    says what is needed where there is one. A passage that the retriever should have found and did not is seen by
    context_recall alone. `details["useful"]` is the share of useful passages.

    Source: RAGAS `LLMContextPrecisionWithoutReference` (and, on a gold set, `...WithReference`), which asks whether the
    passage was useful to arrive at the given answer.
    """

    measure: Measure = "context_precision"

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        places = [place for place, text in enumerate(interaction.contexts) if text.strip()]
        passages = [interaction.contexts[place] for place in places]
        answer = "" if "answer" in interaction.unusable else interaction.answer or ""
        told = interaction.question or "", answer, interaction.reference or ""
        verdicts = dict(zip(places, await session.usefulness(passages, *told), strict=True))
        rankings = interaction.rankings or (tuple(places),)
        kept = [[place for place in ranking if place in verdicts] for ranking in rankings]
        items = tuple(_item(place, verdict, interaction) for place, verdict in verdicts.items())
        return self._of(verdicts, [ranking for ranking in kept if ranking], items)

    def _of(
        self, verdicts: dict[int, Verdict | None], rankings: list[list[int]], items: tuple[Item, ...]
    ) -> Evaluation:
        useful = {place: bool(verdict and verdict.credit) for place, verdict in verdicts.items()}
        missing = [place for place, verdict in verdicts.items() if verdict is None]
        lo = _mean_precision(useful, rankings)
        if missing:
            hi = _mean_precision(useful | dict.fromkeys(missing, True), rankings)
            detail = f"{len(missing)} of {len(verdicts)} passages without a verdict"
            return Unscored(self.measure, "judge_incomplete", detail, lo, hi, items)
        details = {"useful": sum(useful.values()) / len(useful), "passages": len(useful)}
        return Score(self.measure, lo, items=items, details=details)


def _mean_precision(useful: dict[int, bool], rankings: list[list[int]]) -> float:
    found = [formulas.average_precision([useful[place] for place in ranking]) or 0.0 for ranking in rankings]
    return math.fsum(found) / len(found)


def _item(place: int, verdict: Verdict | None, interaction: Interaction) -> Item:
    name, document = f"passage {place + 1}", document_of(place, interaction)
    if verdict is None:
        return Item("passage", name, passage=place, document=document)
    return Item("passage", name, verdict.value, verdict.quote, verdict.credit, place, document)
