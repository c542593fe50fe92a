"""What the API changes, and what it hands to the command line: each call is given a visit and returns plain data.

Readers of the page may ask. What changes something takes an operator, and a header that no form of another site can
send, and that its scripts can send only after asking, which is refused.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from tracescore.drift.pauses import until
from tracescore.drift.watch import DriftWatch
from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.guard import audit
from tracescore.web.messages import LARGEST_BODY, as_json, refused
from tracescore.web.recent import is_cut
from tracescore.web.visit import KeptTexts, PageRoom, SharedParts, Visit

HEADER = "x-tracescore"
ACTIONS = ("reset", "pin", "pause", "resume")
MOST_ANCHORS = 1_000

DataRoom = Callable[[Visit], Awaitable[Any]]
"""Answers a visit with plain data; ValueError says what is allowed, CallRefused also with which status."""


class CallRefused(ValueError):
    """Why a call is not answered, with the status of HTTP that says so."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def as_room(call: DataRoom) -> PageRoom:
    """The room that answers with the data as JSON, or with the reason why not."""

    async def room(visit: Visit) -> Response:
        try:
            return as_json(200, await call(visit))
        except ValueError as error:  # orjson's is one
            return refused(error.status if isinstance(error, CallRefused) else 400, str(error))

    return room


def watching(shared: SharedParts) -> DriftWatch:
    """What looks for drops. CallRefused where nothing does."""
    if shared.changes is None:
        raise CallRefused(409, "this process does not look for drops: drift.detector is false")
    return shared.changes


def _keeping(shared: SharedParts) -> KeptTexts:
    kept = shared.kept()
    if kept is None:
        raise CallRefused(409, "this process keeps nothing")
    return kept


async def _posted(visit: Visit) -> Any:
    """The JSON that was sent; ValueError when it is none."""
    if HEADER not in visit.request.headers:
        raise CallRefused(403, f"the header {HEADER} is missing: use the command line of tracescore")
    body = await visit.request.body()
    if body is None:
        raise CallRefused(413, f"at most {LARGEST_BODY} bytes")
    return orjson.loads(body)


async def _ordered(visit: Visit) -> Any:
    """The JSON that an operator sent."""
    visitor = visit.visitor
    if not visitor.may("operator"):
        raise CallRefused(403, f"{visitor.name} is a {visitor.role}; this takes an operator (web.users)")
    return await _posted(visit)


async def _one_text(visit: Visit) -> tuple[str, str]:
    given = await _ordered(visit)
    if not isinstance(given, Mapping) or len(given) != 1 or not all(isinstance(each, str) for each in given.values()):
        raise ValueError("one name and its value expected")
    return next(iter(given.items()))


async def change_baseline(visit: Visit) -> dict[str, int]:
    """Resets or pins what is normal, or pauses detectors; how many of them it concerns."""
    changes = watching(visit.shared)
    given = await _ordered(visit)
    done = _change(given, changes)
    await visit.shared.save()
    facts = {name: given.get(name) for name in ("service", "detector", "at", "until", "why")}
    audit(visit.visitor.name, f"baseline_{given['action']}", **facts, detectors=done)
    return {"detectors": done}


async def erase(visit: Visit) -> Mapping[str, Any]:
    """Erases what is kept of a user, a trace or a conversation; the receipt."""
    what, value = await _one_text(visit)
    receipt = await _keeping(visit.shared).erase(what, value)
    audit(visit.visitor.name, f"erase_{what}", traces=receipt["traces"])  # not whom: that would be kept with the log
    return receipt


async def back_up(visit: Visit) -> Mapping[str, Any]:
    """Copies the spool to a new file."""
    what, value = await _one_text(visit)
    if what != "backup":
        raise ValueError("backup expected")
    copied = await _keeping(visit.shared).back_up(value)
    audit(visit.visitor.name, "spool_backup", path=value)
    return copied


async def spool(visit: Visit) -> Mapping[str, Any]:
    """What is in the spool."""
    return await _keeping(visit.shared).look()


async def live(visit: Visit) -> dict[str, int]:
    """How many answers of a gold run, by their marks, came in live traces."""
    given = await _posted(visit)
    marks = given.get("answers") if isinstance(given, Mapping) else None
    if not isinstance(marks, list) or not all(isinstance(each, str) for each in marks):
        raise ValueError("answers: a list of hashes expected")
    return {"live": visit.shared.live(marks)}


async def anchors(visit: Visit) -> list[dict[str, Any]]:
    """Interactions drawn at random, none of them twice, whose texts are whole."""
    given = parse_qs(visit.request.query, max_num_fields=5).get("count", ["100"])[0]
    if not given.isascii() or not given.isdigit() or not 0 < int(given[:6]) <= MOST_ANCHORS:
        raise ValueError(f"count: 1 to {MOST_ANCHORS} expected; got {given[:20]!r}")
    usable = {each.interaction.question: each for each in visit.shared.recent.results() if _whole(each)}
    drawn = random.sample(list(usable.values()), min(int(given), len(usable)))
    told = [each.interaction for each in drawn]
    return [{"question": i.question, "contexts": list(i.contexts), "answer": i.answer} for i in told]


def _whole(result: Result) -> bool:
    """Whether everything an anchor needs is there, and nothing of it was cut for the page."""
    told = result.interaction
    texts = [told.question or "", told.answer or "", *told.contexts]
    return told.state == "complete" and not told.history and all(text.strip() and not is_cut(text) for text in texts)


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
