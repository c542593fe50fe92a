"""One interaction: the evidence behind its scores, and its trace as files that tests/captures reads."""

from collections.abc import Sequence
from typing import Any

from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.evidence import evidence, trace_links
from tracescore.web.recent import RecentResult
from tracescore.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Everything that is kept of one trace."""
    kept = kept_of(visit)
    if not kept:
        return unknown(visit)
    trace_id = kept[0].result.interaction.trace_id
    saving = visit.shared.saving
    values: dict[str, Any] = {
        "kept": [_shown(visit, number, each, kept[: number - 1]) for number, each in enumerate(kept, 1)],
        "trace_id": trace_id,
        "target_of": visit.shared.target,
        "saved": saving is not None and saving.has(trace_id),
        "labelling": visit.shared.labelling is not None,
        "said": visit.shared.labelling.said_of(trace_id) if visit.shared.labelling else [],
    }
    return visit.page("interaction.html", **values)


def kept_of(visit: Visit) -> list[RecentResult]:
    """What is kept of the trace in the address."""
    return visit.shared.recent.of_trace(visit.parts["trace"].lower())


def result_of(visit: Visit, span_id: str) -> Result | None:
    """The latest result of a span of the trace in the address; None where none is kept."""
    found = [each.result for each in kept_of(visit) if each.result.interaction.span_id == span_id]
    return found[-1] if found else None


def unknown(visit: Visit) -> Response:
    """The answer where nothing is kept of a trace."""
    most = visit.shared.settings.keep
    return visit.message(
        404, "Nothing here", f"The page keeps the last {most:,} interactions; none of them is of this trace."
    )


def _shown(visit: Visit, number: int, one: RecentResult, before: Sequence[RecentResult]) -> dict[str, Any]:
    result: Result = one.result
    span_id = result.interaction.span_id
    again = any(each.result.interaction.span_id == span_id for each in before)  # judged twice
    return {
        "id": f"{span_id}-{number}" if again else span_id,
        "result": result,
        "contexts_left_out": one.contexts_left_out,
        "evidence": evidence(result, f"i{number}"),
        "links": trace_links(visit.shared.settings.trace_links, result.interaction, result.ended),
    }


async def file(visit: Visit) -> Response:
    """The trace, or the draft of what must be read out of it."""
    saving = visit.shared.saving
    found = saving.answer(visit.request.path) if saving is not None else None
    return found or visit.message(404, "Nothing here", "tracescore keeps the latest traces only, and not this one.")
