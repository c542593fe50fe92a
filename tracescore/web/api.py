"""What the command line asks the running service: baselines, candidates for anchors, the spool. JSON in and out.

Readers of the page may ask. What changes something takes an operator, and a header that no form of another site can
send, and that its scripts can send only after asking, which is refused.
"""

import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from tracescore.drift.pauses import until
from tracescore.drift.watch import DriftWatch
from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.guard import Visitor, audit
from tracescore.web.messages import LARGEST_BODY, Request, as_json, refused
from tracescore.web.recent import Recent, is_cut
from tracescore.web.visit import CountLive, KeptTexts, SharedParts, Visit

HEADER = "x-tracescore"
ACTIONS = ("reset", "pin", "pause", "resume")
MOST_ANCHORS = 1_000


class _NotHere(ValueError):
    """What the process has no part for."""


async def answer(visit: Visit) -> Response:
    """The answer to a visitor's request."""
    request, asked = visit.request, visit.shared
    try:
        if request.path == "/api/anchors":
            return _anchors(request.query, asked.recent)
        if request.path == "/api/gold":
            given = await _posted(request)
            return given if isinstance(given, Response) else as_json(200, _counted(given, asked.live))
        if request.method == "POST":
            return await _changed(request, visit.visitor, asked)
        if request.path == "/api/baseline":
            return as_json(200, _watching(asked).show())
        if request.path == "/api/spool":
            return as_json(200, await _keeping(asked).look())
    except _NotHere as error:
        return refused(409, str(error))
    except ValueError as error:  # orjson's is one
        return refused(400, str(error))
    return refused(405, "POST expected")


def _watching(asked: SharedParts) -> DriftWatch:
    if asked.changes is None:
        raise _NotHere("this process does not look for drops: drift.detector is false")
    return asked.changes


def _keeping(asked: SharedParts) -> KeptTexts:
    kept = asked.kept()
    if kept is None:
        raise _NotHere("this process keeps nothing")
    return kept


async def _posted(request: Request) -> Any:
    """The JSON that was sent, or a refusal; ValueError when it is none."""
    if HEADER not in request.headers:
        return refused(403, f"the header {HEADER} is missing: use the command line of tracescore")
    body = await request.body()
    return refused(413, f"at most {LARGEST_BODY} bytes") if body is None else orjson.loads(body)


async def _changed(request: Request, visitor: Visitor, asked: SharedParts) -> Response:
    if request.path == "/api/baseline":
        _watching(asked)
    if not visitor.may("operator"):
        return refused(403, f"{visitor.name} is a {visitor.role}; this takes an operator (web.users)")
    given = await _posted(request)
    if isinstance(given, Response):
        return given
    if request.path == "/api/baseline":
        done = _change(given, _watching(asked))
        facts = {name: given.get(name) for name in ("service", "detector", "at", "until", "why")}
        audit(visitor.name, f"baseline_{given['action']}", **facts, detectors=done)
        return as_json(200, {"detectors": done})
    if not isinstance(given, Mapping) or len(given) != 1 or not all(isinstance(each, str) for each in given.values()):
        raise ValueError("one name and its value expected")
    ((what, value),) = given.items()
    if request.path == "/api/erase":
        receipt = await _keeping(asked).erase(what, value)
        audit(visitor.name, f"erase_{what}", traces=receipt["traces"])  # not whom: that would be kept with the log
        return as_json(200, receipt)
    if what != "backup":
        raise ValueError("backup expected")
    copied = await _keeping(asked).back_up(value)
    audit(visitor.name, "spool_backup", path=value)
    return as_json(200, copied)


def _counted(given: Any, live: CountLive) -> dict[str, int]:
    """How many answers of a gold run came in live traces."""
    marks = given.get("answers") if isinstance(given, Mapping) else None
    if not isinstance(marks, list) or not all(isinstance(each, str) for each in marks):
        raise ValueError("answers: a list of hashes expected")
    return {"live": live(marks)}


def _change(asked: Any, changes: DriftWatch) -> int:
    """Does what is asked; returns how many detectors it concerns. ValueError says what is allowed."""
    action = asked.get("action") if isinstance(asked, Mapping) else None
    if action not in ACTIONS:
        raise ValueError(f"action: one of {', '.join(ACTIONS)} expected")
    service, name, at = asked.get("service"), asked.get("detector"), asked.get("at")
    for field in ("service", "detector", "until", "why"):
        if asked.get(field) is not None and not isinstance(asked[field], str):
            raise ValueError(f"{field}: a text expected")
    if action in ("pause", "resume"):
        return change_pause(changes, action, service or "", asked.get("until") or "", asked.get("why") or "")
    if action == "reset":
        return changes.reset(service, name)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float) or not 0 < at < 1):
        raise ValueError(f"at: a number between 0 and 1 expected; got {str(at)[:40]!r}")
    if at is not None and name is None:
        raise ValueError("at: a value belongs to one detector; name it with --detector")
    return changes.pin(service, name, at)


def change_pause(changes: DriftWatch, action: str, service: str, end: str, why: str) -> int:
    """Begins or ends a pause; returns how many detectors it concerns. ValueError says what is allowed."""
    if action == "resume":
        return changes.end_pause(service)
    return changes.pause(service, until(end, changes.now), why)


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
