"""Whether it was the judge that moved: fixed items, scored again as soon as anything is suspected.

What a fixed item scores depends on the judge alone. Scores of 100 items, compared one by one with the mean of three
earlier passes, show a shift of .05 in 96 of 100 cases, where a judge that is asked twice differs by .10; 30 items
show it in 43. A nightly pass would come too late: people are told of the change before.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import NormalDist
from typing import Literal, NamedTuple, get_args

import anyio
import numpy as np
import orjson

from tracescore.drift.observations import Against, DetectorKind, Name, kind_scores
from tracescore.errors import UsageError
from tracescore.model import Clock, Interaction, Result

_log = logging.getLogger("tracescore.drift")

DriftVerdict = Literal["none", "pending", "product", "judge", "unattributed"]
"""Nothing has changed; the anchors are being scored; the judge stands where it stood; it has moved; nobody knows."""
VERDICTS: tuple[DriftVerdict, ...] = get_args(DriftVerdict)

PASSES = 3
"""Passes whose mean is what later ones are compared with."""
SURE = 0.005
"""Chance of a difference at least as large were the judge the same, below which it has moved."""
LEAST_ITEMS = 30
"""Items that must have been scored before it can be said that the judge has not moved."""
_AT_ONCE = 4
_REST = 3600.0
"""Seconds between two passes at least."""
_RETRY = 60.0

Rescore = Callable[[Interaction], Awaitable[Result]]
"""Scores an interaction with nothing remembered."""
Values = dict[DetectorKind, list[float | None]]
"""What each item told each detector."""


class Shift(NamedTuple):
    """How far the judge has moved: mean difference, its chance by luck alone, and of how many items."""

    mean: float
    chance: float
    items: int


def shift(before: Sequence[float | None], after: Sequence[float | None]) -> Shift | None:
    """Paired t-test of what the items scored before and after; None where fewer than two have both.

    The t distribution is brought to the normal one by Wallace's formula (Ann. Math. Stat. 30, 1959), which is right to
    three digits from ten items on.
    """
    pairs = [(a, b) for b, a in zip(before, after, strict=True) if a is not None and b is not None]
    if len(pairs) < 2:
        return None
    differences = np.array([a - b for a, b in pairs])
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(pairs))
    if error < 1e-12:
        return Shift(mean, float(abs(mean) < 1e-9), len(pairs))
    free = len(pairs) - 1
    z = (8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p((mean / error) ** 2 / free))
    return Shift(mean, 2 * NormalDist().cdf(-z), len(pairs))


def read_anchors(path: str) -> list[Interaction]:
    """The items of a file of JSON lines {question, contexts, answer}; UsageError says what is wrong with it."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"drift.anchors: {path} cannot be read: {error.strerror}") from None
    items = [_item(line, f"{path}:{number}", number) for number, line in enumerate(lines, 1) if line.strip()]
    if len(items) < 2:
        raise UsageError(f"drift.anchors: {path}: at least 2 items expected, better 100; got {len(items)}")
    return items


def _item(line: bytes, where: str, number: int) -> Interaction:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = None
    texts = [row.get("question"), row.get("answer")] if isinstance(row, dict) else [None]
    contexts = row.get("contexts") if isinstance(row, dict) else None
    good = all(isinstance(text, str) and text.strip() for text in texts)
    if not good or not isinstance(contexts, list) or not all(isinstance(each, str) for each in contexts):
        raise UsageError(
            f"drift.anchors: {where}: {{question, contexts, answer}} expected, texts and a list of texts; "
            "`tracescore anchors make` writes such lines"
        )
    return Interaction(
        trace_id=f"{number:032x}",
        span_id="anchor",
        state="complete" if contexts else "no_contexts",
        question=texts[0],
        answer=texts[1],
        contexts=tuple(contexts),
        context_source="retrieval" if contexts else "none",
    )


@dataclass(frozen=True, slots=True)
class Pass:
    """All items scored once, from `began` to `ended` (Unix seconds)."""

    began: float
    ended: float
    values: Values


ValuesState = tuple[tuple[Name, Against, tuple[float | None, ...]], ...]
"""What is kept of `Values`."""


@dataclass(frozen=True, slots=True)
class AnchorsState:
    """What is kept: the mark of the items, the judge and its epoch, the first passes, and when the last one was."""

    mark: str
    epoch: tuple[str, int] | tuple[()]
    before: tuple[ValuesState, ...]
    last: tuple[float, float, ValuesState] | None
    passes: int


