"""The addresses of the page and the room that answers each. A room is an async function of a Visit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tracescore.web import (
    api,
    compare,
    drift,
    entrance,
    gold,
    gold_item,
    home,
    interactions,
    labels,
    listing,
    openapi,
    service,
)
from tracescore.web.visit import PageRoom

_GET, _POST, _BOTH = ("GET", "HEAD"), ("POST",), ("GET", "HEAD", "POST")
_OF = {"GET": _GET, "POST": _POST}


@dataclass(frozen=True, slots=True)
class Route:
    """`path` is a pattern for the whole decoded path: {trace} is a trace id of 32 hex digits, {rest} anything.

    `page`: whether a login may lead there.
    """

    path: str
    room: PageRoom
    methods: tuple[str, ...] = _GET
    page: bool = False

    def match(self, path: str) -> Mapping[str, str] | None:
        """The named pieces of a path; None when it is not of this pattern."""
        found = _PATTERNS[self.path].fullmatch(path)
        return found.groupdict() if found else None


ROUTES = (
    Route("/", home.show, page=True),
    Route("/services/{rest}", service.show, page=True),
    Route("/drift", drift.show, page=True),
    Route("/interactions", listing.show, page=True),
    Route("/interactions.csv", listing.as_csv),
    Route("/interactions.jsonl", listing.as_jsonl),
    Route("/interactions/{trace}", interactions.show, page=True),
    Route("/interactions/{trace}/gold", gold_item.show, page=True),
    Route("/interactions/{trace}/gold", gold_item.take, _POST),
    Route("/interactions/{trace}/label", labels.show_chosen, page=True),
    Route("/interactions/{trace}/label", labels.take_chosen, _POST),
    Route("/interactions/{trace}/trace.json", interactions.file),
    Route("/interactions/{trace}/expected.json", interactions.file),
    Route("/releases", compare.show, page=True),
    Route("/gold", gold.show, page=True),
    Route("/labels", labels.show, page=True),
    Route("/labels", labels.take, _POST),
    Route("/pause", drift.take, _POST),
    Route("/logout", entrance.logout, _BOTH),
    Route(f"{openapi.ROOT}/openapi.json", openapi.describe),
    *(Route(f"{openapi.ROOT}{call.path}", api.as_room(call.answer), _OF[call.method]) for call in openapi.CALLS),
)
_PIECES = {"{trace}": "(?P<trace>[0-9a-fA-F]{32})", "{rest}": "(?P<rest>.+)"}


def _compiled(path: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{[a-z]+\})", path)
    return re.compile("".join(_PIECES.get(piece) or re.escape(piece) for piece in pieces), re.ASCII | re.DOTALL)


_PATTERNS = {route.path: _compiled(route.path) for route in ROUTES}


def methods(path: str) -> tuple[str, ...]:
    """The methods that a path takes; what is nowhere can be asked for too."""
    taken = {method for route in ROUTES if route.match(path) is not None for method in route.methods}
    return tuple(method for method in _BOTH if method in taken or method in _GET)


def find(path: str, method: str) -> tuple[PageRoom, Mapping[str, str]] | None:
    """The room that answers, and the named pieces of the path; None where there is none."""
    for route in ROUTES:
        parts = route.match(path) if method in route.methods else None
        if parts is not None:
            return route.room, parts
    return None


def is_page(path: str) -> bool:
    """Whether a login may lead there: the address that it is given could be another site's."""
    return any(route.page and route.match(path) is not None for route in ROUTES)
