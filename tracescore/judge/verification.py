"""Verdicts on a list of statements: batches, windows of evidence, and one second try for what is missing.

The second try is in small groups, and alone for a verdict whose quote does not stand in the evidence: judges quote
better what they look at alone, and only credit needs a quote, so what would be lost is not lost at random.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio.to_thread

from tracescore.embedder import Embedder
from tracescore.errors import JudgeError
from tracescore.formulas import Vector
from tracescore.judge.chat import ALL_SPENT
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.prompt import tokens
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import Drop, read_verdicts
from tracescore.judge.windows import nearness, passages, window
from tracescore.runtime import gather

_ROOM, _ROOM_PER_VERDICT = 1_024, 200
"""Tokens of a reply: for thinking aloud, and for a verdict with its reason and a quote from two passages."""
_BATCH, _WINDOW_BATCH, _AGAIN_BATCH = 20, 5, 3
"""Statements per request: with all the evidence, with a window of it, and when asked for the second time."""
_PER_STATEMENT = 200
"""Tokens of input that a statement needs: where a model reads little, it also writes few verdicts at once."""

Verified = tuple[dict[str, Verdict], dict[str, Drop]]
Asking = Callable[[Mapping[str, Any], str, Callable[[Mapping[str, Any]], Verified], int], Awaitable[Verified]]
"""Sends data under the prompt of the vocabulary; then the key of the reply, its reader, and its room in tokens."""


class Verification:
    """Statements by id against one body of evidence."""

    def __init__(
        self,
        asking: Asking,
        count_drop: Callable[[Drop, int], None],
        evidence: Sequence[str],
        vocabulary: Vocabulary,
        question: str,
    ) -> None:
        self._asking = asking
        self._count_drop = count_drop
        self._evidence = evidence
        self._quotable = Quotable(evidence)
        self._vocabulary = vocabulary
        self._question = question
        self._batch = _BATCH
        self._room = 0
        self._pieces: list[str] = []
        self._near: Vector | None = None
        self._rows: dict[str, int] = {}
        self._windows: dict[tuple[str, ...], int] = {}

    async def choose_windows(self, named: Mapping[str, str], max_input: int, embedder: Embedder | None) -> None:
        """Where all the evidence does not fit in `max_input` tokens, ranks its passages for each statement.

        Raises JudgeError when the statements alone leave no room for evidence.
        """
        self._batch = min(_BATCH, max(_AGAIN_BATCH, max_input // _PER_STATEMENT))
        statements = sorted((tokens(text) for text in named.values()), reverse=True)
        around = tokens(self._question) + sum(statements[: self._batch])
        if around + sum(tokens(text) for text in self._evidence) <= max_input:
            return
        self._batch = min(self._batch, _WINDOW_BATCH)
        self._room = max_input - tokens(self._question) - sum(statements[:_WINDOW_BATCH])
        self._pieces = await anyio.to_thread.run_sync(passages, self._evidence)
        if self._room < max(tokens(piece) for piece in self._pieces):
            raise JudgeError("judge_input_too_long", "the statements leave no room for evidence")
        self._near = await nearness(list(named.values()), self._pieces, embedder)
        self._rows = {name: row for row, name in enumerate(named)}

    async def run(self, named: Mapping[str, str]) -> dict[str, Verdict]:
        """Verdicts by id; ids that the judge left out twice are not in it."""
        names = list(named)
        found = await gather([partial(self._ask, named, batch) for batch in _batches(names, self._batch)])
        verdicts = {name: verdict for some, _ in found for name, verdict in some.items()}
        unquoted = [name for _, drops in found for name, drop in drops.items() if drop == "evidence_unverified"]
        missing = [name for name in names if name not in verdicts and name not in unquoted]
        batches = [*_batches(missing, _AGAIN_BATCH), *_batches(unquoted, 1)]
        again = await gather([partial(self._ask_again, named, batch) for batch in batches])
        return verdicts | {name: verdict for some in again for name, verdict in some.items()}

    async def _ask(self, named: Mapping[str, str], names: Sequence[str]) -> Verified:
        rows = [{"id": name, "text": named[name]} for name in names]
        seen = self._seen(names)
        data = {"evidence": seen, "question": self._question, "statements": rows}
        read = partial(read_verdicts, ids=names, evidence=self._quotable, vocabulary=self._vocabulary)
        verdicts, drops = await self._asking(data, "verdicts", read, _ROOM + len(names) * _ROOM_PER_VERDICT)
        for drop in drops.values():
            self._count_drop(drop, 1)
        if not verdicts:
            return {}, drops
        window = self._windows.setdefault(tuple(seen), len(self._windows))
        return {name: replace(verdict, window=window) for name, verdict in verdicts.items()}, drops

    async def _ask_again(self, named: Mapping[str, str], names: Sequence[str]) -> dict[str, Verdict]:
        """What the second try gives; its failure costs only the statements it was about."""
        try:
            verdicts, _ = await self._ask(named, names)
        except JudgeError as error:
            if error.reason == "judge_mixed" or error.detail == ALL_SPENT:
                raise
            return {}
        return verdicts

    def _seen(self, names: Sequence[str]) -> Sequence[str]:
        if self._near is None:
            return self._evidence
        return window(self._near[[self._rows[name] for name in names]], self._pieces, self._room)


def _batches(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]
