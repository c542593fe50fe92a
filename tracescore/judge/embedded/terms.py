"""The words of a text: which carry meaning, which are negated, which are names, and which resemble one another."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from tracescore.judge.embedded import lexicon

FUNCTION_WORDS = lexicon.words("function_words")
NEGATIONS = lexicon.words("negations")
_PROHIBITIONS, _PERMISSIONS = lexicon.words("prohibitions"), lexicon.words("permissions")
_SIDES = [tuple(frozenset(side.split()) for side in line.split("|")) for line in lexicon.lines("opposites")]
_SYNONYM = {word: min(side) for sides in reversed(_SIDES) for side in sides for word in side}
_OPPOSITES = frozenset((a, b) for one, other in _SIDES for x, y in ((one, other), (other, one)) for a in x for b in y)

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"(?:[^\W\d_{_CJK}]|[\u0900-\u097f\u0610-\u065f])"  # with the vowel signs of Hindi and Arabic
_WORD = re.compile(rf"[{_CJK}]|\d+(?:[.,:/]\d+)*|(?:{_LETTER}\.){{2,}}|{_LETTER}+(?:[-'’&]{_LETTER}+)*\d*")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_ROMAN = {"II": "2", "III": "3", "IV": "4", "VI": "6", "VII": "7", "VIII": "8", "IX": "9", "XI": "11", "XII": "12"}


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its place in the text.

    `folded` is it in lower case, without hyphens and width, the II of a name as 2; `stem` is what forms of one word
    share; `latin` is false where the model was not trained on the script, so that only letters can be compared;
    `is_function` says that it shows grammar rather than content.
    """

    text: str
    start: int
    end: int
    folded: str
    stem: str
    latin: bool
    is_number: bool
    is_function: bool


@lru_cache(maxsize=1024)
def words(text: str) -> tuple[Word, ...]:
    """The words of `text`; a character each in Chinese and Japanese."""
    return tuple(_word(text, start) for match in _WORD.finditer(text) for text, start in _apart(match))


