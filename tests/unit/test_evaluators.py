"""What is made of a judge's answers: the worked examples, every special case, and what each failure becomes."""

from __future__ import annotations

import logging
import time

import anyio
import pytest

from tests.scripted import ScriptedJudge, ScriptedSession, TableEmbedder, at_cosine, failing, interaction
from tracescore.config import DEFAULT_MEASURES, EvaluatorsConfig
from tracescore.errors import EmbedderError
from tracescore.evaluators import EVALUATORS, build_evaluators, evaluate_all, skip_reason
from tracescore.evaluators.answer_correctness import AnswerCorrectness
from tracescore.evaluators.answer_relevancy import AnswerRelevancy
from tracescore.evaluators.completeness import Completeness
from tracescore.evaluators.faithfulness import Faithfulness
from tracescore.judge.operations import RequiredParts, ReverseQuestions, Verdict, Vocabulary
from tracescore.model import MEASURES, Message, Result, Score, Unscored

pytestmark = pytest.mark.anyio
UNIT = [1.0, 0.0]
COVERAGE, SUPPORT, PRECISION, RECALL = (
    Vocabulary.COVERAGE,
    Vocabulary.SUPPORT,
    Vocabulary.PRECISION,
    Vocabulary.RECALL,
)


# ---------------------------------------------------------------- answer_relevancy


async def test_relevancy_is_the_mean_cosine_of_the_generated_questions() -> None:
    embedder = TableEmbedder({"Q?": UNIT, "a?": at_cosine(0.35), "b?": at_cosine(0.30), "c?": at_cosine(0.28)})
    score = await AnswerRelevancy(embedder).evaluate(interaction(), ScriptedSession(questions=["a?", "b?", "c?"]))
    assert isinstance(score, Score)
    assert score.value == pytest.approx(0.31, abs=1e-12)
    assert [item.credit for item in score.items] == pytest.approx([0.35, 0.30, 0.28])


async def test_relevancy_of_a_negative_mean_is_zero_but_keeps_the_cosines() -> None:
    embedder = TableEmbedder({"Q?": UNIT, "a?": at_cosine(-0.5)})
    score = await AnswerRelevancy(embedder).evaluate(interaction(), ScriptedSession(questions=["a?"]))
    assert isinstance(score, Score)
    assert score.value == 0.0
    assert score.items[0].credit == pytest.approx(-0.5)


@pytest.mark.parametrize("answer", ["", "   \n"])
async def test_relevancy_of_a_blank_answer_is_zero_without_a_call(answer: str) -> None:
    score = await AnswerRelevancy(TableEmbedder({})).evaluate(interaction(answer=answer), ScriptedSession())
    assert score == Score("answer_relevancy", 0.0, label="blank")


async def test_an_evasive_answer_is_zero_and_buys_no_vectors() -> None:
    embedder = TableEmbedder({})
    session = ScriptedSession(questions=ReverseQuestions(("a?",), noncommittal=True, words="I don't know"))
    score = await AnswerRelevancy(embedder).evaluate(interaction(), session)
    assert isinstance(score, Score)
    assert (score.value, score.label, embedder.asked) == (0.0, "noncommittal", [])


async def test_an_evasive_answer_is_left_out_where_abstentions_are_excluded() -> None:
    session = ScriptedSession(questions=ReverseQuestions((), noncommittal=True, words="I don't know"))
    evaluator = AnswerRelevancy(TableEmbedder({}), count_abstentions_as="excluded")
    assert await evaluator.evaluate(interaction(), session) == Unscored("answer_relevancy", "abstained")


@pytest.mark.parametrize("questions", [[], [" ", ""]])
async def test_relevancy_without_a_usable_question_is_unscored_not_zero(questions: list[str]) -> None:
    result = await AnswerRelevancy(TableEmbedder({})).evaluate(interaction(), ScriptedSession(questions=questions))
    assert result == Unscored("answer_relevancy", "no_questions")


async def test_relevancy_with_a_vector_of_no_length_is_unscored_not_nan() -> None:
    embedder = TableEmbedder({"Q?": UNIT, "a?": [0.0, 0.0]})
    result = await AnswerRelevancy(embedder).evaluate(interaction(), ScriptedSession(questions=["a?"]))
    assert isinstance(result, Unscored)
    assert result.reason == "zero_vector"