class Anchors:
    """Keeps what the items scored when the judge was as it should be, and compares when asked to."""

    def __init__(self, items: Sequence[Interaction], rescore: Rescore, clock: Clock, deadline: float) -> None:
        """`deadline`: seconds that a verdict waits for a pass."""
        self._items, self._rescore, self._clock, self._deadline = items, rescore, clock, deadline
        text = orjson.dumps([[each.question, each.answer, *each.contexts] for each in items])
        self._mark = sha256(text).hexdigest()[:12]
        self._epoch: tuple[str, int] | tuple[()] = ()
        self._before: list[Values] = []
        self._last: Pass | None = None
        self._wanted, self._running = anyio.Event(), False
        self.passes = 0
        if len(items) < LEAST_ITEMS:
            _log.warning(
                'event=few_anchors items=%d advice="use 100; fewer than %d cannot clear the judge"',
                len(items),
                LEAST_ITEMS,
            )

    def request_pass(self, since: float) -> None:
        """Something may have changed at `since`: the items are to be scored, unless they were after that."""
        now, last = self._clock(), self._last
        if self._running or (last is not None and (last.began >= since or now - last.ended < _REST)):
            return
        self._wanted.set()

    def forget(self) -> None:
        """The judge is another one: what the items scored before means nothing any more."""
        self._before, self._last = [], None
        self._wanted.set()

    async def serve(self) -> None:
        """Learns what the items score, then scores them whenever that is wanted. Ends only when cancelled."""
        while True:
            if len(self._before) >= PASSES:
                await self._wanted.wait()
            self._wanted, self._running = anyio.Event(), True
            try:
                done = await self._pass()
            finally:
                self._running = False
            if done is None:
                await anyio.sleep(_RETRY)
            elif len(self._before) < PASSES:
                self._before.append(done.values)
                if len(self._before) == PASSES:
                    _log.info("event=anchors_known items=%d", len(self._items))
            else:
                self._last = done
                _log.info("event=anchors_scored items=%d seconds=%.0f", len(self._items), done.ended - done.began)

    async def _pass(self) -> Pass | None:
        """None where the judge did not answer most of them, or has become another one meanwhile."""
        began, limiter = self._clock(), anyio.CapacityLimiter(_AT_ONCE)
        scored: dict[int, Result] = {}

        async def score(number: int, item: Interaction) -> None:
            async with limiter:
                scored[number] = await self._rescore(replace(item, span_id=f"anchor-{self.passes}"))

        async with anyio.create_task_group() as tasks:
            for number, item in enumerate(self._items):
                tasks.start_soon(score, number, item)
        self.passes += 1
        done = [scored[number] for number in range(len(self._items))]
        told = [kind_scores(result) for result in done]
        if sum(bool(each) for each in told) < len(self._items) / 2:
            return None
        epoch = done[-1].judge, done[-1].epoch
        if epoch != self._epoch:
            self._epoch, self._before, self._last = epoch, [], None
        found = {kind for each in told for kind in each}
        return Pass(began, self._clock(), {kind: [each.get(kind) for each in told] for kind in found})

    def shift(self, kind: DetectorKind) -> Shift | None:
        """How far the last pass lies from what the items scored before; None without one."""
        if self._last is None or kind not in self._last.values or len(self._before) < PASSES:
            return None
        return shift(self._means(kind), self._last.values[kind])

    def _means(self, kind: DetectorKind) -> list[float | None]:
        empty: list[float | None] = [None] * len(self._items)
        columns = zip(*(values.get(kind, empty) for values in self._before), strict=True)
        known = [[value for value in column if value is not None] for column in columns]
        return [sum(values) / len(values) if values else None for values in known]

    def verdict(self, kind: DetectorKind, onset: float, told: float, fall: float) -> DriftVerdict:
        """Who moved, where a detector saw a `fall` that began at `onset` and was told at `told` (Unix seconds).

        The judge, if it has moved downwards by at least half of the fall; if by less, nobody can say how much of the
        fall is whose.
        """
        found = self.shift(kind) if self._last is not None and self._last.began >= onset else None
        if found is None:
            return "pending" if self._clock() - told <= self._deadline else "unattributed"
        if found.chance >= SURE or found.mean >= 0:
            return "product" if found.items >= LEAST_ITEMS else "unattributed"
        return "judge" if -found.mean >= fall / 2 else "unattributed"

    def state(self) -> AnchorsState:
        """What `resume` goes on from."""
        last = (self._last.began, self._last.ended, _rows(self._last.values)) if self._last else None
        before = tuple(_rows(values) for values in self._before)
        return AnchorsState(self._mark, self._epoch, before, last, self.passes)

    def resume(self, state: AnchorsState) -> None:
        """Goes on from an earlier process, if the items are the same."""
        passes = [*state.before, *([state.last[2]] if state.last else [])]
        whole = all(len(column) == len(self._items) for rows in passes for _, _, column in rows)
        if state.mark == self._mark and whole:
            self._epoch, self.passes = state.epoch, state.passes
            self._before = [_values(rows) for rows in state.before]
            self._last = Pass(*state.last[:2], _values(state.last[2])) if state.last else None


def _rows(values: Values) -> ValuesState:
    return tuple((*kind, tuple(column)) for kind, column in values.items())


def _values(rows: ValuesState) -> Values:
    return {DetectorKind(name, against): list(column) for name, against, column in rows}
