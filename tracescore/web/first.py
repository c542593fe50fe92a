"""Until the first score: how to send the first span, and how far what was sent has come."""

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from tracescore.config.types import host_port
from tracescore.net.asgi import Response
from tracescore.pipeline.ledger import Snapshot
from tracescore.web import views
from tracescore.web.visit import Visit

FirstStage = Literal["spans", "read", "texts", "scoring", "scores"]
"""What is missing: any span, an interaction, its texts, the judge's verdict, or an interaction that can be scored."""
_NAME = re.compile(r"[A-Za-z0-9.-]{1,253}", re.ASCII)
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is looked for, not what is listened at


def is_waiting(ledger: Snapshot) -> bool:
    """Whether nothing has been scored yet."""
    return not any(tally.scored for tally in ledger.evaluations.values())


def stage(ledger: Snapshot) -> FirstStage:
    """How far the first interaction has come."""
    read = sum(ledger.interactions.values())
    if not read:
        return "read" if ledger.spans else "spans"
    if any(tally.pending for tally in ledger.evaluations.values()):
        return "scoring"
    return "texts" if ledger.interactions.get("content_not_captured", 0) else "scores"


def show(visit: Visit, ledger: Snapshot) -> Response:
    """The page: where to send to, with what settings, and what became of what was sent."""
    shared = visit.shared
    silent = views.silent(shared.recent.results())
    reasons = {pair for tally in ledger.evaluations.values() for outcome in ("skipped", "unscored", "shed")
               for pair in tally.by_reason(outcome)}  # fmt: skip
    host = visit.request.headers.get("host", "")
    values: dict[str, Any] = {
        "stage": stage(ledger),
        "spans": ledger.spans,
        "read": sum(ledger.interactions.values()),
        "not_captured": ledger.interactions.get("content_not_captured", 0),
        "endpoints": {protocol: reachable(url, host) for protocol, url in shared.endpoints.items()},
        "switches": [(told or convention, shared.switch(convention, told)) for convention, told in silent],
        "reasons": sorted(reasons, key=lambda pair: (-pair[1], pair[0])),
    }
    return visit.page("first.html", **values)


def reachable(url: str, host: str) -> str:
    """An endpoint that is bound to all addresses, by the name under which the reader (`host`) reached this machine."""
    found = urlsplit(url)
    try:
        name = host_port(host, default=80)[0]
    except ValueError:
        return url
    if found.hostname not in _EVERYWHERE or _NAME.fullmatch(name) is None:
        return url
    return f"{found.scheme}://{name}:{found.port}"
