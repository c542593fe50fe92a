"""The calls of the API, and its description: one table makes the routes, /api/v1/openapi.json and what docs say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from tracescore import __version__
from tracescore.config import UserRole
from tracescore.drift.releases import WEEK
from tracescore.gold.view import PINNED
from tracescore.model import STATES
from tracescore.net.asgi import Response
from tracescore.web import api, choice, figures, shapes
from tracescore.web.messages import as_json
from tracescore.web.visit import Visit

ROOT = "/api/v1"
_SCHEMAS = "#/components/schemas/"
_TEXT: dict[str, Any] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call: what it is asked with and what it gives, as types of web/shapes.py.

    `fields` are those of the query, name -> schema; `takes` the body of a POST, `needs` the role that may call it.
    """

    method: str
    path: str
    answer: api.DataRoom
    summary: str
    gives: Any
    fields: Mapping[str, Mapping[str, Any]] | None = None
    required: tuple[str, ...] = ()
    takes: Any = None
    needs: UserRole = "reader"


def _choices() -> dict[str, Mapping[str, Any]]:
    ratio = {"type": "number", "minimum": 0, "maximum": 1}
    fields: dict[str, Mapping[str, Any]] = {name: _TEXT | {"maxLength": choice.LONGEST_VALUE} for name in choice.FACETS}
    fields |= {"state": _TEXT | {"enum": list(STATES)}, "q": _TEXT | {"maxLength": choice.LONGEST_SEARCH}}
    fields |= dict.fromkeys(("from", "to"), _TEXT) | dict.fromkeys(choice.BOUNDS, ratio)
    fields |= {"sort": _TEXT | {"enum": list(choice.SORTS)}, "group": _TEXT | {"enum": ["question"]}}
    fields["page"] = {"type": "integer", "minimum": 1, "maximum": choice.MOST_PAGES}
    fields["size"] = {"type": "integer", "minimum": 1, "maximum": choice.LARGEST_PAGE}
    return {name: fields[name] for name in choice.FIELDS}


_RELEASES = dict.fromkeys(("service", "environment", "before", "release"), _TEXT) | {
    "hours": {"type": "integer", "minimum": 1, "maximum": WEEK}
}
_HISTORY = {"service": _TEXT, "environment": _TEXT, "range": _TEXT | {"enum": ["hour", "day", "week"]}}
_COUNT = {"count": {"type": "integer", "minimum": 1, "maximum": api.MOST_ANCHORS}}
_NUMBER: Mapping[str, Any] = {"type": "integer", "minimum": 1}
_RUNS: Mapping[str, Mapping[str, Any]] = {
    "run": _NUMBER,
    "against": {"oneOf": [_NUMBER, _TEXT | {"enum": [PINNED]}]},
    "page": _NUMBER,
}
_ANY = dict[str, Any]

CALLS = (
    ApiCall("GET", "/services", figures.services, "How every service stands, the most urgent first",
            shapes.ServicesShape),
    ApiCall("GET", "/history", figures.history, "The means of a service over the last hour, day or week",
            shapes.HistoryShape, _HISTORY, ("service",)),
    ApiCall("GET", "/ledger", figures.ledger, "What came in, and what became of it", shapes.LedgerShape),
    ApiCall("GET", "/interactions", figures.interactions, "One page of interactions, or of questions asked again",
            shapes.InteractionsShape, _choices()),
    ApiCall("GET", "/interactions/{trace}", figures.interaction, "Everything that is kept of one trace",
            list[shapes.InteractionShape]),
    ApiCall("GET", "/releases", figures.releases, "Two releases of a service against each other",
            shapes.ReleasesShape, _RELEASES, ("service",)),
    ApiCall("GET", "/drift", figures.drift, "What the detectors see in every service", shapes.DriftShape),
    ApiCall("POST", "/baseline", api.change_baseline, "Reset or pin what is normal, pause or resume detectors",
            shapes.DetectorCountShape, takes=shapes.ChangeShape, needs="operator"),
    ApiCall("GET", "/gold", figures.gold, "The gold set, its runs, and one run against another", _ANY, _RUNS),
    ApiCall("POST", "/gold/live", api.live, "How many answers of a gold run came in live traces",
            shapes.LiveShape, takes=shapes.AnswersShape),
    ApiCall("GET", "/labels", figures.labels, "All labels, and the sums of the other scores", list[_ANY]),
    ApiCall("GET", "/anchors", api.anchors, "Interactions drawn as candidates for anchors", list[shapes.AnchorShape],
            _COUNT),
    ApiCall("GET", "/spool", api.spool, "What is in the spool", _ANY),
    ApiCall("POST", "/spool", api.back_up, "Copy the spool to a new file: {backup: PATH}", _ANY,
            takes=dict[str, str], needs="operator"),
    ApiCall("POST", "/erase", api.erase, "Erase a user, a trace or a conversation: one of them and its id", _ANY,
            takes=dict[str, str], needs="operator"),
)  # fmt: skip
"""Every call but this description itself."""


async def describe(_: Visit) -> Response:
    """The description."""
    return as_json(200, description())


@cache
def description() -> dict[str, Any]:
    """The API as OpenAPI 3.1."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    error = _schema(shapes.ErrorShape, schemas)
    for call in CALLS:
        path = paths.setdefault(f"{ROOT}{call.path}".replace("{trace}", "{trace_id}"), {})
        path[call.method.lower()] = _operation(call, schemas, error)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tracescore",
            "version": __version__,
            "description": "What the page shows, as JSON. Moments are Unix seconds.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(call: ApiCall, schemas: dict[str, Any], error: Mapping[str, Any]) -> dict[str, Any]:
    refusals = {"400": "cannot be meant so", "401": "not known", "403": "not allowed", "404": "not kept"}
    refusals |= {"409": "not part of this process", "413": "too long", "429": "too many wrong tokens"}
    made: dict[str, Any] = {
        "operationId": f"{call.method.lower()}{call.path.replace('/', '_').replace('{trace}', 'trace')}",
        "summary": call.summary,
        "parameters": list(_parameters(call)),
        "responses": {"200": _content(call.summary, _schema(call.gives, schemas))}
        | {status: _content(why, error) for status, why in refusals.items()},
    }
    if call.takes is not None:
        made["requestBody"] = _content("", _schema(call.takes, schemas)) | {"required": True}
        made["description"] = f"Takes the role {call.needs}."
    return made


def _content(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    about = {"description": description} if description else {}
    return about | {"content": {"application/json": {"schema": schema}}}


def _parameters(call: ApiCall) -> Iterator[dict[str, Any]]:
    if "{trace}" in call.path:
        schema = {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"}
        yield {"name": "trace_id", "in": "path", "required": True, "schema": schema}
    for name, field in (call.fields or {}).items():
        yield {"name": name, "in": "query", "required": name in call.required, "schema": field}
    if call.method == "POST":
        yield {"name": api.HEADER, "in": "header", "required": True, "schema": _TEXT}


def _schema(of: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; those that it refers to go into `schemas`."""
    made = TypeAdapter(of).json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    schemas.update(made.pop("$defs", {}))
    if made.get("type") != "object" or "title" not in made:
        return made
    name = made["title"]
    schemas[name] = made
    return {"$ref": f"{_SCHEMAS}{name}"}
