"""The context side: whether retrieval ranked first what is needed, and whether the passages hold it at all."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gold_runs import outcome, run
from tests.judging import Built
from tests.openai_server import Reply, openai_server, sensible
from tests.scripted import ScriptedSession, interaction
from tracescore import formulas
from tracescore.evaluators import evaluate_all
from tracescore.evaluators.context_precision import ContextPrecision
from tracescore.evaluators.context_recall import ContextRecall
from tracescore.evaluators.grounding import Grounds
from tracescore.gold.compare import compare
from tracescore.judge.operations import Vocabulary
from tracescore.model import Score, Unscored

USEFUL, NOT = "useful", "not_useful"
FLAGS = st.lists(st.booleans(), min_size=1, max_size=12)


# ---------------------------------------------------------------- average precision


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([True], 1.0),
        ([False], 0.0),
        ([True, False, False], 1.0),
        ([False, True], 0.5),
        ([False, False, True], 1 / 3),
        ([True, False, True], (1 + 2 / 3) / 2),
        ([False, True, True], (1 / 2 + 2 / 3) / 2),
        ([True, True, False, True], (1 + 1 + 3 / 4) / 3),
        ([], None),
    ],
)
def test_average_precision_is_the_mean_of_the_precision_at_each_useful_passage(useful, expected) -> None:
    assert formulas.average_precision(useful) == (expected if expected is None else pytest.approx(expected))


@given(FLAGS)
def test_average_precision_is_that_of_ragas_up_to_its_epsilon(useful: list[bool]) -> None:
    """The published formula: sum of precision@k times usefulness at k, over the number of useful passages + 1e-10."""
    hits = [sum(useful[: k + 1]) / (k + 1) * useful[k] for k in range(len(useful))]
    assert formulas.average_precision(useful) == pytest.approx(sum(hits) / (sum(useful) + 1e-10), abs=1e-9)


@given(FLAGS)
def test_no_order_beats_the_one_with_the_useful_passages_first(useful: list[bool]) -> None:
    best = formulas.average_precision(sorted(useful, reverse=True))
    assert best == (1.0 if any(useful) else 0.0)
    found = formulas.average_precision(useful)
    assert found is not None
    assert 0.0 <= found <= best


# ---------------------------------------------------------------- context precision


async def precision(words, contexts=("a", "b", "c"), **fields):
    session = ScriptedSession(verdicts={Vocabulary.USEFULNESS: words})
    asked = interaction(contexts=contexts, context_source="retrieval", **fields)
    return await ContextPrecision().evaluate(asked, session), session


@pytest.mark.anyio
async def test_passages_are_judged_by_the_question_and_named_by_their_place() -> None:
    score, session = await precision([NOT, USEFUL, NOT])
    assert isinstance(score, Score)
    assert score.value == 0.5
    assert score.details == {"useful": pytest.approx(1 / 3), "passages": 3}
    assert [(item.kind, item.text, item.passage, item.credit) for item in score.items] == [
        ("passage", "passage 1", 0, 0.0),
        ("passage", "passage 2", 1, 1.0),
        ("passage", "passage 3", 2, 0.0),
    ]
    assert session.asked == [("usefulness", (("a", "b", "c"), "Q?", "A.", ""))]


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ["", "I don't know.", "A."])
async def test_an_evasive_answer_makes_the_retriever_look_neither_better_nor_worse(answer: str) -> None:
    score, _ = await precision([USEFUL, NOT, NOT], answer=answer)
    assert isinstance(score, Score)
    assert score.value == 1.0


@pytest.mark.anyio
async def test_a_reference_says_what_is_needed_and_a_withheld_answer_is_not_shown() -> None:
    _, session = await precision([USEFUL, NOT, NOT], reference="R.", unusable=frozenset({"answer"}))
    assert session.asked == [("usefulness", (("a", "b", "c"), "Q?", "", "R."))]


@pytest.mark.anyio
async def test_of_several_retrievals_it_is_the_mean_of_theirs() -> None:
    score, _ = await precision([USEFUL, NOT, USEFUL], rankings=((0, 1), (1, 2)))
    assert isinstance(score, Score)
    assert score.value == pytest.approx((1.0 + 0.5) / 2)


@pytest.mark.anyio
async def test_a_passage_without_a_verdict_leaves_bounds_and_no_number() -> None:
    found, _ = await precision([None, USEFUL, NOT])
    assert isinstance(found, Unscored)
    assert (found.reason, found.lo, found.hi) == ("judge_incomplete", 0.5, 1.0)


@pytest.mark.anyio
async def test_blank_passages_keep_their_rank_out_of_the_reckoning() -> None:
    score, session = await precision([USEFUL], contexts=(" ", "b"))
    assert isinstance(score, Score)
    assert (score.value, score.items[0].passage) == (1.0, 1)
    assert session.asked[0][1][0] == ("b",)


# ---------------------------------------------------------------- on the wire


PASSAGES = [f"Filler {n} says nothing." for n in range(11)] + ["The fee is 4 euros."]


@pytest.mark.anyio
async def test_a_dozen_passages_cost_one_call_in_an_order_that_tells_no_rank() -> None:
    with openai_server() as server:
        async with Built(server) as built:
            session = built.judge.session("1")
            verdicts = await session.usefulness(PASSAGES, "What is the fee?", "", "Fee: euros.")
        (sent,) = server.sent("verify_usefulness")
    assert [verdict.value for verdict in verdicts if verdict] == [NOT] * 11 + [USEFUL]
    assert verdicts[-1].quote == PASSAGES[-1]
    shown = [row["text"] for row in sent.data["passages"]]
    assert sorted(shown) == sorted(PASSAGES)
    assert shown != PASSAGES


@pytest.mark.anyio
async def test_a_quote_from_another_passage_gives_no_credit_and_is_asked_about_once_more() -> None:
    def script(request):
        rows = [{"id": row["id"], "quote": PASSAGES[-1], "verdict": USEFUL} for row in request.data["passages"]]
        return Reply.json({"verdicts": rows}) if request.prompt == "verify_usefulness" else sensible(request)

    with openai_server() as server:
        server.script = script
        async with Built(server) as built:
            verdicts = await built.judge.session("1").usefulness(PASSAGES[-2:], "What is the fee?", "")
        assert len(server.sent("verify_usefulness")) == 2
    assert verdicts[0] is None
    assert verdicts[1] is not None


# ---------------------------------------------------------------- context recall


@pytest.mark.anyio
async def test_recall_is_the_share_of_the_references_claims_that_the_passages_support() -> None:
    session = ScriptedSession(
        claims={"R. S. T. U.": ["R.", "S.", "T.", "U."]},
        verdicts={Vocabulary.SUPPORT: ["supported", "contradicted", "not_found", "supported"]},
    )
    asked = interaction(contexts=("shows supported",), reference="R. S. T. U.")
    score = await ContextRecall().evaluate(asked, session)
    assert isinstance(score, Score)
    assert score.value == 0.5
    assert score.details == {"contradicted": 0.25, "claims": 4}
    assert [item.passage for item in score.items] == [0, None, None, 0]


@pytest.mark.anyio
@pytest.mark.parametrize("contexts", [(), (" ",)])
async def test_where_the_app_returns_no_passages_recall_is_skipped(contexts) -> None:
    session = ScriptedSession()
    judge = type("Judge", (), {"name": "j", "session": lambda *_, **__: session})()
    result = await evaluate_all(interaction(contexts=contexts, reference="R."), [ContextRecall()], judge, time.time)
    assert [each.reason for each in result.evaluations if isinstance(each, Unscored)] == ["no_contexts"]


# ---------------------------------------------------------------- which passage a claim rests on


@pytest.mark.parametrize(
    ("quote", "place"),
    [
        ("The fee is 4 euros", 1),
        ("the **fee** is 4 euros!", 1),
        ("Fees are paid at the desk.", 0),
        ("The fee is 5 euros", None),
        ("", None),
    ],
)
def test_a_quote_names_the_first_passage_that_holds_it(quote: str, place: int | None) -> None:
    contexts = ("Fees are paid at the desk.", "The fee is 4 euros.", "The fee is 4 euros.")
    assert Grounds(contexts).holding(quote) == place


# ---------------------------------------------------------------- why a gold set falls

SAME = {"faithfulness": 1.0, "completeness": 1.0, "context_recall": 1.0, "context_contradicted": 0.0}


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        ({"factual": 1.0}, None),
        ({"context_recall": 0.0, "context_contradicted": 1.0}, "stale_context"),
        ({"context_recall": 0.0}, "retriever_misses"),
        ({"completeness": 0.2}, "truncation"),
        ({}, "unclear"),
        ({"faithfulness": 0.2, "context_recall": 0.0}, "unclear"),
    ],
)
def test_what_else_moved_says_why_answers_became_less_correct(now: dict[str, float], cause: str | None) -> None:
    assert _compared(SAME, {"factual": 0.0} | SAME | now).cause(0.02) == cause


def test_where_nothing_tells_what_the_passages_say_the_cause_is_not_measured() -> None:
    assert _compared({}, {"factual": 0.0}).cause(0.02) == "unmeasured"


def _compared(before, now):
    def of(number, values):
        return run([], number, outcomes=tuple(outcome(n, 1.0, values=values) for n in range(10)))

    found = compare(of(2, now), [of(1, {"factual": 1.0} | before)], "pinned")
    assert found is not None
    return found


def test_every_cause_is_reached_in_some_combination_of_falls() -> None:
    """The table has no row that another one hides."""
    falls = {"faithfulness": 0.2, "completeness": 0.2, "context_recall": 0.0, "context_contradicted": 1.0}
    combinations = itertools.chain.from_iterable(itertools.combinations(falls, n) for n in range(5))
    causes = {
        _compared(SAME, SAME | {"factual": 0.0} | {k: falls[k] for k in each}).cause(0.02) for each in combinations
    }
    assert causes == {"stale_context", "retriever_misses", "truncation", "unclear"}