def _apart(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """A word with its start; two where one sticks to a name, as in texts taken from pages: led byMara."""
    glued = _GLUED.fullmatch(match[0])
    if glued and glued["left"] in FUNCTION_WORDS:
        yield glued["left"], match.start()
        yield glued["right"], match.start() + glued.start("right")
    else:
        yield match[0], match.start()


_GLUED = re.compile(r"(?P<left>[a-z]{2,})(?P<right>[A-Z][a-z].*)")
_ELIDED = re.compile(r"^(?:[ldnscjmt]|qu|un|dell|all|nell|sull|dall|quest)'(?=\w{2})")
"""Articles and pronouns that French and Italian join to a word: l'envoi, s'achète, dell'ingresso."""


_SHORTENED = re.compile(r"'(?:ll|re|ve|d|s|m)$")
"""The end of a pronoun with its verb: it'll, they've."""


def _word(text: str, start: int) -> Word:
    folded = _ELIDED.sub("", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    stem = _SYNONYM.get(folded) or _stem(folded)
    is_function = folded in FUNCTION_WORDS or _SHORTENED.sub("", folded) in FUNCTION_WORDS
    folded = _ROMAN.get(text) or folded.replace("-", "")
    latin, number = bool(_LATIN.match(text)), text[0].isdigit()
    return Word(text, start, start + len(text), folded, stem, latin, number, is_function)


_SUFFIXES = (
    "ational", "ization", "isation", "ations", "ation", "ments", "ment", "ingly", "edly", "ings", "ing", "ies", "ied",
    "ions", "ion", "ers", "ors", "est", "ness", "able", "ible", "ern", "ed", "er", "or", "es", "ly", "al", "en", "s",
    "e", "y",
)  # fmt: skip


_NOTE = re.compile(r"(?<=[^\W\d_]{4})\d{1,2}$")
"""The number of a footnote at the end of a word; Python2 and Python3 are told apart where words are compared."""
_ACCENTED = 5
"""Letters of a word from which accents make no other word of it."""


def _stem(folded: str) -> str:
    """What the forms of one word have in common; crude on purpose, as it is only ever compared."""
    folded = _NOTE.sub("", folded.removesuffix("'s").removesuffix("s'"))
    if len(folded) >= _ACCENTED:
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    if len(folded) <= 3 or not folded[0].isalpha():
        return folded
    for suffix in _SUFFIXES:
        if folded.endswith(suffix) and len(folded) - len(suffix) >= 3:
            folded = folded[: -len(suffix)]
            break
    return folded[:-1] if len(folded) > 3 and folded[-1] == folded[-2] else folded


# ---------------------------------------------------------------- negation

_NO_NEGATION = re.compile(
    r"(?i)\b(?:not|nicht) (?:only|just|merely|nur)\b|\b(?:no|not) (?:later|more|less|fewer|longer) than\b|\bno matter\b"
)
_PORTUGUESE = re.compile(r"(?i)\b(?:é|não|são|às|uma|dos|das|ao|pelo|pela|você|há|\w+(?:ção|ções))\b")
_FREE = lexicon.pattern("free")
_IN_THE = re.compile(r"(?i)\bno\b")
"""In Portuguese `no` is `in the`."""
_MARK = re.compile(r"[.,;:!?。，；]")
_TURN = re.compile(
    r"but|because|which|who|while|although|though|however|if|when|unless|aber|sondern|weil|wenn|mais|pero"
)
_JAPANESE_NOT = re.compile(r"ない|ません|なし")
SCOPE = 3
"""Content words behind a negation that it bears on, unless a comma or conjunction comes first."""


@lru_cache(maxsize=1024)
def negated(text: str) -> frozenset[int]:
    """Positions in `words(text)` of the content words that a negation before them bears on."""
    found = words(text)
    hit: set[int] = set()
    for i in _negations(text):
        reached = 0
        for j in range(i + 1, len(found)):
            gap = text[found[j - 1].end : found[j].start]
            if reached == SCOPE or _TURN.fullmatch(found[j].folded) or _MARK.search(gap):
                break
            if not found[j].is_function:
                hit.add(j)
                reached += 1
    return frozenset(hit)


def is_negative(text: str) -> bool:
    """Whether an odd number of negations stands in `text`."""
    return (len(_negations(text)) + len(_JAPANESE_NOT.findall(text))) % 2 == 1


def _negations(text: str) -> list[int]:
    spared = [m.span() for pattern in (_NO_NEGATION, _FREE) for m in pattern.finditer(text)]
    if _PORTUGUESE.search(text):
        spared += [m.span() for m in _IN_THE.finditer(text)]
    return [
        i
        for i, word in enumerate(words(text))
        if (word.folded in NEGATIONS or word.folded.endswith("n't"))
        and not any(start <= word.start < end for start, end in spared)
    ]


def forbidding(text: str) -> tuple[list[int], list[int]]:
    """Positions in `words(text)` of what says alone that something may not be done, and of what says so if negated.

    The latter are empty where nothing in the text is negated.
    """
    found = words(text)
    alone = [i for i, word in enumerate(found) if word.folded in _PROHIBITIONS]
    if not is_negative(text):
        return alone, []
    return alone, [i for i, word in enumerate(found) if word.folded in _PERMISSIONS]


_PREFIXES = ("non", "un", "in", "im", "ir", "il", "dis", "nicht")
"""What turns a word into its opposite: refundable, non-refundable."""
_LONG_ENOUGH, _LONG_ENOUGH_UN = 5, 3
"""Letters of a word that may be turned so; shorter ones begin like that by chance (form, inform), few with `un`."""


def are_opposite(one: Word, other: Word) -> bool:
    """Whether the two words say opposite things: open and closed, refundable and non-refundable."""
    if (one.folded, other.folded) in _OPPOSITES:
        return True
    short, long = sorted((one.folded, other.folded), key=len)
    if long == "un" + short:
        return len(short) >= _LONG_ENOUGH_UN
    return len(short) >= _LONG_ENOUGH and any(long == prefix + short for prefix in _PREFIXES)


# ---------------------------------------------------------------- names

MAX_NAMES = 0.9
"""A text with a larger share of capitalised words is a heading or shouted."""
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|ein|eine|nicht|mit|für|sind|wird|kann)\b", re.IGNORECASE)


def names(text: str) -> tuple[Word, ...]:
    """The proper names among the words behind the first, by their capitals.

    None where capitals show no names: in German and in headings.
    """
    content = [word for word in words(text)[1:] if word.latin and not word.is_function]
    capital = [word for word in content if any(c.isupper() for c in word.text)]
    is_heading = len(content) > 3 and len(capital) > MAX_NAMES * len(content)
    return () if is_heading or _GERMAN.search(text) else tuple(capital)


def resembles(word: Word, stems: Iterable[str]) -> bool:
    """Whether a spelling may be of one of the names: forms, shared beginnings (Canada, Canadian), small slips."""
    name = word.stem
    near = [s for s in stems if s == name or min(len(s), len(name)) >= max(4, 0.6 * max(len(s), len(name)))]
    if len(name) < 4 or name in near:
        return name in near
    return any(_begin_alike(name, s) for s in near) or bool(get_close_matches(name, near, n=1, cutoff=0.8))


def _begin_alike(a: str, b: str) -> bool:
    share = max(4, math.ceil(0.6 * max(len(a), len(b))))
    return a[:share] == b[:share]


def is_acronym(word: Word, initials: str) -> bool:
    """Whether `word` is made of the first letters of words in a row, whose `initials` these are."""
    letters = word.folded.replace(".", "")
    return word.text.isupper() and len(letters) >= 2 and letters in initials
