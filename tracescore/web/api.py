"""What the command line asks the running service: baselines, and candidates for anchors. JSON in and out.

Readers of the page may ask. What changes something also needs a header that no form of another site can send,
and that its scripts can send only after asking, which is refused.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson

from tracescore.drift.watch import DriftWatch
from tracescore.model import Result
from tracescore.net.asgi import Response
from tracescore.web.messages import LARGEST_BODY, Request, as_json, refused
from tracescore.web.recent import Recent, is_cut

PATHS = ("/api/baseline", "/api/anchors", "/api/gold")
HEADER = "x-tracescore"
MOST_ANCHORS = 1_000
CountLive = Callable[[Sequence[str]], int]
"""How many of these answers, by their marks, came in live traces."""


@dataclass(frozen=True, slots=True)
class Informants:
    """Who knows the answers: what watches for changes, if anything does, the latest results, the traffic seen."""

    changes: DriftWatch | None
    recent: Recent
    live: CountLive


async def answer(request: Request, asked: Informants) -> Response:
    """The answer to a request whose token has been checked."""
    if request.path == "/api/anchors":
        return _anchors(request.query, asked.recent)
    if request.path == "/api/gold":
        return await _posted(request, lambda given: _counted(given, asked.live))
    changes = asked.changes
    if changes is None:
        return refused(409, "this process does not look for drops: drift.detector is false")
    if request.method != "POST":
        return as_json(200, changes.show())
    return await _posted(request, lambda given: {"detectors": _change(given, changes)})


async def _posted(request: Request, do: Callable[[Any], dict[str, int]]) -> Response:
    """What `do` makes of the JSON that was sent; it raises ValueError for what is wrong with it."""
    if HEADER not in request.headers:
        return refused(403, f"the header {HEADER} is missing: use the command line of tracescore")
    body = await request.body()
    if body is None:
        return refused(413, f"at most {LARGEST_BODY} bytes")
    try:
        return as_json(200, do(orjson.loads(body)))
    except ValueError as error:  # orjson's is one
        return refused(400, str(error))


def _counted(given: Any, live: CountLive) -> dict[str, int]:
    """How many answers of a gold run came in live traces."""
    marks = given.get("answers") if isinstance(given, Mapping) else None
    if not isinstance(marks, list) or not all(isinstance(each, str) for each in marks):
        raise ValueError("answers: a list of hashes expected")
    return {"live": live(marks)}


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
