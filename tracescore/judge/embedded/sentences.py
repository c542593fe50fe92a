"""Text -> sentences -> claims, in any script whose sentences end in a mark.

Sentences are given back verbatim, so that they can serve as quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tracescore.judge.embedded import lexicon

ABBREVIATIONS = lexicon.words("abbreviations")
"""Words (without their last point) after which a point seldom ends a sentence."""

_END = re.compile(
    r"[。！？｡]+[」』”’）】\"]*"  # Chinese and Japanese: no space follows
    r"|[।॥؟۔]+[\"'”’»)\]]*(?=\s|$|[^\W\d_])"  # Hindi, Arabic, Urdu
    r"|[.!?…]+[\"'”’»)\]*_]*(?:\[\^?\d+\^?\])*(?=\s|$)"
)
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'„“«])((?:[^\W\d_]\.)*[^\W\d_]+|\d{1,2})\.$")
_MONTH_DE = re.compile(r"\s*(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b")
_MARKER = re.compile(r"\s*(?:[-*+•‣▪●–]\s+|#{1,6}\s+|>\s+|\(?(?:\d{1,2}|[a-z])[.)]\s+|[（(]\d{1,2}[）)]\s*)")
_LINE = re.compile(r"[^\n]+")
_CITATION = re.compile(r"\s*(?:\[\^?\d{1,3}\^?\]|【[^】]{1,12}】)")
_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")

_COURTESY = lexicon.pattern("courtesies")
_OPENER = re.compile(
    r"(?i)^(?:(?:yes|no|yeah|yep|nope|sure|certainly|of course|absolutely|well|ja|nein|natürlich)\s*[,!–—-]+\s*"
    r"|(?:是的|不是|对|はい|いいえ|نعم|हाँ|नहीं)\s*[，,、،]\s*)+"
)


def sentences(text: str) -> list[str]:
    """The sentences of `text`, verbatim but for list markers and outer white space; a line of a list is one."""
    return [sentence for block in _blocks(text) for sentence in _split(block)]


def claims(text: str) -> tuple[str, ...]:
    """The sentences that can be true or false: no questions, headings or courtesies, no citation marks.

    A text of nothing else gives its sentences as they are ("Yes." answers a question and is a claim then).
    """
    cleaned = [clean for sentence in sentences(text) if (clean := plain(sentence))]
    kept = [without_reply(claim) for claim in cleaned if _is_claim(claim)]
    return tuple(kept or cleaned)


def without_reply(sentence: str) -> str:
    """A sentence without the yes or no that opens it, where more follows."""
    return _OPENER.sub("", sentence) or sentence


def plain(sentence: str) -> str:
    """A sentence without citation marks and emphasis."""
    return _EMPHASIS.sub(r"\2", _CITATION.sub("", sentence)).strip()


def key(text: str) -> str:
    """What two texts share that differ in case, spacing and punctuation alone. Empty for a text without letters."""
    folded = unicodedata.normalize("NFKC", plain(text)).casefold()
    return re.sub(r"(?<!\d)[^\w%$€£¥₹°+\-]+|[^\w%$€£¥₹°+\-.,]+|[.,](?!\d)", " ", folded).strip()


def _is_claim(sentence: str) -> bool:
    if sentence.endswith((":", "：", "?", "？", "؟")):
        return False
    return not _COURTESY.fullmatch(sentence) and any(character.isalnum() for character in sentence)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs and list items: lines are joined where one goes on in the middle of a sentence."""
    start = end = -1
    for line in _LINE.finditer(text):
        if not line[0].strip():
            continue
        continues = (
            end >= 0
            and "\n" not in text[end : line.start()].replace("\n", "", 1)
            and not _MARKER.match(line[0])
            and line[0].lstrip()[0].islower()
            and not _END.search(text[end - 2 : end])
        )
        if not continues:
            if end >= 0:
                yield text[start:end]
            start = line.start()
        end = line.end()
    if end >= 0:
        yield text[start:end]


def _split(block: str) -> Iterator[str]:
    marker = _MARKER.match(block)
    start = marker.end() if marker else 0
    for end in _END.finditer(block, start):
        if end[0][0] == "." and not _ends(block[start : end.start() + 1], block[end.end() :]):
            continue
        if sentence := block[start : end.end()].strip():
            yield sentence
        start = end.end()
    if rest := block[start:].strip():
        yield rest


def _ends(before: str, after: str) -> bool:
    """Whether the point that closes `before` ends a sentence: not one of an abbreviation, initial or ordinal."""
    word = _LAST_WORD.search(before)
    if word is None or not after.strip():
        return True
    last = word[1]
    if last.isdigit():
        return not (_MONTH_DE.match(after) or after.lstrip()[0].islower())
    if len(last) == 1 and (last.isupper() or after.lstrip()[0].islower()):
        return False
    if last.casefold() in ABBREVIATIONS:
        return False
    return "." not in last or after.lstrip()[0].isupper()  # at 5 p.m. in Rome; at 5 p.m. The
