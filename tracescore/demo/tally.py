"""What the demo's answers scored, by what they were built to be, and whether the scores tell the kinds apart."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tracescore.config import DEFAULT_MEASURES
from tracescore.demo.questions import KIND_NAMES, AnswerKind
from tracescore.model import Measure, Result

MARGIN = 0.2
"""How far the mean of a flawed kind has to lie below that of the good answers."""
EXPECTED_LOW: Mapping[AnswerKind, Measure] = {
    "off_topic": "answer_relevancy",
    "half": "completeness",
    "unfaithful": "faithfulness",
}
"""The measure that has to notice what is wrong with the kind."""


@dataclass(frozen=True, slots=True)
class KindScores:
    """One kind of answer so far: how many came, and per measure mean and number of scores."""

    answers: int
    means: Mapping[Measure, float]
    counts: Mapping[Measure, int]


class DemoTally:
    """Scores by kind; the kind None holds traces that are not the sample app's."""

    def __init__(self) -> None:
        self._answers: dict[AnswerKind | None, int] = {}
        self._scores: dict[tuple[AnswerKind | None, Measure], list[float]] = {}

    def add(self, kind: AnswerKind | None, result: Result) -> None:
        """Counts one result."""
        self._answers[kind] = self._answers.get(kind, 0) + 1
        for score in result.scores():
            self._scores.setdefault((kind, score.measure), []).append(score.value)

    @property
    def own(self) -> int:
        """Answers of the sample app."""
        return sum(count for kind, count in self._answers.items() if kind is not None)

    def row(self, kind: AnswerKind | None) -> KindScores:
        """What is known of one kind."""
        values = {measure: found for measure in DEFAULT_MEASURES if (found := self._scores.get((kind, measure)))}
        return KindScores(
            self._answers.get(kind, 0),
            {measure: math.fsum(scores) / len(scores) for measure, scores in values.items()},
            {measure: len(scores) for measure, scores in values.items()},
        )

    def verdict(self) -> list[str]:
        """One sentence for each kind that its measure does not tell from the good answers; empty when all is well."""
        if not self.own:
            return ["no answer of the sample app was scored"]
        return [problem for kind, measure in EXPECTED_LOW.items() if (problem := self._problem(kind, measure))]

    def _problem(self, kind: AnswerKind, measure: Measure) -> str:
        if not self.row(kind).answers:
            return ""  # so few questions that none was answered so
        good, flawed = self.row("good").means.get(measure), self.row(kind).means.get(measure)
        if good is None or flawed is None:
            missing = KIND_NAMES["good" if good is None else kind]
            return f"{measure}: no {missing} answer has a score to compare"
        # Rounded, so that a gap of exactly the margin is not lost to binary fractions.
        if round(good - flawed, 9) >= MARGIN:
            return ""
        return (
            f"{measure}: {KIND_NAMES[kind]} answers score {flawed:.3f} and good ones {good:.3f}; "
            f"expected at least {MARGIN} less"
        )
