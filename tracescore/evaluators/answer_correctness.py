"""Whether the answer says what the reference says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tracescore import formulas
from tracescore.embedder import Embedder
from tracescore.evaluators.against_reference import plain
from tracescore.judge.operations import Session, Verdict, Vocabulary
from tracescore.model import Evaluation, Interaction, Item, Measure, Score, Unscored
from tracescore.runtime import gather

NO_EMBEDDER = (
    "answer_correctness: weights [{0:g}, {1:g}] need an embedder for the similarity; "
    "configure an embedder, or set the weights to [1, 0] for the factual part alone"
)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Claims by their verdicts, expected counts where these are graded; `open` ones have none."""

    good: float
    bad: float
    open: int


class AnswerCorrectness:
    """Weighted mean of a factual F measure over claims of both sides and the cosine of the two texts.

    `details` holds `factual`, `similarity`, `tp`, `fp`, `fn` and `coverage`, the share of the reference's claims that
    the answer makes. Similarity lifts a wrong answer: alert on `factual`. Raises ValueError for weights or a beta
    that cannot be used, and for a second weight without embedder.
    """

    measure: Measure = "answer_correctness"

    def __init__(
        self, embedder: Embedder | None = None, weights: Sequence[float] = (0.75, 0.25), beta: float = 1.0
    ) -> None:
        self._weights = formulas.check_weights(weights)
        formulas.f_beta(0, 0, 0, beta)  # refuses what is no finite number
        if beta < 0:
            raise ValueError(f"beta: a number >= 0 expected; got {beta!r}")
        if self._weights[1] > 0 and embedder is None:
            raise ValueError(NO_EMBEDDER.format(*self._weights))
        self._embedder = embedder if self._weights[1] > 0 else None
        self._beta = beta

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        answer, reference = interaction.answer or "", interaction.reference or ""
        if plain(answer) == plain(reference):
            return Score(self.measure, 1.0, label="identical", details=self._details(1.0, 1.0, 1.0))
        if not answer.strip():
            return Score(self.measure, 0.0, label="blank", details=self._details(0.0, 0.0, 0.0))
        similarity = await self._similarity(answer, reference)
        if isinstance(similarity, Unscored):
            return similarity
        if self._weights[0] == 0:
            return Score(self.measure, formulas.clip(similarity), details={"similarity": similarity})
        return await self._compare(interaction.question or "", answer, reference, similarity, session)

    async def _similarity(self, answer: str, reference: str) -> float | Unscored:
        """Cosine of the two texts; 0 where its weight is."""
        if self._embedder is None:
            return 0.0
        vectors = await self._embedder.embed([answer, reference])
        cosine = formulas.cosine(vectors[0], vectors[1])
        return Unscored(self.measure, "zero_vector") if cosine is None else cosine

    async def _compare(
        self, question: str, answer: str, reference: str, similarity: float, session: Session
    ) -> Evaluation:
        claims, wanted = await gather(
            [partial(session.claims, question, answer), partial(session.claims, question, reference)]
        )
        if not wanted:
            return Unscored(self.measure, "no_reference_claims", f"similarity={similarity:.3f}")
        if not claims:
            counts = _Counts(0, 0, 0), _Counts(0, len(wanted), 0)
            items = tuple(Item("reference_claim", claim, "missed", credit=0.0) for claim in wanted)
            return self._score(counts, similarity, items, label="no_claims")
        ours, theirs = await gather(
            [
                partial(session.verify, claims, [reference], Vocabulary.PRECISION, question),
                partial(session.verify, wanted, [answer], Vocabulary.RECALL, question),
            ]
        )
        items = tuple(_item("claim", claim, verdict) for claim, verdict in zip(claims, ours, strict=True)) + tuple(
            _item("reference_claim", claim, verdict) for claim, verdict in zip(wanted, theirs, strict=True)
        )
        return self._score((_count(ours), _count(theirs)), similarity, items)

    def _score(
        self, counts: tuple[_Counts, _Counts], similarity: float, items: tuple[Item, ...], label: str = ""
    ) -> Evaluation:
        precision, recall = counts
        lowest = formulas.f_beta(precision.good, precision.bad + precision.open, recall.bad + recall.open, self._beta)
        highest = formulas.f_beta(precision.good + precision.open, precision.bad, recall.bad, self._beta)
        lo, hi = (self._weigh(factual or 0.0, similarity) for factual in (lowest, highest))
        missing = precision.open + recall.open
        if missing:
            detail = f"{missing} claims without a verdict"
            return Unscored(self.measure, "judge_incomplete", detail, lo, hi, items)
        counted = {"tp": precision.good, "fp": precision.bad, "fn": recall.bad}
        covered = formulas.coverage(recall.good, recall.good + recall.bad)
        details = self._details(lowest or 0.0, similarity, covered or 0.0) | counted
        return Score(self.measure, lo, label=label, items=items, details=details)

    def _details(self, factual: float, similarity: float, coverage: float) -> dict[str, float]:
        return {"factual": factual, "coverage": coverage} | (
            {"similarity": similarity} if self._embedder is not None else {}
        )

    def _weigh(self, factual: float, similarity: float) -> float:
        return formulas.answer_correctness(factual, similarity, self._weights)


def _count(verdicts: Sequence[Verdict | None]) -> _Counts:
    known = [verdict.credit for verdict in verdicts if verdict]
    good = math.fsum(known)
    return _Counts(good, len(known) - good, len(verdicts) - len(known))


def _item(side: Literal["claim", "reference_claim"], claim: str, verdict: Verdict | None) -> Item:
    if verdict is None:
        return Item(side, claim)
    return Item(side, claim, verdict.value, verdict.quote, verdict.credit)
