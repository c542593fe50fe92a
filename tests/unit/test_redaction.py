"""What is taken out of texts, what is left in them, and that no text makes it slow."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.results import interaction
from tracescore.config import RedactionConfig
from tracescore.model import Message
from tracescore.redaction import Redactor

ALL = ("email", "card", "phone")


def redactor(**settings: Any) -> tuple[Redactor, CollectorRegistry]:
    registry = CollectorRegistry()
    return Redactor(RedactionConfig(**settings), registry), registry


EVERYTHING, _ = redactor(patterns=ALL)

TAKEN_OUT = {
    "Write to jane.doe+shop@mail.example.co.uk.": "Write to [email].",
    "<a@b.de>, c_d@e-f.com; g@h": "<[email]>, [email]; g@h",
    "jürgen@müller.example und mehr": "[email] und mehr",
    "4111111111111111": "[card]",
    "my card 4111 1111 1111 1111, exp 12/27": "my card [card], exp 12/27",
    "4111-1111-1111-1111 12 27 123": "[card] 12 27 123",
    "amex 3782 822463 10005!": "amex [card]!",
    "order 7 5555555555554444": "order 7 [card]",
    "\uff14\uff11\uff11\uff11 1111 1111 1111": "[card]",
    "Call +49 (0)30 1234-5678 now": "Call [phone] now",
    "Tel.: 0049 171 1234567.": "Tel.: [phone].",
    "(555) 123-4567 or 555-123-4567 or (555)123-4567": "[phone] or [phone] or [phone]",
    "030 / 123 456 78": "[phone]",
    "01 23 45 67 89": "[phone]",
    "+1-202-555-0143": "[phone]",
}
LEFT_IN = (
    "4111 1111 1111 1112",  # the check digit is wrong
    "41111111111111111111111111",  # longer than a card
    "order A4111111111111111",  # part of a longer word
    "on 2026-11-30 at 10:30 for 1 200 300 EUR",
    "from 01-02-2024 to 05/12/2025",
    "version 10.0.12.4 on 192.168.100.200",
    "30 days, 45 minutes, 0.5 litres, 1999",
    "trace 0123456789abcdef0123456789abcdef",
    "ISBN 978-3-16-148410-0 and id 12345678901",
    "not@all, @home, a@b",
    "",
)


@pytest.mark.parametrize("text", TAKEN_OUT)
def test_addresses_and_numbers_are_replaced_by_what_they_were(text: str) -> None:
    assert EVERYTHING.text(text) == TAKEN_OUT[text]


@pytest.mark.parametrize("text", LEFT_IN)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert EVERYTHING.text(text) == text


def test_expressions_of_the_users_own_are_replaced_by_their_names() -> None:
    own, registry = redactor(custom={"ticket": r"T-\d{4}", "staff": r"(?i)\bmallory\b"})
    assert own.text("T-1234 by Mallory, a@b.de") == "[ticket] by [staff], a@b.de"
    name = "tracescore_redaction_replaced_total"
    assert registry.get_sample_value(name, {"pattern": "ticket"}) == 1
    assert registry.get_sample_value(name, {"pattern": "staff"}) == 1
    assert registry.get_sample_value(name, {"pattern": "email"}) is None


def test_every_text_of_an_interaction_is_redacted_and_counted() -> None:
    every, registry = redactor(patterns=ALL)
    mail = "a@b.de"
    read = interaction(
        question=mail,
        answer=f"ask {mail}",
        contexts=(mail, "none"),
        required=(mail,),
        history=(Message("user", mail),),
        reference=mail,
        conversation_id=mail,
        slices={"tenant": mail},
        attributes={"app.user": mail, "http.response.status_code": 200},
    )
    redacted = every.interaction(read)
    assert mail not in repr(redacted)
    assert (redacted.answer, redacted.contexts) == ("ask [email]", ("[email]", "none"))
    assert redacted.attributes["http.response.status_code"] == 200
    assert (redacted.trace_id, redacted.span_id, redacted.weight) == (read.trace_id, read.span_id, read.weight)
    assert registry.get_sample_value("tracescore_redaction_replaced_total", {"pattern": "email"}) == 9


def test_without_patterns_nothing_is_touched() -> None:
    read = interaction(question="a@b.de")
    assert redactor()[0].interaction(read) is read


def test_a_text_that_is_not_there_stays_away() -> None:
    redacted = EVERYTHING.interaction(interaction(question=None, answer=None))
    assert (redacted.question, redacted.answer) == (None, None)


HOSTILE = ("a", "a@", "a@b.", "+", "+1 ", "1", "1 ", "0-00", "(0", "4111 ", "4111 1111 1111 1111 ", "555-")


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_makes_it_slow(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    EVERYTHING.text(text)
    assert time.process_time() - started < 2.0


def test_an_expression_that_looks_far_ahead_takes_out_the_rest_rather_than_time(monkeypatch) -> None:
    monkeypatch.setattr("tracescore.redaction._BUDGET", 0.05)
    slow, _ = redactor(custom={"x": "a.*b|a"})
    started = time.process_time()
    redacted = slow.text("a" * 200_000)
    assert time.process_time() - started < 2.0
    assert redacted == "[x]" * redacted.count("[x]")


@given(st.text())
def test_any_text_can_be_redacted_and_redacting_again_changes_nothing(text: str) -> None:
    once = EVERYTHING.text(text)
    assert EVERYTHING.text(once) == once


@given(st.text(alphabet="ab .,@-", max_size=20), st.text(alphabet="ab .,", max_size=20))
def test_an_address_is_found_wherever_it_stands(before: str, after: str) -> None:
    assert "jane@mail.example" not in EVERYTHING.text(f"{before} jane@mail.example {after}")


@given(st.lists(st.integers(0, 9), min_size=11, max_size=17), st.sampled_from("3456"), st.sampled_from(["", " ", "-"]))
def test_every_card_number_with_a_right_check_digit_is_found(body: list[int], first: str, separator: str) -> None:
    digits = [int(first), *body]
    total = sum(sum(divmod(d * 2, 10)) if at % 2 == 0 else d for at, d in enumerate(reversed(digits)))
    number = "".join(map(str, [*digits, -total % 10]))
    grouped = separator.join(number[at : at + 4] for at in range(0, len(number), 4))
    assert EVERYTHING.text(f"card {grouped}.") == "card [card]."
