"""Whether a text has been translated, as far as its script tells.

Names, code and numbers are written in Latin letters whatever the language: they decide nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_EAST_ASIAN = {"HIRAGANA", "KATAKANA", "CJK", "HALFWIDTH", "FULLWIDTH", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"}
_QUOTED_CODE = re.compile(r"`[^`\n]*+`?+")
_ASCII = re.compile(r"[!-~]++")
_CODE = re.compile(r"[\d_/\\@#=<>{}$|~^*+]|\w[.:(\[]\w|--")
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]++")
_WORDS = 2
"""Words that make a text without other letters one in Latin letters; a single one may be a name or a command."""


def is_translated(texts: Sequence[str], source: str) -> bool:
    """Whether most letters of `texts` that decide are of a script in which `source` has none; False if none does."""
    written = "\n".join(texts)
    if written.isascii() and source.isascii():
        return False
    scripts = _others(source)
    if sum(_words(source).values()) >= (1 if scripts else _WORDS):
        scripts["LATIN"] = 1
    if not scripts:
        return False
    given = {word.casefold() for word in _LATIN.findall(source)}
    counts = _others(written)
    counts["LATIN"] = sum(len(word) * times for word, times in _words(written).items() if word not in given)
    script, letters = counts.most_common(1)[0]
    return letters > 0 and script not in scripts


def _words(text: str) -> Counter[str]:
    """Words in Latin letters that are neither names nor code: all in small letters, with nothing of code about them."""
    plain = _ASCII.sub(lambda run: " " if _CODE.search(run[0]) else run[0], _QUOTED_CODE.sub(" ", text))
    return Counter(word for word in _LATIN.findall(plain) if word.islower() and len(word) > 1)


def _others(text: str) -> Counter[str]:
    """How many letters of each script but the Latin one; Han and kana count as one."""
    letters = (letter for letter in _LATIN.sub("", text) if letter.isalpha())
    names = (unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return Counter("EAST_ASIAN" if name in _EAST_ASIAN else name for name in names)
