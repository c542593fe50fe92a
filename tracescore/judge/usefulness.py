"""Verdicts on passages: in batches that fit, each with a quote from the passage itself, and a second try."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tracescore.errors import JudgeError
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.prompt import tokens
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import Drop, read_verdicts
from tracescore.judge.verification import Asking, Verified
from tracescore.runtime import gather

_ROOM, _ROOM_PER_PASSAGE = 1_024, 150
_BATCH = 12
"""Passages per request: more than most retrievers return."""


class Usefulness:
    """Whether passages hold what a right answer needs. `around` is what they are judged by: question and answers."""

    def __init__(
        self, asking: Asking, count_drop: Callable[[Drop, int], None], around: Mapping[str, str], max_input: int
    ) -> None:
        self._asking = asking
        self._count_drop = count_drop
        self._around = around
        self._room = max_input - sum(map(tokens, around.values()))

    async def run(self, named: Mapping[str, str]) -> dict[str, Verdict]:
        """Verdicts by id; ids that the judge left out twice are not in it. JudgeError when a passage does not fit."""
        if (longest := max(map(tokens, named.values()))) > self._room:
            raise JudgeError("judge_input_too_long", f"a passage of about {longest} tokens; room for {self._room}")
        first = await gather([partial(self._ask, batch) for batch in self._batches(named)])
        verdicts = {name: verdict for some in first for name, verdict in some.items()}
        missing = {name: text for name, text in named.items() if name not in verdicts}
        again = await gather([partial(self._ask_again, batch) for batch in self._batches(missing)])
        return verdicts | {name: verdict for some in again for name, verdict in some.items()}

    async def _ask(self, passages: Mapping[str, str]) -> dict[str, Verdict]:
        rows = [{"id": name, "text": text} for name, text in passages.items()]
        evidence = {name: Quotable([text]) for name, text in passages.items()}
        read: Callable[[Mapping[str, object]], Verified]
        read = partial(read_verdicts, ids=list(passages), evidence=evidence, vocabulary=Vocabulary.USEFULNESS)
        room = _ROOM + len(passages) * _ROOM_PER_PASSAGE
        verdicts, drops = await self._asking({**self._around, "passages": rows}, "verdicts", read, room)
        for drop in drops.values():
            self._count_drop(drop, 1)
        return verdicts

    async def _ask_again(self, passages: Mapping[str, str]) -> dict[str, Verdict]:
        """What the second try gives; its failure costs only the passages it was about."""
        try:
            return await self._ask(passages)
        except JudgeError as error:
            if error.reason == "judge_mixed":
                raise
            return {}

    def _batches(self, named: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        batch: dict[str, str] = {}
        size = 0
        for name, text in named.items():
            if batch and (len(batch) == _BATCH or size + tokens(text) > self._room):
                yield batch
                batch, size = {}, 0
            batch[name] = text
            size += tokens(text)
        if batch:
            yield batch
