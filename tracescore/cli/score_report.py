"""What a run of `tracescore score` says on standard error beforehand: what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracescore.model import Interaction, Measure

if TYPE_CHECKING:
    from tracescore.config import Config

_INSTRUCTIONS, _REPLY = 750, 200
"""Tokens of a prompt apart from its texts, and of a reply, in the middle."""


def calls_for(interaction: Interaction, measures: Sequence[Measure]) -> int:
    """Requests to a judge on the network that a row costs when nothing is remembered and nothing asked again."""
    faithful = "faithfulness" in measures and bool(interaction.contexts)
    read = faithful or "answer_relevancy" in measures
    correct = "answer_correctness" in measures and interaction.reference is not None
    return read + 2 * ("completeness" in measures) + 2 * faithful + correct * (3 if faithful else 4)


def estimate(interactions: Sequence[Interaction], rows: int, measures: Sequence[Measure], config: Config) -> str:
    """In a line: rows, calls and money. `interactions` are the different ones among the `rows`."""
    judge, own = config.judge, config.evaluators.custom
    rubrics = sum(name in measures and each.kind == "rubric" for name, each in own.items())
    told = f"{rows} rows, {len(interactions)} of them different"
    if judge.kind == "embedded":
        return told
    calls = [calls_for(interaction, measures) + rubrics for interaction in interactions]
    text = sum(_tokens(interaction) for interaction in interactions)
    if judge.price is None:
        return f"{told}, about {sum(calls)} calls; set judge.price to see the cost"
    read = sum(calls) * _INSTRUCTIONS + 3 * text
    cost = (read * judge.price.input + sum(calls) * _REPLY * judge.price.output) / 1e6
    return f"{told}, about {sum(calls)} calls, which cost about {cost:.2g}"


def _tokens(interaction: Interaction) -> int:
    texts = (interaction.question or "", interaction.answer or "", interaction.reference or "", *interaction.contexts)
    return sum(len(text) for text in texts) // 4
