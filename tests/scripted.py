"""A judge whose answers are written down, and an embedder that looks vectors up: for tests of what is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tracescore.errors import JudgeError
from tracescore.formulas import Vector
from tracescore.judge.operations import Claims, Relevance, RequiredParts, ReverseQuestions, Verdict, Vocabulary
from tracescore.model import Interaction, Message, Usage

Words = str | Verdict | None
"""A verdict or its word, or None for a verdict that the judge did not give."""


class ScriptedSession:
    """Answers with what it was given; an operation without an answer fails the test. Errors are raised."""

    def __init__(
        self,
        questions: ReverseQuestions | Sequence[str] | Exception | None = None,
        parts: RequiredParts | Sequence[str] | Exception | None = None,
        claims: Mapping[str, Sequence[str]] | Exception | None = None,
        verdicts: Mapping[Vocabulary, Sequence[Words] | Exception] | None = None,
        relevance: Relevance | None = None,
    ) -> None:
        self._relevance = relevance
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.usage = Usage(calls=1)
        self.epoch = 3
        self._questions, self._parts, self._claims, self._verdicts = questions, parts, claims, verdicts or {}

    def caveat(self, *texts: str) -> str:
        return ""

    async def reverse_questions(self, answer: str, n: int) -> ReverseQuestions:
        self.asked.append(("reverse_questions", (answer, n)))
        found = _told(self._questions, "reverse_questions")
        return found if isinstance(found, ReverseQuestions) else ReverseQuestions(tuple(found))

    async def relevance(self, question: str, answer: str) -> Relevance | None:
        return self._relevance

    async def required_parts(self, question: str, history: Sequence[Message]) -> RequiredParts:
        self.asked.append(("required_parts", (question, tuple(history))))
        found = _told(self._parts, "required_parts")
        return found if isinstance(found, RequiredParts) else RequiredParts(tuple(found), question)

    async def claims(self, question: str, text: str) -> Claims:
        self.asked.append(("claims", (question, text)))
        found = _told(self._claims, "claims")[text]
        return found if isinstance(found, Claims) else Claims(found)

    async def verify(
        self, statements: Sequence[str], evidence: Sequence[str], vocabulary: Vocabulary, question: str = ""
    ) -> tuple[Verdict | None, ...]:
        self.asked.append(("verify", (tuple(statements), tuple(evidence), vocabulary, question)))
        words = _told(self._verdicts.get(vocabulary), vocabulary.name)
        assert len(words) == len(statements)
        return tuple(word if isinstance(word, Verdict | None) else Verdict(word, f"shows {word}") for word in words)

    async def usefulness(
        self, passages: Sequence[str], question: str, answer: str, reference: str = ""
    ) -> tuple[Verdict | None, ...]:
        self.asked.append(("usefulness", (tuple(passages), question, answer, reference)))
        words = _told(self._verdicts.get(Vocabulary.USEFULNESS), "USEFULNESS")
        assert len(words) == len(passages)
        return tuple(word if isinstance(word, Verdict | None) else Verdict(word, f"shows {word}") for word in words)


def _told(answer, operation):
    if answer is None:
        raise AssertionError(f"{operation} was not expected")
    if isinstance(answer, Exception):
        raise answer
    return answer


class ScriptedJudge:
    """Hands out one session."""

    name = "scripted"
    ready = True

    def __init__(self, session: ScriptedSession) -> None:
        self._session = session
        self.keys: list[str] = []

    async def probe(self) -> None:
        """Always fit."""

    def session(self, key: str, *, remembered: bool = True) -> ScriptedSession:
        self.keys.append(key)
        return self._session

    async def close(self) -> None:
        """Nothing to release."""


class TableEmbedder:
    """Vectors by text; an unknown text is a KeyError."""

    name = "table"
    identity = None

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = vectors
        self.asked: list[tuple[str, ...]] = []

    async def embed(self, texts: Sequence[str]) -> Vector:
        self.asked.append(tuple(texts))
        return np.array([self.vectors[text] for text in texts], dtype=np.float64)

    async def close(self) -> None:
        """Nothing to release."""


def at_cosine(cosine: float) -> list[float]:
    """A vector that has this cosine with [1, 0]."""
    return [cosine, math.sqrt(1 - cosine * cosine)]


def interaction(question: str | None = "Q?", answer: str | None = "A.", **fields: object) -> Interaction:
    """A complete interaction with one context, unless said otherwise."""
    given = {"trace_id": "0" * 32, "span_id": "0" * 16, "state": "complete", "contexts": ("C.",)} | fields
    return Interaction(question=question, answer=answer, **given)


def failing(reason: str) -> JudgeError:
    """The error of a judge that fails for this reason."""
    return JudgeError(reason, "scripted")