async def test_relevancy_of_a_follow_up_is_measured_against_the_stand_alone_question() -> None:
    embedder = TableEmbedder({"And in winter?": at_cosine(0.3), "When is it open in winter?": UNIT, "a?": UNIT})
    session = ScriptedSession(questions=["a?"], parts=RequiredParts((), "When is it open in winter?"))
    history = (Message("user", "When is it open in summer?"), Message("assistant", "At nine."))
    asked = interaction(question="And in winter?", history=history)
    score = await AnswerRelevancy(embedder).evaluate(asked, session)
    assert isinstance(score, Score)
    assert score.value == pytest.approx(1.0)


async def test_relevancy_of_a_first_question_needs_no_second_judge_call() -> None:
    session = ScriptedSession(questions=["a?"])
    await AnswerRelevancy(TableEmbedder({"Q?": UNIT, "a?": UNIT})).evaluate(interaction(), session)
    assert [operation for operation, _ in session.asked] == ["reverse_questions"]


def test_relevancy_needs_at_least_one_question() -> None:
    with pytest.raises(ValueError, match="n: at least one question expected; got 0"):
        AnswerRelevancy(TableEmbedder({}), n=0)


# ---------------------------------------------------------------- completeness


async def test_completeness_of_the_return_window_answer_is_one_half() -> None:
    asked = interaction(
        "What is the return window, and does it cover opened items?", "You can return items within 30 days of purchase."
    )
    session = ScriptedSession(parts=["return window", "opened items"], verdicts={COVERAGE: ["covered", "missing"]})
    score = await Completeness().evaluate(asked, session)
    assert isinstance(score, Score)
    assert (score.value, [item.credit for item in score.items]) == (0.5, [1.0, 0.0])


async def test_a_partly_covered_part_counts_half_and_nothing_where_strict() -> None:
    session = ScriptedSession(parts=["a", "b"], verdicts={COVERAGE: ["covered", "partial"]})
    score = await Completeness().evaluate(interaction(), session)
    assert isinstance(score, Score)
    assert (score.value, score.details["strict"]) == (0.75, 0.5)


async def test_completeness_shows_the_judge_the_answer_but_never_the_contexts() -> None:
    session = ScriptedSession(parts=["a"], verdicts={COVERAGE: ["covered"]})
    await Completeness().evaluate(interaction(answer="A.", contexts=("secret",)), session)
    assert session.asked[-1] == ("verify", (("a",), ("A.",), COVERAGE, "Q?"))


async def test_completeness_of_an_item_that_brings_its_parts_asks_for_no_others() -> None:
    session = ScriptedSession(verdicts={COVERAGE: ["covered", "missing"]})
    score = await Completeness().evaluate(interaction(required=("price", "delivery")), session)
    assert isinstance(score, Score)
    assert (score.value, [item.text for item in score.items]) == (0.5, ["price", "delivery"])


async def test_completeness_without_parts_is_unscored() -> None:
    result = await Completeness().evaluate(interaction(), ScriptedSession(parts=[]))
    assert result == Unscored("completeness", "no_parts")


async def test_completeness_with_a_missing_verdict_keeps_its_bounds() -> None:
    session = ScriptedSession(parts=["a", "b", "c", "d"], verdicts={COVERAGE: ["covered", None, "partial", "missing"]})
    result = await Completeness().evaluate(interaction(), session)
    assert isinstance(result, Unscored)
    assert (result.reason, result.lo, result.hi) == ("judge_incomplete", 0.375, 0.625)


# ---------------------------------------------------------------- faithfulness


def _faithful(*words: str | Verdict | None, questions=("a?",)) -> ScriptedSession:
    claims = {"A.": [f"claim {n}" for n in range(len(words))]}
    return ScriptedSession(questions=questions, claims=claims, verdicts={SUPPORT: words})


async def test_faithfulness_counts_over_all_claims_and_tells_contradictions_apart() -> None:
    session = _faithful("supported", "contradicted", "not_found", "supported", "supported")
    score = await Faithfulness().evaluate(interaction(), session)
    assert isinstance(score, Score)
    assert (score.value, score.details["contradicted"]) == (0.6, 0.2)


@pytest.mark.parametrize(("windows", "count"), [((0, 0, 0), 1), ((0, 1, 0), 2), ((0, 1, 2), 3)])
async def test_faithfulness_tells_on_how_many_windows_of_the_contexts_it_was_judged(windows, count) -> None:
    verdicts = [Verdict("supported", "a quote", window) for window in windows]
    score = await Faithfulness().evaluate(interaction(), _faithful(*verdicts))
    assert isinstance(score, Score)
    assert (score.value, score.details["windows"]) == (1.0, count)


