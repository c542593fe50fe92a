"""The JSON of the API: what an interaction, a score and a question asked again look like. Moments are Unix seconds.

The description of the API (openapi.py) is made from these types, and the tests hold every answer against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import TypedDict

from tracescore.model import Evaluation, Item, Result, Score
from tracescore.web.finding import Repeated


class ItemShape(TypedDict):
    """What a score is made of. `passage` counts from 0, `credit` is a cosine or what the verdict counts."""

    kind: str
    text: str
    verdict: str
    quote: str
    credit: float | None
    passage: int | None


class EvaluationShape(TypedDict):
    """One measure of an interaction: a `value`, or a `reason` and the bounds `lo` and `hi` that are known."""

    measure: str
    outcome: str
    value: float | None
    reason: str | None
    label: str
    detail: str
    lo: float | None
    hi: float | None
    items: list[ItemShape]
    details: dict[str, float]


class TurnShape(TypedDict):
    """An earlier turn of the conversation."""

    role: str
    content: str


class FoundShape(TypedDict):
    """Where a field was read: the name of the span, the key, and the keys tried before."""

    span: str
    key: str
    tried: list[str]


class UsageShape(TypedDict):
    """What judging cost. `cost` is null where no price is known; `cached` replies were known from before."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    cached: int


class InteractionShape(TypedDict):
    """One question as the app answered it, and its scores. Long texts are cut and end by saying so."""

    trace_id: str
    span_id: str
    service: str
    environment: str
    release: str
    slices: dict[str, str]
    state: str
    convention: str
    conversation_id: str
    started: float
    ended: float
    question: str | None
    answer: str | None
    reference: str | None
    contexts: list[str]
    context_source: str
    history: list[TurnShape]
    found: dict[str, FoundShape]
    weight: float
    judge: str
    epoch: int
    finished: float
    evaluations: list[EvaluationShape]
    usage: UsageShape


class SpreadShape(TypedDict):
    """The scores of one question: weighted mean, lowest, highest, standard deviation, and how many."""

    mean: float
    lowest: float
    highest: float
    deviation: float
    count: int


class QuestionShape(TypedDict):
    """A question that was asked once or more, with the ids of its traces, the newest first."""

    question: str | None
    service: str
    judge: str
    epoch: int
    asked: int
    last_asked: float
    scores: dict[str, SpreadShape]
    trace_ids: list[str]


def interaction(result: Result) -> InteractionShape:
    """Everything that is kept of a result."""
    told, usage = result.interaction, result.usage
    return {
        "trace_id": told.trace_id,
        "span_id": told.span_id,
        "service": told.service,
        "environment": told.environment,
        "release": told.release,
        "slices": dict(told.slices),
        "state": told.state,
        "convention": told.convention,
        "conversation_id": told.conversation_id,
        "started": told.start_unix_nano / 1e9,
        "ended": result.ended,
        "question": told.question,
        "answer": told.answer,
        "reference": told.reference,
        "contexts": list(told.contexts),
        "context_source": told.context_source,
        "history": [{"role": turn.role, "content": turn.text} for turn in told.history],
        "found": {
            field: {"span": where.span, "key": where.key, "tried": list(where.tried)}
            for field, where in told.found.items()
        },
        "weight": told.weight,
        "judge": result.judge,
        "epoch": result.epoch,
        "finished": result.finished,
        "evaluations": [_evaluation(each) for each in result.evaluations],
        "usage": {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
            "cached": usage.cached,
        },
    }


def _evaluation(of: Evaluation) -> EvaluationShape:
    scored = isinstance(of, Score)
    details: Mapping[str, float] = of.details if isinstance(of, Score) else {}
    return {
        "measure": of.measure,
        "outcome": "scored" if isinstance(of, Score) else of.outcome,
        "value": of.value if isinstance(of, Score) else None,
        "reason": None if isinstance(of, Score) else of.reason,
        "label": of.label if isinstance(of, Score) else "",
        "detail": "" if isinstance(of, Score) else of.detail,
        "lo": None if isinstance(of, Score) else of.lo,
        "hi": None if isinstance(of, Score) else of.hi,
        "items": [_item(item) for item in of.items],
        "details": dict(details) if scored else {},
    }


def _item(of: Item) -> ItemShape:
    return {
        "kind": of.kind,
        "text": of.text,
        "verdict": of.verdict,
        "quote": of.quote,
        "credit": of.credit,
        "passage": of.passage,
    }


def question(group: Repeated) -> QuestionShape:
    """A question with mean and spread of each measure."""
    return {
        "question": group.newest.interaction.question,
        "service": group.of.service,
        "judge": group.of.judge,
        "epoch": group.of.epoch,
        "asked": len(group.results),
        "last_asked": group.newest.ended,
        "scores": {
            measure: {
                "mean": spread.mean,
                "lowest": spread.lowest,
                "highest": spread.highest,
                "deviation": spread.deviation,
                "count": spread.count,
            }
            for measure, spread in group.spreads.items()
        },
        "trace_ids": [result.interaction.trace_id for result in group.results],
    }
