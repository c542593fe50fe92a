"""The gold set: every item over the runs, the wrong ones first, and one run against another.

Its address takes `run` and `against` (numbers of runs, or `pinned`), and `page`.
"""

from urllib.parse import parse_qs, urlencode

from tracescore.gold.view import PINNED, GoldChoice, view
from tracescore.net.asgi import Response
from tracescore.web.messages import only_known
from tracescore.web.visit import Visit

PATH = "/gold"
FIELDS = ("run", "against", "page")
LARGEST = 10**9


def chosen(query: str) -> GoldChoice:
    """What an address asks for; ValueError says what is allowed. An empty field asks nothing."""
    fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=10, errors="replace").items()}
    only_known(fields, FIELDS.__contains__)
    against = fields.pop("against", None)
    numbers = {name: _number(name, text) for name, text in fields.items()}
    other = None if against is None else PINNED if against == PINNED else _number("against", against)
    return GoldChoice(**numbers, against=other)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= LARGEST):
        raise ValueError(f"{name}: a number from 1 on expected; got {text[:40]!r}")
    return int(text)


def link(run: int | None = None, against: int | str | None = None, page: int | None = None) -> str:
    """The address of a run, against another."""
    fields = {"run": run, "against": against, "page": page}
    query = urlencode({name: value for name, value in fields.items() if value is not None})
    return f"{PATH}?{query}" if query else PATH


async def show(visit: Visit) -> Response:
    """The page; where there is no gold set, how to set one up."""
    runner = visit.shared.gold
    if runner is None:
        return visit.message(404, "No gold set", "Set gold.set to a file of questions with reference answers.")
    try:
        found = await view(runner, chosen(visit.request.query))
    except ValueError as error:
        return visit.message(400, "This cannot be shown", f"{error}.")
    return visit.page("gold.html", **found, link=link)
