"""Where people label answers: one at a time, as they were drawn, without the scores that the judge gave.

An answer that somebody chooses can be labelled as well. Such labels count in no estimate: answers that were picked
because they look bad say nothing of the others.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from tracescore.model import MEASURES
from tracescore.net.asgi import Response
from tracescore.web.choice import PATH as _PATH
from tracescore.web.guard import audit
from tracescore.web.interactions import result_of, unknown
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
        return visit.page("labels.html", 404, counts=None, drawn=None, form="", action="", chosen=False)
    drawn = await labelling.next()
    values: dict[str, Any] = {"counts": labelling.counts(), "drawn": drawn, "form": visit.visitor.form}
    return visit.page("labels.html", **values, action="/labels", chosen=False)


async def show_chosen(visit: Visit) -> Response:
    """The answer in the address, as a form."""
    if not visit.visitor.may("labeller"):
        return _not_yours(visit)
    labelling, span_id = visit.shared.labelling, _span_of(visit)
    if labelling is None:
        return visit.page("labels.html", 404, counts=None, drawn=None, form="", action="", chosen=False)
    result = result_of(visit, span_id)
    if result is None:
        return unknown(visit)
    asked = labelling.asked_of(result)
    if asked is None:
        return visit.message(404, "Nothing to label", "No measure of this answer has a score that people can judge.")
    values: dict[str, Any] = {
        "counts": labelling.counts(),
        "drawn": asked | {"id": span_id},
        "form": visit.visitor.form,
    }
    return visit.page("labels.html", **values, action=f"{_PATH}/{visit.parts['trace']}/label", chosen=True)


async def take_chosen(visit: Visit) -> Response:
    """Takes what the form says of the answer in the address."""
    visitor, labelling = visit.visitor, visit.shared.labelling

    async def save(given: Mapping[str, str]) -> None:
        only_known(given, _known)
        result = result_of(visit, given.get("id", ""))
        if labelling is None or result is None:
            raise ValueError("an answer that the page still keeps expected")
        await labelling.choose(result, _answers(given))
        audit(visitor.name, "label_chosen", trace=result.interaction.trace_id)

    back = f"{_PATH}/{visit.parts['trace'].lower()}"
    return await visit.take_form(back, save) if visitor.may("labeller") else _not_yours(visit)


def _span_of(visit: Visit) -> str:
    return parse_qs(visit.request.query, errors="replace").get("span", [""])[0]


def _known(field: str) -> bool:
    return field in _FIELDS or _JUDGED.fullmatch(field) is not None


async def take(visit: Visit) -> Response:
    """Takes what the form says; an answer that somebody else has labelled meanwhile stays as it is."""
    visitor, labelling = visit.visitor, visit.shared.labelling

    async def save(given: Mapping[str, str]) -> None:
        if labelling is None:
            raise ValueError("this process asks for no labels")
        only_known(given, _known)
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