async def test_one_verdict_for_five_claims_is_not_a_score_of_one() -> None:
    result = await Faithfulness().evaluate(interaction(), _faithful("supported", None, None, None, None))
    assert isinstance(result, Unscored)
    assert (result.reason, result.lo, result.hi) == ("judge_incomplete", 0.2, 1.0)


async def test_faithfulness_of_an_abstention_is_unscored() -> None:
    evasive = ReverseQuestions((), noncommittal=True, words="I don't know")
    result = await Faithfulness().evaluate(interaction(), _faithful("supported", questions=evasive))
    assert result == Unscored("faithfulness", "abstained")


async def test_faithfulness_without_claims_is_unscored_never_nan_or_one() -> None:
    assert await Faithfulness().evaluate(interaction(), _faithful()) == Unscored("faithfulness", "no_claims")


async def test_blank_contexts_are_no_evidence() -> None:
    session = ScriptedSession(questions=["a?"], claims={"A.": ["c"]}, verdicts={SUPPORT: ["supported"]})
    await Faithfulness().evaluate(interaction(contexts=("", " ", "C.")), session)
    assert session.asked[-1] == ("verify", (("c",), ("C.",), SUPPORT, "Q?"))
    assert skip_reason(interaction(contexts=("", " \n")), "faithfulness") == "no_contexts"


# ---------------------------------------------------------------- answer_correctness

SIMILAR = TableEmbedder({"A.": UNIT, "R.": at_cosine(0.938), "B.": at_cosine(0.72)})


def _correct(ours: list[str | None], theirs: list[str | None], answer: str = "A.") -> ScriptedSession:
    claims = {answer: [f"a{n}" for n in range(len(ours))], "R.": [f"r{n}" for n in range(len(theirs))]}
    return ScriptedSession(claims=claims, verdicts={PRECISION: ours, RECALL: theirs})


TWO = (["TP", "TP", "FP", "FP"], ["covered", "covered", "missed", "missed"])


@pytest.mark.parametrize(
    ("embedder", "weights", "value"),
    [
        (SIMILAR, (0.75, 0.25), 0.6095),
        (TableEmbedder({"A.": UNIT, "R.": at_cosine(0.72)}), (0.75, 0.25), 0.555),
        (None, (1, 0), 0.5),
    ],
)
async def test_correctness_weighs_facts_and_similarity(embedder, weights, value) -> None:
    score = await AnswerCorrectness(embedder, weights).evaluate(interaction(reference="R."), _correct(*TWO))
    assert isinstance(score, Score)
    assert score.value == pytest.approx(value, abs=1e-12)
    assert {key: score.details[key] for key in ("factual", "coverage", "tp", "fp", "fn")} == {
        "factual": 0.5,
        "coverage": 0.5,
        "tp": 2,
        "fp": 2,
        "fn": 2,
    }


def test_correctness_without_an_embedder_names_both_ways_out() -> None:
    with pytest.raises(ValueError) as refused:
        build_evaluators(["answer_correctness"], EvaluatorsConfig(), None)
    assert str(refused.value) == (
        "answer_correctness: weights [0.75, 0.25] need an embedder for the similarity; "
        "configure an embedder, or set the weights to [1, 0] for the factual part alone"
    )
    build_evaluators(["answer_correctness"], EvaluatorsConfig(weights=(1, 0)), None)


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf")])
def test_correctness_refuses_a_beta_that_cannot_be_used(beta: float) -> None:
    with pytest.raises(ValueError, match="beta"):
        AnswerCorrectness(None, (1, 0), beta)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("30 days", "30  DAYS "),
        ("三十天。", "三十天。"),
        ("ثلاثون يوما", "ثلاثون يوما"),
        ("I don't know", "I don't know"),
    ],
)
async def test_identical_texts_are_correct_without_a_call(answer: str, reference: str) -> None:
    evaluator = AnswerCorrectness(None, (1, 0))
    score = await evaluator.evaluate(interaction(answer=answer, reference=reference), ScriptedSession())
    assert score == Score("answer_correctness", 1.0, label="identical", details={"factual": 1.0, "coverage": 1.0})


async def test_an_answer_without_claims_has_a_factual_part_of_zero() -> None:
    session = ScriptedSession(claims={"A.": [], "R.": ["r"]})
    score = await AnswerCorrectness(SIMILAR).evaluate(interaction(reference="R."), session)
    assert isinstance(score, Score)
    assert (score.label, score.details["factual"]) == ("no_claims", 0.0)
    assert score.value == pytest.approx(0.25 * 0.938)


