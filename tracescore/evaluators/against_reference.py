"""Two coarser ways to hold an answer against its reference, as a whole: by one verdict, or by likeness."""

from __future__ import annotations

import unicodedata
from functools import partial
from typing import Literal

from tracescore import formulas
from tracescore.embedder import Embedder
from tracescore.judge.operations import Session, Verdict, Vocabulary
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored
from tracescore.runtime import gather

NO_EMBEDDER = (
    "answer_correctness: method similarity needs an embedder; "
    "configure an embedder, or set evaluators.correctness.method to claims or verdict"
)


def plain(text: str) -> str:
    """The text without differences of case, width and white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


class ReferenceVerdict:
    """1 where the judge finds the reference in the answer and no contradiction to it, else 0.

    What the answer says beyond the reference does not count against it. The value is `details["factual"]` too.
    """

    measure: Measure = "answer_correctness"

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        answer, reference = interaction.answer or "", interaction.reference or ""
        if plain(answer) == plain(reference):
            return self._score(1.0, label="identical")
        if not answer.strip():
            return self._score(0.0, label="blank")
        question = interaction.question or ""
        (there,), (against,) = await gather(
            [
                partial(session.verify, [reference], [answer], Vocabulary.RECALL, question),
                partial(session.verify, [answer], [reference], Vocabulary.SUPPORT, question),
            ]
        )
        if there is None or against is None:
            return Unscored(self.measure, "judge_incomplete", "no verdict on the answer as a whole")
        right = there.value == "covered" and against.value != "contradicted"
        items = (_item("reference_claim", reference, there), _item("claim", answer, against))
        return self._score(float(right), items=items)

    def _score(self, value: float, label: str = "", items: tuple[Item, ...] = ()) -> Score:
        return Score(self.measure, value, label=label, items=items, details={"factual": value})


def _item(kind: Literal["claim", "reference_claim"], text: str, verdict: Verdict) -> Item:
    credit = float(verdict.value not in ("missed", "contradicted"))
    return Item(kind, text, verdict.value, verdict.quote, credit)


class ReferenceSimilarity:
    """1 where the cosine of answer and reference reaches a threshold, else 0; the cosine is `details["similarity"]`.

    Cheap, and blind to a changed number or a negation: it tells answers about something else. Raises ValueError
    without an embedder.
    """

    measure: Measure = "answer_correctness"

    def __init__(self, embedder: Embedder | None, threshold: float) -> None:
        if embedder is None:
            raise ValueError(NO_EMBEDDER)
        self._embedder, self._threshold = embedder, threshold

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:  # noqa: ARG002 - no judge needed
        """See `Evaluator`."""
        answer, reference = interaction.answer or "", interaction.reference or ""
        if not answer.strip():
            return Score(self.measure, 0.0, label="blank", details={"similarity": 0.0})
        vectors = await self._embedder.embed([answer, reference])
        cosine = formulas.cosine(vectors[0], vectors[1])
        if cosine is None:
            return Unscored(self.measure, "zero_vector")
        return Score(self.measure, float(cosine >= self._threshold), details={"similarity": cosine})
