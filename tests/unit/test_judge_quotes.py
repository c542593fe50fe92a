"""Quotes as judges write them: which differences from the evidence are tolerated, and what counts as invented."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.costs import grows_in_step
from tracescore.judge.quotes import Quotable

RETURNS = (
    "Items can be returned within 30 days of delivery. Opened items are taken back only when faulty. "
    "Refunds are paid within 5 working days, and delivery is free of charge above 50 \u20ac."
)
MANUAL = (
    "## Versions\n\n**PostgreSQL 16** (released in September 2023) supports [replication](https://x.test/r?p=7) "
    "from standby servers [2]. It's not available on Windows 7; the limit is 3.5 GB per node. "
    "The heater starts below -5 \u00b0C and needs > 10 min.\n- C++ is required\n- a flat area of 12 m\u00b2"
)
GERMAN = "Die K\u00fcndigungsfrist betr\u00e4gt drei Monate. Wir akzeptieren R\u00fccksendungen nicht."
CHINESE = "\u9000\u8d27\u671f\u9650\u4e3a30\u5929\u3002\u4e0d\u652f\u6301\u6d77\u5916\u9000\u8d27\u3002"
JAPANESE = "\u9001\u6599\u306f500\u5186\u3067\u3059\u3002\u8fd4\u54c1\u306f\u3067\u304d\u306a\u3044\u3002"
EVIDENCE = Quotable([RETURNS, MANUAL, GERMAN, CHINESE, JAPANESE])

ORDINARY = {
    "as it stands": "Items can be returned within 30 days of delivery.",
    "full stop added": "Items can be returned within 30 days.",
    "full stop left out": "Opened items are taken back only when faulty",
    "Markdown left out": "PostgreSQL 16 (released in September 2023) supports replication from standby servers",
    "Markdown added": "*Opened items* are taken back **only** when faulty",
    "heading left out": "Versions PostgreSQL 16",
    "brackets left out": "PostgreSQL 16 released in September 2023 supports replication",
    "what is in brackets left out": "PostgreSQL 16 supports replication from standby servers",
    "label in the evidence left out": "supports replication from standby servers.",
    "label of a document before": "[1] Items can be returned within 30 days of delivery.",
    "label of a document after": "Refunds are paid within 5 working days [3].",
    "label in words": "Document 2: the limit is 3.5 GB per node",
    "label in words, in brackets": "the limit is 3.5 GB per node (source 2)",
    "typographic quotes": "\u201cIt\u2019s not available on Windows 7.\u201d",
    "two sentences joined by a semicolon": (
        "Items can be returned within 30 days of delivery; Refunds are paid within 5 working days"
    ),
    "two sentences that do not touch": (
        "Items can be returned within 30 days of delivery. Refunds are paid within 5 working days."
    ),
    "pieces of two documents": "Items can be returned within 30 days of delivery. The limit is 3.5 GB per node.",
    "two quotes with and": "'Items can be returned within 30 days' and 'the limit is 3.5 GB per node'",
    "pieces of two documents, by a slash": "Items can be returned within 30 days / the limit is 3.5 GB per node",
    "other spacing": "items  can be\nreturned within 30days",
    "other case": "ITEMS CAN BE RETURNED",
    "other width": "within \uff13\uff10 days of delivery",
    "ellipsis within a sentence": "Items can be returned \u2026 of delivery",
    "ellipsis over sentences": "Items can be returned within 30 days ... delivery is free of charge above 50 \u20ac",
    "escaped line break": "The heater starts below -5 \u00b0C and needs > 10 min.\\n- C++ is required",
    "dashes of another kind": "starts below \u22125 \u00b0C",
    "space before a unit": "free of charge above 50\u20ac",
    "without spaces": "\u9000\u8d27\u671f\u9650\u4e3a 30 \u5929",
    "without spaces, the full stop": "\u9001\u6599\u306f500\u5186\u3067\u3059",
}

INVENTED = {
    "digit changed": "Items can be returned within 60 days of delivery.",
    "digit dropped": "Items can be returned within 3 days of delivery.",
    "digit cut off in front": "0 days of delivery",
    "decimal point dropped": "the limit is 35 GB per node",
    "decimals alone": "limit is 5 GB per node",
    "digit changed, without spaces": "\u9000\u8d27\u671f\u9650\u4e3a50\u5929",
    "version changed": "PostgreSQL 15",
    "year changed": "released in September 2021",
    "unit changed": "Items can be returned within 30 weeks of delivery.",
    "unit of a size changed": "the limit is 3.5 MB per node",
    "currency changed": "free of charge above 50 $",
    "sign dropped": "The heater starts below 5 \u00b0C",
    "degree changed": "The heater starts below -5 \u00b0F",
    "bound dropped": "needs 10 min",
    "power dropped": "a flat area of 12 m",
    "name changed": "MySQL 16 supports replication from standby servers",
    "sign of a name dropped": "C is required",
    "negation dropped": "It's available on Windows 7",
    "negation cut off in front": "available on Windows 7",
    "negation under an ellipsis": "It's ... available on Windows 7",
    "negation cut off, German": "Wir akzeptieren R\u00fccksendungen",
    "negation cut off, Chinese": "\u652f\u6301\u6d77\u5916\u9000\u8d27",
    "negation cut off, Japanese": "\u8fd4\u54c1\u306f\u3067\u304d",
    "words gathered": "Items are free of charge",
    "words gathered over ellipses": "Items ... free of charge",
    "words gathered over commas": "Items, delivery, free",
    "scraps of two documents": "Refunds; 3.5 GB",
    "another order": "of delivery ... Items can be returned",
    "word added": "Items can always be returned within 30 days",
    "word replaced": "Opened items are thrown away only when faulty",
    "beginning of a word cut off": "turned within 30 days",
    "nothing": "",
    "no word": "... .",
}


@pytest.mark.parametrize("quote", ORDINARY.values(), ids=ORDINARY)
def test_a_quote_as_judges_write_them_stands_in_the_evidence(quote: str) -> None:
    assert EVIDENCE.holds(quote)


@pytest.mark.parametrize("quote", INVENTED.values(), ids=INVENTED)
def test_an_invented_quote_does_not(quote: str) -> None:
    assert not EVIDENCE.holds(quote)


def test_a_quote_that_runs_over_from_one_text_to_the_next_is_invented() -> None:
    assert not Quotable(["the sky", "is blue"]).holds("the sky is blue")


def test_what_negates_in_brackets_is_not_left_out() -> None:
    assert not Quotable(["Items can (never) be returned."]).holds("Items can be returned.")


def test_a_number_in_square_brackets_is_no_label_where_the_evidence_has_another_in_its_place() -> None:
    assert not Quotable(["The value of row[1] is wrong."]).holds("The value of row[2] is wrong.")


WORDS = re.findall(r"\S+", RETURNS)


@given(st.integers(0, len(WORDS) - 2), st.integers(1, 12), st.sampled_from([str.upper, str.title, str.lower]))
def test_any_run_of_words_stands_in_the_text_whatever_their_case(start: int, count: int, case) -> None:
    assert EVIDENCE.holds(case(" ".join(WORDS[start : start + count])))


@given(st.integers(0, 999), st.integers(0, 999))
def test_a_number_stands_for_itself_only(said: int, quoted: int) -> None:
    assert Quotable([f"It takes {said} days."]).holds(f"takes {quoted} days") is (said == quoted)


SHAPES = [" ", "\n", ". ", "...", "(", "[1", "](", "<a ", "1-", "a, ", "no ", "\u4e0d", "'"]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_looking_a_quote_up_grows_in_step_with_the_evidence(shape: str) -> None:
    quote = "the sky ... is, blue"

    def looking(size: int):
        filler = (shape * size)[:size]
        return lambda: Quotable([f"the sky {filler} is {filler} blue"]).holds(quote)

    assert grows_in_step(looking, 20_000)


@pytest.mark.parametrize("shape", [" ", "...", "[1", "a, ", "Document ", "<b "], ids=repr)
def test_looking_a_quote_up_grows_in_step_with_the_quote(shape: str) -> None:
    def looking(size: int):
        quote = "the sky " + (shape * size)[:size]
        return lambda: Quotable([RETURNS, "a, " * 50]).holds(quote)

    assert grows_in_step(looking, 10_000)
