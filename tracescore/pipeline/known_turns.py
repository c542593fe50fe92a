"""Follow-up questions whose traces do not tell what was said before: told by the id of their conversation.

The earlier turns are those that this process has read, in whatever traces; where it knows only that there were any (it
was restarted since, or their texts were let go), the interaction is a later turn without a history, and what
needs one is not scored.
"""

from collections import OrderedDict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple

from tracescore.model import Interaction, Message
from tracescore.spool.state import Persisted, StateCodec

_MOST = 10_000
"""Conversations that are remembered, those that went on last."""
_CHARACTERS = 8_000_000
"""Characters of all their turns together."""
_TURNS = 3
"""Turns of one conversation whose texts are kept, the last ones."""
_QUESTION, _ANSWER = 2_000, 4_000
"""Characters that are kept of each."""


class _Turn(NamedTuple):
    start: int
    question: str
    answer: str
    trace_id: str

    @property
    def size(self) -> int:
        return len(self.question) + len(self.answer)


@dataclass(slots=True)
class _Conversation:
    """`first` is when its first known turn started, in Unix nanoseconds; `turns` are in order of start."""

    first: int
    turns: list[_Turn] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(turn.size for turn in self.turns)

    def before(self, start: int) -> Iterator[Message]:
        for turn in self.turns:
            if turn.start < start:
                yield Message("user", turn.question)
                yield Message("assistant", turn.answer)

    def add(self, turn: _Turn) -> None:
        others = [one for one in self.turns if one.start != turn.start]
        self.turns = sorted([*others, turn])[-_TURNS:]


@dataclass(frozen=True, slots=True)
class KnownTurnsState(Persisted):
    """(hash of service and conversation, start of its first turn) of each, the one that went on last at the end."""

    first: tuple[tuple[int, int], ...] = ()


class KnownTurns:
    """Remembers conversations up to fixed numbers of them and of characters."""

    codec = StateCodec(KnownTurnsState)

    def __init__(self) -> None:
        self._known: OrderedDict[int, _Conversation] = OrderedDict()
        self._characters = 0

    def placed(self, interaction: Interaction) -> Interaction:
        """The interaction as a later turn, with what was said before it, where an earlier one is known.

        What its own trace tells of earlier turns is left as it is. The same interaction again changes nothing.
        """
        if not interaction.conversation_id:
            return interaction
        start, key = interaction.start_unix_nano, _hash(interaction)
        known = self._known.pop(key, None) or _Conversation(start)
        self._characters -= known.size
        later, history = known.first < start, tuple(known.before(start))
        known.first = min(known.first, start)
        if interaction.question and interaction.answer:
            known.add(
                _Turn(start, interaction.question[:_QUESTION], interaction.answer[:_ANSWER], interaction.trace_id)
            )
        self._known[key] = known
        self._characters += known.size
        self._forget()
        if not later or interaction.history:
            return interaction
        return replace(interaction, history=history, slices={**interaction.slices, "turn": "later"})

    def forget(self, trace_ids: Container[str]) -> int:
        """Forgets what was said in these traces; how many turns that was."""
        gone = 0
        for known in self._known.values():
            kept = [turn for turn in known.turns if turn.trace_id not in trace_ids]
            gone += len(known.turns) - len(kept)
            self._characters -= known.size
            known.turns = kept
            self._characters += known.size
        return gone

    def _forget(self) -> None:
        while len(self._known) > _MOST or self._characters > _CHARACTERS:
            self._characters -= self._known.popitem(last=False)[1].size

    def state(self) -> KnownTurnsState:
        """Which conversations there were; what was said in them is not kept."""
        return KnownTurnsState(tuple((key, known.first) for key, known in self._known.items()))

    def resume(self, state: KnownTurnsState) -> None:
        """Goes on from the state of an earlier process."""
        self._known = OrderedDict((key, _Conversation(first)) for key, first in state.first)
        self._characters = 0


def _hash(interaction: Interaction) -> int:
    """64 bits that stand for the conversation, as ids may be names of users."""
    named = f"{interaction.service}\0{interaction.conversation_id}".encode(errors="replace")
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "big")
