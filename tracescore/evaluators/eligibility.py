"""Whether an interaction holds what a measure reads. What is missing or damaged is skipped, never guessed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracescore.model import Interaction, Measure, SkipReason

READS: Mapping[Measure, tuple[str, ...]] = {
    "answer_relevancy": ("question", "answer"),
    "completeness": ("question", "answer"),
    "faithfulness": ("question", "answer", "contexts"),
    "context_precision": ("question", "contexts"),
    "context_recall": ("question", "contexts", "reference"),
    "answer_correctness": ("question", "answer", "reference"),
}
"""The fields of an Interaction that each measure reads."""

_MISSING: Mapping[str, SkipReason] = {
    "question": "no_question",
    "answer": "no_answer",
    "contexts": "no_contexts",
    "reference": "no_reference",
}


def skip_reason(interaction: Interaction, measure: Measure, reads: Collection[str] | None = None) -> SkipReason | None:
    """Why `measure` is not computed; None when it is. `reads`: the fields of a measure of the user's own.

    An answer that is there but blank counts as an answer; a blank question, context or reference as none.
    """
    if interaction.state in {"app_error", "implausible"}:
        return "app_error" if interaction.state == "app_error" else "implausible"
    for field in READS[measure] if reads is None else reads:
        if field == "history":
            continue  # none is a history, too
        if _absent(interaction, field):
            hidden = interaction.state in {"content_not_captured", "redacted"} and field != "reference"
            return interaction.state if hidden else _MISSING[field]  # type: ignore[return-value]
        if field in interaction.unusable:
            return _damage(interaction, field)
    ranked = measure != "context_precision" or interaction.context_source == "retrieval"
    return None if ranked else "no_ranking"


def lacks_history(interaction: Interaction, measure: Measure, reads: Collection[str] | None = None) -> bool:
    """Whether `measure` reads a question that follows up on turns of which nothing is known but that there were any."""
    later = interaction.slices.get("turn") == "later" and not interaction.history
    if reads is not None:
        return later and "history" in reads
    return later and measure in {"answer_relevancy", "completeness", "context_precision"}


def _absent(interaction: Interaction, field: str) -> bool:
    if field == "answer":
        return interaction.answer is None
    value = getattr(interaction, field)
    return not any(text.strip() for text in ((value or "",) if field != "contexts" else value))


def _damage(interaction: Interaction, field: str) -> SkipReason:
    """What is wrong with an unusable field: the state says, unless it is about another field."""
    if interaction.state == "redacted":
        return "redacted"
    if field == "contexts" and interaction.state != "truncated":
        return "partial_contexts"
    return "truncated"
