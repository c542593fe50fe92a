"""The JSON of the API: what an interaction, a score and a question asked again look like. Moments are Unix seconds.

The description of the API (openapi.py) is made of these types, and the tests hold every answer against it.
"""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class ItemShape(TypedDict):
    """What a score is made of. `passage` counts from 0, `document` is the id or URI of that passage.

    `credit` is a cosine or what the verdict counts.
    """

    kind: str
    text: str
    verdict: str
    quote: str
    credit: float | None
    passage: int | None
    document: str


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
    """A weighted mean and its 95 % interval, null where too few scores are behind it.

    The `scores` say as much as `effective` equally weighted ones.
    """

    value: float
    lower: float | None
    upper: float | None
    scores: int
    effective: float


class SeriesShape(TypedDict):
    """What a mean is a mean of: scores of one measure by one judge in one epoch.

    `context_source` is `prompt` for faithfulness to the rendered prompt, which is one apart.
    """

    measure: str
    judge: str
    epoch: int
    context_source: str | None


class StandingShape(TypedDict):
    """How a measure of a service stands: a word, why, and what to do; `mean` and `of` are null without a score."""

    measure: str
    state: str
    why: str
    fix: str
    target: float | None
    of: SeriesShape | None
    mean: MeanShape | None


class ServiceShape(TypedDict):
    """How a service stands, by the worst of its measures; `change` tells where its running release is worse."""

    service: str
    environment: str
    release: str
    state: str
    says: str
    advice: str
    change: str
    measures: list[StandingShape]


class ServicesShape(TypedDict):
    """All services, the most urgent first."""

    services: list[ServiceShape]


class PointShape(TypedDict):
    """The scores from `start` to `end`."""

    start: float
    end: float
    mean: MeanShape


class LineShape(TypedDict):
    """The points of one series, in order of time."""

    of: SeriesShape
    points: list[PointShape]


class HistoryShape(TypedDict):
    """The series of a service over the last hour, day or week."""

    service: str
    environment: str
    range: str
    series: list[LineShape]


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
