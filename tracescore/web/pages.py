"""The page as a raw ASGI app, and the exporter that feeds it. Everything is rendered here; page.js only renews it.

Which room answers which address: routes.py. What a room may ask: `SharedParts` in visit.py.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from prometheus_client import CollectorRegistry, Counter

from tracescore import logs
from tracescore.calibration.labelling import Labelling
from tracescore.config import WebConfig
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.gold.runner import GoldRunner
from tracescore.model import Clock, Result
from tracescore.net.access import AccessMetrics
from tracescore.net.asgi import Receive, Response, Scope, Send, respond
from tracescore.pipeline.ledger import Snapshot
from tracescore.web import routes, views
from tracescore.web.entrance import Entrance
from tracescore.web.guard import Guard
from tracescore.web.history import History
from tracescore.web.messages import Request, told
from tracescore.web.recent import Recent
from tracescore.web.render import asset
from tracescore.web.saving import Saving
from tracescore.web.visit import CountLive, KeptTexts, SharedParts, Visit

_log = logging.getLogger("tracescore.web")

ASSETS = {
    "/style.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/icon.svg": "image/svg+xml",
}
STATUSES = (200, 303, 400, 401, 403, 404, 405, 409, 413, 429, 500)

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
SAFETY = (
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
"""On every response: no script but page.js is run; nothing is framed, guessed at, leaked by a link, or cached."""


class Pages:
    """Keeps the last results and shows them. Its `history` is an exporter of its own: it goes on after a restart.

    The parts are those of `SharedParts`; results leave the page after `age` seconds; `estimating` is for
    `views.Estimating`. Raises UsageError when the token cannot be read.
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
        gold: GoldRunner | None = None,
        age: float | None = None,
        kept: Callable[[], KeptTexts | None] = lambda: None,
        live: CountLive = lambda _: 0,
        saving: Saving | None = None,
        estimating: tuple[float, float] = (1.0, 20.0),
    ) -> None:
        guard, self.history = Guard(settings, access), History(clock)
        self._entrance = Entrance(guard, routes.is_page)
        self._shared = SharedParts(
            settings=settings,
            guard=guard,
            clock=clock,
            recent=Recent(settings.keep, clock, age),
            history=self.history,
            ledger=ledger,
            releases=releases,
            endpoints=endpoints,
            target=target,
            switch=switch,
            changes=changes,
            labelling=labelling,
            gold=gold,
            kept=kept,
            live=live,
            saving=saving,
            estimating=views.Estimating(*estimating),
        )
        self._requests = Counter(
            "tracescore_web_requests_total", "Requests to the page, by HTTP status.", ["status"], registry=registry
        )
        for status in STATUSES:
            self._requests.labels(str(status))

    async def export(self, result: Result) -> None:
        """Keeps one result for the page; the oldest one goes when there are too many."""
        self._shared.recent.add(result)

    async def forget_traces(self, trace_ids: frozenset[str]) -> int:
        """Forgets what the page keeps of these traces."""
        saving = self._shared.saving
        return self._shared.recent.forget(trace_ids) + (saving.forget(trace_ids) if saving else 0)

    async def close(self) -> None:
        """Nothing to release."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI app."""
        request = Request.of(scope, receive)
        try:
            response = await self._respond(request)
        except Exception as error:  # noqa: BLE001 - one bad page must not hide the others
            logs.defect(_log, error)
            response = told(
                request, 500, "tracescore cannot show this page", "tracescore failed; see event=defect in its log."
            )
        self._requests.labels(str(response.status)).inc()
        safe = replace(response, headers=(*SAFETY, *response.headers))
        await respond(send, safe, with_body=request.method != "HEAD")

    async def _respond(self, request: Request) -> Response:
        path, guard = request.path, self._shared.guard
        if not guard.host_allowed(request.headers.get("host", "")):
            return told(request, 403, "Wrong host name", "Open the page as localhost, or at the address it listens on.")
        allowed = ("GET", "HEAD", "POST") if path == "/login" else routes.methods(path)
        if request.method not in allowed:
            allow = (("allow", ", ".join(allowed)),)
            return told(request, 405, "Method not allowed", "This address can only be read.", allow)
        if path in ASSETS:
            return Response(200, asset(path[1:]), ASSETS[path])
        if path == "/login":
            return await self._entrance.login(request)
        visitor = guard.visitor(request)
        if visitor is None:
            return self._entrance.ask(request)
        found = routes.find(path, request.method)
        if found is None:
            nowhere = Visit(request, visitor, self._shared)
            return nowhere.message(
                404, "Nothing here", "No page has this address. The navigation leads to all of them."
            )
        room, parts = found
        return await room(Visit(request, visitor, self._shared, parts))
