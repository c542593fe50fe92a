"""Whether answers to gold questions came as live traffic: then the app does not pass the traceparent header on.

An app that begins a trace of its own hides that a gold request caused it, so the answers are compared. What is kept of
them are hashes. One answer that users got too is no evidence, so only more than half of the answers of a run are.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

_KEPT = 10_000
"""Answers that are remembered."""
ADVICE = (
    "the app does not pass the traceparent header on, so its answers to gold questions count as live traffic: "
    "instrument its HTTP server, or take the trace context from the request"
)


def mark(answer: str | None) -> str:
    """What an answer is compared by, whatever its spacing; empty for none and a blank one."""
    plain = " ".join((answer or "").split())
    return hashlib.blake2b(plain.encode(errors="surrogatepass"), digest_size=16).hexdigest() if plain else ""


def leaked(live: int, answers: int) -> bool:
    """Whether so many of so many answers among the live ones are more than chance."""
    return live * 2 > answers


class LiveAnswers:
    """Remembers the answers of the latest live traces."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, None] = OrderedDict()

    def add(self, answers: Iterable[str | None]) -> None:
        """Takes in the answers of a live trace."""
        for each in filter(None, map(mark, answers)):
            self._kept[each] = None
            self._kept.move_to_end(each)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def count(self, marks: Iterable[str]) -> int:
        """How many of these answers came in live traces."""
        return sum(each in self._kept for each in marks)
