"""Formulas against what RAGAS 0.4.3 returned for scripted judges (tests/unit/data/ragas.jsonl).

Every case takes part: those that are arithmetic must agree to 1e-12, those where RAGAS invents a number must
give what a user wants instead, and those that RAGAS refuses must be refused here too.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.scripted import ScriptedSession, TableEmbedder, failing, interaction
from tracescore import formulas
from tracescore.errors import JudgeError
from tracescore.evaluators import skip_reason
from tracescore.evaluators.answer_correctness import AnswerCorrectness
from tracescore.evaluators.answer_relevancy import AnswerRelevancy
from tracescore.evaluators.faithfulness import Faithfulness
from tracescore.judge.operations import ReverseQuestions, Vocabulary
from tracescore.judge.replies import Quotable, read_verdicts
from tracescore.model import Score, Unscored

pytestmark = pytest.mark.anyio
DATA = (Path(__file__).parent / "data" / "ragas.jsonl").read_text(encoding="utf-8")
CASES = [json.loads(line) for line in DATA.split("\n") if line]

NOTHING_TO_MEASURE = {
    "answer_relevancy-102": "no usable question",
    "answer_relevancy-107": "no usable question",
    "answer_correctness-156": "claims on neither side",
    "answer_correctness-039": "three empty lists",
    "answer_correctness-112": "three empty lists",
    "faithfulness-121": "no verdicts",
    "faithfulness-122": "no verdicts",
}
"""Cases where RAGAS gives a number, and the design none: the formulas return None on them."""


def _named(case: dict[str, Any]) -> str:
    return case["id"]


def _replies(case: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [call["reply"] for call in case["judge_calls"] if call["kind"] == kind]


def _scored(metric: str, *, fault: bool = False) -> list[dict[str, Any]]:
    return [
        case
        for case in CASES
        if case["metric"] == metric
        and case["expected"]["kind"] == "score"
        and ("known_fault" in case["tags"]) == fault
        and case["id"] not in NOTHING_TO_MEASURE
    ]


def _cosine(case: dict[str, Any], first: str, second: str) -> float | None:
    return formulas.cosine(case["embeddings"][first], case["embeddings"][second])


# ---------------------------------------------------------------- the arithmetic agrees


@pytest.mark.parametrize("case", _scored("answer_correctness"), ids=_named)
def test_correctness_agrees(case: dict[str, Any]) -> None:
    (classified,) = _replies(case, "classify")
    weights, beta = case["params"].get("weights", [0.75, 0.25]), case["params"].get("beta", 1.0)
    factual = formulas.f_beta(*(len(classified[name]) for name in ("TP", "FP", "FN")), beta)
    assert factual is not None
    similarity = 0.0
    if weights[1] > 0:
        similarity = _cosine(case, case["inputs"]["response"], case["inputs"]["reference"]) or 0.0
    below_zero = weights[1] * min(0.0, similarity) / sum(weights)  # RAGAS does not clip
    value = formulas.answer_correctness(factual, similarity, weights)
    assert value + below_zero == pytest.approx(case["expected"]["value"], abs=1e-12)


@pytest.mark.parametrize("case", _scored("answer_relevancy"), ids=_named)
def test_relevancy_agrees(case: dict[str, Any]) -> None:
    kept = [reply for reply in _replies(case, "reverse_question") if reply["question"]]
    vectors = [case["embeddings"][reply["question"]] for reply in kept]
    flagged = all(reply["noncommittal"] for reply in kept)
    value = formulas.answer_relevancy(case["embeddings"][case["inputs"]["user_input"]], vectors, flagged)
    assert value == pytest.approx(case["expected"]["value"], abs=1e-12)


@pytest.mark.parametrize("case", _scored("faithfulness"), ids=_named)
def test_faithfulness_agrees(case: dict[str, Any]) -> None:
    (listed,), (judged,) = _replies(case, "statements"), _replies(case, "verdicts")
    supported = sum(bool(row["verdict"]) for row in judged["statements"])
    value = formulas.faithfulness(supported, len(listed["statements"]))
    assert value == pytest.approx(case["expected"]["value"], abs=1e-12)


def _claims_compared(case: dict[str, Any]) -> tuple[int, int, int]:
    verdicts = [[bool(row["verdict"]) for row in reply["statements"]] for reply in _replies(case, "verdicts")]
    asked = [bool(reply["claims"]) for reply in _replies(case, "claims")]  # no claims, no verdicts
    ours, theirs = (verdicts.pop(0) if claims else [] for claims in (*asked, False)[:2])
    return sum(ours), len(ours) - sum(ours), len(theirs) - sum(theirs)


@pytest.mark.parametrize("case", _scored("factual_correctness"), ids=_named)
def test_f_beta_agrees_with_factual_correctness_to_its_two_decimals(case: dict[str, Any]) -> None:
    tp, fp, fn = _claims_compared(case)
    mode = case["params"].get("mode", "f1")
    if mode == "precision":
        value = tp / (tp + fp) if tp + fp else 0.0
    elif mode == "recall":
        value = tp / (tp + fn) if tp else 0.0
    else:
        value = formulas.f_beta(tp, fp, fn, case["params"].get("beta", 1.0)) or 0.0
    assert value == pytest.approx(case["expected"]["value"], abs=0.005 + 1e-6)


@pytest.mark.parametrize("name", ["answer_correctness-039", "answer_correctness-112", "answer_correctness-156"])
def test_nothing_to_compare_is_none(name: str) -> None:
    assert formulas.f_beta(0, 0, 0) is None, NOTHING_TO_MEASURE[name]


# ---------------------------------------------------------------- where RAGAS invents a number


def _faults(tag: str) -> list[dict[str, Any]]:
    return [case for case in CASES if tag in case["tags"] and case["metric"] != "factual_correctness"]


def test_negative_cosines_are_clipped_at_the_end() -> None:
    for case in _faults("negative_cosine"):
        if case["metric"] == "answer_relevancy":
            vectors = [case["embeddings"][reply["question"]] for reply in _replies(case, "reverse_question")]
            assert formulas.answer_relevancy(case["embeddings"][case["inputs"]["user_input"]], vectors, False) == 0.0
        else:
            assert formulas.answer_correctness(1.0, -1.0, case["params"]["weights"]) >= 0.0


@pytest.mark.parametrize("case", _faults("noncommittal_mix") + _faults("noncommittal_sweep"), ids=_named)
def test_one_flag_speaks_for_the_whole_reply(case: dict[str, Any]) -> None:
    kept = [reply for reply in _replies(case, "reverse_question") if reply["question"]]
    majority = 2 * sum(bool(reply["noncommittal"]) for reply in kept) > len(kept)
    vectors = [case["embeddings"][reply["question"]] for reply in kept]
    value = formulas.answer_relevancy(case["embeddings"][case["inputs"]["user_input"]], vectors, majority)
    assert value == (0.0 if majority else pytest.approx(case["expected"]["value"], abs=1e-12))


async def test_blank_questions_give_no_score() -> None:
    for case in _faults("whitespace_question"):
        questions = tuple(reply["question"] for reply in _replies(case, "reverse_question"))
        session = ScriptedSession(questions=ReverseQuestions(questions))
        result = await AnswerRelevancy(TableEmbedder({})).evaluate(interaction(), session)
        assert result == Unscored("answer_relevancy", "no_questions")


def test_a_vector_of_no_length_is_none_not_nan() -> None:
    for case in _faults("zero_norm"):
        if case["metric"] == "answer_relevancy":
            vectors = [case["embeddings"][reply["question"]] for reply in _replies(case, "reverse_question")]
            question = case["embeddings"][case["inputs"]["user_input"]]
            assert formulas.answer_relevancy(question, vectors, False) is None
        else:
            assert _cosine(case, case["inputs"]["response"], case["inputs"]["reference"]) is None


async def _correctness(response_claims: list[str], reference_claims: list[str]) -> Score | Unscored:
    session = ScriptedSession(claims={"A.": response_claims, "R.": reference_claims})
    return await AnswerCorrectness(None, (1, 0)).evaluate(interaction(reference="R."), session)


async def test_missing_claims_are_not_a_perfect_answer() -> None:
    tags = ("empty_response_claims", "empty_reference_claims", "empty_both_claims")
    for case in (case for tag in tags for case in _faults(tag)):
        response, reference = (reply["statements"] for reply in _replies(case, "statements"))
        result = await _correctness(response, reference)
        if reference:
            assert (result.value, result.label) == (0.0, "no_claims")
        else:
            assert result.reason == "no_reference_claims"


def _verdicts_by_id(claims: int, rows: list[tuple[str, str]], vocabulary: Vocabulary) -> tuple[int, int, int]:
    """Known good, known bad and open claims after reading rows of (id, verdict)."""
    ids = [f"s{place}" for place in range(1, claims + 1)]
    reply = {"verdicts": [{"id": name, "verdict": verdict, "quote": "evidence"} for name, verdict in rows]}
    found, _ = read_verdicts(reply, ids, Quotable(["evidence"]), vocabulary)
    good = sum(verdict.value == vocabulary.value[0] for verdict in found.values())
    return good, len(found) - good, claims - len(found)


@pytest.mark.parametrize(
    "name",
    [
        *("judge_count_mismatch", "judge_returned_nothing", "judge_duplicate_item"),
        *(f"answer_correctness-{n}" for n in ("003", "015", "024", "055", "056", "062", "095", "098", "116", "118")),
    ],
)
def test_lists_that_do_not_add_up_to_the_claims_leave_claims_open(name: str) -> None:
    (case,) = [case for case in CASES if case["id"] == name or name in case["tags"]]
    response, _reference = (reply["statements"] for reply in _replies(case, "statements"))
    (classified,) = _replies(case, "classify")
    labels = ["TP"] * len(classified["TP"]) + ["FP"] * len(classified["FP"])
    rows = [(f"s{place}", label) for place, label in enumerate(labels, 1)]
    good, bad, open_ = _verdicts_by_id(len(response), rows, Vocabulary.PRECISION)
    assert good + bad + open_ == len(response)
    assert good + bad == min(len(labels), len(response))


@pytest.mark.parametrize("case", _faults("judge_dropped") + _faults("judge_added"), ids=_named)
def test_faithfulness_counts_claims_not_verdicts(case: dict[str, Any]) -> None:
    (listed,), (judged,) = _replies(case, "statements"), _replies(case, "verdicts")
    claims = len(listed["statements"])
    words = ["supported" if row["verdict"] else "not_found" for row in judged["statements"]]
    rows = [(f"s{place}", word) for place, word in enumerate(words, 1)]
    good, bad, open_ = _verdicts_by_id(claims, rows, Vocabulary.SUPPORT)
    assert (good + bad, open_) == (min(len(words), claims), max(0, claims - len(words)))


@pytest.mark.parametrize("case", _faults("odd_verdict"), ids=_named)
def test_verdicts_that_were_not_on_offer_count_as_missing(case: dict[str, Any]) -> None:
    (judged,) = _replies(case, "verdicts")
    rows = [{"id": f"s{n}", "verdict": row["verdict"], "quote": "e"} for n, row in enumerate(judged["statements"], 1)]
    ids = [row["id"] for row in rows]
    found, drops = read_verdicts({"verdicts": rows}, ids, Quotable(["e"]), Vocabulary.SUPPORT)
    assert found == {}
    assert set(drops.values()) == {"unknown_verdict"}


@pytest.mark.parametrize("case", _faults("no_statements") + _faults("no_verdicts"), ids=_named)
async def test_faithfulness_without_claims_or_verdicts_is_not_a_number(case: dict[str, Any]) -> None:
    (listed,) = _replies(case, "statements")
    claims = [f"{n} {text}" for n, text in enumerate(listed["statements"])]
    nothing: dict[Vocabulary, list[str | None]] = {Vocabulary.SUPPORT: [None] * len(claims)}
    session = ScriptedSession(questions=["q?"], claims={"A.": claims}, verdicts=nothing)
    result = await Faithfulness().evaluate(interaction(), session)
    assert isinstance(result, Unscored)
    assert result.reason == ("judge_incomplete" if claims else "no_claims")


# ---------------------------------------------------------------- what RAGAS refuses


REFUSED_BETAS = [case["params"]["beta"] for case in CASES if "bad_beta" in case["tags"]]
REFUSED_WEIGHTS = [case["params"]["weights"] for case in CASES if "bad_weights" in case["tags"]]


@pytest.mark.parametrize("beta", [beta for beta in REFUSED_BETAS if type(beta) is not int] + [math.nan, math.inf])
def test_a_beta_that_is_no_finite_number_is_refused(beta: Any) -> None:
    with pytest.raises(ValueError, match="beta is a finite number"):
        formulas.f_beta(1, 1, 1, beta)


def test_a_whole_number_is_a_beta() -> None:
    assert any(type(beta) is int for beta in REFUSED_BETAS)
    assert formulas.f_beta(2, 1, 1, 1) == formulas.f_beta(2, 1, 1, 1.0)


@pytest.mark.parametrize("weights", [*REFUSED_WEIGHTS, [math.nan, 1.0], [math.inf, 1.0]])
def test_weights_that_cannot_be_used_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^weights: "):
        AnswerCorrectness(TableEmbedder({}), weights)


def test_vectors_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError):
        formulas.cosine([1.0, 0.0], [1.0])
    with pytest.raises(ValueError):
        formulas.answer_relevancy([1.0, 0.0], [[1.0], [1.0, 0.0]], False)


@pytest.mark.parametrize("case", _faults("empty_input"), ids=_named)
def test_empty_inputs_are_skipped_with_their_reason(case: dict[str, Any]) -> None:
    given = case["inputs"]
    asked = interaction(
        given["user_input"], given["response"] or None, contexts=tuple(given.get("retrieved_contexts", ()))
    )
    missing = {"no_question": given["user_input"], "no_answer": given["response"], "no_contexts": asked.contexts}
    assert skip_reason(asked, case["metric"]) in {reason for reason, value in missing.items() if not value}


async def test_a_judge_that_is_down_is_an_error_never_a_number() -> None:
    with pytest.raises(JudgeError):
        await Faithfulness().evaluate(
            interaction(), ScriptedSession(questions=failing("judge_unreachable"), claims={"A.": []})
        )