@pytest.mark.parametrize("claims", [{"A.": ["a"], "R.": []}, {"A.": [], "R.": []}])
async def test_a_reference_without_claims_gives_no_number(claims) -> None:
    result = await AnswerCorrectness(SIMILAR).evaluate(interaction(reference="R."), ScriptedSession(claims=claims))
    assert result == Unscored("answer_correctness", "no_reference_claims", "similarity=0.938")


async def test_correctness_with_a_missing_verdict_keeps_its_bounds() -> None:
    session = _correct(["TP", None], ["covered", None])
    result = await AnswerCorrectness(None, (1, 0)).evaluate(interaction(reference="R."), session)
    assert isinstance(result, Unscored)
    assert (result.reason, result.lo, result.hi) == ("judge_incomplete", 0.5, 1.0)


async def test_similarity_alone_asks_no_judge() -> None:
    score = await AnswerCorrectness(SIMILAR, (0, 1)).evaluate(interaction(reference="R."), ScriptedSession())
    assert isinstance(score, Score)
    assert score.value == pytest.approx(0.938)


async def test_a_negative_similarity_counts_zero() -> None:
    embedder = TableEmbedder({"A.": UNIT, "R.": [-1.0, 0.0]})
    session = _correct(["TP"], ["covered"])
    score = await AnswerCorrectness(embedder).evaluate(interaction(reference="R."), session)
    assert isinstance(score, Score)
    assert (score.value, score.details["similarity"]) == (0.75, -1.0)


# ---------------------------------------------------------------- which interactions are scored

RANKED = {"context_source": "retrieval"}
NO_REFERENCE = dict.fromkeys(("context_recall", "answer_correctness"), "no_reference")
OF_CONTEXTS = ("faithfulness", "context_precision", "context_recall")
OF_ANSWERS = ("answer_relevancy", "completeness", "faithfulness", "answer_correctness")


@pytest.mark.parametrize(
    ("fields", "skips"),
    [
        (RANKED, NO_REFERENCE),
        (RANKED | {"reference": "R."}, {}),
        ({"reference": "R."}, {"context_precision": "no_ranking"}),
        ({"context_source": "tool", "reference": "R."}, {"context_precision": "no_ranking"}),
        ({"state": "app_error"}, dict.fromkeys(MEASURES, "app_error")),
        ({"state": "no_question", "question": None}, dict.fromkeys(MEASURES, "no_question")),
        ({"question": " "}, dict.fromkeys(MEASURES, "no_question")),
        (RANKED | {"state": "no_answer", "answer": None, "reference": "R."}, dict.fromkeys(OF_ANSWERS, "no_answer")),
        (RANKED | {"answer": "", "reference": "R."}, {}),
        (
            {"state": "no_contexts", "contexts": ()},
            dict.fromkeys(OF_CONTEXTS, "no_contexts") | {"answer_correctness": "no_reference"},
        ),
        (
            {"state": "content_not_captured", "question": None, "answer": None, "contexts": ()},
            dict.fromkeys(MEASURES, "content_not_captured"),
        ),
        (
            {"state": "truncated", "unusable": frozenset({"contexts"}), "reference": "R."},
            dict.fromkeys(OF_CONTEXTS, "truncated"),
        ),
        (
            {"state": "partial_contexts", "unusable": frozenset({"contexts"}), "reference": "R."},
            dict.fromkeys(OF_CONTEXTS, "partial_contexts"),
        ),
        (
            RANKED | {"state": "redacted", "unusable": frozenset({"answer"}), "reference": "R."},
            dict.fromkeys(OF_ANSWERS, "redacted"),
        ),
        (
            RANKED | {"state": "truncated", "unusable": frozenset({"answer"}), "reference": "R."},
            dict.fromkeys(OF_ANSWERS, "truncated"),
        ),
    ],
)
def test_a_measure_is_skipped_for_what_it_reads_and_for_nothing_else(fields, skips) -> None:
    found = {measure: skip_reason(interaction(**fields), measure) for measure in MEASURES}
    assert {measure: reason for measure, reason in found.items() if reason} == skips


# ---------------------------------------------------------------- evaluate_all


def _live(session: ScriptedSession, embedder=None, measures=DEFAULT_MEASURES):
    table = embedder or TableEmbedder({"Q?": UNIT, "a?": UNIT})
    return build_evaluators(measures, EvaluatorsConfig(), table), ScriptedJudge(session)


