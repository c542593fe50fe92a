"""The runs of the gold set, and the items that changed sides."""

from tracescore.net.asgi import Response
from tracescore.web.visit import Visit


async def show(visit: Visit) -> Response:
    """The page; where there is no gold set, nothing."""
    if visit.shared.gold is None:
        return visit.message(404, "No gold set", "Set gold.path to a file of questions with reference answers.")
    return visit.page("gold.html", **visit.shared.gold())
