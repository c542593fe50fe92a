"""Which script and language a text is in, as far as the judge has to know: by its letters, and by function words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.terms import FUNCTION_WORDS

_READ = 4_000
"""Characters of a text that are looked at."""
_WORD = re.compile(r"[^\W\d_]+")
_MARKERS = {code: frozenset(found.split()) for code, found in (line.split(": ") for line in lexicon.lines("languages"))}
LANGUAGES = tuple(_MARKERS)
"""Languages in Latin script whose numbers, negations and refusals the rules know."""
ENOUGH, SHARE = 3, 0.15
"""Function words of a language that a text must hold, and their share of its words, to be said to be in it; and twice
as many as of any other: titles and names bring in those of others."""

TELLING, KNOWN = 12, 0.22
"""Words of a text that tell its language, and the share of function words of LANGUAGES in a text that is in one: it is
0.2 to 0.5 in 1,800 English questions with their answers, and 0.06 to 0.21 in nine other languages."""


@lru_cache(maxsize=1024)
def is_latin(text: str) -> bool:
    """Whether at least half of the letters are Latin; true for a text without letters."""
    letters = [c for c in text[:_READ] if c.isalpha()]
    latin = sum(unicodedata.name(c, "").startswith(("LATIN", "FULLWIDTH LATIN")) for c in letters)
    return 2 * latin >= len(letters)


@lru_cache(maxsize=1024)
def language(text: str) -> str:
    """Code of one of LANGUAGES, or an empty string where function words do not tell it."""
    found = Counter(_WORD.findall(text[:_READ].lower()))
    hits = ((sum(found[mark] for mark in marks), code) for code, marks in _MARKERS.items())
    (most, code), (second, _), *_ = sorted(hits, reverse=True)
    return code if most >= max(ENOUGH, 2 * second, SHARE * found.total()) else ""


@lru_cache(maxsize=1024)
def is_unknown(text: str) -> bool:
    """Whether a text in Latin script, long enough to tell, is in none of LANGUAGES."""
    found = _WORD.findall(text[:_READ].lower())
    if len(found) < TELLING or not is_latin(text) or language(text):
        return False
    return sum(word in FUNCTION_WORDS for word in found) < KNOWN * len(found)


def differ(text: str, others: Iterable[str]) -> bool:
    """Whether `text` is in another script, or known to be in another language, than the `others` together."""
    rest = "\n".join(others)[:_READ]
    if not any(c.isalpha() for c in text) or not any(c.isalpha() for c in rest):
        return False
    if is_latin(text) != is_latin(rest):
        return True
    ours, theirs = language(text), language(rest)
    return bool(ours and theirs) and ours != theirs
