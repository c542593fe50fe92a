"""Text -> sentences, in any script whose sentences end in a mark.

Sentences are given back verbatim, so that a judge can name one by its number and quote it. Texts come from strangers:
every pattern looks at each character a bounded number of times, and no sentence is longer than `MAX_LENGTH`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

MAX_LENGTH = 1_000
"""Characters. A longer sentence (a table, a text without marks) is cut at a blank, or anywhere if it has none: whatever
compares sentences word by word costs the product of their lengths, and embedding models read about this much."""

ABBREVIATIONS = frozenset(
    word
    for line in resources.files("tracescore.judge").joinpath("abbreviations.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
    for word in line.split()
)
"""Words (without their last point) after which a point seldom ends a sentence."""

END = re.compile(
    r"[。！？｡]++[」』”’）】\"]*+"  # Chinese and Japanese: no space follows
    r"|(?<![।॥؟۔])[।॥؟۔]++[\"'”’»)\]]*+(?=\s|$|[^\W\d_])"  # Hindi, Arabic, Urdu
    r"|(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?:\[\^?\d++\^?\])*+(?=\s|$)"
)
"""The marks that end a sentence, with closing quotes, brackets and citations. Possessive, and tried only at the first
mark of a run: a run that ends nothing is read once."""
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'„“«])((?:[^\W\d_]\.)*[^\W\d_]+|\d{1,2})\.$")
_LONGEST_WORD = 40
_MONTH_DE = re.compile(r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b")
MARKER = re.compile(r"\s*(?:(?:[-*+•‣▪●–]|#{1,6}|>)(?:\s+|$)|\(?(?:\d{1,2}|[a-z])[.)]\s+|[（(]\d{1,2}[）)]\s*)")
"""What opens an item of a list, a heading or a quotation."""
_LINE = re.compile(r"[^\n]+")
_BLANKS = re.compile(r"\s*")


def split(text: str) -> Iterator[str]:
    """The sentences of `text` in order, stripped, none blank; no other character is lost. An item of a list is one.

    Lazily, so that a long text can be read bit by bit.
    """
    for start, end in _blocks(text):
        for first, last in _sentences(text, start, end):
            yield from _cut(text[first:last].strip())


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs and items: lines are joined where one goes on in the middle of a sentence."""
    start = end = -1
    for line in _LINE.finditer(text):
        if not line[0].strip():
            continue
        continues = (
            end >= 0
            and text.count("\n", end, line.start()) <= 1
            and line[0].lstrip()[0].islower()
            and not MARKER.match(line[0])
            and not END.search(text[max(0, end - 2) : end])
        )
        if not continues:
            if end >= 0:
                yield start, end
            start = line.start()
        end = line.end()
    if end >= 0:
        yield start, end


def _sentences(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one block begin and end."""
    marker = MARKER.match(text, start, stop)
    for end in END.finditer(text, marker.end() if marker else start, stop):
        if end[0][0] == "." and not _ends(text, start, end, stop):
            continue
        yield start, end.end()
        start = end.end()
    yield start, stop


def _ends(text: str, start: int, mark: re.Match[str], stop: int) -> bool:
    """Whether a point ends the sentence from `start`: not one of an abbreviation, initial or ordinal."""
    point = mark.start() + 1
    following = _BLANKS.match(text, mark.end(), stop)
    word = _LAST_WORD.search(text[max(start, point - _LONGEST_WORD) : point])
    if word is None or following is None or following.end() == stop:
        return True
    last, after = word[1], text[following.end()]
    if last.isdigit():
        return not (after.islower() or _MONTH_DE.match(text, following.end(), stop))
    if len(last) == 1 and (last.isupper() or after.islower()):
        return False
    if last.casefold() in ABBREVIATIONS:
        return False
    return "." not in last or after.isupper()  # at 5 p.m. in Rome; at 5 p.m. The


def _cut(sentence: str) -> Iterator[str]:
    """A sentence as pieces of at most `MAX_LENGTH` characters; nothing for a blank one."""
    start = 0
    while start < len(sentence):
        end = start + MAX_LENGTH
        if end < len(sentence):
            blank = sentence.rfind(" ", start + MAX_LENGTH // 2, end)
            end = blank if blank >= 0 else end
        if piece := sentence[start:end].strip():
            yield piece
        start = end
