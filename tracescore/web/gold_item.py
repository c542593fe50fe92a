"""An answer as an item of the gold set: a form to put its reference right, and the line to add to the file.

tracescore writes no gold set. It is what alerts and builds are held against, so it is kept, reviewed and versioned like
code, and often mounted so that the service cannot change it.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.interactions import result_of, unknown
from tracescore.web.messages import json_bytes, only_known, read_form
from tracescore.web.recent import is_cut
from tracescore.web.visit import Visit

_FIELDS = {"form", "span", "id", "question", "reference", "tags", "show", "save"}
_LONGEST_ID, _LONGEST_TAG = 128, 64


async def show(visit: Visit) -> Response:
    """The form, with the answer as the reference to be put right."""
    result = result_of(visit, parse_qs(visit.request.query, errors="replace").get("span", [""])[0])
    if result is None:
        return unknown(visit)
    told = result.interaction
    given = {"question": told.question or "", "reference": told.answer or "", "id": "", "tags": ""}
    return _page(visit, result, given)


async def take(visit: Visit) -> Response:
    """The line that the form makes, on the page or as a file. It changes nothing here, so every reader may."""
    given = await read_form(visit.request)
    if given is None:
        return visit.message(413, "Too long", "tracescore does not know this form.")
    if not visit.shared.guard.form_allowed(visit.visitor, given.get("form", "")):
        return visit.message(403, "Not from here", "tracescore restarted meanwhile: open the page again.")
    result = result_of(visit, given.get("span", ""))
    if result is None:
        return unknown(visit)
    try:
        only_known(given, _FIELDS.__contains__)
        line = json_bytes(_item(given, result))
    except ValueError as error:
        return visit.message(400, "This is no gold item", f"{error}.")
    if "save" in given:
        saved = (("content-disposition", 'attachment; filename="gold-item.jsonl"'),)
        return Response(200, line + b"\n", "application/jsonl", saved)
    return _page(visit, result, given, line.decode())


def _page(visit: Visit, result: Result, given: Mapping[str, str], line: str = "") -> Response:
    told = result.interaction
    values: dict[str, Any] = {
        "told": told,
        "given": {name: given.get(name, "") for name in ("question", "reference", "id", "tags")},
        "cut": is_cut(told.question or "") or is_cut(told.answer or ""),
        "line": line,
        "form": visit.visitor.form,
    }
    return visit.page("gold_item.html", **values)


def _item(given: Mapping[str, str], result: Result) -> dict[str, Any]:
    """A row of a gold set; ValueError where it could be none."""
    item: dict[str, Any] = {}
    if name := given.get("id", "").strip():
        if len(name) > _LONGEST_ID or not name.isprintable():
            raise ValueError(f"id: at most {_LONGEST_ID} printable characters expected")
        item["id"] = name
    for field in ("question", "reference"):
        text = given.get(field, "").replace("\r\n", "\n").strip()
        if not text:
            raise ValueError(f"{field}: a text that is not blank expected")
        item[field] = text
    tags = list(dict.fromkeys(tag.strip() for tag in given.get("tags", "").split(",") if tag.strip()))
    if any(len(tag) > _LONGEST_TAG for tag in tags):
        raise ValueError(f"tags: at most {_LONGEST_TAG} characters each expected")
    turns = [{"role": turn.role, "content": turn.text} for turn in result.interaction.history]
    return item | ({"tags": tags} if tags else {}) | ({"history": turns} if turns else {})
