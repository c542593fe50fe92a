"""One interaction: the evidence behind its scores, and its trace as files that tests/captures reads."""

from typing import Any

from tracescore.net.asgi import Response
from tracescore.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Everything that is kept of one trace."""
    shared = visit.shared
    kept = shared.recent.of_trace(visit.parts["trace"].lower())
    if not kept:
        most = shared.settings.keep
        unknown = f"The page keeps the last {most:,} interactions; none of them is of this trace."
        return visit.message(404, "Nothing here", unknown)
    trace_id = kept[0].result.interaction.trace_id
    saved = shared.saving is not None and shared.saving.has(trace_id)
    values: dict[str, Any] = {"kept": kept, "trace_id": trace_id, "target_of": shared.target, "saved": saved}
    return visit.page("interaction.html", **values)


async def file(visit: Visit) -> Response:
    """The trace, or the draft of what must be read out of it."""
    saving = visit.shared.saving
    found = saving.answer(visit.request.path) if saving is not None else None
    return found or visit.message(404, "Nothing here", "tracescore keeps the latest traces only, and not this one.")
