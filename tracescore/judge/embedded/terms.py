"""The words of a text, and which of them carry meaning; what is negated; what is a name."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LETTER = rf"(?:[^\W\d_{_CJK}]|[\u0900-\u097f\u0610-\u065f])"  # with the vowel signs of Hindi and Arabic
_WORD = re.compile(
    rf"[{_CJK}]|\d+(?:[.,:/]\d+)*|(?:{_LETTER}\.){{2,}}|{_LETTER}+(?:[-'’&]{_LETTER}+)*\d*"
)
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")

FUNCTION_WORDS = frozenset(
    """a an the this that these those it its he she they them their his her him we us our you your i me my mine one ones
    is are was were be been being am do does did done have has had having will would shall should can could may might
    must and or but nor so yet if then than as of in on at by to from for with within without into onto about over under
    up down out off per via there here which who whom whose what when where why how not no never n't don't doesn't
    didn't isn't aren't wasn't weren't won't can't cannot couldn't shouldn't wouldn't hasn't haven't also too just very
    really some any each every all both such same other another while during after before because since until through
    between among upon against more most much many few less least own only even still already s t d ll re ve m
    get gets got let yes ok okay well please
    der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren sein hat haben wird werden
    kann können muss müssen darf dürfen soll sollen nicht kein keine keinen ich du er sie es wir ihr mich dich uns mein
    dein ihre ihren ihrem unser von zu zum zur im am in an auf aus bei mit nach vor für über unter durch um als wie wenn
    dass ob was wer wo wann warum welche welcher welches auch nur noch schon sehr man sich
    el la los las un una unos unas y o pero es son era fue ser de del al en con por para que como se su sus lo le
    le les des du et ou mais est sont était être dans sur avec pour par que qui ce cette il elle nous vous au aux
    的 了 是 在 和 与 吗 呢 啊 吧 也 就 都 我 你 您 他 她 它 们 这 那 个 有 に は を が の で と も た て だ す ま れ し な い る か
    في من على إلى عن أن إن هذا هذه ذلك هو هي هل ما و يا أو
    है हैं था थे थी का की के को में से पर और या यह वह कि ने तो भी हो क्या आप मैं हम""".split()
)
"""Words that show grammar rather than content, in the languages whose splitting is supported."""

NEGATIONS = frozenset(
    """not no never none nobody nothing nowhere neither nor without cannot n't can't don't doesn't didn't isn't aren't
    wasn't weren't won't couldn't shouldn't wouldn't hasn't haven't hadn't mustn't needn't unable hardly
    nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts
    no nunca sin ningún ninguna ne pas jamais sans aucun aucune
    不 没 無 无 非 未 ない ません لا ليس لم لن غير بدون नहीं न बिना मत""".split()
)
_NEGATION_END = ("n't", "n’t")
_NOT_ONLY = re.compile(
    r"(?i)\b(?:not|nicht) (?:only|just|merely|nur)\b|\bno(?:t)? (?:later|more|less|fewer|longer) than\b|\bno matter\b"
)
_JAPANESE_NOT = re.compile(r"(?:ない|ません|なし)")

OPPOSITES = tuple(
    (frozenset(a.split()), frozenset(b.split()))
    for a, b in (
        (
            "allowed permitted allow permit allows permits may accepted",
            "prohibited forbidden banned disallowed prohibits forbids",
        ),
        ("included include includes covers covered cover", "excluded exclude excludes"),
        (
            "increase increased increases rose rise rises risen grew higher up",
            "decrease decreased decreases fell fall falls fallen declined dropped lower down",
        ),
        ("open opened opens", "closed close closes"),
        ("free", "paid chargeable"),
        ("before", "after"),
        ("minimum least", "maximum most"),
        ("first", "last"),
        ("true correct", "false incorrect untrue"),
        ("required mandatory compulsory", "optional voluntary unnecessary"),
        ("enabled enable on", "disabled disable off"),
        ("possible able", "impossible unable"),
        ("safe", "unsafe dangerous"),
        ("legal lawful", "illegal unlawful"),
        ("north", "south"),
        ("east", "west"),
        ("won win wins", "lost lose loses"),
        ("approved accepted", "rejected refused denied declined"),
    )
)
"""Pairs that stand in one place of a sentence and turn its meaning; embeddings put them close together."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its place in the text. `stem` is what forms of one word share; `latin` is false where the model
    was not trained on the script and only the letters can be compared."""

    text: str
    start: int
    end: int
    stem: str
    latin: bool
    is_number: bool

    @property
    def folded(self) -> str:
        """Lower case, compatibility forms unified, without hyphens; the II of a name is 2."""
        return _ROMAN.get(self.text) or fold(self.text).replace("-", "")

    @property
    def is_function(self) -> bool:
        """Whether it shows grammar rather than content."""
        return self.folded in FUNCTION_WORDS


_ROMAN = {"II": "2", "III": "3", "IV": "4", "VI": "6", "VII": "7", "VIII": "8", "IX": "9", "XI": "11", "XII": "12"}


def fold(text: str) -> str:
    """Case, width and typographic apostrophes made one."""
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[Word, ...]:
    """The words of `text`; a character each in Chinese and Japanese."""
    return tuple(
        Word(m[0], m.start(), m.end(), stem(m[0]), bool(_LATIN.match(m[0])), m[0][0].isdigit())
        for m in _WORD.finditer(text)
    )


_SUFFIXES = (
    "ational", "ization", "isation", "ations", "ation", "ments", "ment", "ingly", "edly", "ings", "ing", "ies", "ied",
    "ions", "ion", "ers", "ors", "est", "ness", "able", "ible", "ed", "er", "or", "es", "ly", "al", "en", "ern", "s", "e", "y",
)  # fmt: skip


def stem(word: str) -> str:
    """What the forms of one word have in common; crude on purpose, as it is only ever compared."""
    folded = fold(word).removesuffix("'s").removesuffix("s'")
    if len(folded) <= 3 or not folded[0].isalpha():
        return folded
    for suffix in _SUFFIXES:
        if folded.endswith(suffix) and len(folded) - len(suffix) >= 3:
            folded = folded[: -len(suffix)]
            break
    if len(folded) > 3 and folded[-1] == folded[-2]:
        folded = folded[:-1]
    return folded[:-1] + "i" if folded.endswith("y") and len(folded) > 3 else folded


def negated(text: str) -> frozenset[int]:
    """Positions (in `words(text)`) of the content words a negation bears on: up to three behind it, or to the next comma.

    In Japanese, and for `does not`-less languages with the negation last, those before it.
    """
    found = words(text)
    skip = [m.span() for m in _NOT_ONLY.finditer(text)]
    hit: set[int] = set()
    for i, word in enumerate(found):
        if not _is_negation(word.folded) or any(a <= word.start < b for a, b in skip):
            continue
        reached = 0
        for j in range(i + 1, len(found)):
            if reached == 3 or found[j].folded in _TURNS or _MARK.search(text[found[j - 1].end : found[j].start]):
                break
            if not found[j].is_function:
                hit.add(j)
                reached += 1
    return frozenset(hit)


_MARK = re.compile(r"[.,;:!?。，；]")
_TURNS = frozenset("but because which who while although though however if when unless aber sondern weil wenn mais pero".split())


def is_negative(text: str) -> bool:
    """Whether an odd number of negations stands in `text`."""
    skip = [m.span() for m in _NOT_ONLY.finditer(text)]
    count = sum(_is_negation(w.folded) and not any(a <= w.start < b for a, b in skip) for w in words(text))
    return (count + len(_JAPANESE_NOT.findall(text))) % 2 == 1


def opposites(word: Word) -> frozenset[str]:
    """The words that say the opposite of `word`."""
    return _OPPOSITE.get(word.folded, frozenset())


def names(text: str) -> tuple[Word, ...]:
    """The proper names among the words, by their capitals; none where nouns are capitalised as a rule (German, titles)."""
    found = words(text)
    if any(w.folded in _GERMAN for w in found):
        return ()
    content = [w for w in found[1:] if w.latin and not w.is_function]
    capital = [w for w in content if any(c.isupper() for c in w.text)]
    return tuple(capital) if len(capital) <= MAX_NAMES * len(content) or len(content) <= 3 else ()


MAX_NAMES = 0.9
"""A text with a larger share of capitalised words is a heading or shouted."""
_GERMAN = frozenset("der die das und ist ein eine nicht mit für sind wird kann".split())
_OPPOSITE = {word: b for one, other in OPPOSITES for a, b in ((one, other), (other, one)) for word in a}


def resembles(word: Word, other: Word) -> bool:
    """Whether two spellings may be of one name: forms, shared beginnings, small slips."""
    a, b = word.stem, other.stem
    if a == b:
        return True
    if min(len(a), len(b)) < 4:
        return False
    shared = len(os.path.commonprefix([a, b]))
    return shared >= max(4, 0.6 * max(len(a), len(b))) or SequenceMatcher(None, a, b).ratio() >= 0.8


def is_acronym(word: Word, of: Sequence[Word]) -> bool:
    """Whether `word` is made of the first letters of words in a row."""
    letters = word.folded.replace(".", "")
    initials = "".join(w.folded[0] for w in of)
    return word.text.isupper() and len(letters) >= 2 and letters in initials


def _is_negation(folded: str) -> bool:
    return folded in NEGATIONS or folded.endswith(_NEGATION_END)
