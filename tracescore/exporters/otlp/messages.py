"""A result as OTLP: one evaluation span and one log record per evaluation, carrying the evaluated span's ids.

Built as protobuf, because ids, times and the link are all given: an SDK makes its own. Whatever is derived here
depends on the result alone, so that a result delivered again gives the same ids.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tracescore import __version__
from tracescore.model import Evaluation, Item, Result, Score

EVENT_NAME = "gen_ai.evaluation.result"
_MAX_EXPLANATION = 8_192
_SAMPLED_REMOTE_PARENT = 0x301
"""Span.flags: sampled (0x1), and it is known (0x100) that the parent is of another process (0x200)."""


def delivered(result: Result) -> list[Evaluation]:
    """The evaluations that go out: scores and failures; what was skipped or never tried says nothing."""
    return [each for each in result.evaluations if isinstance(each, Score) or each.outcome == "unscored"]


def target_attributes(result: Result) -> dict[str, str | int | float]:
    """The scores as attributes of the span they are about; a failure is `tracescore.<measure>.error`, no number."""
    scores: dict[str, str | int | float] = {"tracescore.judge": result.judge, "tracescore.epoch": result.epoch}
    for each in delivered(result):
        key = f"tracescore.{each.measure}"
        if isinstance(each, Score):
            scores |= {key: each.value} | ({f"{key}.label": each.label} if each.label else {})
        else:
            scores[f"{key}.error"] = each.reason
        if each.judge:
            scores[f"{key}.judge"] = each.judge
    return scores


def evaluation_span(result: Result) -> Span:
    """The span that shows the scores inside the trace: child of, and linked to, the evaluated span.

    It starts and ends when that span ends, so that the trace does not become longer.
    """
    interaction = result.interaction
    trace_id, target = bytes.fromhex(interaction.trace_id), bytes.fromhex(interaction.span_id)
    return Span(
        trace_id=trace_id,
        span_id=_span_id(result),
        parent_span_id=target,
        flags=_SAMPLED_REMOTE_PARENT,
        name="evaluate",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=interaction.end_unix_nano,
        end_time_unix_nano=interaction.end_unix_nano,
        attributes=attributes({"openinference.span.kind": "EVALUATOR", **target_attributes(result)}),
        links=[Span.Link(trace_id=trace_id, span_id=target, flags=_SAMPLED_REMOTE_PARENT)],
    )


def evaluation_events(result: Result, *, explanations: bool) -> list[LogRecord]:
    """One `gen_ai.evaluation.result` per evaluation; a failure is a warning with `error.type` and no value."""
    interaction = result.interaction
    time = int(result.finished * 1e9) or interaction.end_unix_nano
    return [
        LogRecord(
            time_unix_nano=time,
            observed_time_unix_nano=time,
            severity_number=SeverityNumber.SEVERITY_NUMBER_INFO if scored else SeverityNumber.SEVERITY_NUMBER_WARN,
            severity_text="INFO" if scored else "WARN",
            event_name=EVENT_NAME,
            trace_id=bytes.fromhex(interaction.trace_id),
            span_id=bytes.fromhex(interaction.span_id),
            flags=1,
            attributes=attributes(_event_attributes(result, each, explanations=explanations)),
        )
        for each in delivered(result)
        for scored in [isinstance(each, Score)]
    ]


def traces_request(spans: Iterable[Span]) -> ExportTraceServiceRequest:
    """Evaluation spans in one request."""
    scope_spans = ScopeSpans(scope=_SCOPE, spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=_RESOURCE, scope_spans=[scope_spans])])


def logs_request(records: Iterable[LogRecord]) -> ExportLogsServiceRequest:
    """Evaluation records in one request."""
    scope_logs = ScopeLogs(scope=_SCOPE, log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=_RESOURCE, scope_logs=[scope_logs])])


def explanation(items: Sequence[Item]) -> str:
    """What a score is made of, a line each: the verdict, the text and the words that show it."""
    return "\n".join(map(_line, items))[:_MAX_EXPLANATION]


def _line(item: Item) -> str:
    quote = f' - "{item.quote}"' if item.quote else ""
    named = "" if item.passage is None or item.kind == "passage" else f"passage {item.passage + 1}"
    where = ": ".join(filter(None, (named, item.document)))
    return f"{item.verdict or item.kind}: {item.text}{quote}{f' ({where})' if where else ''}"


def _span_id(result: Result) -> bytes:
    """Eight bytes from the ids of the scores; never all zero, which would be no id."""
    ids = "".join(sorted(result.score_id(each.measure) for each in result.evaluations))
    return hashlib.sha256(ids.encode()).digest()[:8].replace(b"\0" * 8, b"\1" * 8)


def _event_attributes(result: Result, each: Evaluation, *, explanations: bool) -> dict[str, str | int | float]:
    judge, epoch, version = result.judge_of(each.measure)
    values: dict[str, str | int | float] = {
        "event.name": EVENT_NAME,
        "gen_ai.evaluation.name": each.measure,
        "tracescore.score_id": result.score_id(each.measure),
        "tracescore.judge": judge,
        "tracescore.epoch": epoch,
    }
    if version:
        values["tracescore.version"] = version
    if isinstance(each, Score):
        values["gen_ai.evaluation.score.value"] = each.value
        if each.label:
            values["gen_ai.evaluation.score.label"] = each.label
    else:
        values["error.type"] = each.reason
    if explanations and each.items:
        values["gen_ai.evaluation.explanation"] = explanation(each.items)
    return values


def attributes(values: Mapping[str, str | int | float]) -> list[KeyValue]:
    """Values as OTLP attributes."""
    return [KeyValue(key=key, value=_any(value)) for key, value in values.items()]


def _any(value: str | float) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(double_value=value)


_SCOPE = InstrumentationScope(name="tracescore", version=__version__)
_RESOURCE = Resource(attributes=attributes({"service.name": "tracescore", "service.version": __version__}))
