"""What is kept for the page, and the figures drawn from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import NOW
from tests.web_results import evaluations, interaction, result
from tracescore.model import Item, Message, Score, Unscored
from tracescore.web.recent import LONGEST_TEXT, MOST_TEXTS, RESULT_BUDGET, Recent, means, scored, shorten, sliced, worst


def test_the_oldest_result_goes_when_there_are_too_many() -> None:
    recent = Recent(3, lambda: NOW)
    for number in range(5):
        recent.add(result(trace_id=f"{number:032x}"))
    assert [kept.interaction.trace_id for kept in recent.results()] == [f"{n:032x}" for n in (4, 3, 2)]
    assert recent.of_trace(f"{0:032x}") == []


def test_a_result_delivered_again_counts_once_and_replaces_its_former_self() -> None:
    recent = Recent(3, lambda: NOW)
    recent.add(result(evaluations(0.2)))
    recent.add(result(evaluations(0.7)))
    assert [mean.value for mean in means(scored(recent.results(), "answer_relevancy"), 1.0)] == [0.7]


def test_a_result_delivered_again_is_the_newest() -> None:
    recent = Recent(3, lambda: NOW)
    for trace_id in ("a" * 32, "b" * 32, "a" * 32):
        recent.add(result(trace_id=trace_id))
    assert [kept.interaction.trace_id[0] for kept in recent.results()] == ["a", "b"]


def test_results_of_two_judges_of_one_interaction_are_both_kept() -> None:
    recent = Recent(3, lambda: NOW)
    recent.add(result(judge="a"))
    recent.add(result(judge="b"))
    assert len(recent) == 2


def test_a_text_that_is_cut_says_by_how_much() -> None:
    kept = shorten(result(question="x" * (LONGEST_TEXT + 5))).result.interaction.question
    assert kept == "x" * LONGEST_TEXT + " … [5 more characters not kept here]"


def test_the_answer_is_kept_before_the_passages() -> None:
    kept = shorten(result(answer="a" * 15_000, contexts=("c" * 20_000,) * 9)).result.interaction
    assert kept.answer == "a" * 15_000
    assert kept.contexts[0] == "c" * 20_000
    assert kept.contexts[-1].startswith(" … [20000 more")


texts = st.sampled_from([0, 10, 3_000, LONGEST_TEXT, LONGEST_TEXT + 1, 90_000]).map(lambda size: "é" * size)


@given(texts, texts, st.lists(texts, max_size=6), st.integers(0, 300), texts)
def test_no_result_holds_more_than_its_budget(question: str, answer: str, contexts: list[str], copies: int, text: str):
    long = (Score("faithfulness", 0.5, items=(Item("claim", text, quote=text),) * copies),)
    told = result(
        long,
        question=question,
        answer=answer,
        contexts=(*contexts, *["c"] * copies),
        history=(Message("user", text),) * copies,
    )
    kept = shorten(told)
    found = kept.result.interaction
    items = [item for evaluation in kept.result.evaluations for item in evaluation.items]
    pieces = [found.question or "", found.answer or "", *found.contexts, *(message.text for message in found.history)]
    pieces += [part for item in items for part in (item.text, item.quote)]
    assert sum(len(piece.partition(" … [")[0]) for piece in pieces) <= RESULT_BUDGET
    assert max(len(items), len(found.contexts), len(found.history)) <= MOST_TEXTS
    assert len(found.contexts) + kept.contexts_left_out == len(told.interaction.contexts)
    assert found.key == told.interaction.key


def test_a_mean_is_weighted_by_the_sampling() -> None:
    results = [result(evaluations(1.0), weight=1.0), result(evaluations(0.0), weight=3.0)]
    [mean] = means(scored(results, "answer_relevancy"), 1.0)
    assert (mean.value, mean.count) == (0.25, 2)


def test_scores_of_different_services_judges_epochs_and_kinds_of_evidence_never_meet_in_one_mean() -> None:
    faithful = (Score("faithfulness", 1.0),)
    results = [
        result(faithful),
        result(faithful, service="bank"),
        result(faithful, judge="gpt"),
        result(faithful, context_source="prompt"),
    ]
    assert [mean.count for mean in means(scored(results, "faithfulness"), 1.0)] == [1, 1, 1, 1]


def test_the_kind_of_evidence_splits_no_measure_that_reads_no_evidence() -> None:
    complete = (Score("completeness", 1.0),)
    results = [result(complete), result(complete, context_source="prompt")]
    assert [mean.count for mean in means(scored(results, "completeness"), 1.0)] == [2]


def test_what_could_not_be_scored_enters_no_mean() -> None:
    results = [result((Unscored("completeness", "no_parts"),)), result((Score("completeness", 0.8),))]
    assert [(mean.value, mean.count) for mean in means(scored(results, "completeness"), 1.0)] == [(0.8, 1)]


@pytest.mark.parametrize(("most", "expected"), [(2, [0.1, 0.3]), (9, [0.1, 0.3, 0.9])])
def test_the_worst_come_first(most: int, expected: list[float]) -> None:
    results = [result((Score("completeness", value),)) for value in (0.9, 0.1, 0.3)]
    assert [one.score.value for one in worst(scored(results, "completeness"), most)] == expected


def test_attributes_are_not_kept() -> None:
    told = result(attributes={"http.request.body": "x" * 1_000_000})
    assert shorten(told).result.interaction == interaction(attributes={})


def test_results_older_than_they_may_be_kept_leave_the_page() -> None:
    now = NOW
    recent = Recent(10, lambda: now, age=60.0)
    recent.add(result(trace_id="1" * 32))
    assert len(recent.results()) == 1
    now += 61.0
    assert recent.of_trace("1" * 32) == recent.results() == []


def test_the_interval_of_a_mean_counts_a_conversation_once() -> None:
    apart = [result(evaluations(n % 2), trace_id=f"{n:032x}") for n in range(40)]
    together = [result(evaluations(n % 2), trace_id=f"{n:032x}", conversation_id=f"{n // 8}") for n in range(40)]
    (wide,), (narrow,) = (means(scored(each, "answer_relevancy"), 1.0) for each in (together, apart))
    assert (wide.value, wide.count) == (narrow.value, narrow.count) == (0.5, 40)
    assert narrow.lower < 0.5 < narrow.upper
    assert wide.upper - wide.lower > 1.5 * (narrow.upper - narrow.lower)


def test_the_lowest_tenant_is_shown_as_the_lowest_of_all_that_were_looked_at() -> None:
    tenants = [(f"t{n}", 0.9) for n in range(6)] + [("bad", 0.3)]
    results = [
        result(evaluations(value), trace_id=f"{number:016x}{n:016x}", slices={"tenant": name, "route": "/ask"})
        for n, (name, value) in enumerate(tenants)
        for number in range(25)
    ]
    results.append(result(evaluations(0.0), trace_id="f" * 32, slices={"tenant": "one answer"}))
    (found,) = sliced(scored(results, "answer_relevancy"), 1.0, 20)
    assert (found.key, found.lowest.of.slice, found.lowest.looked_at, found.lowest.surely) == ("tenant", "bad", 7, True)
    assert found.slices[0].slice == "bad"
    assert found.lowest.of.lower < found.slices[0].lower
    assert found.lowest.of.upper > found.slices[0].upper
