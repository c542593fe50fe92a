"""Takes out of an interaction what must not reach the judge, a destination or a page: e-mail addresses and the like.

Everything behind this point (generated questions, claims, quotes, explanations, labels) is made of what it leaves.
The expressions are RE2's, whose time grows with the text and never with what is in it.
"""

import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from tracescore.config import ReadyMade, RedactionConfig
from tracescore.config.types import compiled
from tracescore.model import Interaction

_BUDGET = 0.25
"""Seconds for one expression and one text; what is left of the text then is taken out whole.

One search is linear, but an expression that looks far ahead for each of many matches is not.
"""

Spans = Iterator[tuple[int, int]]
Find = Callable[[str], Spans]
"""Where in a text something stands: (start, end) in order, not overlapping."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    name: str
    find: Find
    replaced: Counter


class Redactor:
    """Replaces what the patterns find by `[name of the pattern]`, and counts it."""

    def __init__(self, settings: RedactionConfig, registry: CollectorRegistry) -> None:
        counter = Counter(
            "tracescore_redaction_replaced",
            "Texts that redaction replaced, by pattern.",
            ["pattern"],
            registry=registry,
        )
        finders: dict[str, Find] = {name: _READY_MADE[name] for name in _READY_MADE if name in settings.patterns}
        finders |= {name: partial(_matches, compiled(pattern)) for name, pattern in settings.custom.items()}
        self._patterns = [_Pattern(name, find, counter.labels(name)) for name, find in finders.items()]

    def interaction(self, of: Interaction) -> Interaction:
        """The interaction with all its texts, and the labels made of what users or apps wrote, redacted."""
        if not self._patterns:
            return of
        return replace(
            of,
            question=None if of.question is None else self.text(of.question),
            answer=None if of.answer is None else self.text(of.answer),
            reference=None if of.reference is None else self.text(of.reference),
            required=tuple(map(self.text, of.required)),
            contexts=tuple(map(self.text, of.contexts)),
            documents=tuple(map(self.text, of.documents)),
            history=tuple(replace(message, text=self.text(message.text)) for message in of.history),
            conversation_id=self.text(of.conversation_id),
            slices={key: self.text(value) for key, value in of.slices.items()},
            attributes={k: self.text(v) if isinstance(v, str) else v for k, v in of.attributes.items()},
        )

    def text(self, text: str) -> str:
        """The text with every match replaced; what one pattern leaves, the next one reads."""
        for pattern in self._patterns:
            text = self._without(text, pattern)
        return text

    def _without(self, text: str, pattern: _Pattern) -> str:
        kept: list[str] = []
        at, count, until = 0, 0, time.monotonic() + _BUDGET
        for start, end in pattern.find(text):
            late = time.monotonic() > until
            kept += [text[at:start], f"[{pattern.name}]"]
            at, count = len(text) if late else end, count + 1
            if late:
                break
        pattern.replaced.inc(count)
        return "".join([*kept, text[at:]]) if count else text


def _matches(pattern: Any, text: str) -> Spans:
    for match in pattern.finditer(text):
        if match.end() > match.start():
            yield match.span()


_EMAIL = compiled(r"[\p{L}\p{N}_.%+'-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+")

_DIGITS = compiled(r"\p{Nd}(?:[ \x{A0}\x{2010}\x{2011}-]?\p{Nd}){12,}")
_SHORTEST, _LONGEST = 13, 19
_FIRST_DIGITS = frozenset({2, 3, 4, 5, 6})
"""Lengths and first digits of payment card numbers (ISO/IEC 7812)."""


def _cards(text: str) -> Spans:
    """Runs of digits, alone or in groups, that have a card's length, first digit and check digit."""
    for start, end in _matches(_DIGITS, text):
        places = [at for at in range(start, end) if text[at].isdecimal()]
        if _inside_number(text, start, end):
            continue
        at = 0
        while at <= len(places) - _SHORTEST:
            size = _card_at(text, places, at)
            if size:
                yield places[at], places[at + size - 1] + 1
            at += size or 1


def _card_at(text: str, places: list[int], at: int) -> int:
    """How many digits from the one at `at` are a card number that begins and ends where a group does; 0 for none."""
    if unicodedata.digit(text[places[at]]) not in _FIRST_DIGITS or (at and places[at] - places[at - 1] == 1):
        return 0
    for size in range(min(_LONGEST, len(places) - at), _SHORTEST - 1, -1):
        whole = at + size == len(places) or places[at + size] - places[at + size - 1] > 1
        digits = [unicodedata.digit(text[place]) for place in places[at : at + size]]
        if whole and _luhn(digits):
            return size
    return 0


def _luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1, annex B: every second digit from the right is doubled, the sum of all digits ends in 0."""
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_PHONE = compiled(
    r"\+(?:[ ().\x{A0}/-]{0,2}\p{Nd}){7,15}"  # international
    r"|00[1-9](?:[ ().\x{A0}/-]{0,2}\p{Nd}){6,13}"
    r"|\(?\p{Nd}{3}\)?[ .\x{A0}-]\p{Nd}{3}[ .\x{A0}-]\p{Nd}{4}"  # North American
    r"|\(\p{Nd}{3}\)\p{Nd}{3}[ .\x{A0}-]?\p{Nd}{4}"
    r"|\(?0\p{Nd}{1,4}\)?(?:[ ./\x{A0}-]{1,3}\p{Nd}{2,8}){1,5}"  # national, with the digit that stands for the trunk
)


def _phones(text: str) -> Spans:
    """Telephone numbers, as they are written in words or with separators; bare numbers without + or 00 are none."""
    for start, end in _matches(_PHONE, text):
        digits = sum(char.isdecimal() for char in text[start:end])
        national = text[start:end].lstrip("(").startswith("0")
        if (9 if national else 7) <= digits <= 15 and not _inside_number(text, start, end):
            yield start, end


def _inside_number(text: str, start: int, end: int) -> bool:
    """Whether a match is only part of a longer number or word."""
    return text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()


_READY_MADE: dict[ReadyMade, Find] = {"card": _cards, "email": partial(_matches, _EMAIL), "phone": _phones}
"""In this order: a card number must not be taken for a telephone number first."""
