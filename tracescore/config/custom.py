"""Measures of the user's own: what each reads, and what scores it.

The name of such a measure stands where those of tracescore stand (`measures`, `drift.targets`, labels, events),
and only names of metrics have `custom_` before it. So a name may be none that means something there already,
and may not end in a word that the names of metrics end in: `polite` has a series tracescore_custom_polite_lower_ratio,
which must not be the `_ratio` of a measure `polite_lower`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator

from tracescore.config.types import Duration, Expression, FunctionName, PathBesideFile, Section
from tracescore.model import MEASURES

MOST_CUSTOM = 10
"""Measures of one's own: each has some 30 series for every release of every service."""
LONGEST_NAME = 40
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TAKEN = frozenset(
    (
        *MEASURES,
        *("factual", "similarity", "reference_coverage", "context_contradicted"),  # of the gold set
        *("answered", "completeness_multipart"),  # detectors
        *("judge", "epoch", "score_id"),  # attributes tracescore.* of spans and events
        *("question", "answer", "contexts", "history", "reference", "id", "metadata", "documents"),  # of a case
        "scores",  # of a row that was scored
        *("other", "all", "none"),
    )
)
"""Names that mean something where a measure's name can stand."""
ENDINGS = frozenset(
    (
        *("ratio", "lower", "upper", "worst", "best", "score", "scores", "lag1", "correlation", "effective"),
        *("total", "count", "sum", "bucket", "created", "info"),
        *("weight", "weighted", "squared", "target", "slice", "noncommittal", "change", "gold"),
        *("reason", "error", "label"),
    )
)
"""Words that names of metrics, attributes and columns end in."""

Readable = Literal["question", "answer", "contexts", "history", "reference"]
Level = Annotated[float, Field(ge=0, le=1)]


def _name(value: str) -> str:
    if _NAME.fullmatch(value) is None or len(value) > LONGEST_NAME:
        raise ValueError(
            f"a name of at most {LONGEST_NAME} lower-case letters, digits and single _ expected, a letter first"
        )
    if value in TAKEN:
        raise ValueError("a name of your own expected; this one has a meaning in tracescore already")
    if (last := value.rpartition("_")[2]) in ENDINGS:
        raise ValueError(f"a name that does not end in {last!r} expected: names of metrics end in it")
    return value


def _reads(value: tuple[Readable, ...]) -> tuple[Readable, ...]:
    if not value or len(set(value)) < len(value):
        raise ValueError("at least one field expected, and each once")
    return value


def _labels(value: object) -> object:
    """Levels may be written as numbers or as true and false; they are words all the same."""
    if not isinstance(value, dict):
        return value
    words = {True: "true", False: "false"}
    return {words[key] if isinstance(key, bool) else str(key): level for key, level in value.items()}


def _range(value: tuple[float, float]) -> tuple[float, float]:
    if value[0] >= value[1]:
        advice = "where less is better, name levels, as in {0: 1, 1: 0.5, 2: 0}"
        got = ", ".join(f"{end:g}" for end in value)
        raise ValueError(f"the lower number first, and a higher one, expected; {advice}; got [{got}]")
    return value


def _levels(value: dict[str, float]) -> dict[str, float]:
    if not 2 <= len(value) <= 10:
        raise ValueError(f"2 to 10 levels expected; got {len(value)}")
    if len({label.strip().casefold() for label in value} - {""}) < len(value):
        raise ValueError("levels that differ by more than case and spaces expected")
    if len(set(value.values())) == 1:
        raise ValueError("levels that score at least two different numbers expected")
    return value


def _few(value: dict[str, Any]) -> dict[str, Any]:
    if len(value) > MOST_CUSTOM:
        raise ValueError(f"at most {MOST_CUSTOM} measures of your own expected; got {len(value)}")
    return value


CustomName = Annotated[str, AfterValidator(_name)]
Reads = Annotated[tuple[Readable, ...], Field(strict=False), AfterValidator(_reads)]
Levels = dict[Annotated[str, Field(min_length=1, max_length=40)], Level]
"""Level -> what it scores, in [0, 1]."""
ChoiceScale = Annotated[
    Annotated[tuple[float, float], Field(strict=False), Tag("range")]
    | Annotated[Levels, BeforeValidator(_labels), Tag("levels")],
    Discriminator(lambda value: "levels" if isinstance(value, dict) else "range"),
    AfterValidator(lambda value: _levels(value) if isinstance(value, dict) else _range(value)),
]
"""The numbers between two, that of the worst first, or levels by name."""


class RubricMeasureConfig(Section):
    """A measure for which the judge follows instructions of your own: one more call per interaction."""

    kind: Literal["rubric"]
    """What scores it."""
    reads: Reads
    """What the judge gets: `question`, `answer`, `contexts`, `history`, `reference`."""
    prompt: PathBesideFile
    """The file of instructions; a relative path is meant from the folder of this file."""
    scale: ChoiceScale = (0.0, 1.0)
    """What the judge chooses from: `[worst, best]`, or 2 to 10 levels with the number that each scores."""
    examples: PathBesideFile | None = None
    """A JSONL file of cases with the `choice` that is right; `tracescore check --probe` asks the judge each."""


class PythonMeasureConfig(Section):
    """A measure that a Python function computes."""

    kind: Literal["python"]
    """What scores it."""
    reads: Reads
    """What the function gets, by keyword: `question`, `answer`, `contexts`, `history`, `reference`."""
    callable: FunctionName
    """The function. Its module is looked for beside this file first, then as Python does."""
    version: int = Field(ge=1)
    """Raise it when the function begins to mean something else: tracescore then learns anew what is normal."""
    timeout: Duration = 10.0
    """Time for one interaction; a process that takes longer is killed, and the interaction has no score."""
    workers: int = Field(default=2, ge=1, le=32)
    """Processes at most; one is started when all others are busy."""
    in_process: bool = False
    """Whether the function runs in this process, where nothing can end it."""
    folder: PathBesideFile = Field(default=".", validate_default=True)
    """Where the module is; by default the folder of this file."""


class PatternMeasureConfig(Section):
    """A measure that looks for a regular expression."""

    kind: Literal["pattern"]
    """What scores it."""
    reads: Reads
    """Where it looks: `question`, `answer`, `contexts`, `history`, `reference`; one match in any of them counts."""
    matches: Expression
    """What it looks for."""
    value: Level
    """What a match scores."""
    otherwise: Level | None = Field(default=None, validate_default=True)
    """What no match scores; by default the other end, where `value` is 0 or 1."""

    @field_validator("otherwise")
    @classmethod
    def _tells_two_apart(cls, otherwise: float | None, info: ValidationInfo) -> float | None:
        value = info.data.get("value", 0)
        if otherwise is None and value not in (0, 1):
            raise ValueError(f"required where value is neither 0 nor 1; got {value:g} for value and nothing for this")
        if otherwise == value:
            raise ValueError(f"another number than value expected; got {value:g} for both")
        return otherwise

    @property
    def ends(self) -> tuple[float, float]:
        """What a match scores, and what none does."""
        return self.value, 1.0 - self.value if self.otherwise is None else self.otherwise


CustomConfig = Annotated[RubricMeasureConfig | PythonMeasureConfig | PatternMeasureConfig, Field(discriminator="kind")]
Custom = Annotated[dict[CustomName, CustomConfig], AfterValidator(_few)]
