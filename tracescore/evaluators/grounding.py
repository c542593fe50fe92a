"""Which passage a claim rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tracescore.judge.operations import Verdict
from tracescore.judge.quotes import Quotable
from tracescore.model import Interaction, Item


def grounded(
    kind: Literal["claim", "reference_claim"],
    claims: Sequence[str],
    verdicts: Sequence[Verdict | None],
    interaction: Interaction,
) -> tuple[Item, ...]:
    """An item for each claim with its verdict, and for a quote the passage it stands in; one verdict per claim."""
    items, grounds = [], Grounds(interaction.contexts)
    for claim, verdict in zip(claims, verdicts, strict=True):
        place = grounds.holding(verdict.quote) if verdict else None
        known = Item(kind, claim, verdict.value, verdict.quote, verdict.credit) if verdict else Item(kind, claim)
        items.append(replace(known, passage=place, document=document_of(place, interaction)))
    return tuple(items)


def document_of(place: int | None, interaction: Interaction) -> str:
    """The id or URI of the passage at that place; empty where there is none."""
    return interaction.documents[place] if place is not None and interaction.documents else ""


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
