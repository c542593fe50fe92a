"""Releases against one another: the block of the overview, a page to choose any two, and JSON for `tracescore compare`.

Both addresses take the fields service, environment, before, release and hours, as far as they are wanted.
"""

from typing import Any
from urllib.parse import parse_qs, urlencode

from tracescore.drift.family import Population
from tracescore.drift.releases import WEEK, Releases
from tracescore.drift.report import of_process, population_of
from tracescore.net.asgi import Response
from tracescore.web.messages import only_known
from tracescore.web.visit import Visit

PATH = "/releases"
FIELDS = ("service", "environment", "before", "release", "hours")


def overview(releases: Releases, service: str | None) -> list[dict[str, Any]]:
    """The running release of each service against the one before it, where there was one."""
    shown = (of_process(releases, each, None) for each in releases.services() if service in (None, each[0]))
    return [each | {"link": link((each["service"], each["environment"]))} for each in shown if each["before"]]


def link(population: Population) -> str:
    """The page on which two releases of a service are chosen."""
    return f"{PATH}?{urlencode(dict(zip(FIELDS, population, strict=False)), errors='replace')}"


def chosen(releases: Releases, query: str) -> dict[str, Any]:
    """What was asked for; ValueError says what is allowed."""
    fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=10, errors="replace").items()}
    only_known(fields, FIELDS.__contains__)
    if "service" not in fields:
        raise ValueError("service: the name of one expected")
    if ("before" in fields) != ("release" in fields):
        raise ValueError("before and release: two releases expected, or none for the running one and the one before")
    hours = fields.get("hours", str(WEEK))
    if not (hours.isascii() and hours.isdigit() and 0 < int(hours[:6]) <= WEEK):
        raise ValueError(f"hours: 1 to {WEEK} expected; got {hours[:20]!r}")
    population = population_of(releases, fields["service"], fields.get("environment"))
    two = (fields["before"], fields["release"]) if "before" in fields else None
    return of_process(releases, population, two, int(hours))


async def show(visit: Visit) -> Response:
    """The page on which any two releases of a service are compared; without a service, of one that has two."""
    releases, query = visit.shared.releases, visit.request.query
    if not query:
        known = sorted(releases.services(), key=lambda each: len(releases.use(each).known) < 2)
        if not known:
            return visit.message(200, "Nothing to compare yet", "No answer of any service has been scored.")
        query = link(known[0]).partition("?")[2]
    try:
        return visit.page("releases.html", **chosen(releases, query))
    except ValueError as error:
        return visit.message(400, "This cannot be shown", f"{error}.")
