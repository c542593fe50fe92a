"""The JSON of the API: what an interaction, a score and a question asked again look like. Moments are Unix seconds.

The description of the API (openapi.py) is made of these types, and the tests hold every answer against it.
"""

from __future__ import annotations

from typing import Any, NotRequired

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


class OutcomeShape(TypedDict):
    """What became of one measure: a `value`, with a `label` where it is a special case, or a `reason`."""

    outcome: str
    value: float | None
    reason: str | None
    label: str


class EvaluationShape(OutcomeShape):
    """An evaluation with what it is made of, and the bounds `lo` and `hi` that are known where there is no value."""

    measure: str
    detail: str
    lo: float | None
    hi: float | None
    items: list[ItemShape]
    details: dict[str, float]


class RowShape(TypedDict):
    """One question as the app answered it, in a list. Long texts are cut and end by saying so."""

    trace_id: str
    span_id: str
    service: str
    environment: str
    release: str
    slices: dict[str, str]
    state: str
    ended: float
    question: str | None
    answer: str | None
    weight: float
    judge: str
    epoch: int
    scores: dict[str, OutcomeShape]


class InteractionShape(RowShape):
    """One interaction with everything that is kept of it."""

    convention: str
    conversation_id: str
    started: float
    reference: str | None
    contexts: list[str]
    context_source: str
    history: list[TurnShape]
    found: dict[str, FoundShape]
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


class InteractionsShape(TypedDict):
    """One page of a list: `interactions`, or `questions` where they are grouped. `found` are all that fit."""

    kept: int
    found: int
    page: int
    pages: int
    interactions: list[RowShape]
    questions: list[QuestionShape]


class MeanShape(TypedDict):
    """The weighted mean of one measure by one judge in one epoch, and its 95 % interval.

    `context_source` is `prompt` for faithfulness to the rendered prompt, which is one apart.
    """

    measure: str
    judge: str
    epoch: int
    context_source: str | None
    mean: float
    lower: float
    upper: float
    scores: int
    target: float | None


class ServiceShape(TypedDict):
    """A service and its measures."""

    service: str
    measures: list[MeanShape]


class ServicesShape(TypedDict):
    """All services, over the `kept` interactions."""

    kept: int
    services: list[ServiceShape]


class TallyShape(TypedDict):
    """What became of the evaluations of one measure; `reasons` counts those that gave no score."""

    scored: int
    unscored: int
    skipped: int
    shed: int
    pending: int
    reasons: dict[str, int]


class LedgerShape(TypedDict):
    """What came in, and what became of it: interactions by state, evaluations by measure."""

    spans: int
    interactions: dict[str, int]
    evaluations: dict[str, TallyShape]


class DetectorsShape(TypedDict):
    """What the detectors of a service see; docs/drift.md explains the figures."""

    service: str
    environment: str
    verdict: str
    pattern: str
    advice: str
    pause: dict[str, Any] | None
    detectors: list[dict[str, Any]]


class DriftShape(TypedDict):
    """All services that are watched."""

    forgot_before: float | None
    threshold_days: float
    false_alarm_every_days: float
    services: list[DetectorsShape]


class ReleasesShape(TypedDict):
    """Two releases of a service: for each measure the difference with its interval; docs/releases.md explains it."""

    service: str
    environment: str
    of: str
    judge: str | None
    hours: int
    release: str | None
    before: str | None
    releases: list[dict[str, Any]]
    measures: list[dict[str, Any]]


class AnchorShape(TypedDict):
    """A candidate for a file of anchors."""

    question: str
    contexts: list[str]
    answer: str


class ChangeShape(TypedDict):
    """What to do with the references of a service, or of all: `reset`, `pin`, `pause` or `resume`."""

    action: str
    service: NotRequired[str | None]
    detector: NotRequired[str | None]
    at: NotRequired[float | None]
    until: NotRequired[str | None]
    why: NotRequired[str | None]


class DetectorCountShape(TypedDict):
    """How many detectors a change concerned."""

    detectors: int


class AnswersShape(TypedDict):
    """Hashes of answers."""

    answers: list[str]


class LiveShape(TypedDict):
    """How many of them came in live traces."""

    live: int


class ErrorShape(TypedDict):
    """Why a call was not answered."""

    error: str


# ---------------------------------------------------------------- results in these shapes


def row(result: Result) -> RowShape:
    """What a list shows of a result."""
    told = result.interaction
    return {
        "trace_id": told.trace_id,
        "span_id": told.span_id,
        "service": told.service,
        "environment": told.environment,
        "release": told.release,
        "slices": dict(told.slices),
        "state": told.state,
        "ended": result.ended,
        "question": told.question,
        "answer": told.answer,
        "weight": told.weight,
        "judge": result.judge,
        "epoch": result.epoch,
        "scores": {each.measure: _outcome(each) for each in result.evaluations},
    }


def _outcome(of: Evaluation) -> OutcomeShape:
    if isinstance(of, Score):
        return {"outcome": "scored", "value": of.value, "reason": None, "label": of.label}
    return {"outcome": of.outcome, "value": None, "reason": of.reason, "label": ""}


def interaction(result: Result) -> InteractionShape:
    """Everything that is kept of a result."""
    told, usage = result.interaction, result.usage
    return {
        **row(result),
        "convention": told.convention,
        "conversation_id": told.conversation_id,
        "started": told.start_unix_nano / 1e9,
        "reference": told.reference,
        "contexts": list(told.contexts),
        "context_source": told.context_source,
        "history": [{"role": turn.role, "content": turn.text} for turn in told.history],
        "found": {
            field: {"span": where.span, "key": where.key, "tried": list(where.tried)}
            for field, where in told.found.items()
        },
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
    return {
        "measure": of.measure,
        **_outcome(of),
        "detail": "" if isinstance(of, Score) else of.detail,
        "lo": None if isinstance(of, Score) else of.lo,
        "hi": None if isinstance(of, Score) else of.hi,
        "items": [_item(item) for item in of.items],
        "details": dict(of.details) if isinstance(of, Score) else {},
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
