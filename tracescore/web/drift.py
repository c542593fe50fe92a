"""What the detectors of every service know; an operator silences them during a planned change, or ends that."""

from collections.abc import Generator, Mapping

from tracescore.drift.watch import DriftWatch
from tracescore.net.asgi import Response
from tracescore.runtime import in_slices
from tracescore.web.api import change_pause
from tracescore.web.guard import audit
from tracescore.web.messages import only_known
from tracescore.web.services import link
from tracescore.web.visit import Visit

_FIELDS = {"form", "service", "until", "why", "pause", "resume"}


async def show(visit: Visit) -> Response:
    """The page."""
    changes = visit.shared.changes
    if changes is None:
        return visit.message(404, "Nothing here", "This process does not look for drops: drift.detector is false.")
    return await in_slices(_page(visit, changes))


def _page(visit: Visit, changes: DriftWatch) -> Generator[None, None, Response]:
    """The page in steps: one service takes some milliseconds."""
    services = []
    for of in list(changes.family.watched):
        services.append(changes.service(of))
        yield
    return visit.page("drift.html", changes=changes.show(()) | {"services": services}, link=link)


async def take(visit: Visit) -> Response:
    """Does what the form of an operator says."""
    visitor, changes = visit.visitor, visit.shared.changes
    if not visitor.may("operator"):
        why = f"{visitor.name} is a {visitor.role}; this takes an operator (web.users)."
        return visit.message(403, "Not yours to pause", why)

    async def change(given: Mapping[str, str]) -> None:
        if changes is None:
            raise ValueError("this process does not look for drops")
        only_known(given, _FIELDS.__contains__)
        action = "resume" if "resume" in given else "pause"
        asked = {name: given.get(name, "") for name in ("service", "until", "why")}
        change_pause(changes, action, *asked.values())
        await visit.shared.save()
        audit(visitor.name, f"baseline_{action}", **asked)

    return await visit.take_form("/drift", change)
