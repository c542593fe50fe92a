"""What a run over cases gives: values with their evidence, row by row, and the mean of each measure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from tracescore.datasets.case import Case
from tracescore.formulas import gaffke_interval
from tracescore.model import Evaluation, Item, Measure, Score, Usage


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one case: a `value` in [0, 1], or None and the `reason` for that.

    `items` are what it is made of (claims, parts, questions, passages), each with its verdict and its evidence;
    `details` holds further numbers (`strict`, `contradicted`, `factual`, ...). `lo` and `hi` bound a value that is
    None: they are narrower than 0 and 1 where some of the verdicts are known.
    """

    measure: Measure
    value: float | None
    reason: str | None = None
    detail: str = ""
    label: str = ""
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)
    items: tuple[Item, ...] = ()
    lo: float = 0.0
    hi: float = 1.0

    @classmethod
    def of(cls, found: Evaluation) -> Measured:
        """What an evaluator found."""
        if isinstance(found, Score):
            value = found.value
            return cls(found.measure, value, None, "", found.label, found.details, found.items, value, value)
        return cls(found.measure, None, found.reason, found.detail, items=found.items, lo=found.lo, hi=found.hi)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, as `tracescore score` prints it; the details stand beside the value."""
        head: dict[str, Any] = {"value": self.value, "reason": self.reason}
        if self.value is None:
            head |= {"detail": self.detail, "lo": self.lo, "hi": self.hi}
        else:
            head |= {"label": self.label, **self.details}
        return {**head, "items": [dataclasses.asdict(item) for item in self.items]}


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A case with its scores by measure; `given` is the row it came from, `usage` what its judge calls cost."""

    case: Case
    given: Mapping[str, Any]
    scores: Mapping[str, Measured]
    judge: str
    usage: Usage

    def to_dict(self) -> dict[str, Any]:
        """The row as given, with its scores: a line of `tracescore score`."""
        scores = {measure: found.to_dict() for measure, found in self.scores.items()}
        return {**self.given, "scores": scores, "judge": self.judge, "usage": dataclasses.asdict(self.usage)}


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The mean of a measure over `count` values with its 95 % interval; NaN and 0 to 1 where there is no value.

    The interval is `tracescore.formulas.gaffke_interval`; `without` counts the cases without a value by their reason.
    """

    value: float
    lower: float
    upper: float
    count: int
    without: Mapping[str, int]

    @classmethod
    def of(cls, found: Iterable[Measured]) -> MeanScore:
        """Over what was measured."""
        all_of_them = list(found)
        values = [each.value for each in all_of_them if each.value is not None]
        reasons = Counter(each.reason for each in all_of_them if each.reason is not None)
        lower, upper = gaffke_interval(values, np.ones(len(values)), 1.0)
        return cls(float(np.mean(values)) if values else float("nan"), lower, upper, len(values), reasons)

    def __str__(self) -> str:
        mean = f"{self.value:.3f}  [{self.lower:.3f}, {self.upper:.3f}]" if self.count else "-"
        told = ", ".join(f"{count} {reason}" for reason, count in Counter(self.without).most_common())
        return f"{mean:24} of {self.count}{f'; without a score: {told}' if told else ''}"


@dataclass(frozen=True, slots=True)
class ScoredCases(Sequence[ScoredCase]):
    """The scored cases in the order of the rows, with the means. `str()` is a table of the means."""

    cases: tuple[ScoredCase, ...]

    @overload
    def __getitem__(self, index: int) -> ScoredCase: ...
    @overload
    def __getitem__(self, index: slice) -> ScoredCases: ...
    def __getitem__(self, index: int | slice) -> ScoredCase | ScoredCases:
        return ScoredCases(self.cases[index]) if isinstance(index, slice) else self.cases[index]

    def __len__(self) -> int:
        return len(self.cases)

    def of(self, measure: str) -> list[Measured]:
        """One measure, case by case."""
        return [case.scores[measure] for case in self.cases]

    @property
    def means(self) -> dict[str, MeanScore]:
        """The mean of each measure."""
        return {measure: MeanScore.of(self.of(measure)) for measure in (self.cases[0].scores if self.cases else ())}

    @property
    def judge(self) -> str:
        """The name of the judge."""
        return self.cases[0].judge if self.cases else ""

    def to_records(self) -> list[dict[str, Any]]:
        """A flat dict per row: what was given, a value per measure, and the reason for each that is missing."""
        return [
            {
                **each.given,
                **{measure: found.value for measure, found in each.scores.items()},
                **{f"{measure}_reason": found.reason for measure, found in each.scores.items()},
            }
            for each in self.cases
        ]

    def to_pandas(self) -> Any:
        """`to_records` as a frame of pandas, which must be installed; a missing value is NaN."""
        import pandas as pd  # noqa: PLC0415 - optional

        frame = pd.DataFrame(self.to_records())
        return frame.astype(dict.fromkeys(self.means, "float64"))

    def __str__(self) -> str:
        return "\n".join(table(self.means))


def table(means: Mapping[str, MeanScore]) -> Iterator[str]:
    """A line per measure: mean, 95 % interval, how many, and why others have no score."""
    for measure, mean in means.items():
        yield f"{measure:20} {mean}"
