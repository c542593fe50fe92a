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

    A yes or no that stands alone goes with the sentence behind it. A row of a table is one claim, its header none. A
    text of nothing else gives its sentences as they are ("Yes." answers a question and is a claim then).
    """
    cleaned = [clean for sentence in sentences(rows_of_tables(text)) if (clean := plain(sentence))]
    kept = [claim for claim in cleaned if _is_claim(claim)]
    if kept and len(cleaned) > 1 and cleaned[1] == kept[0] and _REPLY.fullmatch(cleaned[0]):
        kept[0] = f"{cleaned[0]} {kept[0]}"
    return tuple(kept or cleaned)


_REPLY = re.compile(r"(?i)(?:yes|no|ja|nein|oui|non|sí|sì|sim|não|nee)\s*[.!]")
_RULE = re.compile(r"[\s|+:=-]*[=-][\s|+:=-]*")


def rows_of_tables(text: str) -> str:
    """`text` with the cells of tables joined by commas, without headers, ruled lines and numbers of rows."""
    if "|" not in text and "==" not in text:
        return text
    lines, kept = text.split("\n"), list[str]()
    row = 0
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if "|" not in line:
            if not _RULE.fullmatch(line):
                row = 0
                kept += [] if after.strip() and not after.strip(" =") else [line]
            continue
        if _RULE.fullmatch(line) or (row == 0 and _RULE.fullmatch(after)):
            continue
        row += 1
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) > 1 and cells[0].rstrip(".") == str(row):
            del cells[0]
        kept.append(", ".join(filter(None, cells)))
    return "\n".join(kept)


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
