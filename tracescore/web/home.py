"""The first page: is everything all right? One row for each service, the most urgent first."""

from tracescore.model import MEASURES
from tracescore.net.asgi import Response
from tracescore.runtime import in_slices
from tracescore.web import first, services, views
from tracescore.web.messages import html
from tracescore.web.recent import in_order
from tracescore.web.visit import Visit


async def show(visit: Visit) -> Response:
    """The page; an address that chooses one service leads to the page of that one."""
    shared = visit.shared
    ledger, results = shared.ledger(), shared.recent.results()
    try:
        chosen = views.read_filter(visit.request.query, dict.fromkeys((*MEASURES, *ledger.evaluations)))
    except ValueError as error:
        return visit.message(400, "tracescore cannot show this", f"{error}.")
    if first.is_waiting(ledger):
        return first.show(visit, ledger)
    rows = await in_slices(services.standings(shared))
    if chosen.service is not None:
        of = next(((row.service, row.environment) for row in rows if row.service == chosen.service), None)
        if of is not None:
            place = f"#{chosen.measure}" if chosen.measure else ""
            return html(303, b"", headers=(("location", services.link(of) + place),))
    labels = shared.labelling if visit.visitor.may("labeller") else None
    measured = {measure for row in rows for measure in row.measures}
    silent = views.silent(results)
    return visit.page(
        "home.html",
        rows=rows,
        headline=services.headline(rows),
        columns=[each for each in in_order(measured) if chosen.measure in (None, each)],
        chosen=chosen,
        link=services.link,
        lowest=services.lowest,
        ledger=ledger,
        read=sum(ledger.interactions.values()),
        not_captured=ledger.interactions.get("content_not_captured", 0),
        switches=[(told or convention, shared.switch(convention, told)) for convention, told in silent],
        now=shared.clock(),
        labels_waiting=labels.counts()["waiting"] if labels else 0,
    )
