"""The same questions asked of two releases of a service: what each answered, and by how much their scores differ.

Two questions are the same where only case, spacing, Unicode forms and the punctuation around words differ, and the same
was said before them; a word or a number that differs makes another question, as C++ is not C, and -5 is not 5. Each
question counts once, however often it was asked.
"""

import math
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from tracescore.drift.family import Population
from tracescore.drift.releases import Stream
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.formulas import gaffke_interval, sign_flip_p
from tracescore.model import LIVE_MEASURES, Interaction, Result
from tracescore.web.choice import fold

_AROUND = re.compile(
    "(?<!\\S)[\"'(\\[{«“‘„¿¡*_]+|[\"')\\]}»”’“.,;:!?…。、，！？؟؛*_]+(?!\\S)|(?<!\\S)[-–—]+(?!\\S)"  # noqa: RUF001
)
"""What may stand before a word, and behind it; dashes alone."""
MOVED = 0.05
"""A difference that counts as worse or better: below that, one more or less strict reading of the judge makes it."""
_DRAWS = 2_000
SHOWN = 20
"""Questions that are listed, those that got worse most first."""

QuestionKey = tuple[str, ...]
"""What makes a question the same: what was said before it and itself, folded."""


@dataclass(frozen=True, slots=True)
class AskedTwice:
    """A question that both releases answered, so many `times` each, and the means of their scores by measure.

    `before` is the best answer of the one and `release` the lowest of the other, by the measure that dropped most.
    """

    before: Result
    release: Result
    times: tuple[int, int]
    values: Mapping[Stream, tuple[float, float]]

    @property
    def differences(self) -> dict[Stream, float]:
        """By measure, what the release scored more than the one before."""
        return {stream: new - old for stream, (old, new) in self.values.items()}

    @property
    def worst(self) -> float:
        """The lowest of the differences."""
        return min(self.differences.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """One measure over the questions that both releases answered: the mean difference, its 95 % limits, and counts.

    `worse` and `better` count differences of at least `MOVED`. The limits are Gaffke's (`formulas.gaffke_interval`) for
    the differences, taken from [-1, 1] to [0, 1]; `by_chance` is the one-sided p of `formulas.sign_flip_p`.
    """

    mean: float
    lower: float
    upper: float
    by_chance: float
    pairs: int
    worse: int
    better: int


@dataclass(frozen=True, slots=True)
class PairedReleases:
    """What became of the questions that both releases answered; `looked_at`: answers of either among those kept."""

    questions: Sequence[AskedTwice]
    looked_at: tuple[int, int]

    @property
    def worse(self) -> list[AskedTwice]:
        """Those that got worse, the largest drop first."""
        found = (each for each in self.questions if each.worst <= -MOVED)
        return sorted(found, key=lambda each: (each.worst, -each.release.ended))[:SHOWN]

    def differences(self) -> dict[Stream, PairedDifference]:
        """By measure, over all of them: some hundredths of a second where they are thousands."""
        by_stream: dict[Stream, list[float]] = {}
        for each in self.questions:
            for stream, difference in each.differences.items():
                by_stream.setdefault(stream, []).append(difference)
        return {stream: _paired(differences) for stream, differences in sorted(by_stream.items())}


def key_of(told: Interaction) -> QuestionKey | None:
    """See the module; None without a question."""
    if told.question is None or not told.question.strip():
        return None
    return (*(f"{turn.role} {_same(turn.text)}" for turn in told.history), _same(told.question))


def _same(text: str) -> str:
    folded = fold(text)
    return " ".join(_AROUND.sub(" ", folded).split()) or " ".join(folded.split())


def pair(
    results: Sequence[Result], population: Population, before: str, release: str, since: float
) -> Generator[None, None, PairedReleases]:
    """Pairs the results (newest first) that ended after `since` (Unix seconds); the steps of it.

    Only of the judge and epoch that scored last: others have another scale.
    """
    scale: tuple[str, int] | None = None
    sides: dict[str, dict[QuestionKey, list[Result]]] = {before: {}, release: {}}
    counts = {before: 0, release: 0}
    for result in results:
        yield
        told = result.interaction
        name = label_value(told.release)
        side = sides.get(name)
        if side is None or result.ended < since:
            continue
        if (label_value(told.service), label_value(told.environment)) != population:
            continue
        scale = scale or (result.judge, result.epoch)
        key = key_of(told)
        if key is not None and (result.judge, result.epoch) == scale:
            counts[name] += 1
            side.setdefault(key, []).append(result)
    found = []
    for key in sides[before].keys() & sides[release].keys():
        yield
        old, new = sides[before][key], sides[release][key]
        values = _values(old, new)
        if values:
            found.append(_asked_twice(old, new, values))
    return PairedReleases(found, (counts[before], counts[release]))


def _asked_twice(
    old: Sequence[Result], new: Sequence[Result], values: Mapping[Stream, tuple[float, float]]
) -> AskedTwice:
    stream = min(values, key=lambda each: values[each][1] - values[each][0])

    def scored(result: Result) -> float:
        return _means([result]).get(stream, 0.5)

    return AskedTwice(max(old, key=scored), min(new, key=scored), (len(old), len(new)), values)


def _values(old: Sequence[Result], new: Sequence[Result]) -> dict[Stream, tuple[float, float]]:
    before, after = _means(old), _means(new)
    return {stream: (before[stream], after[stream]) for stream in before if stream in after}


def _means(results: Sequence[Result]) -> dict[Stream, float]:
    """The mean score by measure and, for faithfulness, by where the passages were read."""
    scores: dict[Stream, list[float]] = {}
    for result in results:
        for score in result.scores():
            for measure in LIVE_MEASURES:
                if measure == score.measure:
                    source = result.interaction.context_source if measure == "faithfulness" else ""
                    scores.setdefault(Stream(measure, source), []).append(score.value)
    return {stream: math.fsum(values) / len(values) for stream, values in scores.items()}


def _paired(differences: Sequence[float]) -> PairedDifference:
    lower, upper = gaffke_interval([(1 + each) / 2 for each in differences], [1.0] * len(differences), 1.0)
    mean = math.fsum(differences) / len(differences)
    worse, better = sum(each <= -MOVED for each in differences), sum(each >= MOVED for each in differences)
    signed = [round(math.copysign(1, -mean) * each, 9) for each in differences]
    by_chance = sign_flip_p(signed, [1.0] * len(signed), _DRAWS)
    return PairedDifference(mean, 2 * lower - 1, 2 * upper - 1, by_chance, len(differences), worse, better)
