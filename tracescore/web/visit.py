"""What a room of the page gets: the request, who asks, and what this process can tell. All rooms: routes.py."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tracescore.calibration.labelling import Labelling
from tracescore.config import WebConfig
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.gold.runner import GoldRunner
from tracescore.model import Clock
from tracescore.net.asgi import Response
from tracescore.pipeline.ledger import Snapshot
from tracescore.web.guard import Guard, Visitor
from tracescore.web.history import History
from tracescore.web.messages import Request, html, read_form, told
from tracescore.web.recent import Recent
from tracescore.web.render import page
from tracescore.web.saving import Saving
from tracescore.web.views import Estimating, TargetOf

CountLive = Callable[[Sequence[str]], int]
"""How many of these answers, by their marks, came in live traces."""


class KeptTexts(Protocol):
    """What is kept of users. ValueError from each: why not."""

    async def erase(self, what: str, value: str) -> Mapping[str, Any]:
        """Erases a `user`, a `trace` or a `conversation` by its id; the receipt."""
        ...

    async def save(self) -> None:
        """Commits what was changed by hand."""
        ...

    async def look(self) -> Mapping[str, Any]:
        """What is in the spool."""
        ...

    async def back_up(self, path: str) -> Mapping[str, Any]:
        """Copies it to a new file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParts:
    """What every room may ask: settings, the latest results, counts, and the parts of this process that it has.

    `ledger` gives the counts at the moment of asking; `endpoints` maps the values of OTEL_EXPORTER_OTLP_PROTOCOL to
    the URLs that tracescore receives at; `target` gives the score below which a number is marked; `switch` names, for a
    convention and an instrumentation, the setting that makes it record content; `kept` gives what looks into the spool,
    copies it and erases; `live` counts the answers that came in live traces lately.
    """

    settings: WebConfig
    guard: Guard
    clock: Clock
    recent: Recent
    history: History
    ledger: Callable[[], Snapshot]
    releases: Releases
    endpoints: Mapping[str, str]
    target: TargetOf
    switch: Callable[[str, str], str]
    changes: DriftWatch | None = None
    labelling: Labelling | None = None
    gold: GoldRunner | None = None
    kept: Callable[[], KeptTexts | None] = lambda: None
    live: CountLive = lambda _: 0
    saving: Saving | None = None
    estimating: Estimating = field(default_factory=Estimating)

    async def save(self) -> None:
        """Commits what somebody changed by hand, before they are told that it is done."""
        if (kept := self.kept()) is not None:
            await kept.save()


@dataclass(frozen=True, slots=True)
class Place:
    """A link of the navigation. `under`: further paths at which it is marked; `there`: whether this process has it."""

    name: str
    path: str
    under: tuple[str, ...] = ()
    there: Callable[[SharedParts], bool] = lambda _: True

    def holds(self, path: str) -> bool:
        """Whether a path lies in this place."""
        roots = (self.path, *self.under) if self.path != "/" else self.under
        return path == self.path or any(path == root or path.startswith(f"{root}/") for root in roots)


PLACES = (
    Place("Home", "/", under=("/services",)),
    Place("Interactions", "/interactions"),
    Place("Compare", "/releases"),
    Place("Gold", "/gold", there=lambda shared: shared.gold is not None),
    Place("Drift", "/drift", there=lambda shared: shared.changes is not None),
    Place("Labels", "/labels", there=lambda shared: shared.labelling is not None),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who may read the page. `parts` are the named pieces of the path."""

    request: Request
    visitor: Visitor
    shared: SharedParts
    parts: Mapping[str, str] = field(default_factory=dict)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page made of a template, inside the frame that says where one is."""
        return html(status, page(template, **self._frame(), **values))

    def message(self, status: int, title: str, text: str) -> Response:
        """A page that says one thing."""
        return told(self.request, status, title, text, **self._frame())

    def _frame(self) -> dict[str, Any]:
        places = [place for place in PLACES if place.there(self.shared)]
        here = next((place for place in places if place.holds(self.request.path)), None)
        return {"places": places, "here": here, "visitor": self.visitor}

    async def take_form(self, path: str, take: Callable[[Mapping[str, str]], Awaitable[None]]) -> Response:
        """Does what a form asks and leads back to `path`; a ValueError of `take` says what it cannot understand."""
        given = await read_form(self.request)
        if given is None:
            return self.message(413, "Too long", "tracescore does not know this form.")
        if not self.shared.guard.form_allowed(self.visitor, given.get("form", "")):
            return self.message(403, "Not from here", f"tracescore restarted meanwhile: open {path} again.")
        try:
            await take(given)
        except ValueError as error:
            return self.message(400, "tracescore cannot save this", f"{error}.")
        return html(303, b"", headers=(("location", path),))


PageRoom = Callable[[Visit], Awaitable[Response]]
"""Answers a visit."""
