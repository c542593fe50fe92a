"""Quotes as judges write them: which differences from the evidence are tolerated, and what counts as invented."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.costs import cpu_seconds, grows_in_step
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


OTHER_TEXTS = (
    "The warranty lasts 24 months from the date of purchase. The ware-\nhouse opens at 8. A dose of 1.5 mg is given twice a day; 1,500 users were asked.",  # noqa: E501
    "Terms &amp; conditions apply. See [the refund page](https://x.test/refund) for details. It doesn\u2019t cover \xabfair wear\xbb.",  # noqa: E501
    "| Plan | Price | Seats |\n|---|---|---|\n| Pro | $20 | 10 |\n| Team | $35 | 50 |",
    "Steps:\n1. Open the app\n2. Tap Save\n3. Wait for 5 minutes",
    "Set `retries: 3` in config.yaml. The file name is \ufb01le.txt. In 2019\u20132021 sales grew by 7\xa0%. The lake is 10\xa0000 m\xb2.",  # noqa: E501
    "Die Stra\xdfe ist gesperrt. Es gibt keine R\xfcckgabe. Ein Hund ist nicht erlaubt.",
    "\u5229\u7528\u6599\u91d1\u306f\uff12\uff14\u304b\u6708\u5206\u3067\u3059\u3002\u30da\u30c3\u30c8\u306f\u5229\u7528\u3067\u304d\u307e\u305b\u3093\u3002",
    "Unpaid leave is unlimited. Access is limited to staff. All staff except interns get a bonus. The battery gives 5 mW, the motor 5 MW.",  # noqa: E501
    "Anna Schmidt reports to Bert Klein. The card is not accepted abroad. Only C# and F# are taught. The temperature must be <= 40 \xb0C and pressure >= 2 bar.",  # noqa: E501
    "Released on 2024-03-05 as version 3.10. The range is 10-20 km. Cost: \u20ac20 plus 5% tax, i.e. 5 out of 10 pay +3 more. Growth was 10^6 cells, later 10\xb2.",  # noqa: E501
    "Caf\xe9 Am\xe9lie est ferm\xe9 le lundi. El a\xf1o fiscal empieza en abril. \u4ef7\u683c\u4e0d\u542b\u7a0e\u3002 \u041e\u043f\u043b\u0430\u0442\u0430 \u043d\u0435 \u0432\u043e\u0437\u0432\u0440\u0430\u0449\u0430\u0435\u0442\u0441\u044f.",  # noqa: E501
)
OTHER = Quotable(OTHER_TEXTS)
ORDINARY_TOO = {
    "ellipsis": "The warranty lasts 24 months \u2026 date of purchase",
    "dehyphenated": "The warehouse opens at 8.",
    "entity": "Terms & conditions apply",
    "link text": "See the refund page for details.",
    "table row": "Pro $20 10",
    "table row colon": "Pro: $20, 10",
    "table row bars kept": "| Pro | $20 | 10 |",
    "list numbers left out": "Open the app; Tap Save",
    "list on a line": "1. Open the app 2. Tap Save",
    "bullets instead of numbers": "- Open the app\n- Tap Save",
    "code ticks": "Set retries: 3 in config.yaml",
    "ligature": "The file name is file.txt",
    "dash": "In 2019-2021 sales grew by 7%",
    "space in number": "The lake is 10 000 m\xb2",
    "halfwidth": "\u5229\u7528\u6599\u91d1\u306f24\u304b\u6708\u5206\u3067\u3059",
    "CJK quotes": "\u300c\u5229\u7528\u6599\u91d1\u306f24\u304b\u6708\u5206\u3067\u3059\u300d",
    "capital in brackets": "[T]he warranty lasts 24 months",
    "NFD": "Cafe\u0301 Ame\u0301lie est ferme\u0301 le lundi",
    "p1 label": "[p1] The warranty lasts 24 months",
    "doc id label": "[doc_1] The warranty lasts 24 months",
    "source: after": "The warranty lasts 24 months (Source: passage 1)",
    "zero width": "The warranty\u200b lasts 24 months",
    "quote: before": 'Quote: "The warranty lasts 24 months from the date of purchase."',
    "literal backslash n": "1. Open the app\\n2. Tap Save",
    "two sentences, and": '"Access is limited to staff" and "The warranty lasts 24 months"',
    "blockquote": "> Access is limited to staff.",
    "heading marks": "### Access is limited to staff",
    "plus join": "Access is limited to staff + Unpaid leave is unlimited",
    "arrow join": "Access is limited to staff \u2192 Unpaid leave is unlimited",
    "line join": "Access is limited to staff.\n---\nUnpaid leave is unlimited.",
    "json list": '["Access is limited to staff.", "Unpaid leave is unlimited."]',
    "evidence tag": "<evidence>Access is limited to staff.</evidence>",
    "quote tag": "<quote>Access is limited to staff.</quote>",
    "Passage 2 says": "Context 2: Access is limited to staff.",
}
INVENTED_TOO = {
    "decimal": "A dose of 15 mg is given",
    "thousands": "1.500 users were asked",
    "thousand less": "1 users were asked",
    "minus": "The temperature must be <= -40 \xb0C",
    "bound flipped": "The temperature must be >= 40 \xb0C",
    "bound dropped": "The temperature must be 40 \xb0C",
    "pressure flipped": "pressure <= 2 bar",
    "un cut": "paid leave is unlimited",
    "limited cut": "Unpaid leave is limited",
    "except elided": "All staff ... get a bonus",
    "except elided semicolon": "All staff; get a bonus",
    "except cut": "interns get a bonus",
    "not elided": "The card is ... accepted abroad",
    "not elided [..]": "The card is [...] accepted abroad",
    "kein->ein": "Es gibt eine R\xfcckgabe",
    "kein cut": "R\xfcckgabe",
    "nicht end": "Ein Hund ist erlaubt",
    "japanese masen": "\u30da\u30c3\u30c8\u306f\u5229\u7528\u3067\u304d\u307e\u3059",
    "japanese masen cut": "\u30da\u30c3\u30c8\u306f\u5229\u7528\u3067\u304d",
    "mega milli": "The battery gives 5 MW",
    "mega milli 2": "the motor 5 mW",
    "swap": "Bert Klein reports to Anna Schmidt",
    "name prefix": "Ann Schmidt reports to Bert Klein",
    "C#": "Only C and F are taught",
    "C sharp to plus": "Only C++ is taught",
    "date": "Released on 2024-05-03",
    "version": "as version 3.1",
    "range end": "The range is 1020 km",
    "range cut": "The range is 10 km",
    "range cut end": "20 km",
    "currency": "Cost: $20",
    "percent dropped": "Cost: \u20ac20 plus 5 tax",
    "of order": "10 out of 5 pay",
    "plus sign to minus": "pay -3 more",
    "power": "Growth was 106 cells",
    "power2": "later 102",
    "accent": "El ano fiscal empieza",
    "chinese not": "\u542b\u7a0e",
    "russian not": "\u041e\u043f\u043b\u0430\u0442\u0430 \u0432\u043e\u0437\u0432\u0440\u0430\u0449\u0430\u0435\u0442\u0441\u044f",  # noqa: E501
    "cross table": "Team $20",
    "cross table 2": "| Pro | $35 | 50 |",
    "cross table 3": "Pro: $35",
    "list number as value": "Wait for 3 minutes",
    "time": "The warehouse opens at 18.",
    "gathered": "The warranty ... users ... twice a day",
    "digits joined": "warranty lasts 2 4 months",
    "10 000 cut": "The lake is 000 m\xb2",
    "10 000 first": "The lake is 10 m\xb2",
    "version ext": "version 3.105",
    "percent": "sales grew by 7 points",
    "doesnt cut": "It does cover fair wear",
}


@pytest.mark.parametrize("quote", ORDINARY_TOO.values(), ids=ORDINARY_TOO)
def test_a_quote_in_other_forms_stands_in_the_evidence_too(quote: str) -> None:
    assert OTHER.holds(quote)


@pytest.mark.parametrize("quote", INVENTED_TOO.values(), ids=INVENTED_TOO)
def test_an_invented_quote_of_another_kind_does_not_either(quote: str) -> None:
    assert not OTHER.holds(quote)


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


def test_an_odd_quote_costs_no_more_than_reading_texts_in_which_its_pieces_stand_everywhere() -> None:
    def looking(count: int):
        texts = ["the sky is blue and so on. " * 50] * count
        quotable = Quotable(texts)
        quotable.holds("nothing of that")  # the texts are read
        return lambda: quotable.holds("the; is; so; blue; sky; " * 12)

    def reading(count: int):
        return lambda: Quotable(["the sky is blue and so on. " * 50] * count).holds("nothing of that")

    assert cpu_seconds(lambda: looking(80)) < 2 * cpu_seconds(lambda: reading(80))
    assert grows_in_step(looking, 20)
