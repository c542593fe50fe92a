"""Sums over conversations, kept up turn by turn.

Answers of one conversation resemble each other: squared one by one they promise more than they know. So the squared
sums are over conversations. A turn of weight w and score s in a conversation that holds the sums W of weights and S of
weight x score so far raises the sum of W^2 by (W + w)^2 - W^2, that of W S by (W + w)(S + w s) - W S, and that of S^2
by (S + w s)^2 - S^2; none of them ever falls. An answer that belongs to no conversation is one by itself.
"""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from pydantic import NonNegativeFloat, PositiveFloat

MOST_OPEN = 20_000
"""Conversations that are remembered, each once for every label set it is counted under; the longest silent go first."""
_LONGEST = 6 * 3600.0
"""Seconds after which a conversation that goes on is another one: a session that never ends is no single answer."""


class Squares(NamedTuple):
    """What the sums of W^2, W S and S^2 over conversations grow by."""

    weight_squared: float
    weight_squared_score: float
    weight_squared_score_squared: float


OpenConversationState = tuple[str, NonNegativeFloat, PositiveFloat, NonNegativeFloat]
"""What is kept of one: a hash that stands for it, when it began (Unix seconds), W and S."""


class OpenConversations:
    """The conversations that may go on. Their ids are the app's, so that hashes of them are kept."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._open: OrderedDict[str, tuple[float, float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, of: Iterable[str], conversation: str, weight: float, score: float, at: float) -> Squares:
        """Counts a score of `weight` > 0 that was given `at` (Unix seconds), among those `of` one label set."""
        began, total, scored = at, 0.0, 0.0
        if conversation:
            key = blake2b("\0".join((*of, conversation)).encode(errors="replace"), digest_size=8).hexdigest()
            known = self._open.get(key)
            if known is not None and at - known[0] <= _LONGEST:
                began, total, scored = known
            self._open[key] = began, total + weight, scored + weight * score
            self._open.move_to_end(key)
            if len(self._open) > self._most:
                self._open.popitem(last=False)
        more = weight * score
        return Squares(
            weight * (weight + 2 * total), total * more + weight * scored + weight * more, more * (more + 2 * scored)
        )

    def state(self) -> tuple[OpenConversationState, ...]:
        """What `resume` goes on from, the longest silent first."""
        return tuple((key, *sums) for key, sums in self._open.items())

    def resume(self, state: Iterable[OpenConversationState]) -> None:
        """Goes on from the state of an earlier process."""
        self._open = OrderedDict((key, (began, total, scored)) for key, began, total, scored in state)
