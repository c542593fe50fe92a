"""The first page: the ledger, the scores of each measure, the lowest ones, the latest ones."""

from typing import Any

from tracescore.net.asgi import Response
from tracescore.web import compare, first, views
from tracescore.web.visit import Visit


async def show(visit: Visit) -> Response:
    """The page, of everything or of what its address chooses."""
    shared = visit.shared
    try:
        chosen = views.read_filter(visit.request.query)
    except ValueError as error:
        return visit.message(400, "tracescore cannot show this", f"{error}.")
    ledger = shared.ledger()
    if first.is_waiting(ledger):
        return first.show(visit, ledger)
    values = views.overview(shared.recent, ledger, chosen, shared.target, shared.estimating)
    silent = views.silent(shared.recent.results())
    labels = shared.labelling if visit.visitor.may("labeller") else None
    about: dict[str, Any] = {
        "now": shared.clock(),
        "gold": "/gold" if shared.gold is not None else None,
        "keep": shared.settings.keep,
        "endpoints": shared.endpoints,
        "target_of": shared.target,
        "switches": [(told or convention, shared.switch(convention, told)) for convention, told in silent],
        "releases": compare.overview(shared.releases, chosen.service),
        "changes": shared.changes.show() if shared.changes else None,
        "labels_waiting": labels.counts()["waiting"] if labels else 0,
    }
    return visit.page("overview.html", **values, **about)
