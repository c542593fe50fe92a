"""Where people label answers: one at a time, as they were drawn, without the scores that the judge gave."""

import re
from collections.abc import Mapping

from tracescore.model import MEASURES
from tracescore.net.asgi import Response
from tracescore.web.guard import audit
from tracescore.web.messages import only_known
from tracescore.web.visit import Visit

_FIELDS = {"form", "id", "save", "skip"}
_JUDGED = re.compile(rf"(?:{'|'.join(MEASURES)})\.[0-9]{{1,4}}")


async def show(visit: Visit) -> Response:
    """The next answer to label, as a form."""
    labelling = visit.shared.labelling
    if not visit.visitor.may("labeller"):
        return _not_yours(visit)
    if labelling is None:
        return visit.page("labels.html", 404, counts=None, drawn=None, form="")
    drawn = await labelling.next()
    return visit.page("labels.html", counts=labelling.counts(), drawn=drawn, form=visit.visitor.form)


async def take(visit: Visit) -> Response:
    """Takes what the form says; an answer that somebody else has labelled meanwhile stays as it is."""
    visitor, labelling = visit.visitor, visit.shared.labelling

    async def save(given: Mapping[str, str]) -> None:
        if labelling is None:
            raise ValueError("this process asks for no labels")
        only_known(given, lambda name: name in _FIELDS or _JUDGED.fullmatch(name) is not None)
        await labelling.give(given.get("id", ""), {} if "skip" in given else _answers(given))
        audit(visitor.name, "label_skipped" if "skip" in given else "label", id=given.get("id"))

    return await visit.take_form("/labels", save) if visitor.may("labeller") else _not_yours(visit)


def _not_yours(visit: Visit) -> Response:
    visitor = visit.visitor
    why = f"{visitor.name} is a {visitor.role}; this takes a labeller (web.users)."
    return visit.message(403, "Not yours to label", why)


def _answers(given: Mapping[str, str]) -> dict[str, list[str]]:
    """Fields such as `completeness.2` -> the answers of each measure in order, "" where one is missing."""
    said: dict[str, dict[int, str]] = {}
    for name, value in given.items():
        measure, dot, number = name.partition(".")
        if dot and number.isascii() and number.isdigit() and len(number) <= 4:
            said.setdefault(measure, {})[int(number)] = value
    return {measure: [by.get(n, "") for n in range(max(by) + 1)] for measure, by in said.items()}
