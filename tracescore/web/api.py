"""What the command line asks the running service: baselines, and candidates for anchors. JSON in and out.

Whoever may read the page may ask. What changes something takes an operator, and a header that no form of another site
can send, and that its scripts can send only after asking, which is refused.
"""

import random
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qs

import orjson

from tracescore.drift.watch import DriftWatch
from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.guard import Visitor, audit
from tracescore.web.messages import LARGEST_BODY, Request, as_json, refused
from tracescore.web.recent import Recent, is_cut

CHANGING = ("/api/baseline", "/api/erase", "/api/spool")
PATHS = (*CHANGING, "/api/anchors")
HEADER = "x-tracescore"
MOST_ANCHORS = 1_000


class KeptTexts(Protocol):
    """What is kept of users. ValueError from each: why not."""

    async def erase(self, what: str, value: str) -> Mapping[str, Any]:
        """Erases a `user`, a `trace` or a `conversation` by its id; the receipt."""
        ...

    async def look(self) -> Mapping[str, Any]:
        """What is in the spool."""
        ...

    async def back_up(self, path: str) -> Mapping[str, Any]:
        """Copies it to a new file."""
        ...


async def answer(
    request: Request, visitor: Visitor, changes: DriftWatch | None, recent: Recent, kept: KeptTexts | None
) -> Response:
    """The answer to a visitor's request."""
    try:
        if request.path == "/api/anchors":
            return _anchors(request.query, recent)
        if request.method == "POST":
            return await _changed(request, visitor, changes, kept)
        if request.path == "/api/baseline":
            return as_json(200, _watching(changes).show())
        if request.path == "/api/spool" and kept is not None:
            return as_json(200, await kept.look())
    except _NotHere as error:
        return refused(409, str(error))
    except ValueError as error:  # orjson's is one
        return refused(400, str(error))
    return refused(405, "POST expected")


class _NotHere(ValueError):
    """What the process has no part for."""


def _watching(changes: DriftWatch | None) -> DriftWatch:
    if changes is None:
        raise _NotHere("this process does not watch for changes: drift.detector is false")
    return changes


async def _changed(request: Request, visitor: Visitor, changes: DriftWatch | None, kept: KeptTexts | None) -> Response:
    if request.path == "/api/baseline":
        _watching(changes)
    if not visitor.may("operator"):
        return refused(403, f"{visitor.name} is a {visitor.role}; this takes an operator (web.users)")
    if HEADER not in request.headers:
        return refused(403, f"the header {HEADER} is missing: use the command line")
    body = await request.body()
    if body is None:
        return refused(413, f"at most {LARGEST_BODY} bytes")
    asked = orjson.loads(body)
    if request.path == "/api/baseline":
        done = _change(asked, _watching(changes))
        facts = {name: asked.get(name) for name in ("service", "detector", "at")}
        audit(visitor.name, f"baseline_{asked['action']}", **facts, detectors=done)
        return as_json(200, {"detectors": done})
    if not isinstance(asked, Mapping) or len(asked) != 1 or not all(isinstance(each, str) for each in asked.values()):
        raise ValueError("one name and its value expected")
    if kept is None:
        raise _NotHere("this process keeps nothing")
    ((what, value),) = asked.items()
    if request.path == "/api/erase":
        receipt = await kept.erase(what, value)
        audit(visitor.name, f"erase_{what}", traces=receipt["traces"])  # not whom: that would be kept with the log
        return as_json(200, receipt)
    if what != "backup":
        raise ValueError("backup expected")
    copied = await kept.back_up(value)
    audit(visitor.name, "spool_backup", path=value)
    return as_json(200, copied)


def _change(asked: Any, changes: DriftWatch) -> int:
    if not isinstance(asked, Mapping) or asked.get("action") not in ("reset", "pin"):
        raise ValueError("action: reset or pin expected")
    service, name, at = asked.get("service"), asked.get("detector"), asked.get("at")
    if service is not None and not isinstance(service, str):
        raise ValueError("service: a name expected")
    if name is not None and not isinstance(name, str):
        raise ValueError("detector: a name expected")
    if asked["action"] == "reset":
        return changes.reset(service, name)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1):
        raise ValueError(f"at: a number between 0 and 1 expected; got {str(at)[:40]!r}")
    if at is not None and name is None:
        raise ValueError("at: one value fits one detector; name it")
    return changes.pin(service, name, at)


def _anchors(query: str, recent: Recent) -> Response:
    given = parse_qs(query, max_num_fields=5).get("count", ["100"])[0]
    if not given.isascii() or not given.isdigit() or not 0 < int(given[:6]) <= MOST_ANCHORS:
        return refused(400, f"count: 1 to {MOST_ANCHORS} expected; got {given[:20]!r}")
    usable = {each.interaction.question: each for each in recent.results() if _whole(each)}
    drawn = random.sample(list(usable.values()), min(int(given), len(usable)))
    told = [each.interaction for each in drawn]
    return as_json(200, [{"question": i.question, "contexts": i.contexts, "answer": i.answer} for i in told])


def _whole(result: Result) -> bool:
    """Whether everything an anchor needs is there, and nothing of it was cut for the page."""
    told = result.interaction
    texts = [told.question or "", told.answer or "", *told.contexts]
    return told.state == "complete" and not told.history and all(text.strip() and not is_cut(text) for text in texts)
