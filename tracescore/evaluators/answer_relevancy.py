"""Whether the answer deals with the question that was asked."""

from __future__ import annotations

from functools import partial
from typing import Literal

from tracescore import formulas
from tracescore.embedder import Embedder
from tracescore.judge.operations import Relevance, Session
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored
from tracescore.runtime import gather_pair


class AnswerRelevancy:
    """Mean cosine between the stand-alone question and `n` questions that the judge reads from the answer alone.

    A judge that rates the answer beside the question itself gives the value instead. Says "on topic", never "right".
    A blank answer is 0 (label `blank`) without a call; an evasive one is 0 (label `noncommittal`), or
    Unscored(`abstained`) where abstentions are excluded.
    """

    measure: Measure = "answer_relevancy"

    def __init__(
        self, embedder: Embedder, n: int = 3, count_abstentions_as: Literal["zero", "excluded"] = "zero"
    ) -> None:
        if n < 1:
            raise ValueError(f"n: at least one question expected; got {n}")
        self._embedder = embedder
        self._n = n
        self._excluded = count_abstentions_as == "excluded"

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        question, answer = interaction.question or "", interaction.answer or ""
        if not answer.strip():
            return Score(self.measure, 0.0, label="blank")
        rated = await session.relevance(question, answer)
        generate = partial(session.reverse_questions, answer, self._n)
        if interaction.history:
            resolve = partial(session.required_parts, question, interaction.history)
            generated, required = await gather_pair(generate, resolve)
            question = required.standalone
        else:
            generated = await generate()
        if generated.noncommittal:
            items = (Item("question", text) for text in generated.questions)
            if self._excluded:
                return Unscored(self.measure, "abstained", items=tuple(items))
            return Score(self.measure, 0.0, label="noncommittal", items=tuple(items))
        if rated is not None:
            return Score(self.measure, rated.credit, items=_items(rated))
        questions = [text for text in generated.questions if text.strip()]
        if not questions:
            return Unscored(self.measure, "no_questions")
        return await self._score(question, questions)

    async def _score(self, question: str, questions: list[str]) -> Evaluation:
        vectors = await self._embedder.embed([question, *questions])
        cosines = [formulas.cosine(vector, vectors[0]) for vector in vectors[1:]]
        items = tuple(Item("question", text, credit=cos) for text, cos in zip(questions, cosines, strict=True))
        value = formulas.answer_relevancy(vectors[0], vectors[1:], noncommittal=False)
        if value is None:
            return Unscored(self.measure, "zero_vector", items=items)
        return Score(self.measure, value, items=items)


def _items(rated: Relevance) -> tuple[Item, ...]:
    """The sentence of the answer that the value is for."""
    return (Item("claim", rated.quote, credit=rated.credit),) if rated.quote else ()
