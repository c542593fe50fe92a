"""Sentences -> claims, and what two wordings of one sentence have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tracescore.judge.embedded import lexicon
from tracescore.judge.sentences import MARKER, split

_CITATION = re.compile(r"\s*(?:\[\^?\d{1,3}\^?\]|【[^】]{1,12}】)")
_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")

_COURTESY = lexicon.pattern("courtesies")
_OPENER = re.compile(
    r"(?i)^(?:(?:yes|no|yeah|yep|nope|sure|certainly|of course|absolutely|well|ja|nein|natürlich)\s*[,!–—-]+\s*"
    r"|(?:是的|不是|对|はい|いいえ|نعم|हाँ|नहीं)\s*[，,、،]\s*)+"
)


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, verbatim but for list markers and outer white space; a line of a list is one."""
    for sentence in split(text):
        marker = MARKER.match(sentence)
        if said := sentence[marker.end() :] if marker else sentence:
            yield said


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
