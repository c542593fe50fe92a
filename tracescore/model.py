"""The words of tracescore as types. Frozen and plain; they import nothing of tracescore.

The flow of one trace through them:

    RawSpan, RawLog -> RawTrace -> Trace (Span, LogRecord) -> Interaction -> Result (Score | Unscored)
"""

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

Clock = Callable[[], float]
"""Returns Unix seconds. Injected everywhere, so that tests can set the time."""

AttributeValue = Any
"""str | bool | int | float | bytes | None | list | dict, as decoded from an OTLP AnyValue (recursively)."""

Attributes = Mapping[str, AttributeValue]


# ---------------------------------------------------------------- what arrives
class RawSpan(NamedTuple):  # made for every span: a frozen dataclass takes three times as long
    """A span as it came over the wire: ids read, the rest still bytes. Empty `parent_span_id`: a root.

    `resource`, `scope` and `span` are serialised OTLP messages, the first two shared between the spans of a request.
    """

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    resource: bytes
    scope: bytes
    span: bytes


class RawLog(NamedTuple):
    """A log record with a trace id, as it came over the wire. `record` is the serialised LogRecord message."""

    trace_id: bytes
    span_id: bytes
    resource: bytes
    scope: bytes
    record: bytes


REMEMBERED_TRACES = 100_000
"""How many traces every part remembers that must treat repeats and late spans as it treated the first ones."""

ClosedBy = Literal["complete", "quiet", "max_wait", "evicted", "shutdown"]


@dataclass(frozen=True, slots=True)
class RawTrace:
    """The distinct spans and log records of one trace, and why we stopped waiting for more."""

    trace_id: bytes
    spans: tuple[RawSpan, ...]
    logs: tuple[RawLog, ...]
    closed_by: ClosedBy


# ---------------------------------------------------------------- decoded telemetry
@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An OpenTelemetry span event."""

    name: str
    time_unix_nano: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class LogRecord:
    """An OpenTelemetry log record. `event_name` is the field of that name or else the attribute `event.name`."""

    trace_id: str
    span_id: str
    event_name: str
    time_unix_nano: int
    body: AttributeValue
    attributes: Attributes
    resource: Attributes
    scope_name: str


class Span(NamedTuple):  # made for every span: a frozen dataclass takes three times as long
    """An OpenTelemetry span; ids are lower-case hex, an empty `parent_span_id` is a root; OTLP's kind 2 is SERVER."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    kind: int
    start_unix_nano: int
    end_unix_nano: int
    attributes: Attributes
    events: tuple[SpanEvent, ...]
    resource: Attributes
    scope_name: str
    is_error: bool
    dropped_attributes: int = 0
    scope_version: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace, as complete as it will get. Spans are in order of (start, span id), logs of time."""

    trace_id: str
    spans: tuple[Span, ...]
    logs: tuple[LogRecord, ...] = ()


# ---------------------------------------------------------------- interactions
Lacking = Literal[
    "no_question",
    "no_answer",
    "no_contexts",
    "content_not_captured",
    "redacted",
    "truncated",
    "partial_contexts",
    "implausible",
    "app_error",
]
"""What an interaction lacks, or why what it holds cannot be used."""
State = Literal["complete", Lacking]
STATES: tuple[State, ...] = get_args(State)

ContextSource = Literal["retrieval", "tool", "variables", "prompt", "none"]
"""Where contexts were read: listed by a span, a tool's result, template variables, the rendered prompt."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. `role` is `user` or `assistant`."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """Where a field was read, for `inspect --explain`: the span's name, the key, and what had been tried before."""

    span: str
    key: str
    tried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interaction:
    """One user question as the app answered it.

    `span_id` is the span scores attach to; `start_unix_nano` and `end_unix_nano` are that span's. A None question or
    answer was not in the telemetry; an empty answer was there and blank. `unusable` names the fields ("question",
    "answer", "contexts") whose text is truncated, redacted or partial and must not be scored. `instrumentation` is name
    and version of its scope, `slices` the bounded extra dimensions (route, tenant, turn). `weight` is 1 / probability
    of being scored, by the rule `rule`. `reference` and `required` (the parts that an answer must have) are gold's.
    `rankings`: the places in `contexts` of what each of several retrievals found, the best first.
    """

    trace_id: str
    span_id: str
    state: State
    question: str | None
    answer: str | None
    contexts: tuple[str, ...] = ()
    context_source: ContextSource = "none"
    history: tuple[Message, ...] = ()
    reference: str | None = None
    required: tuple[str, ...] = ()
    service: str = "unknown"
    release: str = "unknown"
    environment: str = "unknown"
    convention: str = "unknown"
    instrumentation: str = ""
    conversation_id: str = ""
    start_unix_nano: int = 0
    end_unix_nano: int = 0
    slices: Mapping[str, str] = field(default_factory=dict)
    unusable: frozenset[str] = frozenset()
    found: Mapping[str, Found] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)
    weight: float = 1.0
    rule: str = "default"
    rankings: tuple[tuple[int, ...], ...] = ()
    documents: tuple[str, ...] = ()  # the id or URI of each context ("" for one without); empty where none has any

    @property
    def key(self) -> str:
        """Identifies the interaction, whatever else is known of it."""
        return f"{self.trace_id}/{self.span_id}"

    @property
    def size(self) -> int:
        """Bytes that its texts take in memory."""
        turns = (turn.text for turn in self.history)
        return sum(map(sys.getsizeof, (self.question, self.answer, self.reference, *self.contexts, *turns)))


# ---------------------------------------------------------------- evaluations
Measure = str
"""One of MEASURES, or the name of a measure of the user's own (`evaluators.custom`)."""
LIVE_MEASURES: tuple[Measure, ...] = ("answer_relevancy", "completeness", "faithfulness", "context_precision")
"""Those of tracescore that need no reference, and so can run on live traffic."""
MEASURES: tuple[Measure, ...] = (*LIVE_MEASURES, "context_recall", "answer_correctness")

