"""Claims and quotes are marked where their words stand, and nowhere else."""

from __future__ import annotations

import re
import time
import unicodedata
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracescore.web.marking import Mark, claims_in, marked, quotes_in


def words_at(text: str, place: tuple[int, int] | None) -> str | None:
    return None if place is None else text[place[0] : place[1]]


@pytest.mark.parametrize(
    ("answer", "claim", "words"),
    [
        ("Items can be returned. We pay.", "Items can be returned.", "Items can be returned"),
        ("Items can be returned. We pay.", "we pay", "We pay"),
        ("You get 30 days, also when opened, and more.", "also when opened", "also when opened"),
        ("**You get 30 days.** Thanks", "You get 30 days.", "You get 30 days"),
        ("You get **30** days.", "You get 30 days", "You get **30** days"),
        ("- Bring a\n  receipt\n- Bring a box", "Bring a receipt", "Bring a\n  receipt"),
        ("1. First step\n2. Second step", "Second step", "Second step"),
        ("It\u2019s free \u2013 always.", "It's free", "It\u2019s free"),
        ("Die STRA\u00dfE ist lang.", "Die Strasse ist lang", "Die STRA\u00dfE ist lang"),
        ("Le cafe\u0301 est ferm\u00e9.", "le caf\u00e9 est ferm\u00e9", "Le cafe\u0301 est ferm\u00e9"),
        (
            "\u9000\u8d27\u671f\u4e3a30\u5929\u3002\u8fd0\u8d39\u7531\u6211\u4eec\u627f\u62c5\u3002",
            "\u8fd0\u8d39\u7531\u6211\u4eec\u627f\u62c5",
            "\u8fd0\u8d39\u7531\u6211\u4eec\u627f\u62c5",
        ),
        ("Returns are free [2].", "Returns are free", "Returns are free"),
        ("It costs 5, and 10.", "It costs 5", "It costs 5"),
        ("max_tokens is 5.", "max_tokens is 5", "max_tokens is 5"),
        # not where only part of a statement stands, and not where it is not certain which place is meant
        ("It is not true that it is refundable.", "it is refundable", None),
        ("It is refundable only in May.", "It is refundable", None),
        ("Undo it now.", "do it now", None),
        ("Yes. A. Yes. B.", "Yes", None),
        ("Use C#.", "Use C", None),
        ("It takes 2*3 days.", "It takes 23 days", None),
        ("It takes 15 days.", "It takes 5 days", None),
        ("It costs ~5 euros.", "It costs 5 euros", None),
        ("It costs 1.5 euros.", "It costs 15 euros", None),
        ("It costs 1.5 euros.", "5 euros", None),
        ("It is -5 degrees.", "5 degrees", None),
        ("Minus: -5 degrees.", "5 degrees", None),
        ("Between 2\u20135 days.", "5 days", None),
        ("At 10:30.", "30", None),
        ("<5 days", "5 days", None),
        ("The rate is 5%.", "The rate is 5", None),
        ("It is (not) refundable.", "refundable", None),
        ("It is free (not at weekends).", "It is free", None),
        ("Anything", "", None),
        ("Anything", "?!", None),
        ("", "Anything", None),
        ("Items are returned by mail.", "The shop takes items back.", None),
    ],
)
def test_a_claim_is_found_where_it_stands_as_a_statement(answer: str, claim: str, words: str | None) -> None:
    assert words_at(answer, claims_in(answer, [claim])[0]) == words


def test_a_claim_made_twice_is_found_at_both_places_in_order() -> None:
    answer = "Basic: It costs 5. Pro: It costs 5."
    assert claims_in(answer, ["It costs 5.", "It costs 5."]) == [(7, 17), (24, 34)]
    assert claims_in(answer, ["It costs 5."]) == [None]


@pytest.mark.parametrize(
    ("passage", "quote", "words"),
    [
        ("Items may be returned within 30 days of delivery.", "returned within 30 days", ["returned within 30 days"]),
        ("A b c. A b c.", "a b c", ["A b c", "A b c"]),
        ("Items may be returned, with a receipt, within 30 days.", "Items may be returned ... within 30 days",
         ["Items may be returned", "within 30 days"]),
        ("Items may be returned.", "Items may be returned [...] within 30 days", []),
        ("Items may be returned.", "turned", []),
        ("It costs 1.5 euros, or 5 euros.", "5 euros", ["5 euros"]),
        ("Items may be returned.", "", []),
    ],
)  # fmt: skip
def test_a_quote_is_found_wherever_its_words_stand(passage: str, quote: str, words: list[str]) -> None:
    assert [words_at(passage, place) for place in quotes_in(passage, [quote])[0]] == words


HOSTILE = ("<script>alert(1)</script>", '"><svg onload=alert(1)>', "' onmouseover='x", "&lt;b&gt; & co", "{{ 7 * 7 }}")


@pytest.mark.parametrize("text", HOSTILE)
def test_marks_are_built_of_escaped_pieces_only(text: str) -> None:
    html = marked(f"a {text} b", [Mark((2, 2 + len(text)), text, text, 1, text)])
    assert len(re.findall(r"<[^>]*>", html)) == 4  # mark, a, and their ends
    assert re.findall(r"<(\w+)", html) == ["mark", "a"]
    assert unescape(re.sub(r"<a.*?</a>|<[^>]*>", "", html)) == f"a {text} b"


PLACES = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda two: (min(two), max(two)))


@given(st.text(max_size=40), st.lists(PLACES, max_size=6))
def test_marking_changes_no_character_of_the_text(text: str, places: list[tuple[int, int]]) -> None:
    within = [(first, last) for first, last in places if first < last <= len(text)]
    html = marked(text, [Mark(place, "supported", "claim", n, f"c-{n}") for n, place in enumerate(within)])
    assert unescape(re.sub(r"<a class=.*?</a>|</?mark[^>]*>", "", html)) == unescape(text.replace("&", "&amp;"))
    for number in range(len(within)):
        assert html.count(f'href="#c-{number}"') == 1


@given(
    st.text(alphabet="aB \n.,*_`\u00ad\u00e9e\u0301\u00df\u5929-", max_size=60), st.integers(0, 59), st.integers(1, 30)
)
def test_the_words_found_are_the_words_of_the_quote(text: str, first: int, length: int) -> None:
    quote = text[first : first + length]
    folded = re.compile(r"[^a-z\u00e9s\u5929]")

    def bare(words: str) -> str:
        return folded.sub("", unicodedata.normalize("NFC", words).casefold())

    for begin, end in quotes_in(text, [quote])[0]:
        assert 0 <= begin < end <= len(text)
        assert bare(text[begin:end]) == bare(quote)


def test_texts_made_to_be_slow_are_not() -> None:
    began = time.perf_counter()
    for text, claim in (
        ("a " * 10_000, "a " * 5_000 + "b"),
        ("*" * 20_000, "*" * 999 + "a"),
        ("_a" * 10_000, "_a" * 99 + "b"),
    ):
        claims_in(text, [claim] * 3)
        quotes_in(text, [claim] * 3)
    assert time.perf_counter() - began < 1.0
