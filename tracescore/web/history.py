"""What the charts are drawn from: sums of scores by minute, quarter of an hour and two hours, up to a week back.

An exporter that takes results in; its sums are committed with them and go on after a restart. Scores of two judges,
or of two epochs of one, are never added up. No metric is made of it and nothing else counts by it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import NonNegativeFloat, NonNegativeInt

from tracescore.drift.family import Population
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.exporters import Continuing
from tracescore.exporters.prometheus.conversations import OpenConversations, OpenConversationState
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import Clock, Measure, Result, Score
from tracescore.spool.state import Persisted, StateCodec

HOUR, DAY, WEEK = 3_600.0, 86_400.0, 604_800.0
WIDTHS = {HOUR: 60, DAY: 900, WEEK: 7_200}
"""Seconds that are looked back -> seconds of a bucket; so many buckets that a curve shows, and no more."""
_MOST_SERIES = 200
"""Fifty services with four measures: some 50,000 buckets, 4 MB in the spool."""
_MOST_CONVERSATIONS = 5_000


class ScoreSeries(NamedTuple):
    """What scores are added up within. `from_prompt`: faithfulness to the rendered prompt, which is one apart."""

    service: str
    environment: str
    measure: Measure
    judge: str
    epoch: int
    from_prompt: bool


class Bucket(NamedTuple):
    """The scores of one stretch of time: its beginning (Unix seconds), how many they are, and their `WeightedSums`."""

    start: float
    scores: int
    sums: WeightedSums


BucketRow = tuple[
    NonNegativeInt,
    NonNegativeInt,
    NonNegativeFloat,
    NonNegativeFloat,
    NonNegativeFloat,
    NonNegativeFloat,
    NonNegativeFloat,
]
"""What is kept of a bucket: its number since 1970, its scores, and the sums."""
SeriesRows = tuple[str, str, Measure, str, NonNegativeInt, bool, tuple[tuple[BucketRow, ...], ...]]
"""What is kept of a series: its names, and its buckets of each width."""


@dataclass(frozen=True, slots=True)
class HistoryState(Persisted):
    """What is kept, the longest unused series first."""

    series: tuple[SeriesRows, ...]
    conversations: tuple[OpenConversationState, ...]


@dataclass(slots=True)
class _Held:
    """The buckets of a series by width and number. Plain rows: that is how they are committed, every ten seconds."""

    rows: dict[int, dict[int, BucketRow]] = field(default_factory=lambda: {width: {} for width in WIDTHS.values()})
    last: float = 0.0


class History(Continuing):
    """See the module."""

    name = "history"
    codec = StateCodec(HistoryState)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[ScoreSeries, _Held] = {}
        self._conversations = OpenConversations(_MOST_CONVERSATIONS)
        self._pruned = 0.0

    async def export(self, result: Result) -> None:
        """Adds every score to the moment at which its interaction ended."""
        at = min(result.ended, result.finished)  # an app's clock may run fast
        self._prune(result.finished)
        for score in result.scores():
            self._add(result, score, at)

    def _add(self, result: Result, score: Score, at: float) -> None:
        told, measure = result.interaction, score.measure
        from_prompt = measure == "faithfulness" and told.context_source == "prompt"
        app = label_value(told.service), label_value(told.environment)
        judge, epoch, _ = result.judge_of(measure)
        of = ScoreSeries(*app, measure, judge, epoch, from_prompt)
        held = self._of(of, result.finished)
        if held is None or at <= result.finished - WEEK:
            return
        key = *app, measure, judge, str(epoch), str(from_prompt)
        squares = self._conversations.add(key, told.conversation_id, told.weight, score.value, at)
        more = 1, told.weight, told.weight * score.value, *squares
        for length, width in WIDTHS.items():
            if at > result.finished - length:
                number = int(at // width)
                known = held.rows[width].get(number, (number, 0, 0.0, 0.0, 0.0, 0.0, 0.0))
                summed = (old + new for old, new in zip(known[1:], more, strict=True))
                held.rows[width][number] = (number, *summed)  # type: ignore[assignment]

    def _of(self, of: ScoreSeries, now: float) -> _Held | None:
        """The series; None where there are too many, of which none has been silent for an hour."""
        held = self._held.pop(of, None)
        if held is None:
            if len(self._held) >= _MOST_SERIES:
                oldest = next(iter(self._held))
                if now - self._held[oldest].last <= HOUR:
                    return None
                del self._held[oldest]
            held = _Held()
        held.last = max(held.last, now)
        self._held[of] = held
        return held

    def _prune(self, now: float) -> None:
        """Once a minute: forgets buckets that are too old, or of a clock that was wrong, and series without any."""
        if 0 <= now - self._pruned < 60:
            return
        self._pruned = now
        for of, held in list(self._held.items()):
            held.last = min(held.last, now)
            for length, width in WIDTHS.items():
                for number in [n for n in held.rows[width] if not now - length - width < n * width <= now]:
                    del held.rows[width][number]
            if not any(held.rows.values()):
                del self._held[of]

    # ---------------------------------------------------------------- what is known

    def populations(self) -> list[Population]:
        """Services with their environments that anything is known of, in order of the alphabet."""
        return sorted({(of.service, of.environment) for of in self._held})

    def series(self, population: Population, length: float) -> dict[ScoreSeries, Sequence[Bucket]]:
        """The buckets of the last `length` seconds (a key of WIDTHS), in order of time; series without any left out."""
        width, now = WIDTHS[length], self._clock()
        found = {}
        for of, held in self._held.items():
            if (of.service, of.environment) == population:
                rows = sorted(row for row in held.rows[width].values() if now - length < (row[0] + 1) * width)
                found[of] = [Bucket(row[0] * width, row[1], WeightedSums(*row[2:])) for row in rows]
        return {of: buckets for of, buckets in sorted(found.items()) if buckets}

    # ---------------------------------------------------------------- over a restart

    def state(self) -> HistoryState:
        """What `resume` goes on from."""
        return HistoryState(tuple(self._states()), self._conversations.state())

    def _states(self) -> Iterator[SeriesRows]:
        for of, held in self._held.items():
            yield *of, tuple(tuple(rows.values()) for rows in held.rows.values())

    def resume(self, state: HistoryState) -> None:
        """Goes on from the state of an earlier process."""
        for *names, by_width in state.series:
            held = self._held[ScoreSeries(*names)] = _Held()  # type: ignore[arg-type]
            for width, rows in zip(WIDTHS.values(), by_width, strict=True):
                held.rows[width] = {row[0]: row for row in rows}
                held.last = max(held.last, *(row[0] * width for row in rows), 0.0)
        self._conversations.resume(state.conversations)
