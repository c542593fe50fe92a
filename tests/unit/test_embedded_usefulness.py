"""Which passages the embedded judge calls useful, on the real model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.local_judge import NEEDS_MODEL, judge
from tracescore.demo.documents import SERVICES
from tracescore.demo.questions import QUESTIONS
from tracescore.judge.embedded.sentences import clauses

pytestmark = [pytest.mark.anyio, *NEEDS_MODEL]

RETURNS = "Items can be returned within 30 days of delivery."
CARDS = "Gift cards never expire."
POSTAGE = "The shop pays the postage of a return."
SAVER = "The one-year fixed saver pays 2.6 percent interest a year, the two-year fixed saver 3.1 percent."
TERM = "Money in a fixed saver cannot be taken out before the end of the term."
FREE = "Transfers within the euro area are free."


async def useful(passages: list[str], question: str = "", reference: str = "") -> list[str]:
    verdicts = await judge().session("").usefulness(passages, question, "", reference)
    return [passage for passage, verdict in zip(passages, verdicts, strict=True) if verdict and verdict.credit]


@pytest.mark.parametrize(
    ("reference", "needed", "others"),
    [
        ("Items can be returned within 30 days and the shop pays the postage.", [RETURNS, POSTAGE], [CARDS, FREE]),
        ("The postage is paid by the shop; items can be returned within 30 days.", [RETURNS, POSTAGE], [CARDS]),
        ("Items can be returned within 30 days, while gift cards never expire.", [RETURNS, CARDS], [FREE]),
        (
            "The two-year fixed saver, which pays 3.1 percent, cannot be cashed before the end of its term.",
            [SAVER, TERM],
            [FREE, CARDS],
        ),
        (
            "Artikel können innerhalb von 30 Tagen zurückgegeben werden und die Rücksendung kostet 5 Euro.",
            ["Artikel können innerhalb von 30 Tagen zurückgegeben werden.", "Die Rücksendung kostet 5 Euro."],
            ["Gutscheine verfallen nie."],
        ),
        ("Items can be returned within 30 days.", [RETURNS], ["Items can be returned within 14 days of delivery."]),
    ],
)
async def test_each_passage_that_says_a_clause_of_the_reference_is_useful(
    reference: str, needed: list[str], others: list[str]
) -> None:
    assert await useful([*needed, *others], reference=reference) == needed


async def test_without_a_reference_the_passage_that_answers_is_useful_and_most_others_are_not() -> None:
    wrong = 0
    for asked in QUESTIONS:
        found = await useful([each.text for each in SERVICES[asked.service].documents], asked.text)
        (right,) = (each.text for each in SERVICES[asked.service].documents if each.id == asked.document)
        assert right in found
        wrong += len(found) - 1
    assert wrong <= len(QUESTIONS) * 3 / 5  # of three other passages of its handbook


@given(st.text(alphabet="ab ,;.:–—and or", max_size=80))
def test_clauses_leave_no_word_out_and_add_none(sentence: str) -> None:
    letters = [character for character in sentence if character.isalnum()]
    assert [character for clause in clauses(sentence) for character in clause if character.isalnum()] == letters


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Parcels cost 4 euros.", ["Parcels cost 4 euros."]),
        ("Tea, coffee and milk are free.", ["Tea, coffee and milk are free."]),
        (
            "Parcels cost 4 euros, and letters cost 1 euro.",
            ["Parcels cost 4 euros", "and letters cost 1 euro."],
        ),
        (
            "The express parcel service of the post delivers to Austria within two working days.",
            ["The express parcel service of the post delivers", "to Austria within two working days."],
        ),
    ],
)
def test_a_clause_has_three_content_words_at_least(sentence: str, expected: list[str]) -> None:
    assert clauses(sentence) == expected