async def test_measures_fail_by_themselves() -> None:
    session = ScriptedSession(
        questions=["a?"], parts=failing("judge_refused"), claims={"A.": ["c"]}, verdicts={SUPPORT: ["supported"]}
    )
    evaluators, judge = _live(session)
    result = await evaluate_all(interaction(), evaluators, judge, lambda: 12.5)
    assert [(e.measure, getattr(e, "value", None), getattr(e, "reason", None)) for e in result.evaluations] == [
        ("answer_relevancy", 1.0, None),
        ("completeness", None, "judge_refused"),
        ("faithfulness", 1.0, None),
    ]
    assert (result.judge, result.epoch, result.usage.calls, result.finished) == ("scripted", 3, 1, 12.5)
    assert judge.keys == [interaction().key]


async def test_skipped_measures_ask_nothing() -> None:
    session = ScriptedSession()
    evaluators, judge = _live(session, measures=MEASURES)
    result = await evaluate_all(interaction(state="app_error"), evaluators, judge, time.time)
    assert [e.outcome for e in result.evaluations if isinstance(e, Unscored)] == ["skipped"] * len(MEASURES)
    assert session.asked == []


async def test_two_models_in_one_interaction_leave_none_of_its_scores() -> None:
    session = ScriptedSession(
        questions=["a?"], parts=failing("judge_mixed"), claims={"A.": ["c"]}, verdicts={SUPPORT: ["supported"]}
    )
    evaluators, judge = _live(session, measures=MEASURES)
    result = await evaluate_all(interaction(), evaluators, judge, time.time)
    reasons = [e.reason for e in result.evaluations if isinstance(e, Unscored)]
    assert reasons == ["judge_mixed"] * 3 + ["no_ranking", "no_reference", "no_reference"]


async def test_an_embedder_that_fails_costs_only_what_needs_it() -> None:
    class Broken(TableEmbedder):
        async def embed(self, texts):
            raise EmbedderError("embedder timeout: no answer within 30 s")

    session = ScriptedSession(questions=["a?"], parts=["p"], verdicts={COVERAGE: ["covered"]})
    evaluators, judge = _live(session, Broken({}), ("answer_relevancy", "completeness"))
    result = await evaluate_all(interaction(), evaluators, judge, time.time)
    assert [getattr(e, "reason", None) for e in result.evaluations] == ["embedder_failed", None]


async def test_a_defect_is_unscored_and_logged_without_what_users_wrote(caplog: pytest.LogCaptureFixture) -> None:
    session = ScriptedSession(questions=RuntimeError("could not read 'my secret question'"))
    evaluators, judge = _live(session, measures=("answer_relevancy",))
    with caplog.at_level(logging.DEBUG):
        result = await evaluate_all(interaction("my secret question"), evaluators, judge, time.time)
    assert result.evaluations == (Unscored("answer_relevancy", "internal_error", "RuntimeError"),)
    assert "error=RuntimeError" in caplog.text
    assert "reverse_questions" in caplog.text
    assert "secret" not in caplog.text


async def test_cancellation_is_not_an_outcome() -> None:
    class Hanging(ScriptedSession):
        async def reverse_questions(self, answer, n):
            await anyio.sleep_forever()

    evaluators, judge = _live(Hanging(), measures=("answer_relevancy",))
    with anyio.move_on_after(0.05) as scope:
        await evaluate_all(interaction(), evaluators, judge, time.time)
    assert scope.cancelled_caught


@pytest.mark.parametrize("value", [-1.0, -1e-9, 1.0000001, 90.0, float("nan"), float("inf")])
def test_a_score_outside_of_its_range_cannot_exist(value: float) -> None:
    with pytest.raises(ValueError, match=r"a score lies in \[0, 1\]"):
        Score("faithfulness", value)


def test_scores_of_two_judges_or_epochs_are_two_scores() -> None:
    results = [Result(interaction(), (), judge, epoch) for judge in ("a", "b") for epoch in (0, 1)]
    assert len({result.score_id("faithfulness") for result in results}) == 4
    assert results[0].score_id("faithfulness") == Result(interaction(), (), "a", 0).score_id("faithfulness")


def test_every_measure_has_an_evaluator_of_its_name() -> None:
    built = build_evaluators(MEASURES, EvaluatorsConfig(), TableEmbedder({}))
    assert list(EVALUATORS) == list(MEASURES) == [evaluator.measure for evaluator in built]


def test_relevancy_without_an_embedder_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="configure an embedder, or leave answer_relevancy out of measures"):
        build_evaluators(["answer_relevancy"], EvaluatorsConfig(), None)
