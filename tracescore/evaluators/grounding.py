"""Which passage a claim rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tracescore.judge.operations import Verdict
from tracescore.judge.quotes import Quotable
from tracescore.model import Item


def grounded(
    kind: Literal["claim", "reference_claim"],
    claims: Sequence[str],
    verdicts: Sequence[Verdict | None],
    contexts: Sequence[str],
) -> tuple[Item, ...]:
    """An item for each claim with its verdict, and for a quote the passage it stands in; one verdict per claim."""
    grounds = Grounds(contexts)
    return tuple(
        Item(kind, claim, verdict.value, verdict.quote, verdict.credit, grounds.holding(verdict.quote))
        if verdict
        else Item(kind, claim)
        for claim, verdict in zip(claims, verdicts, strict=True)
    )


class Grounds:
    """Contexts in which quotes are looked up; each is taken apart at most once, however many quotes there are."""

    def __init__(self, contexts: Sequence[str]) -> None:
        self._contexts = contexts
        self._quotable = [Quotable([text]) for text in contexts]

    def holding(self, quote: str) -> int | None:
        """The place of the first passage that holds the quote; None where none of them holds all of it."""
        if not quote:
            return None
        literal = next((place for place, text in enumerate(self._contexts) if quote in text), None)
        if literal is not None:
            return literal
        return next(
            (place for place, each in enumerate(self._quotable) if self._contexts[place].strip() and each.holds(quote)),
            None,
        )
