"""The precedence table: all conventions, the leading one first.

Where a span follows several, the first that says something about a field is believed. Frameworks come before
providers, explicit kinds before guesses from keys; `otel-genai` comes late, since many others use its keys too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from tracescore.config import InteractionsConfig, MappingConfig
from tracescore.interactions import exclusions, switches
from tracescore.interactions.convention import Convention, Kind, Node, attribute, heads, when
from tracescore.interactions.conventions import (
    crewai,
    genai,
    google,
    haystack,
    laminar,
    langfuse,
    langsmith,
    llamaindex,
    logfire,
    mastra,
    mirascope,
    mlflow,
    openinference,
    openlit,
    openllmetry,
    promptflow,
    pydantic_ai,
    spring,
    vectordb,
    vercel,
)
from tracescore.interactions.flattened import brief

CONVENTIONS: tuple[Convention, ...] = (
    openinference.CONVENTION,
    langfuse.CONVENTION,
    langsmith.CONVENTION,
    mlflow.CONVENTION,
    promptflow.CONVENTION,
    laminar.CONVENTION,
    mirascope.CONVENTION,
    haystack.CONVENTION,
    llamaindex.CONVENTION,
    pydantic_ai.CONVENTION,
    logfire.CONVENTION,
    openlit.CONVENTION,
    vercel.CONVENTION,
    google.CONVENTION,
    crewai.CONVENTION,
    mastra.CONVENTION,
    spring.CONVENTION,
    genai.CONVENTION,
    openllmetry.CONVENTION,
    vectordb.CONVENTION,
)

_BY_NAME = {convention.name: convention for convention in CONVENTIONS}
_BY_MARK: dict[str, set[int]] = {}
_BY_EVENT: dict[str, set[int]] = {}
"""The places in the table of the conventions that a mark, or an event, tells of."""
for _place, _convention in enumerate(CONVENTIONS):
    for _mark in _convention.marks:
        _BY_MARK.setdefault(_mark, set()).add(_place)
    for _event in _convention.events:
        _BY_EVENT.setdefault(_event, set()).add(_place)
_LONG_SCOPE = 256
_SCOPES = tuple((scope, place) for place, convention in enumerate(CONVENTIONS) for scope in convention.scopes)


_ALL_MARKS = frozenset(
    mark.encode() for convention in CONVENTIONS for mark in (*convention.marks, *convention.scopes, *convention.events)
)
MARKERS: tuple[bytes, ...] = tuple(
    sorted(mark for mark in _ALL_MARKS if not any(other != mark and other in mark for other in _ALL_MARKS))
)
"""One of these occurs in the raw bytes of every span (or its scope) and log record that a convention recognises.

As few as will do: a mark that holds another one is left out.
"""


class Own(NamedTuple):
    """Keys that a person named, as a convention that leads all others."""

    mapping: MappingConfig
    convention: Convention

    def marks(self, node: Node) -> bool:
        """Whether the mapping is meant for a span."""
        return self.mapping.fits(node.name) and any(key in node.attributes for key in self.mapping.keys)


def configured(settings: InteractionsConfig) -> tuple[Own, ...]:
    """The keys a person named, the leading ones first."""
    return tuple(Own(mapping, _convention_of(mapping)) for mapping in settings.own)


def _convention_of(mapping: MappingConfig) -> Convention:
    flow = (*mapping.question, *mapping.answer)

    def kind(node: Node) -> Kind | None:
        if mapping.kind is not None:
            return mapping.kind
        if any(one.name != "configured" for one in node.conventions):
            return None
        return "agent" if any(key in node.attributes for key in flow) else "retriever"

    return Convention(
        name="configured",
        switch="",
        kind=kind,
        input=attribute(*mapping.question),
        output=attribute(*mapping.answer),
        sent=when(("llm",), attribute(*mapping.question)),
        received=when(("llm",), attribute(*mapping.answer)),
        documents=attribute(*mapping.contexts),
        query=when(("retriever", "reranker", "embedding"), attribute(*mapping.question)),
        tool_result=when(("tool",), attribute(*mapping.contexts, *mapping.answer)),
    )


def recognise(node: Node, own: Sequence[Own] = ()) -> None:
    """Sets the conventions and the kind of a node; `own` come before all others."""
    told, scope = heads(node), node.span.scope_name if node.span else ""
    known = _told_by if brief(told) and len(scope) <= _LONG_SCOPE else _told_by.__wrapped__
    node.conventions = known(told, scope)
    if node.logs or (node.span and node.span.events):
        names = {record.event_name for record in node.logs}
        names.update(happened.name for happened in (node.span.events if node.span else ()))
        places = {place for name in names for place in _BY_EVENT.get(name, ())}
        places.update(map(CONVENTIONS.index, node.conventions))
        node.conventions = tuple(CONVENTIONS[place] for place in sorted(places))
    if own:
        node.conventions = (*(one.convention for one in own if one.marks(node)), *node.conventions)
    if exclusions.is_evaluator(node):
        node.kind = "evaluator"
    else:  # ids and names that are copied onto every span of a request make none of them a step
        node.kind = next((kind for convention in node.conventions if (kind := convention.kind(node))), None)


@functools.lru_cache(maxsize=1024)
def _told_by(told: frozenset[str], scope: str) -> tuple[Convention, ...]:
    """The conventions that the heads of a span's keys and the name of its scope tell of: few in the spans of an app."""
    found = {place for prefix, place in _SCOPES if scope.startswith(prefix)}
    for head in told:
        found.update(_BY_MARK.get(head, ()), _BY_MARK.get(head[: head.find(".") + 1], ()))
    return tuple(CONVENTIONS[place] for place in sorted(found))


def content_switch(convention: str, instrumentation: str = "") -> str:
    """The settings that make an instrumentation ("name version" of its scope) record content, or its convention's."""
    if known_for := switches.of(instrumentation):
        return known_for
    if convention == "configured":
        return "the attributes named in the configuration under interactions"
    known = _BY_NAME.get(convention)
    return known.switch if known else "see the documentation of the instrumentation in use"
