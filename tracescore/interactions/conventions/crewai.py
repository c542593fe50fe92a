"""CrewAI through OpenLLMetry: a crew's tasks and its result, on spans that need no model call to be traced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracescore.interactions import values
from tracescore.interactions.convention import Convention, Kind, Node, Piece, attribute, either, heads

_BLANK = re.compile(r"\{\w+\}")
"""What was not filled into a task's template."""


def _kind(node: Node) -> Kind | None:
    if "crewai.crew" in heads(node):
        return "agent"
    return "chain" if not heads(node).isdisjoint(("crewai.task", "crewai.agent")) else None


def _last_task(node: Node) -> Iterator[Piece]:
    """The description of the task that a crew's result answers: its last."""
    for key in ("crewai.crew.tasks_output", "crewai.crew.tasks"):
        tasks = values.data(node.attributes.get(key))
        last = tasks[-1] if isinstance(tasks, list) and tasks else None
        said = last.get("description") if isinstance(last, dict) else None
        if isinstance(said, str) and not _BLANK.search(said):
            yield Piece(f"{key}/description", said)


CONVENTION = Convention(
    name="crewai",
    switch="TRACELOOP_TRACE_CONTENT=true",
    kind=_kind,
    marks=("crewai.crew", "crewai.task", "crewai.agent"),
    input=either(attribute("crewai.crew.inputs"), _last_task, attribute("crewai.task.description")),
    output=attribute("crewai.crew.result", "crewai.task.result"),
)
