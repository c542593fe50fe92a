"""The page as a raw ASGI app, and the exporter that feeds it. Everything is rendered here; the browser runs nothing.

GET  /                          the ledger, the scores of each measure, the lowest ones, the latest ones
GET  /interactions/{trace_id}   the evidence behind the scores of one trace
GET  /interactions/{trace_id}/trace.json  .../expected.json   the trace as files that tests/captures reads
GET  /releases                  two releases of a service, compared
GET  /gold                      the runs of the gold set, and the items that changed sides
POST /pause                     silences the detectors of a service during a planned change, or ends that
POST /login                     the token by a form (GET /login?token=... by a link); begins a session
POST /logout                    ends it
GET  /style.css  /icon.svg
GET  /labels                    the next answer that people are asked to label; POST /labels: what they say
GET  /api/labels                all labels and the sums of what nobody labelled, for `tracescore labels`
GET  /api/baseline  /api/anchors   for `tracescore baseline` and `tracescore anchors`
GET  /api/releases              for `tracescore compare`
POST /api/gold                  for `tracescore gold run` and `check --probe`: what of these answers came as live
GET  /api/spool                 for `tracescore spool`
POST /api/baseline  /api/erase  /api/spool   for operators
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Counter

from tracescore import logs
from tracescore.calibration.labelling import Labelling
from tracescore.config import WebConfig
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.model import Clock, Result
from tracescore.net.access import AccessMetrics
from tracescore.net.asgi import Receive, Response, Scope, Send, respond
from tracescore.pipeline.ledger import Snapshot
from tracescore.web import api, labels, releases, views
from tracescore.web.guard import Guard, Visitor, audit
from tracescore.web.messages import LARGEST_BODY, Request, html, only_known
from tracescore.web.recent import Recent
from tracescore.web.render import asset, page
from tracescore.web.saving import Saving

_log = logging.getLogger("tracescore.web")

TRACE_PATH = re.compile(r"/interactions/([0-9a-fA-F]{32})", re.ASCII)
GOLD_PATH, PAUSE_PATH = "/gold", "/pause"
POSTABLE = ("/login", "/logout", *api.POSTABLE, labels.PATH, PAUSE_PATH)
ASSETS = {"/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml"}
_PAUSE_FIELDS = {"form", "service", "until", "why", "pause", "resume"}
STATUSES = (200, 303, 400, 401, 403, 404, 405, 409, 413, 429, 500)

CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SAFETY = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
"""On every response: nothing is run, framed, guessed at, leaked by a link or kept in a cache."""


class Pages:
    """Keeps the last results and shows them.

    `ledger` gives the counts at the moment of asking, `releases` what those scored; `endpoints` maps the values of
    OTEL_EXPORTER_OTLP_PROTOCOL to the URLs we receive at; `target` gives the scores below which a number is marked;
    `switch` names, for a convention and an instrumentation, the settings that make it record content; `changes` is
    what watches for changes, `labelling` what asks people for labels, if anything does; `gold` tells of the gold set,
    if there is one; `live` counts the answers that came in live traces lately; results leave the page after `age`
    seconds; `kept` gives what can look into the spool, copy it, and erase; `saving` keeps the traces that can be saved;
    `estimating` is for `views.Estimating`.
    Raises UsageError when the token cannot be read.
    """

    def __init__(
        self,
        settings: WebConfig,
        ledger: Callable[[], Snapshot],
        clock: Clock,
        registry: CollectorRegistry,
        access: AccessMetrics,
        *,
        releases: Releases,
        endpoints: Mapping[str, str],
        target: views.TargetOf,
        switch: Callable[[str, str], str],
        changes: DriftWatch | None = None,
        labelling: Labelling | None = None,
        gold: Callable[[], Mapping[str, Any]] | None = None,
        age: float | None = None,
        kept: Callable[[], api.KeptTexts | None] = lambda: None,
        live: api.CountLive = lambda _: 0,
        saving: Saving | None = None,
        estimating: tuple[float, float] = (1.0, 20.0),
    ) -> None:
        self._guard = Guard(settings, access)
        self._labels = labels.LabelPages(labelling)
        self._keep = settings.keep
        self._ledger = ledger
        self._clock = clock
        self._releases = releases
        self._endpoints = endpoints
        self._target = target
        self._switch = switch
        self._changes = changes
        self._recent = Recent(settings.keep, clock, age)
        self._gold, self._saving = gold, saving
        self._estimating = views.Estimating(*estimating)
        self._asked = api.Informants(changes, self._recent, live, kept)
        self._requests = Counter(
            "tracescore_web_requests_total", "Requests to the page, by HTTP status.", ["status"], registry=registry
        )
        for status in STATUSES:
            self._requests.labels(str(status))

    async def export(self, result: Result) -> None:
        """Keeps one result for the page; the oldest one goes when there are too many."""
        self._recent.add(result)

    async def forget_traces(self, trace_ids: frozenset[str]) -> int:
        """Forgets what the page keeps of these traces."""
        return self._recent.forget(trace_ids) + (self._saving.forget(trace_ids) if self._saving else 0)

    async def close(self) -> None:
        """Nothing to release."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI app."""
        request = Request.of(scope, receive)
        try:
            response = await self._respond(request)
        except Exception as error:  # noqa: BLE001 - one bad page must not hide the others
            logs.defect(_log, error)
            response = _message(
                500, "tracescore cannot show this page", "tracescore failed; see event=defect in its log."
            )
        self._requests.labels(str(response.status)).inc()
        safe = replace(response, headers=(*SAFETY, *response.headers))
        await respond(send, safe, with_body=request.method != "HEAD")

    async def _respond(self, request: Request) -> Response:
        if not self._guard.host_allowed(request.headers.get("host", "")):
            return _message(403, "Wrong host name", "Open the page as localhost, or at the address it listens on.")
        allowed_methods = ("GET", "HEAD", "POST") if request.path in POSTABLE else ("GET", "HEAD")
        if request.method not in allowed_methods:
            return _message(
                405, "Method not allowed", "This address can only be read.", (("allow", ", ".join(allowed_methods)),)
            )
        if request.path in ASSETS:
            return Response(200, asset(request.path[1:]), ASSETS[request.path])
        if request.path == "/login":
            return await self._login(request)
        visitor = self._guard.visitor(request)
        if visitor is None:
            return self._ask_for_token(request.path, request)
        if request.path == "/logout":
            return await self._logout(request, visitor)
        if request.path in api.PATHS:
            return await api.answer(request, visitor, self._asked)
        if request.path == releases.API:
            return releases.answer(self._releases, request.query)
        if request.path in labels.PATHS:
            return await self._label(request, visitor)
        if request.path == PAUSE_PATH and request.method == "POST":
            return await self._pause(request, visitor)
        if request.path == "/":
            return self._overview(request.query, visitor)
        if request.path == GOLD_PATH and self._gold is not None:
            return html(200, page("gold.html", **self._gold()))
        if self._saving is not None and (saved := self._saving.answer(request.path)) is not None:
            return saved
        if request.path == releases.PATH:
            return self._compare(request.query)
        return self._trace(request.path)

    def _overview(self, query: str, visitor: Visitor) -> Response:
        try:
            chosen = views.read_filter(query)
        except ValueError as error:
            return _message(400, "tracescore cannot show this", f"{error}.")
        values = views.overview(self._recent, self._ledger(), chosen, self._target, self._estimating)
        silent = views.silent(self._recent.results())
        about = {
            "now": self._clock(),
            "gold": GOLD_PATH if self._gold is not None else None,
            "keep": self._keep,
            "endpoints": self._endpoints,
            "target_of": self._target,
            "switches": [(told or convention, self._switch(convention, told)) for convention, told in silent],
            "releases": releases.overview(self._releases, chosen.service),
            "changes": self._changes.show() if self._changes else None,
            "labels_waiting": self._labels.waiting if visitor.may("labeller") else 0,
            "visitor": visitor,
        }
        return html(200, page("overview.html", **values, **about))

    def _compare(self, query: str) -> Response:
        try:
            return html(200, page("releases.html", **releases.chosen(self._releases, query)))
        except ValueError as error:
            return _message(400, "This cannot be shown", f"{error}.")

    def _trace(self, path: str) -> Response:
        match = TRACE_PATH.fullmatch(path)
        kept = self._recent.of_trace(match[1].lower()) if match else []
        if not kept:
            unknown = f"The page keeps the last {self._keep:,} interactions; none of them is of this trace."
            misspelt = "The address of an interaction is /interactions/ and the 32 hex digits of its trace id."
            return _message(404, "Nothing here", unknown if match else misspelt)
        trace_id = kept[0].result.interaction.trace_id
        saved = self._saving is not None and self._saving.has(trace_id)
        values = {"kept": kept, "trace_id": trace_id, "target_of": self._target, "saved": saved}
        return html(200, page("interaction.html", **values))

    async def _label(self, request: Request, visitor: Visitor) -> Response:
        if request.path == labels.PATH and not visitor.may("labeller"):
            return _message(
                403, "Not yours to label", f"{visitor.name} is a {visitor.role}; this takes a labeller (web.users)."
            )
        if request.method != "POST":
            return await self._labels.show(request, visitor)
        return await self._take_form(request, visitor, labels.PATH, lambda given: self._labels.take(given, visitor))

    async def _pause(self, request: Request, visitor: Visitor) -> Response:
        if not visitor.may("operator"):
            return _message(
                403, "Not yours to pause", f"{visitor.name} is a {visitor.role}; this takes an operator (web.users)."
            )

        async def take(given: Mapping[str, str]) -> None:
            if self._changes is None:
                raise ValueError("this process does not look for drops")
            only_known(given, _PAUSE_FIELDS.__contains__)
            action = "resume" if "resume" in given else "pause"
            asked = {name: given.get(name, "") for name in ("service", "until", "why")}
            api.change_pause(self._changes, action, *asked.values())
            audit(visitor.name, f"baseline_{action}", **asked)

        return await self._take_form(request, visitor, "/", take)

    async def _take_form(
        self, request: Request, visitor: Visitor, path: str, take: Callable[[Mapping[str, str]], Awaitable[None]]
    ) -> Response:
        """Does what a form of ours asks and leads back to `path`; what `take` cannot understand is a ValueError."""
        given = await labels.read_form(request)
        if given is None:
            return _message(413, "Too long", "tracescore does not know this form.")
        if not self._guard.form_allowed(visitor, given.get("form", "")):
            return _message(403, "Not from here", f"tracescore restarted meanwhile: open {path} again.")
        try:
            await take(given)
        except ValueError as error:
            return _message(400, "tracescore cannot save this", f"{error}.")
        return html(303, b"", headers=(("location", path),))

    async def _login(self, request: Request) -> Response:
        text = request.query
        if request.method == "POST":
            body = await request.body()
            if body is None:
                return _message(413, "Too long", f"A login has at most {LARGEST_BODY} bytes.")
            text = body.decode(errors="replace")
        given = {name: values[0] for name, values in parse_qs(text, errors="replace").items()}
        try:
            only_known(given, {"token", "next"}.__contains__)
        except ValueError as error:
            return _message(400, "Not a login", f"{error}.")
        target = _ours(given.get("next", "/"))
        if not self._guard.has_logins:
            return html(303, b"", headers=(("location", target),))
        cookie = self._guard.login(given["token"], request) if "token" in given else None
        if cookie is None:
            return self._ask_for_token(target, request, wrong="token" in given)
        return html(303, b"", headers=(("location", target), ("set-cookie", cookie)))

    async def _logout(self, request: Request, visitor: Visitor) -> Response:
        given = await labels.read_form(request) if request.method == "POST" else {}
        if not given or not self._guard.form_allowed(visitor, given.get("form", "")):
            return _message(403, "Not from here", "Log out by the button on the page.")
        cookie = self._guard.logout(visitor, request)
        return html(303, b"", headers=(("location", "/"), ("set-cookie", cookie)))

    def _ask_for_token(self, path: str, request: Request, *, wrong: bool = False) -> Response:
        if self._guard.wait(request.address):
            wait = "Five wrong tokens came from this address. Wait a minute, then log in with the right one."
            return _message(429, "Too many wrong tokens", wait, (("retry-after", "60"),))
        if not self._guard.has_logins:
            return _message(401, "By the proxy only", "The proxy in front says who you are, and it has not.")
        asked = (("www-authenticate", "Bearer"),)
        return html(401, page("login.html", next=_ours(path), wrong=wrong), headers=asked)


def _ours(path: str) -> str:
    """`path` where it is one that a login may lead to, else the overview: an address could be another site's."""
    return path if path in (labels.PATH, GOLD_PATH) or TRACE_PATH.fullmatch(path) else "/"


def _message(status: int, title: str, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    back = status in (400, 404, 500)
    return html(status, page("message.html", title=title, text=text, back=back), headers=headers)
