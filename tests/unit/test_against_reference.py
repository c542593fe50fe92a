"""The two coarser ways to hold an answer against its reference."""

from __future__ import annotations

import pytest

from tests.scripted import ScriptedSession, TableEmbedder, at_cosine, interaction
from tracescore.config import CorrectnessConfig, EvaluatorsConfig
from tracescore.evaluators import build_evaluators
from tracescore.evaluators.against_reference import ReferenceSimilarity, ReferenceVerdict
from tracescore.judge.operations import Vocabulary
from tracescore.model import Score, Unscored

pytestmark = pytest.mark.anyio

WITH_REFERENCE = interaction(reference="R.")


@pytest.mark.parametrize(
    ("there", "against", "value"),
    [
        ("covered", "supported", 1.0),
        ("covered", "not_found", 1.0),  # it may say more than the reference
        ("covered", "contradicted", 0.0),
        ("missed", "supported", 0.0),
        ("missed", "not_found", 0.0),
    ],
)
async def test_right_is_what_holds_the_reference_and_does_not_contradict_it(
    there: str, against: str, value: float
) -> None:
    session = ScriptedSession(verdicts={Vocabulary.RECALL: [there], Vocabulary.SUPPORT: [against]})
    score = await ReferenceVerdict().evaluate(WITH_REFERENCE, session)
    assert isinstance(score, Score)
    assert (score.value, score.details) == (value, {"factual": value})
    assert {call[1] for _, call in session.asked} == {("A.",), ("R.",)}  # each was the evidence of the other


@pytest.mark.parametrize(
    ("answer", "label", "value"), [("r.", "identical", 1.0), (" ", "blank", 0.0)]
)  # fmt: skip
async def test_what_needs_no_verdict_asks_for_none(answer: str, label: str, value: float) -> None:
    score = await ReferenceVerdict().evaluate(interaction(answer=answer, reference="R."), ScriptedSession())
    assert score == Score("answer_correctness", value, label=label, details={"factual": value})


async def test_a_verdict_that_is_missing_is_no_number() -> None:
    session = ScriptedSession(verdicts={Vocabulary.RECALL: ["covered"], Vocabulary.SUPPORT: [None]})
    result = await ReferenceVerdict().evaluate(WITH_REFERENCE, session)
    assert isinstance(result, Unscored)
    assert result.reason == "judge_incomplete"


@pytest.mark.parametrize(("cosine", "value"), [(0.9, 1.0), (0.79, 0.0), (-0.5, 0.0)])
async def test_alike_is_what_reaches_the_threshold(cosine: float, value: float) -> None:
    embedder = TableEmbedder({"A.": [1.0, 0.0], "R.": at_cosine(cosine)})
    score = await ReferenceSimilarity(embedder, 0.8).evaluate(WITH_REFERENCE, ScriptedSession())
    assert isinstance(score, Score)
    assert (score.value, score.details["similarity"]) == (value, pytest.approx(cosine))


async def test_a_text_without_a_vector_is_no_number() -> None:
    embedder = TableEmbedder({"A.": [1.0, 0.0], "R.": [0.0, 0.0]})
    assert await ReferenceSimilarity(embedder, 0.8).evaluate(WITH_REFERENCE, ScriptedSession()) == Unscored(
        "answer_correctness", "zero_vector"
    )


def test_the_configuration_chooses_the_way_and_likeness_needs_an_embedder() -> None:
    (verdict,) = build_evaluators(["answer_correctness"], _by("verdict"), None)
    assert isinstance(verdict, ReferenceVerdict)
    (alike,) = build_evaluators(["answer_correctness"], _by("similarity"), TableEmbedder({}))
    assert isinstance(alike, ReferenceSimilarity)
    with pytest.raises(ValueError, match="method similarity needs an embedder; configure an embedder, or set"):
        build_evaluators(["answer_correctness"], _by("similarity"), None)


def _by(method: str) -> EvaluatorsConfig:
    return EvaluatorsConfig(correctness=CorrectnessConfig.model_validate({"method": method}))
