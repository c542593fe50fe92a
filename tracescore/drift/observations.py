"""What the detectors see of a result, and which of it is one observation.

Answers of one conversation resemble each other: fed to a detector one by one they promise more than they know (with
a correlation of .3 within conversations of four, false alarms come 26 times as often as promised). So a conversation
is one observation, the mean of its scores, once it has been silent for a while.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import PositiveFloat, PositiveInt

from tracescore.config.drift import DETECTORS, DetectorName
from tracescore.model import MEASURES, Evaluation, Measure, Result, Score

Name = DetectorName
Against = Literal["baseline", "target"]
"""A fall from what was normal, or below what was asked for."""

_READ_FROM: Mapping[Name, Measure] = {"answered": "answer_relevancy", "completeness_multipart": "completeness"}


def measure_of(name: Name) -> Measure:
    """The measure that a detector is read from: its namesake, for most."""
    return _READ_FROM.get(name, name)


class DetectorKind(NamedTuple):
    """One detector of a service."""

    name: Name
    against: Against


def kinds(measures: Sequence[Measure], targets: Collection[Measure]) -> list[DetectorKind]:
    """The detectors of a service with these measures, and targets for those."""
    own = [measure for measure in dict.fromkeys(measures) if measure not in MEASURES]
    names = [*(name for name in DETECTORS if measure_of(name) in measures), *own]
    aimed = [name for name in names if measure_of(name) == name and name in targets]
    return [*(DetectorKind(name, "baseline") for name in names), *(DetectorKind(name, "target") for name in aimed)]


def kind_scores(result: Result) -> dict[DetectorKind, float]:
    """What a result tells each detector, as a score in [0, 1] of which more is better.

    Against a target it is the score as the gauge has it, evasions included.
    """
    found = {each.measure: each for each in result.evaluations}
    scores = {measure: each.value for measure, each in found.items() if isinstance(each, Score)}
    told: dict[DetectorKind, float] = {}
    for measure, score in scores.items():
        told[DetectorKind(measure, "target")] = score
        if measure not in MEASURES:  # whatever the answer evades, what it means is the user's to say
            told[DetectorKind(measure, "baseline")] = score
    evades = _evades(found)
    if evades is not None and "answer_relevancy" in found:
        told[DetectorKind("answered", "baseline")] = float(not evades)
    if "context_precision" in scores:  # of the passages, whatever the answer made of them
        told[DetectorKind("context_precision", "baseline")] = scores["context_precision"]
    if not evades:
        for name in ("answer_relevancy", "completeness", "faithfulness"):
            if name in scores:
                told[DetectorKind(name, "baseline")] = scores[name]
        complete = found.get("completeness")
        if isinstance(complete, Score) and complete.details.get("parts", 0) > 1:
            told[DetectorKind("completeness_multipart", "baseline")] = complete.value
    return told


def _evades(found: Mapping[Measure, Evaluation]) -> bool | None:
    """Whether the answer evades its question; None where nothing that was measured tells."""
    relevancy, faithful = found.get("answer_relevancy"), found.get("faithfulness")
    if any(not isinstance(each, Score) and each is not None and each.reason == "abstained" for each in found.values()):
        return True
    if isinstance(relevancy, Score):
        return relevancy.label == "noncommittal"
    return False if isinstance(faithful, Score) else None


class Observation(NamedTuple):
    """One score for one detector, of an interaction or conversation that ended `at` (Unix seconds)."""

    population: tuple[str, str]
    kind: DetectorKind
    at: float
    stratum: str
    score: float
    weight: float


_LONGEST = 6 * 3600.0
"""Seconds after which a conversation that never pauses is an observation all the same."""
_MOST_OPEN = 10_000


@dataclass(slots=True)
class _Open:
    """A conversation that may go on: (kind, stratum) -> count, sum of weights, sum of weight x score."""

    first: float
    last: float
    sums: dict[tuple[DetectorKind, str], tuple[int, float, float]] = field(default_factory=dict)


ConversationState = tuple[
    str, str, str, float, float, tuple[tuple[Name, Against, str, PositiveInt, PositiveFloat, float], ...]
]
"""What is kept of an open conversation: service, environment, its id, first, last, and its rows of sums."""


class Conversations:
    """Turns observations of interactions into those of conversations. Time is what the interactions say it is."""

    def __init__(self, idle: float) -> None:
        self._idle, self._now = idle, 0.0
        self._open: OrderedDict[tuple[str, str, str], _Open] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, observations: Sequence[Observation], conversation: str) -> Iterator[Observation]:
        """Those of one interaction; gives what is ready: themselves where it belongs to no conversation."""
        for observation in observations:
            self._now = max(self._now, observation.at)
        yield from self._silent()
        if not conversation:
            yield from observations
            return
        for each in observations:
            key = (*each.population, conversation)
            known = self._open.get(key)
            if known is not None and each.at - known.first > _LONGEST:
                yield from self._closed(key)
                known = None
            if known is None:
                known = self._open[key] = _Open(each.at, each.at)
            count, weight, total = known.sums.get((each.kind, each.stratum), (0, 0.0, 0.0))
            sums = count + 1, weight + each.weight, total + each.weight * each.score
            known.sums[each.kind, each.stratum] = sums
            known.last = max(known.last, each.at)
            self._open.move_to_end(key)
        while len(self._open) > _MOST_OPEN:
            yield from self._closed(next(iter(self._open)))

    def set_back(self, now: float) -> None:
        """The clock was set back to `now`: what was known of later moments is of now."""
        self._now = min(self._now, now)
        for each in self._open.values():
            each.first, each.last = min(each.first, now), min(each.last, now)

    def _silent(self) -> Iterator[Observation]:
        while self._open:
            key, oldest = next(iter(self._open.items()))
            if self._now - oldest.last <= self._idle:
                return
            yield from self._closed(key)

    def _closed(self, key: tuple[str, str, str]) -> Iterator[Observation]:
        """One observation per detector and stratum, with the mean weight: a long conversation counts no more."""
        known = self._open.pop(key)
        for (kind, stratum), (count, weight, total) in known.sums.items():
            score = min(1.0, max(0.0, total / weight))
            yield Observation(key[:2], kind, known.last, stratum, score, weight / count)

    def state(self) -> tuple[ConversationState, ...]:
        """What `resume` goes on from."""
        return tuple(
            (*key, each.first, each.last, tuple((*of[0], of[1], *sums) for of, sums in each.sums.items()))
            for key, each in self._open.items()
        )

    def resume(self, state: Sequence[ConversationState]) -> None:
        """Goes on from the state of an earlier process."""
        for service, environment, conversation, first, last, rows in state:
            sums = {(DetectorKind(name, against), stratum): (n, w, s) for name, against, stratum, n, w, s in rows}
            self._open[service, environment, conversation] = _Open(first, last, sums)
            self._now = max(self._now, last)
