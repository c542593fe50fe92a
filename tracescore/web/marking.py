"""Where the words of a claim or a quote stand in a text, and the text with these places marked.

Compared are words with the marks between them. Case, white space, Unicode forms, kinds of quotes and dashes, and the
signs of Markdown make no difference. What does not stand there is not marked: the page lists it instead.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

_ALIKE = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"'}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
_GONE = r"[\u00ad\u200b-\u200d\u2060\ufeff]|(?<![^\W_])[*_`]+|[*_`]+(?![^\W_])|~~|^#{1,6}(?= )"
_SPECIAL = re.compile(
    rf"(?P<gone>{_GONE})|(?P<blank>\s+)|[!-~][\u0300-\u036f]+|[^\x00-\x7f][\u0300-\u036f\u3099\u309a]*", re.MULTILINE
)
"""What is not compared as it stands; all else is ASCII, in any case."""
_STOPS = ".!?;:,\u2026\u3002\uff01\uff1f\uff1b\uff1a\uff0c\u3001\u0964\u061f\u060c\u061b\u06d4"
_QUOTING = '"\u201c\u201d\u201e\u00ab\u00bb'
_DASHES = "\u2013\u2014"
_OPENING = frozenset(f"{_STOPS}\n([{{|{_QUOTING}{_DASHES}\u2022")
_CLOSING = frozenset(f"{_STOPS}\n)]}}[|{_QUOTING}{_DASHES}\u2022")
"""Marks after which a statement can begin, and before which it can end."""
_TRIMMED = f"{_STOPS} \"'()[]-\u2022"
_BESIDE = " \t\r*_`"
_UNITS = frozenset("%\u2030\u00b0$\u20ac\u00a3\u00a5")
_OF_NUMBER = frozenset(".,:/-+<>~=\u2264\u2265$\u20ac\u00a3\u00a5")
_BULLET = re.compile(r"^\s*(?:[-+]|\d{1,3}[.)])\s+$", re.MULTILINE)
_ELISION = re.compile(r"\[?(?:\u2026|\.{3,})\]?")
_LEAST = 3
"""Words of a part of a quote that leaves something out: fewer may stand there by chance."""
_MOST_PLACES = 100
Extent = tuple[int, int]
"""From one character of a text to before another."""


class _Folded:
    """A text as it is compared, and where each part of it stands in the text."""

    def __init__(self, text: str) -> None:
        self.original = text
        parts: list[str] = []
        self._begins, self._starts, self._ends, length = [0], [0], [0], 0
        at = 0
        for special in _SPECIAL.finditer(text):
            for first, last, folded in (
                (at, special.start(), text[at : special.start()].lower()),
                (*special.span(), _as_compared(special)),
            ):
                if folded:
                    self._begins.append(length)
                    self._starts.append(first)
                    self._ends.append(last)
                    parts.append(folded)
                    length += len(folded)
            at = special.end()
        self._begins.append(length)
        self._starts.append(at)
        self._ends.append(len(text))
        self.text = "".join((*parts, text[at:].lower()))

    def places(self, words: str) -> Iterator[Extent]:
        """Every place of the words in the text as it was, whole words only."""
        at = self.text.find(words) if words else -1
        while at >= 0:
            end = at + len(words)
            if not _runs_on(self.text, at) and not _runs_on(self.text, end):
                yield self._place(at)[0], self._place(end - 1)[1]
            at = self.text.find(words, at + 1)

    def _place(self, at: int) -> Extent:
        part = bisect_right(self._begins, at) - 1
        first, last = self._starts[part], self._ends[part]
        following = self._begins[part + 1] if part + 1 < len(self._begins) else len(self.text)
        if following - self._begins[part] != last - first:
            return first, last
        offset = first + at - self._begins[part]
        return offset, offset + 1


def _as_compared(special: re.Match[str]) -> str:
    if special["gone"] is not None:
        return ""
    if special["blank"] is not None:
        return " "
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", special[0].translate(_ALIKE)).casefold())


def _wanted(text: str) -> str:
    """A claim or quote as it is looked for, without the marks at its ends."""
    return _Folded(text).text.strip(_TRIMMED)


def _runs_on(text: str, at: int) -> bool:
    """Whether a word or a number runs across this place; scripts that put no space between words never do."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _of_word(before) and _of_word(after):
        return True
    if after.isdigit() and before in _OF_NUMBER:
        return True
    return before.isdigit() and (after in _UNITS or (after in _OF_NUMBER and text[at + 1 : at + 2].isdigit()))


