"""The same questions asked of two releases, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests import results
from tests.results import NOW
from tests.unit.test_web_pages import HOSTILE, NEVER_OURS, Reader, flat
from tests.web_results import ask, pages
from tracescore.drift.releases import Releases, Stream
from tracescore.model import Message, Result, Score
from tracescore.web.pages import Pages
from tracescore.web.pairs import PairedReleases, key_of, pair

pytestmark = pytest.mark.anyio

SHOP = ("shop", "production")
COMPLETENESS = Stream("completeness", "")


def answered(number: int, release: str, value: float, question: str = "Can I return it?", **fields: Any) -> Result:
    return results.result(
        Score("completeness", value), number=number, release=release, question=question, answer=f"answer {number}",
        **fields,
    )  # fmt: skip


def paired(*found: Result, since: float = 0.0) -> PairedReleases:
    steps = pair(found, SHOP, "1", "2", since)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Can I return it?", "can i  return it", True),
        ("Can I return it?", " Can I return it?! ", True),
        ("What is the fee \N{EN DASH} really?", "what is the fee - really", True),
        ("\uff46\uff55ll width", "full width", True),
        ("返品できますか\uff1f", "返品できますか", True),
        ("Order 1042?", "Order 1043?", False),
        ("Do you ship to Austria?", "Do you ship to Australia?", False),
        ("Can I return it?", "Can I not return it?", False),
        ("???", "!!!", False),
        ("What is C++?", "What is C?", False),
        ("What is C#?", "What is C?", False),
        ("Is -5 allowed?", "Is 5 allowed?", False),
        ("Is 1.5 allowed?", "Is 15 allowed?", False),
        ("Is “express” faster?", 'Is "express" faster', True),
        ("¿Hay envío gratis?", "hay envío gratis", True),
        ("ما هي الرسوم؟", "ما هي الرسوم", True),
    ],
)
def test_a_question_is_the_same_where_only_case_spaces_and_punctuation_differ(one: str, other: str, same: bool) -> None:
    first, second = (results.interaction(question=text) for text in (one, other))
    assert (key_of(first) == key_of(second)) is same


def test_what_was_said_before_makes_it_another_question() -> None:
    follow_up = results.interaction(question="And opened items?", history=(Message("user", "Can I return a lamp?"),))
    assert key_of(follow_up) != key_of(results.interaction(question="And opened items?"))


@pytest.mark.parametrize("question", [None, "", "  "])
def test_without_a_question_there_is_no_pair(question: str | None) -> None:
    assert key_of(results.interaction(question=question)) is None


def test_a_question_counts_once_with_its_mean_of_each_release() -> None:
    found = paired(answered(1, "2", 0.2), answered(2, "2", 0.4), answered(3, "1", 1.0), answered(4, "1", 0.8))
    (worse,) = found.worse
    assert (len(found.questions), found.looked_at, worse.times) == (1, (2, 2), (2, 2))
    assert worse.differences[COMPLETENESS] == pytest.approx(-0.6)
    assert (worse.before.interaction.answer, worse.release.interaction.answer) == ("answer 3", "answer 1")
    difference = found.differences()[COMPLETENESS]
    assert (difference.pairs, difference.worse, difference.better) == (1, 1, 0)
    assert difference.mean == pytest.approx(-0.6)
    assert -1 <= difference.lower < difference.mean < difference.upper <= 1


def test_questions_that_got_worse_are_listed_by_their_drop_and_no_others() -> None:
    def both(number: int, before: float, after: float) -> Iterator[Result]:
        yield answered(number, "1", before, f"question {number}")
        yield answered(number + 50, "2", after, f"question {number}")

    found = paired(*both(1, 0.9, 0.8), *both(2, 0.9, 0.2), *both(3, 0.2, 0.9), *both(4, 0.5, 0.48))
    assert [each.before.interaction.question for each in found.worse] == ["question 2", "question 1"]
    assert (found.differences()[COMPLETENESS].worse, found.differences()[COMPLETENESS].better) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        answered(2, "1", 1.0, "Another question?"),
        answered(2, "3", 1.0),
        answered(2, "1", 1.0, service="other"),
        answered(2, "1", 1.0, environment="test"),
        answered(2, "1", 1.0, ended=NOW - 5000),
        Result(answered(2, "1", 1.0).interaction, (Score("completeness", 1.0),), "another judge", finished=NOW),
        Result(answered(2, "1", 1.0).interaction, (Score("completeness", 1.0),), "embedded-v2", 1, finished=NOW),
        results.result(Score("answer_relevancy", 1.0), number=2, release="1", question="Can I return it?"),
    ],
)
def test_what_cannot_be_compared_makes_no_pair(other: Result) -> None:
    assert paired(answered(1, "2", 0.1), other, since=NOW - 3600).questions == []


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_the_mean_lies_between_its_limits_and_turns_its_sign_with_the_releases(
    values: list[tuple[float, float]],
) -> None:
    found = [
        answered(2 * number + side, "12"[side], pair_of[side], f"question {number}")
        for number, pair_of in enumerate(values)
        for side in (0, 1)
    ]
    there, back = (
        paired(*(answered_in(each, names) for each in found)).differences()[COMPLETENESS] for names in ("12", "21")
    )
    assert there.lower - 1e-9 <= there.mean <= there.upper + 1e-9
    assert back.mean == pytest.approx(-there.mean)
    assert (back.lower, back.upper) == pytest.approx((-there.upper, -there.lower), abs=1e-6)
    assert (back.worse, back.better, back.by_chance) == (there.better, there.worse, there.by_chance)


def test_ten_questions_that_all_got_worse_are_hardly_chance_and_half_of_them_may_be() -> None:
    def drops(*values: float) -> PairedReleases:
        both = (
            (answered(2 * n, "1", 0.9, f"question {n}"), answered(2 * n + 1, "2", value, f"question {n}"))
            for n, value in enumerate(values)
        )
        return paired(*(each for two in both for each in two))

    assert drops(*[0.5] * 10).differences()[COMPLETENESS].by_chance == pytest.approx(1 / 2**10)
    assert drops(*[0.9] * 10).differences()[COMPLETENESS].by_chance == 1
    assert drops(*[0.8, 1.0] * 5).differences()[COMPLETENESS].by_chance > 0.3


def answered_in(result: Result, names: str) -> Result:
    """The same answer of the other release where `names` says so."""
    told = result.interaction
    release = names["12".index(told.release)]
    return answered(int(told.trace_id, 16), release, result.scores()[0].value, told.question or "")


async def compared(*found: Result) -> Pages:
    releases = Releases(CollectorRegistry(), lambda: NOW)
    app = pages(releases=releases)
    for each in found:
        await releases.export(each)
        await app.export(each)
    return app


async def test_the_page_shows_the_questions_that_got_worse_with_links_to_both_answers() -> None:
    app = await compared(answered(1, "1", 0.9), answered(2, "2", 0.1))
    shown = flat(await ask(app, "/releases"))
    assert "Compare releases of shop" in shown
    assert "Questions that both releases answered: 1" in shown
    assert "Completeness 0.90 → 0.10" in shown
    body = (await ask(app, "/releases", "service=shop&before=1&release=2&hours=24")).body
    assert f'href="/interactions/{1:032x}#{1:016x}"' in body
    assert f'href="/interactions/{2:032x}#{2:016x}"' in body


async def test_without_a_second_release_or_any_the_page_says_so() -> None:
    assert "Nothing to compare yet" in flat(await ask(pages(), "/releases"))
    assert "One release so far" in flat(await ask(await compared(answered(1, "1", 0.9)), "/releases"))


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if text.isprintable()])
async def test_text_of_users_stays_text(hostile: str) -> None:
    told = {"service": hostile, "environment": hostile}
    app = await compared(answered(1, f"{hostile} a", 0.9, hostile, **told), answered(2, hostile, 0.1, hostile, **told))
    reply = await ask(app, "/releases")
    read = Reader(reply.body)
    assert not NEVER_OURS & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert reply.body.count("got worse") == 1