SkipReason = Literal[Lacking, "no_reference", "no_ranking", "not_applicable", "unsupported_language", "budget"]
"""The interaction lacks what the measure reads, the judge cannot read it, or costs too much: outcome `skipped`."""

NoReply = Literal["judge_unreachable", "judge_timeout", "judge_rate_limited", "judge_quota", "judge_refused"]
BadReply = Literal["judge_truncated", "judge_unreadable", "judge_incomplete", "judge_mixed", "judge_unfit"]
NothingFound = Literal["abstained", "no_questions", "no_parts", "no_claims", "no_reference_claims", "zero_vector"]
FailReason = Literal[
    NoReply, BadReply, "judge_input_too_long", "needs_history", NothingFound, "embedder_failed", "internal_error"
]
"""It was tried and gave no number: outcome `unscored`."""
ShedReason = Literal["queue_full", "shutdown", "erased", "expired"]
"""It was never tried: outcome `shed`."""

Reason = SkipReason | FailReason | ShedReason
SKIP_REASONS: tuple[SkipReason, ...] = get_args(SkipReason)
FAIL_REASONS: tuple[FailReason, ...] = get_args(FailReason)
SHED_REASONS: tuple[ShedReason, ...] = get_args(ShedReason)

Outcome = Literal["scored", "unscored", "skipped", "shed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def outcome_of(reason: Reason) -> Outcome:
    """The ledger column a reason belongs to."""
    if reason in SKIP_REASONS:
        return "skipped"
    return "shed" if reason in SHED_REASONS else "unscored"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing a score is made of: a generated question, a required part, a claim or a passage, with its verdict.

    `credit` is what it counts (a cosine, 1 / 0.5 / 0), `quote` checked evidence, from context number `passage`, from 0.
    A `reason` is what a measure of the user's own says of itself, a `match` what its pattern found.
    """

    kind: Literal["question", "part", "claim", "reference_claim", "passage", "reason", "match"]
    text: str
    verdict: str = ""
    quote: str = ""
    credit: float | None = None
    passage: int | None = None
    document: str = ""  # id or URI of that passage


@dataclass(frozen=True, slots=True)
class Score:
    """A measured value in [0, 1], with what it is made of; `label` marks special cases (`noncommittal`, `blank`).

    `details` holds further numbers of the measure (`strict`, `contradicted`, `factual`, `similarity`, ...). `judge` is
    what scored it where that is not the judge of its Result; `version` changes when a measure of the user's own does.
    """

    measure: Measure
    value: float
    label: str = ""
    items: tuple[Item, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    judge: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        if not 0.0 <= self.value <= 1.0:  # also refuses NaN
            raise ValueError(f"{self.measure}: a score lies in [0, 1]; got {self.value!r}")


@dataclass(frozen=True, slots=True)
class Unscored:
    """No number, and why. `lo` and `hi` bound the value where part of the verdicts are known; the rest as for Score."""

    measure: Measure
    reason: Reason
    detail: str = ""
    lo: float = 0.0
    hi: float = 1.0
    items: tuple[Item, ...] = ()
    judge: str = ""
    version: str = ""

    @property
    def outcome(self) -> Outcome:
        """The ledger column: `unscored`, `skipped` or `shed`."""
        return outcome_of(self.reason)


Evaluation = Score | Unscored

EVALUATOR_VERSION = 1
"""Steps when a measure's meaning changes, so that old and new scores keep different ids."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one interaction cost: judge calls, tokens, money where a price is known, and replies known from before."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """All evaluations of one interaction. Those that name no other judge are by `judge`, in its `epoch`."""

    interaction: Interaction
    evaluations: tuple[Evaluation, ...]
    judge: str
    epoch: int = 0
    usage: Usage = Usage()
    finished: float = 0.0

    @property
    def ended(self) -> float:
        """When the interaction ended, in Unix seconds; where no span tells, when its evaluation did."""
        return self.interaction.end_unix_nano / 1e9 or self.finished

    def scores(self) -> Sequence[Score]:
        """The evaluations that gave a number."""
        return [e for e in self.evaluations if isinstance(e, Score)]

    def judge_of(self, measure: Measure) -> tuple[str, int, str]:
        """What scored a measure: the judge's name, its epoch, and the version of a measure of the user's own."""
        each = next((each for each in self.evaluations if each.measure == measure), None)
        if each is not None and each.judge:
            return each.judge, 0, each.version
        return self.judge, self.epoch, each.version if each is not None else ""

    def score_id(self, measure: Measure) -> str:
        """32 hex digits, a hash of all that makes a score this one: the same whenever it is delivered again."""
        told, (judge, epoch, own) = self.interaction, self.judge_of(measure)
        parts = (told.trace_id, told.span_id, measure, str(EVALUATOR_VERSION), judge, str(epoch), *filter(None, [own]))
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]