def _of_word(character: str) -> bool:
    return character.isalnum() and not "\u2e80" <= character <= "\u9fff" and not "\u0e00" <= character <= "\u0eff"


def _is_statement(text: str, place: Extent) -> bool:
    """Whether no word before or after the place belongs to the same clause."""
    line = text[text.rfind("\n", 0, place[0]) + 1 : place[0]]
    before, after = text[: place[0]].rstrip(_BESIDE), text[place[1] :].lstrip(_BESIDE)
    begins = not before or before[-1] in _OPENING or _BULLET.fullmatch(line) is not None
    return begins and (not after or after[0] in _CLOSING)


def claims_in(answer: str, claims: Sequence[str]) -> list[Extent | None]:
    """Where each claim stands in the answer as a statement of its own; None where that is not certain.

    Words that stand there more often than they are claimed could be meant at either place.
    """
    folded = _Folded(answer)
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, claim in enumerate(claims):
        numbers[_wanted(claim)].append(number)
    found: list[Extent | None] = [None] * len(claims)
    for words, of in numbers.items():
        places = []
        for place in folded.places(words):
            if _is_statement(answer, place):
                places.append(place)
            if len(places) > len(of):
                break
        if len(places) == len(of):
            for number, place in zip(of, places, strict=True):
                found[number] = place
    return found


def quotes_in(passage: str, quotes: Sequence[str]) -> list[list[Extent]]:
    """Every place where the words of each quote stand; of a quote with something left out, where its parts do."""
    folded = _Folded(passage)
    return [_quoted(folded, quote) for quote in quotes]


def _quoted(folded: _Folded, quote: str) -> list[Extent]:
    whole = list(_first(folded.places(_wanted(quote))))
    if whole:
        return whole
    parts = [words for part in _ELISION.split(quote) if len((words := _wanted(part)).split()) >= _LEAST]
    places = [list(_first(folded.places(words))) for words in parts]
    return sorted(place for each in places for place in each) if places and all(places) else []


def _first(places: Iterator[Extent]) -> Iterator[Extent]:
    return (place for place, _ in zip(places, range(_MOST_PLACES), strict=False))


# ---------------------------------------------------------------- the text with its marks


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to be marked. `kind` is a class of the style sheet, `label` what it says, `target` the item's id."""

    place: Extent
    kind: str
    label: str
    number: int
    target: str


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """The text as HTML: each place in a `mark`, the innermost where they overlap, with the numbers of its items."""
    edges = sorted({0, len(text), *(edge for mark in marks for edge in mark.place)})
    pieces = [_piece(text, first, last, marks) for first, last in pairwise(edges)]
    return Markup("").join(pieces)  # every piece is escaped


def _piece(text: str, first: int, last: int, marks: Sequence[Mark]) -> Markup:
    over = [mark for mark in marks if mark.place[0] <= first and last <= mark.place[1]]
    if not over:
        return escape(text[first:last])
    inner = min(over, key=lambda mark: mark.place[1] - mark.place[0])
    ended = [mark for mark in over if mark.place[1] == last]
    numbers = Markup("").join(
        Markup('<a class="ref" href="#{}" aria-label="{} {}">{}</a>').format(
            mark.target, mark.label, mark.number, mark.number
        )
        for mark in ended
    )
    return Markup('<mark class="{}">{}</mark>{}').format(inner.kind, text[first:last], numbers)
