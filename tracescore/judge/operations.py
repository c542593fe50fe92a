"""What a judge can be asked: four typed operations, and the words of its verdicts.

An evaluator opens one `Session` per interaction. Verdicts come back by the position of the statement, never by
its text, and each with a quote that has been checked to stand in the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, Self

from tracescore.errors import JudgeError
from tracescore.judge.epoch import Epochs
from tracescore.model import Message, Usage

if TYPE_CHECKING:
    from tracescore.judge.rubric import Rubric

MAX_TEXT, MAX_EVIDENCE = 100_000, 2_000_000
"""Characters of a text that is taken apart, and of evidence that is only searched. More is never read in part: what an
unread rest would have changed, nobody could tell."""


def check_length(*texts: str, most: int) -> None:
    """Raises JudgeError(judge_input_too_long) when the texts together have more than `most` characters."""
    if (size := sum(map(len, texts))) > most:
        raise JudgeError("judge_input_too_long", f"at most {most} characters expected; got {size}")


class Vocabulary(Enum):
    """The verdicts on offer, by what is being verified against what; the first is the good one."""

    SUPPORT = ("supported", "contradicted", "not_found")
    """Claims of the answer against the contexts."""
    COVERAGE = ("covered", "partial", "missing")
    """Required parts of the question against the answer."""
    PRECISION = ("TP", "FP")
    """Claims of the answer against the reference."""
    RECALL = ("covered", "missed")
    """Claims of the reference against the answer."""
    USEFULNESS = ("useful", "not_useful")
    """Passages, by whether they hold something that a right answer to the question needs."""


@dataclass(frozen=True, slots=True)
class ReverseQuestions:
    """Questions the answer would answer; `noncommittal` when it evades, with the `words` that show it."""

    questions: tuple[str, ...]
    noncommittal: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True)
class Relevance:
    """A credit in [0, 1], and the sentence of the answer that it is for (may be empty)."""

    credit: float
    quote: str = ""


@dataclass(frozen=True, slots=True)
class RequiredParts:
    """What the question asks for, part by part, and the question with its references to the history resolved."""

    parts: tuple[str, ...]
    standalone: str


CREDITS = {"supported": 1.0, "covered": 1.0, "TP": 1.0, "useful": 1.0, "partial": 0.5}
"""What a verdict counts by its word; every other word counts 0."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word of the vocabulary, and the words of the evidence that show it (may be empty).

    `window` numbers the parts of the evidence that were shown for different statements, where all of it was too much
    for one request: verdicts with one number were given on the same part. `grade` is what a judge that grades gives
    instead of the credit that goes with the word.
    """

    value: str
    quote: str = ""
    window: int = 0
    grade: float | None = None

    @property
    def credit(self) -> float:
        """What the statement counts, in [0, 1]."""
        return CREDITS.get(self.value, 0.0) if self.grade is None else self.grade


@dataclass(frozen=True, slots=True)
class RubricChoice:
    """What a judge chose on the scale of a rubric: the word or number, what it scores, and why."""

    label: str
    value: float
    reason: str


class Claims(tuple[str, ...]):  # noqa: SLOT001 - a tuple with slots cannot have fields
    """The claims of a text, in order.

    `uncovered` counts the sentences of which the judge, asked again, said neither what they claim nor that they claim
    nothing.
    """

    uncovered: int

    def __new__(cls, texts: Iterable[str] = (), uncovered: int = 0) -> Self:
        """`texts` without repetitions."""
        claims = super().__new__(cls, dict.fromkeys(texts))
        claims.uncovered = uncovered
        return claims


class Session(Protocol):
    """The operations, bound to one interaction: its seed, its deadline, its usage.

    Every operation raises JudgeError with the reason when it gets no usable answer, and when a text is longer than
    MAX_TEXT or all evidence than MAX_EVIDENCE.
    """

    @property
    def usage(self) -> Usage:
        """What has been spent so far."""
        ...

    @property
    def epoch(self) -> int:
        """The judge epoch frozen when the session was opened."""
        ...

    def caveat(self, *texts: str) -> str:
        """A label for the scores of these texts where the judge knows less of them than of others; else empty."""
        ...

    async def reverse_questions(self, answer: str, n: int) -> ReverseQuestions:
        """`n` questions that `answer` answers. Sees neither question, history nor contexts."""
        ...

    async def relevance(self, question: str, answer: str) -> Relevance | None:
        """How far `answer` deals with `question`, from a judge that sees both; None from one that asks back.

        None means that relevancy is the likeness of `reverse_questions` to the question.
        """
        ...

    async def required_parts(self, question: str, history: Sequence[Message]) -> RequiredParts:
        """What `question` asks for, resolved against `history`. Never sees the answer."""
        ...

    async def claims(self, question: str, text: str) -> Claims:
        """The checkable statements of `text`, in its own language; the question only resolves references."""
        ...

    async def verify(
        self, statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str = ""
    ) -> tuple[Verdict | None, ...]:
        """One verdict per statement, in the order given; None where the judge gave none, even when asked again.

        `question` only helps to read short answers ("30 days.") and is never evidence.
        """
        ...

    async def usefulness(
        self, passages: Sequence[str], question: str, answer: str, reference: str = ""
    ) -> tuple[Verdict | None, ...]:
        """One verdict per passage, in the order given; None where the judge gave none, even when asked again.

        What a right answer needs, `reference` says where there is one. `answer` only helps to understand the question:
        it may be wrong, or evade. Quotes stand in the passage that they are about.
        """
        ...

    async def choose(self, rubric: Rubric, texts: Mapping[str, Any]) -> RubricChoice:
        """What the texts are by a rubric of the user's own: `question`, `answer`, `contexts`, `history`, `reference`.

        Contexts that are too long are shown in part: what is nearest to the other texts.
        """
        ...


class Judge(Protocol):
    """The model an evaluator asks."""

    @property
    def name(self) -> str:
        """The configured name: a metric label."""
        ...

    @property
    def ready(self) -> bool:
        """Whether the last probe succeeded."""
        ...

    @property
    def epochs(self) -> Epochs | None:
        """What tells one epoch from the next; None for a judge that changes only with its name."""
        ...

    async def probe(self) -> str | None:
        """Asks for something known, and says in a line what was found, if there is anything to say.

        JudgeUnreachable when it is not there, JudgeUnfit when it cannot do the work.
        """
        ...

    def session(self, key: str, *, remembered: bool = True) -> Session:
        """Operations for the interaction named `key` (it seeds the order of the verdicts).

        Unless `remembered`, everything is asked anew, whatever was answered to others before.
        """
        ...

    async def close(self) -> None:
        """Releases connections; may be called twice."""
        ...
