"""Which interactions an address asks for, and in which order and groups they are shown."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import NOW, result
from tracescore.interactions import slices
from tracescore.model import MEASURES, STATES, Result, Score, Unscored
from tracescore.web.choice import FIELDS, LARGEST_PAGE, SLICES, SORTS, Choice, fold, read_choice
from tracescore.web.finding import MOST_OPTIONS, chosen, grouped, options

T = TypeVar("T")


def at_once(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def found(results: list[Result], **fields: str) -> list[int]:
    """The numbers of the results that an address shows, in its order."""
    choice = read_choice(urlencode({name.replace("__", "."): value for name, value in fields.items()}), NOW)
    return [int(each.interaction.trace_id, 16) for each in at_once(chosen(results, choice))]


def one(number: int, faithfulness: float | None = None, **fields: Any) -> Result:
    evaluation = (
        Unscored("faithfulness", "no_contexts") if faithfulness is None else Score("faithfulness", faithfulness)
    )
    return result(evaluation, number=number, **({"ended": NOW - 60 * number} | fields))


RESULTS = [
    one(1, 0.9, question="Can I return an opened item?", answer="Yes.", slices={"route": "/ask", "tenant": "acme"}),
    one(2, 0.2, question="Wo ist die STRASSE?", answer="Die Straße ist hier.", service="docs", release="2.0"),
    one(3, None, question="Where is my parcel?", answer=None, state="no_answer", environment="staging"),
    one(4, 0.5, question="\uff26\uff55\uff4c\uff4c width", answer="cafe\u0301 so\u00adft", slices={"route": "/other"}),
]


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"service": "docs"}, [2]),
        ({"release": "2.0", "service": "shop"}, []),
        ({"environment": "staging"}, [3]),
        ({"state": "no_answer"}, [3]),
        ({"route": "/ask"}, [1]),
        ({"tenant": "acme"}, [1]),
        ({"from": "150s"}, [1, 2]),
        ({"to": "150s"}, [3, 4]),
        ({"from": "200s", "to": "100s"}, [2, 3]),
        ({"faithfulness__max": "0.5"}, [2, 4]),
        ({"faithfulness__min": "0.5"}, [1, 4]),
        ({"faithfulness__min": "0.2", "faithfulness__max": "0.2"}, [2]),
        ({"completeness__min": "0"}, []),
        ({"q": "RETURN opened"}, [1]),
        ({"q": "return parcel"}, []),
        ({"q": "strasse"}, [2]),
        ({"q": "straße hier"}, [2]),
        ({"q": "full"}, [4]),
        ({"q": "caf\u00e9"}, [4]),
        ({"q": "soft"}, [4]),
        ({"q": "."}, [1, 2]),
        ({"q": "   "}, [1, 2, 3, 4]),
        ({"sort": "oldest"}, [4, 3, 2, 1]),
        ({"sort": "question"}, [1, 4, 3, 2]),
        ({"sort": "faithfulness"}, [2, 4, 1, 3]),
        ({"sort": "-faithfulness"}, [1, 4, 2, 3]),
    ],
)
def test_an_address_shows_exactly_what_it_asks_for(fields: dict[str, str], numbers: list[int]) -> None:
    assert found(RESULTS, **fields) == numbers


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour=red", "MEASURE.min and MEASURE.max expected; got 'colour'"),
        ("service=a&service=b", "service: one value expected; got 2"),
        ("service=" + "x" * 256, "service: at most 255 characters expected; got 256"),
        ("q=" + "x" * 201, "q: at most 200 characters expected; got 201"),
        ("state=fine", f"state: one of {', '.join(STATES)} expected; got 'fine'"),
        ("sort=best", f"sort: one of {', '.join(SORTS)} expected; got 'best'"),
        ("group=tenant", "group: one of question expected; got 'tenant'"),
        ("page=0", "page: a number from 1 to 1,000,000 expected; got '0'"),
        ("page=%C2%B2", "page: a number from 1 to 1,000,000 expected; got '\u00b2'"),
        ("size=501", "size: a number from 1 to 500 expected; got '501'"),
        ("size=0000000501", "size: a number from 1 to 500 expected; got '0000000501'"),
        ("from=yesterday", "from: a time such as 2027-01-31T08:00Z or a duration such as 24h expected"),
        ("to=99999-01-01", "to: a time such as 2027-01-31T08:00Z or a duration such as 24h expected"),
        ("from=1h&to=2h", "from: a time before 'to' expected; got '1h' and '2h'"),
        ("faithfulness.min=nan", "faithfulness.min: a number from 0 to 1 expected; got 'nan'"),
        ("faithfulness.max=1.5", "faithfulness.max: a number from 0 to 1 expected; got '1.5'"),
        ("faithfulness.min=0.6&faithfulness.max=0.5", "faithfulness.min: at most faithfulness.max expected; got 0.6"),
        ("&".join(f"f{n}=1" for n in range(60)), f"the address has more than {len(FIELDS)} fields"),
    ],
)
def test_what_an_address_cannot_mean_is_refused_in_one_line(query: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"expected|more than") as refused:
        read_choice(query, NOW)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


NAMES = st.text("aZ0/. ß=&+%\u00e9", max_size=12)


@given(
    st.fixed_dictionaries(
        {},
        optional={"q": NAMES, "service": NAMES, "route": NAMES, "sort": st.sampled_from(SORTS), "from": st.just("7d")}
        | {"faithfulness.max": st.just("0.25"), "size": st.integers(1, LARGEST_PAGE).map(str), "page": st.just("3")}
        | {"group": st.just("question")},
    )
)
def test_an_address_leads_back_to_the_choice_it_was_written_for(fields: dict[str, str]) -> None:
    choice = read_choice(urlencode(fields), NOW)
    again = read_choice(choice.query(page=choice.page if choice.page > 1 else None), NOW)
    assert again == choice
    assert read_choice(choice.query(), NOW).page == 1


PIECES = st.one_of(
    st.text(max_size=20), st.sampled_from(["1e400", "-0", "9999-12-31", "0001-01-01T00:00+23:59", "1h", "%ff"])
)


@given(st.lists(st.tuples(st.sampled_from(FIELDS) | st.text(max_size=5), PIECES), max_size=8), st.booleans())
def test_any_address_is_a_choice_or_a_refusal_in_one_line(fields: list[tuple[str, str]], quoted: bool) -> None:
    plain = "&".join(f"{name}={value}" for name, value in fields)
    try:
        choice = read_choice(urlencode(fields, errors="replace") if quoted else plain, NOW)
    except ValueError as refusal:
        choice, said = None, str(refusal)
    if choice is None:
        assert len(said.splitlines()) == 1
        return
    assert len(at_once(chosen(RESULTS, choice))) <= len(RESULTS)
    assert 1 <= choice.size <= LARGEST_PAGE
    assert choice.link("/interactions").isascii()


@given(st.text(), st.text())
def test_folding_passes_over_case_and_forms_and_nothing_else(one: str, other: str) -> None:
    assert fold(fold(one)) == fold(one)
    assert fold(one.upper().lower()) == fold(one.lower()) or not one.isascii()
    if one.isascii() and other.isascii():
        assert (fold(one) == fold(other)) == (one.lower() == other.lower())


def test_the_fields_of_slices_are_the_keys_that_interactions_have() -> None:
    source = Path(slices.__file__).read_text()
    body = source[source.index("def slices") : source.index("def _route")]
    assert all(f'"{key}"' in body for key in SLICES)


# ---------------------------------------------------------------- groups


def asked(number: int, question: str, value: float | None, **fields: Any) -> Result:
    return one(number, value, question=question, **fields)


def test_the_same_question_in_another_case_or_spacing_is_one_group_with_mean_and_spread() -> None:
    results = [
        asked(1, "Where is it?", 0.2, weight=3.0),
        asked(2, "where  is IT?", 0.6),
        asked(3, "Where is it?", None),
        asked(4, "Why?", 1.0),
    ]
    groups = at_once(grouped(results, None))
    assert [(group.newest.interaction.question, len(group.results)) for group in groups] == [
        ("Where is it?", 3),
        ("Why?", 1),
    ]
    spread = groups[0].spreads["faithfulness"]
    assert (spread.lowest, spread.highest, spread.count) == (0.2, 0.6, 2)
    assert spread.mean == pytest.approx(0.3)  # weighted by the sampling
    assert spread.deviation == pytest.approx(0.2828, abs=1e-4)


def test_scores_of_two_services_judges_or_kinds_of_evidence_never_meet_in_a_group() -> None:
    base = asked(1, "Where?", 0.2)
    others = [
        asked(2, "Where?", 0.2, service="docs"),
        asked(3, "Where?", 0.2, context_source="prompt"),
        replace(asked(4, "Where?", 0.2), judge="another"),
        replace(asked(5, "Where?", 0.2), epoch=1),
    ]
    assert len(at_once(grouped([base, *others], None))) == 5


@pytest.mark.parametrize(
    ("sort", "questions"),
    [
        (None, ["b", "a", "c"]),
        ("newest", ["a", "b", "c"]),
        ("oldest", ["c", "b", "a"]),
        ("question", ["a", "b", "c"]),
        ("faithfulness", ["c", "a", "b"]),
        ("-faithfulness", ["b", "a", "c"]),
    ],
)
def test_groups_come_in_the_order_asked_for(sort: str | None, questions: list[str]) -> None:
    results = [asked(1, "a", 0.5), asked(2, "b", 0.8), asked(3, "b", 1.0), asked(4, "c", 0.1)]
    assert [group.newest.interaction.question for group in at_once(grouped(results, sort))] == questions


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.floats(0, 1)), max_size=30))
def test_grouping_loses_no_interaction_and_no_score(rows: list[tuple[str, float | None]]) -> None:
    results = [asked(number, question, value) for number, (question, value) in enumerate(rows, 1)]
    groups = at_once(grouped(results, None))
    assert sorted(each.interaction.key for group in groups for each in group.results) == sorted(
        each.interaction.key for each in results
    )
    counted = sum(group.spreads["faithfulness"].count for group in groups if "faithfulness" in group.spreads)
    assert counted == sum(value is not None for _, value in rows)
    for group in groups:
        for spread in group.spreads.values():
            assert spread.lowest <= spread.mean <= spread.highest


def test_of_too_many_values_the_most_frequent_can_be_chosen() -> None:
    results = [one(n, slices={"route": "/a", "tenant": f"t{n}"}) for n in range(1, MOST_OPTIONS + 50)]
    results += [one(500, slices={"tenant": "frequent"}), one(501, slices={"tenant": "frequent"})]
    offered = at_once(options(results))
    there = offered.values
    assert offered.measures == ["faithfulness"]
    assert len(there["tenant"]) == MOST_OPTIONS
    assert "frequent" in there["tenant"]
    assert there["route"] == ["/a"]
    assert there["turn"] == []


def test_every_order_of_a_list_puts_what_has_no_score_last() -> None:
    for measure in MEASURES:
        for sign in ("", "-"):
            results = [one(1, None), result(Score(measure, 0.5), number=2)]
            assert found(results, sort=f"{sign}{measure}") == [2, 1]


def test_a_choice_of_nothing_shows_everything() -> None:
    assert all(Choice().shows(each) for each in RESULTS)
    assert not Choice().narrowed
