"""Where people label answers: one at a time, as they were drawn, without the scores that the judge gave."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from tracescore.calibration.labelling import Labelling
from tracescore.model import MEASURES
from tracescore.net.asgi import Response
from tracescore.web.guard import Visitor, audit
from tracescore.web.messages import Request, as_json, html, only_known, refused
from tracescore.web.render import page

PATH, EXPORT_PATH = "/labels", "/api/labels"
PATHS = (PATH, EXPORT_PATH)
_LARGEST_FORM = 65_536
_MOST_FIELDS = 2_000


_FIELDS = {"form", "id", "save", "skip"}
_JUDGED = re.compile(rf"(?:{'|'.join(MEASURES)})\.[0-9]{{1,4}}")


class LabelPages:
    """The form and the export."""

    def __init__(self, labels: Labelling | None) -> None:
        self._labels = labels

    @property
    def waiting(self) -> int:
        """How many answers wait for a label."""
        return self._labels.counts()["waiting"] if self._labels else 0

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """The answer to a GET."""
        if self._labels is None:
            if request.path == EXPORT_PATH:
                return refused(409, "labels are off; set drift.labels.path to a file")
            return html(404, page("labels.html", counts=None, drawn=None, form=""))
        if request.path == EXPORT_PATH:
            return as_json(200, self._labels.lines())
        drawn = await self._labels.next()
        return html(200, page("labels.html", counts=self._labels.counts(), drawn=drawn, form=visitor.form))

    async def take(self, given: Mapping[str, str], visitor: Visitor) -> None:
        """What a form says; an answer that somebody else has labelled meanwhile stays as it is.

        ValueError when it cannot be understood.
        """
        if self._labels is None:
            raise ValueError("this process asks for no labels")
        only_known(given, lambda name: name in _FIELDS or _JUDGED.fullmatch(name) is not None)
        await self._labels.give(given.get("id", ""), {} if "skip" in given else _answers(given))
        audit(visitor.name, "label_skipped" if "skip" in given else "label", id=given.get("id"))


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a form, each once; None when there is too much of it."""
    body = await request.body(_LARGEST_FORM)
    if body is None:
        return None
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError:
        return None
    return {name: values[0] for name, values in fields.items()}


def _answers(given: Mapping[str, str]) -> dict[str, list[str]]:
    """Fields such as `completeness.2` -> the answers of each measure in order, "" where one is missing."""
    said: dict[str, dict[int, str]] = {}
    for name, value in given.items():
        measure, dot, number = name.partition(".")
        if dot and number.isascii() and number.isdigit() and len(number) <= 4:
            said.setdefault(measure, {})[int(number)] = value
    return {measure: [by.get(n, "") for n in range(max(by) + 1)] for measure, by in said.items()}
