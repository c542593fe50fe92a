"""The judge without a language model: no key, no network, tens of milliseconds a claim.

An approximation, and named so. Questions are taken apart by rules, statements are held against evidence by soft
alignment of words, with numbers, negations and names compared by rules. It reads one turn: follow-up questions need
a model that understands the turns before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Protocol, TypeVar, runtime_checkable

from prometheus_client import CollectorRegistry

from tracescore.config import EmbeddedJudgeConfig
from tracescore.embedder import Embedder
from tracescore.errors import EmbedderError, JudgeError, UsageError
from tracescore.judge.embedded import language
from tracescore.judge.embedded.abstention import abstention, telling
from tracescore.judge.embedded.alignment import EncodedText
from tracescore.judge.embedded.grading import Coefficients, load
from tracescore.judge.embedded.parts import required_parts
from tracescore.judge.embedded.questions import pseudo_questions
from tracescore.judge.embedded.relevancy import relevance
from tracescore.judge.embedded.sentences import clauses
from tracescore.judge.embedded.steps import Steps, advance
from tracescore.judge.embedded.verdicts import verdicts
from tracescore.judge.epoch import Epochs
from tracescore.judge.operations import (
    MAX_EVIDENCE,
    MAX_TEXT,
    Claims,
    Relevance,
    RequiredParts,
    ReverseQuestions,
    RubricChoice,
    Verdict,
    Vocabulary,
    check_length,
)
from tracescore.model import Message, Usage

T = TypeVar("T")


@runtime_checkable
class LocalEncoder(Protocol):
    """What the judge needs of an embedder: a model in this process, down to the vectors of tokens."""

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, called in the thread of the model."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[EncodedText]:
        """One per text; blocks, so to be called inside `run` only."""
        ...


RULES = (files(__package__) / "behaviour.txt").read_text(encoding="ascii").strip()
"""The number of the rules, part of the fingerprint as the coefficients are: a hash of what the judge publishes for a
fixed table of rows (tests/benchmarks/behaviour.py)."""
_MOST_CLAIMS, _MOST_PARTS = 1_000, 100
"""Claims are held against every sentence of the evidence, and parts against each other as well."""
USEFUL = 0.5
"""Credit from which a passage counts as useful: average precision knows no degrees. It is not fitted."""
_BLANKS = re.compile(r"\s{4,}")
_MARKS = re.compile(r"([^\w\s])\1{3,}")


def _read(*texts: str, most: int = MAX_TEXT) -> tuple[str, ...]:
    """Texts as the rules read them: long runs of blanks or of one mark say nothing and cost patterns their time.

    Raises JudgeError when they are too long together.
    """
    check_length(*texts, most=most)
    blanks = (_BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", text) for text in texts)
    return tuple(_MARKS.sub(r"\1\1\1", text) for text in blanks)


def _few(found: tuple[str, ...], most: int, what: str) -> tuple[str, ...]:
    """What was found; JudgeError when that is too much to be held against other texts one by one."""
    if len(found) > most:
        raise JudgeError("judge_input_too_long", f"at most {most} {what} expected; got {len(found)}")
    return found


def _useful(credit: float, quote: str) -> Verdict:
    """The verdict on a passage from the best that it says about anything that is needed."""
    return Verdict("useful", quote) if credit >= USEFUL else Verdict("not_useful")


class EmbeddedJudge:
    """A judge made of rules and the local embedding model. Ready as soon as it exists; costs no money."""

    def __init__(
        self, settings: EmbeddedJudgeConfig, embedder: Embedder, registry: CollectorRegistry | None = None
    ) -> None:
        """Raises UsageError when `embedder` is not a model in this process, or a file of coefficients is none."""
        if not isinstance(embedder, LocalEncoder):
            raise UsageError(
                f"judge: the embedded judge works with an embedder of kind minilm or sentence_transformers; "
                f"got {embedder.name}; set embedder.kind: minilm, or judge.kind: openai"
            )
        self._name = settings.name
        self._encoder: LocalEncoder = embedder
        self._coefficients = load(settings.coefficients)
        version = f"{self._coefficients.digest}.{RULES}"
        self._epochs = Epochs(self._name, version, embedder.name, {}, registry or CollectorRegistry())
        self._epochs.embedded_by(embedder.identity)

    @property
    def name(self) -> str:
        """The configured name: a metric label."""
        return self._name

    @property
    def epochs(self) -> Epochs:
        """They step when another embedder answers than before the start."""
        return self._epochs

    @property
    def ready(self) -> bool:
        """Always: the model was loaded before."""
        return True

    async def probe(self) -> None:
        """Nothing can be missing or unfit that the constructor did not find."""
        self._epochs.note(self._name)

    def session(self, key: str, *, remembered: bool = True) -> EmbeddedSession:
        """Operations for one interaction; the same for every `key`, as the order of statements changes nothing.

        Nothing is remembered anyway.
        """
        del key, remembered
        return EmbeddedSession(self._encoder, self._coefficients, self._epochs.number)

    async def close(self) -> None:
        """Nothing to release: the embedder belongs to the caller."""


class EmbeddedSession:
    """The operations; see `operations.Session`. What it cannot read becomes JudgeError(unsupported_language)."""

    def __init__(self, encoder: LocalEncoder, coefficients: Coefficients, epoch: int = 0) -> None:
        self._encoder = encoder
        self._coefficients = coefficients
        self._epoch = epoch

    @property
    def usage(self) -> Usage:
        """No calls, no tokens, no money."""
        return Usage(cost=0.0)

    @property
    def epoch(self) -> int:
        """The judge epoch frozen when the session was opened."""
        return self._epoch

    def caveat(self, *texts: str) -> str:
        """Where the texts are in Latin script and no language whose numbers and negations the rules know."""
        return "language_unknown" if language.is_unknown("\n".join(texts)) else ""

    async def reverse_questions(self, answer: str, n: int) -> ReverseQuestions:
        """At most `n` texts for the questions that `answer` answers; fewer for a short answer."""
        (read,) = _read(answer)
        words = await self._run(lambda: abstention(read))
        questions = await self._run(lambda: pseudo_questions(read, n))
        return ReverseQuestions(questions, noncommittal=bool(words), words=words)

    async def relevance(self, question: str, answer: str) -> Relevance:
        """The credit of the sentence that deals with the question best; 0 where none says anything."""
        asked, read = _read(question, answer)
        return await self._in_steps(relevance(asked, read, self._encoder, self._coefficients))

    async def required_parts(self, question: str, history: Sequence[Message]) -> RequiredParts:
        """The parts of a first question; JudgeError(needs_history) for a later one."""
        if history:
            raise JudgeError("needs_history", "the embedded judge reads first turns only")
        (read,) = _read(question)
        parts = await self._run(lambda: required_parts(read))
        return RequiredParts(_few(parts, _MOST_PARTS, "parts"), standalone=question)

    async def claims(self, question: str, text: str) -> Claims:
        """The sentences of `text` that can be true or false, as they stand, without those that tell nothing."""
        del question  # `verify` reads short answers with it
        (read,) = _read(text)
        found = await self._run(lambda: telling(read))
        return Claims(_few(found, _MOST_CLAIMS, "claims"))

    async def verify(
        self, statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str = ""
    ) -> tuple[Verdict | None, ...]:
        """One verdict per statement, never None, each with the sentence that matches best as its quote."""
        (asked,) = _read(question)
        read = _read(*evidence, most=MAX_EVIDENCE)
        return await self._in_steps(verdicts(statements, read, vocabulary, asked, self._encoder, self._coefficients))

    async def usefulness(
        self, passages: Sequence[str], question: str, answer: str, reference: str = ""
    ) -> tuple[Verdict | None, ...]:
        """Useful is what deals with the question, or says a clause of the reference where there is one.

        A clause, as one sentence of a reference may stand over several passages.
        """
        del answer
        if not reference:
            dealt = [await self.relevance(question, passage) for passage in passages]
            return tuple(_useful(found.credit, found.quote) for found in dealt)
        told = (clause for claim in await self.claims(question, reference) for clause in clauses(claim))
        needed = _few(tuple(dict.fromkeys(told)), _MOST_CLAIMS, "clauses")
        if not needed:
            return tuple(None for _ in passages)
        found = [await self.verify(needed, [passage], Vocabulary.RECALL, question) for passage in passages]
        best = [max(filter(None, each), key=lambda verdict: verdict.credit) for each in found]
        return tuple(_useful(verdict.credit, verdict.quote) for verdict in best)

    async def choose(self, rubric: object, texts: Mapping[str, object]) -> RubricChoice:
        """Rules cannot follow instructions: the configuration refuses a rubric for this judge."""
        del rubric, texts
        raise JudgeError("judge_unfit", "a rubric needs a language model")

    async def _in_steps(self, steps: Steps[T]) -> T:
        """Others have their turn between two steps; whoever is cancelled takes no further one."""
        while (done := await self._run(lambda: advance(steps))) is None:
            pass
        return done[0]

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await self._encoder.run(work)
        except EmbedderError as error:
            raise JudgeError("embedder_failed", str(error)) from None
