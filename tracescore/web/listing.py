"""The list of interactions, and the files of it. What is shown is in the address alone: web/choice.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tracescore.model import MEASURES, Measure, Result
from tracescore.net.asgi import Response
from tracescore.runtime import in_slices
from tracescore.web import shaping
from tracescore.web.choice import BOUNDS, FACETS, LONGEST_SEARCH, PATH, SLICES, Choice, bounds_of, read_choice
from tracescore.web.export import csv_of, csv_of_groups, jsonl_of
from tracescore.web.finding import MOST_OPTIONS, Repeated, chosen, grouped, options
from tracescore.web.glossary import MEASURE_NAMES
from tracescore.web.guard import audit
from tracescore.web.messages import html
from tracescore.web.visit import Visit


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The interactions that a choice shows, in its order, and its groups where they are grouped."""

    choice: Choice
    results: Sequence[Result]
    groups: Sequence[Repeated] | None

    @property
    def rows(self) -> Sequence[Result] | Sequence[Repeated]:
        """All rows."""
        return self.results if self.groups is None else self.groups

    @property
    def page(self) -> Sequence[Result] | Sequence[Repeated]:
        """The rows of the page asked for."""
        first = (self.choice.page - 1) * self.choice.size
        return self.rows[first : first + self.choice.size]

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-len(self.rows) // self.choice.size)


async def find(visit: Visit) -> FoundRows:
    """What the address of a visit asks for; ValueError says what is allowed."""
    choice = read_choice(visit.request.query, visit.shared.clock(), _own(visit))
    results = await in_slices(chosen(visit.shared.recent.results(), choice))
    groups = await in_slices(grouped(results, choice.given.get("sort"))) if choice.grouped else None
    return FoundRows(choice, results, groups)


def _own(visit: Visit) -> list[Measure]:
    return [measure for measure in visit.shared.ledger().evaluations if measure not in MEASURES]


async def show(visit: Visit) -> Response:
    """One page of the list. An address with empty fields, as forms make them, leads to the one without."""
    try:
        found = await find(visit)
    except ValueError as error:
        return visit.message(400, "tracescore cannot show this", f"{error}.")
    choice, kept = found.choice, visit.shared.recent.results()
    if any(not value for _, value in parse_qsl(visit.request.query, keep_blank_values=True, errors="replace")):
        page = choice.page if choice.page > 1 else None
        return html(303, b"", headers=(("location", choice.link(PATH, page=page)),))
    offered = await in_slices(options(kept))
    return visit.page(
        "interactions.html",
        choice=choice,
        given=dict.fromkeys(("q", *FACETS, "from", "to", "sort", *BOUNDS, *bounds_of(_own(visit))), "")
        | dict(choice.given),
        rows=found.page,
        found=len(found.results),
        total=len(found.rows),
        pages=found.pages,
        kept=len(kept),
        keep=visit.shared.settings.keep,
        options=offered,
        measures=offered.measures,
        most_options=MOST_OPTIONS,
        facets=FACETS,
        sorts=list(_sorts(offered.measures)),
        chips=list(_chips(choice)),
        address=address,
        target_of=visit.shared.target,
        longest_search=LONGEST_SEARCH,
    )


def address(result: Result) -> str:
    """The page of an interaction."""
    return f"{PATH}/{result.interaction.trace_id}#{result.interaction.span_id}"


async def as_csv(visit: Visit) -> Response:
    """All rows of the choice, whatever the page."""
    return await _file(visit, "csv", "text/csv; charset=utf-8")


async def as_jsonl(visit: Visit) -> Response:
    """All rows of the choice with everything that is kept of them, whatever the page."""
    return await _file(visit, "jsonl", "application/jsonl")


async def _file(visit: Visit, kind: str, content_type: str) -> Response:
    try:
        found = await find(visit)
    except ValueError as error:
        return visit.message(400, "tracescore cannot export this", f"{error}.")
    audit(visit.visitor.name, "export", kind=kind, rows=len(found.rows))  # not what was searched for
    name = "questions" if found.choice.grouped else "interactions"
    headers = (("content-disposition", f'attachment; filename="tracescore-{name}.{kind}"'),)
    return Response(200, b"", content_type, headers, _csv(found) if kind == "csv" else _jsonl(found))


def _csv(found: FoundRows) -> Iterator[bytes]:
    return csv_of(found.results) if found.groups is None else csv_of_groups(found.groups)


def _jsonl(found: FoundRows) -> Iterator[bytes]:
    if found.groups is None:
        return jsonl_of(shaping.interaction(result) for result in found.results)
    return jsonl_of(shaping.question(group) for group in found.groups)


# ---------------------------------------------------------------- words of the form


def _sorts(measures: Sequence[Any]) -> Iterator[tuple[str, str]]:
    yield from (("newest", "newest first"), ("oldest", "oldest first"), ("question", "by question"))
    for measure in measures:
        name = MEASURE_NAMES[measure].lower()
        yield from ((measure, f"lowest {name} first"), (f"-{measure}", f"highest {name} first"))


def _chips(choice: Choice) -> Iterator[tuple[str, str, str]]:
    """Name, words, and the address without it, of every condition."""
    for name, value in choice.given.items():
        words = _words(name, value)
        if words:
            yield name, words, choice.link(PATH, **{name: None})


def _words(name: str, value: str) -> str:
    if name == "q":
        return f"\u201c{value}\u201d"
    if name in ("from", "to"):
        return (
            f"{name} {value} ago"
            if value[0].isdigit() and value[-1].isalpha() and value[-1] != "Z"
            else f"{name} {value}"
        )
    if name in FACETS:
        return f"{name.replace('_', ' ')}: {value}" if name in (*SLICES, "state") else f"{name} {value}"
    measure, _, end = name.partition(".")
    return f"{MEASURE_NAMES[measure]} {'at least' if end == 'min' else 'at most'} {value}" if end else ""
