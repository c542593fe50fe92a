"""Releases against one another: a page to choose any two, and JSON for `tracescore compare`.

Both addresses take the fields service, environment, before, release and hours, as far as they are wanted.
"""

from typing import Any
from urllib.parse import parse_qs, urlencode

from tracescore.drift.family import Population
from tracescore.drift.releases import WEEK, Releases
from tracescore.drift.report import HOUR, of_process, population_of
from tracescore.net.asgi import Response
from tracescore.runtime import aside, in_slices
from tracescore.web import pairs
from tracescore.web.messages import only_known
from tracescore.web.visit import Visit

PATH = "/releases"
FIELDS = ("service", "environment", "before", "release", "hours")


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
    shared, query = visit.shared, visit.request.query
    known = shared.releases.services()
    if not query:
        if not known:
            return visit.message(200, "Nothing to compare yet", "No answer of any service has been scored.")
        query = link(max(known, key=lambda each: _telling(shared.releases, each))).partition("?")[2]
    try:
        found = chosen(shared.releases, query)
    except ValueError as error:
        return visit.message(400, "This cannot be shown", f"{error}.")
    paired, differences = None, {}
    if found["before"]:
        of, since = (found["service"], found["environment"]), shared.clock() - found["hours"] * HOUR
        results = shared.recent.results()
        paired = await in_slices(pairs.pair(results, of, found["before"], found["release"], since))
        differences = await aside(paired.differences)
    names = [name for name, _ in known]
    services = [
        {"name": " ".join(each) if names.count(each[0]) > 1 else each[0], "link": link(each), "of": each}
        for each in known
    ]
    return visit.page(
        "releases.html", **found, paired=paired, differences=differences, moved=pairs.MOVED, services=services
    )


def _telling(releases: Releases, population: Population) -> tuple[bool, int]:
    """How much there is to compare: two releases, and many answers."""
    known = releases.use(population).known
    return len(known) > 1, sum(use.answers for use in known.values())
