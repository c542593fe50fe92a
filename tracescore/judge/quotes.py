"""Whether a quote stands in the evidence, compared as people compare: by its words, numbers, units and names.

Judges copy freely. Tolerated are differences of punctuation, case, white space, width and marking (Markdown, HTML,
brackets, quotation marks), labels such as "[1]" or "Document 2:", what stands in round brackets left out, words left
out within a sentence, and passages of several sentences or documents joined by a mark.
Invented is a quote with a word, digit, sign or unit that the evidence does not have there; one that leaves out a
negation, between its words or right at its ends; and one gathered from scraps of different sentences.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

_ALIKE = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u2010": "-", "\u2011": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-"}
    | {"\u00ad": None, "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None, "\u2060": None}
    | {
        mark: chr(0xE010 + digit)
        for digit, mark in enumerate("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    }
)
_TAG = re.compile(
    r"</?(?:a|b|blockquote|br|cite|code|context|div|doc(?:ument)?|em|evidence|h\d|i|li|mark|ol|p|passage|pre|q|quote"
    r"|source|span|strong|su[bp]|t[dhr]|table|text|u|ul)\b[^<>]*+>"
)
_LINK = re.compile(r"\]\([^()\s]*+\)")
_ESCAPED = re.compile(r"\\[nrt](?![^\W\d_])")
_APOSTROPHE = re.compile(r"'(?<=[^\W\d_]')(?=[^\W\d_])")

_INSIDE = {".": "\ue001", ",": "\ue002", ":": "\ue003", "/": "\ue004", "-": "\ue005"}
"""Marks between digits are part of the number: 3.5 is not 35. They are kept as private characters."""
_IN_NUMBER = re.compile(r"[.,:/](?<=\d.)(?=\d)|(?<=\d) ?- ?(?=\d)")
_SIGN = re.compile(r"(?<![\w)\]])-(?=\.?\d)")
_TWO_SIGNS = re.compile(r"([<>!])=(?=\s?[-\u2212]?\d)")
_BOUND = re.compile(r"[<>\u2264\u2265\u2260\u00b1\u2248]\s?(?=[\ue006\d])")
_NUMBER = re.compile(r"((?:[\ue006-\ue00d]{1,2})?\d[\d\ue001-\ue005\ue010-\ue019]*)")
_BOUNDS = {"<": "\ue007", ">": "\ue008", "\u2264": "\ue009", "\u2265": "\ue00a", "\u2260": "\ue00b"}
_BOUNDS |= {"<=": "\u2264", ">=": "\u2265", "!=": "\u2260"} | {"\u00b1": "\ue00c", "\u2248": "\ue00d"}

_MEGA = re.compile(r"(?<=[\d ])M(?=(?:Wh?|VA?|A|Hz|J|Pa)(?![^\W_]))")
"""The one prefix that is another in the other case: a megawatt is a thousand million milliwatts."""

_SENTENCE, _CLAUSE, _GUARD = "\x02", "\x04", "\x01"
_END = re.compile(
    r"(?<![.!?])[.!?]++(?=[\"')\]*_\u201d\u00bb]*+(?:\s|$))|[\u3002\uff01\uff1f\u0964\u0965\u061f\u06d4]++|\n[^\S\n]*+\n"
    r"|\|[^\S\n]*+\n|\n(?=[^\S\n]*+(?:[-*\u2022]|\d{1,3}[.)])\s)"
)
"""Sentences, paragraphs, rows of a table and items of a list: what stands in one is not said of the other."""
_PAUSE = re.compile(
    r"[,;:()\[\]|\u060c\u061b\u3001]++|\s[-/+]+\s|[\u2192\u21d2]|\n|(?<!\.)\.{2,}+|\"(?!\w)|(?<!\w)[\"']|'(?!\w)"
)
_BETWEEN = re.compile(
    r"[\s\x00\x03\x05-\x1f!\"&'()*,\-./:;<=>?@\[\\\]^_`{|}~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf"
    r"\u2000-\u206f\u2190-\u21ff\u2500-\u27bf\u3000-\u3004\u3008-\u303f\ufe0f\U0001f000-\U0001faff]++|(?<![\w+#])[+#]++"
)
"""What carries no meaning between words. Units and signs of money are not in it."""
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])"
)
"""Letters of scripts that put no space between words."""

_NEGATIONS = frozenset(
    "not no never none nor neither without cannot cant wont dont doesnt didnt isnt arent wasnt werent shouldnt couldnt "  # noqa: SIM905
    "wouldnt hasnt havent hadnt mustnt nobody nothing unless except nicht kein keine keinen keinem keiner keines nie "
    "niemals ohne weder ausser ne pas jamais sans aucun aucune ni sauf nunca sin ning\u00fan ninguna non mai senza "
    "n\u00e3o sem niet geen nooit zonder bez nigdy \u043d\u0435 \u043d\u0435\u0442 \u0431\u0435\u0437 de\u011fil yok "
    "\u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u0928\u0939\u0940\u0902 \u0644\u0627 \u0644\u064a\u0633 \u0644\u0645 "
    "\u0644\u0646 \u0628\u062f\u0648\u0646 \u4e0d \u6ca1 \u6c92 \u7121 \u65e0 \u672a \u975e \u52ff".split()
)
_ENDINGS = ("\u306a\u3044", "\u307e\u305b\u3093", "\u306a\u304b\u3063", "\uc5c6", "\uc54a", "\ubabb", "\uc544\ub2c8")
"""Japanese and Korean negate after the verb."""

_CITATION = r"\[\^?\d{1,3}(?:\s?[,;-]\s?\d{1,3})*\]"
_CITATIONS = re.compile(_CITATION)
_LOOSE = re.compile(rf"(?<!\w){_CITATION}")
_SOURCE = r"(?:document|doc|passage|source|context|evidence|chunk|excerpt|snippet|quote|dokument|quelle|zitat)s?"
_LABEL = re.compile(
    rf"\A\W*+{_SOURCE}\s*+(?:#|no\.?)?+\s*+\[?+\d{{0,3}}+\s*+[:)\]-]++"
    rf"|[(\[]\s*+(?:{_SOURCE}\W{{0,2}}+)?(?:{_SOURCE}|[cdps](?=[\s_]?\d))[\s_]*+(?:#|no\.?|:)?+\s*+\d{{0,3}}+\s*+[)\]]",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\([^()]{1,200}\)")
_JOINERS = frozenset(("and", "und", "et", "y", "e", "en", "\u0438"))

_PIECES, _OCCURRENCES = 64, 500
"""How many pieces of a quote, and how many places of each piece in all texts together, are looked at."""
_LEFT_OUT = 200
"""Words of a sentence that may be left out at one place: more is no sentence any more."""
_SUBSTANTIAL = 5
"""Words that a passage from another sentence needs, unless it is at least half of that sentence."""
_NEAR = 8
"""Words that may be left out beside a scrap of one or two words."""


def fold(text: str) -> str:
    """`text` without the differences that copying makes: case, white space, width, kinds of quotes and dashes."""
    return "".join(unicodedata.normalize("NFKC", text.translate(_ALIKE)).casefold().split())


def _normal(text: str) -> str:
    """Words, guarded numbers, and marks for the ends of clauses and sentences, with blanks between them."""
    text = unicodedata.normalize("NFKC", html.unescape(text).translate(_ALIKE))
    text = _TWO_SIGNS.sub(lambda match: _BOUNDS[match[0]], _MEGA.sub("\ue01a", text)).casefold()
    text = _APOSTROPHE.sub("", _ESCAPED.sub(" ", _LINK.sub("] ", _TAG.sub(" ", text))))
    text = _IN_NUMBER.sub(lambda match: _INSIDE[match[0].strip()], text)
    text = _SIGN.sub("\ue006", text)
    text = _BOUND.sub(lambda match: _BOUNDS[match[0][0]], text)
    text = _NUMBER.sub(rf" {_GUARD}\1{_GUARD} ", text)
    text = _PAUSE.sub(f" {_CLAUSE} ", _END.sub(f" {_SENTENCE} ", text))
    return _UNSPACED.sub(r" \1 ", _BETWEEN.sub(" ", text))


def _clauses(text: str) -> list[list[list[str]]]:
    """Sentences as clauses as words."""
    sentences = [[part.split() for part in line.split(_CLAUSE)] for line in _normal(text).split(_SENTENCE)]
    return [clauses for clauses in ([words for words in sentence if words] for sentence in sentences) if clauses]


def _weight(words: Sequence[str]) -> float:
    """How many words these are; two letters of a script without spaces are about one."""
    return sum(0.5 if len(word) == 1 and _UNSPACED.match(word) else 1.0 for word in words)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where words of the quote stand: from one word of a text to before another, within or from a sentence on."""

    text: int
    sentence: int
    first: int
    last: int


class _Text:
    """One text of the evidence, its words run together so that spacing does not matter."""

    def __init__(self, text: str) -> None:
        sentences = _clauses(text)
        clauses = list(chain.from_iterable(sentences))
        self.words = list(chain.from_iterable(clauses))
        self._joined = "".join(self.words)
        self._starts = [0, *accumulate(map(len, self.words))]
        self._pauses = {0, *accumulate(map(len, clauses))}
        self._sentences = [0, *accumulate(sum(map(len, sentence)) for sentence in sentences)]

    def places(self, words: Sequence[str], looks: Iterator[int]) -> Iterator[tuple[int, int]]:
        """First and last + 1 of the words here that read like `words`, where no negation beside them is cut off.

        Each place that is looked at takes one of the `looks`.
        """
        wanted = "".join(words)
        at = self._joined.find(wanted)
        while at >= 0 and next(looks, None) is not None:
            first, last = self._word(at), self._word(at + len(wanted))
            if first is not None and last is not None and not self._cuts_negation(first, last):
                yield first, last
            at = self._joined.find(wanted, at + 1)

    def sentence(self, word: int) -> int:
        """The number of the sentence that a word stands in."""
        return bisect_right(self._sentences, word) - 1

    def length(self, sentence: int) -> float:
        """The words of a sentence."""
        return _weight(self.words[self._sentences[sentence] : self._sentences[sentence + 1]])

    def _word(self, offset: int) -> int | None:
        index = bisect_left(self._starts, offset)
        return index if self._starts[index] == offset else None

    def _cuts_negation(self, first: int, last: int) -> bool:
        before = first not in self._pauses and self.words[first - 1] in _NEGATIONS
        if before or last in self._pauses:
            return before
        after = "".join(self.words[last : last + 3])
        return self.words[last] in _NEGATIONS or after.startswith(_ENDINGS)


class Quotable:
    """Texts that quotes are looked up in."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._given = texts

    def holds(self, quote: str) -> bool:
        """Whether the quote stands in the texts, in the sense of this module; never when it has no word."""
        quote = quote.strip()
        if _holds(self._texts, quote):
            return True
        bare = _LABEL.sub(" ", _LOOSE.sub(" ", quote))
        if not self._cites:
            bare = _CITATIONS.sub(" ", bare)
        if bare != quote and _holds(self._texts, bare):
            return True
        return any(_holds(texts, bare) for texts in (self._uncited, self._without_asides) if texts)

    @cached_property
    def _texts(self) -> list[_Text]:
        return [_Text(text) for text in self._given]

    @cached_property
    def _cites(self) -> bool:
        return any(_CITATIONS.search(text) for text in self._given)

    @cached_property
    def _uncited(self) -> list[_Text]:
        return [_Text(_CITATIONS.sub(" ", text)) for text in self._given] if self._cites else []

    @cached_property
    def _without_asides(self) -> list[_Text]:
        """The texts without what stands in round brackets, unless it negates."""
        texts = [_CITATIONS.sub(" ", text) for text in self._given if "(" in text]
        return [_Text(_ASIDE.sub(lambda aside: aside[0] if _negates(aside[0]) else " ", text)) for text in texts]


def _negates(text: str) -> bool:
    return not _NEGATIONS.isdisjoint(_normal(text).split())


def _holds(texts: Sequence[_Text], quote: str) -> bool:
    atoms = [words for sentence in _clauses(quote) for words in sentence]
    if not any(character.isalnum() for words in atoms for word in words for character in word):
        return False
    whole = list(chain.from_iterable(atoms))
    if next(_pieces(texts, whole), None) is not None:
        return True
    return len(atoms) <= _PIECES and _gathered(texts, atoms)


def _gathered(texts: Sequence[_Text], atoms: Sequence[list[str]]) -> bool:
    """Whether the parts of a quote stand in the texts, each long enough or near to the one before it."""
    pieces: list[_Piece] = []
    at = 0
    atoms = [words for words in atoms if len(words) > 1 or words[0] not in _JOINERS]
    while at < len(atoms):
        end, piece = _longest(texts, atoms, at, pieces[-1] if pieces else None)
        if piece is None:
            return False
        pieces.append(piece)
        at = end
    groups: list[list[_Piece]] = []
    for piece in pieces:
        follows = bool(groups) and _follows(texts, groups[-1][-1], piece)
        groups[-1].append(piece) if follows else groups.append([piece])
    return len(groups) == 1 or all(_substantial(texts, group) for group in groups)


def _longest(
    texts: Sequence[_Text], atoms: Sequence[list[str]], at: int, before: _Piece | None
) -> tuple[int, _Piece | None]:
    """The longest run of parts from `at` that stands in one place, and where: after `before` if it can."""
    best: _Piece | None = None
    end = at + 1
    words: list[str] = []
    for stop in range(at + 1, len(atoms) + 1):
        words = words + atoms[stop - 1]
        found = _nearest(texts, words, before)
        if found is None:
            break
        best, end = found, stop
    return end, best


def _nearest(texts: Sequence[_Text], words: Sequence[str], before: _Piece | None) -> _Piece | None:
    """A place of the words that goes on from `before`, or else the first of all."""
    first: _Piece | None = None
    for piece in _pieces(texts, words, 0 if before is None else before.text):
        if before is None or _follows(texts, before, piece):
            return piece
        first = first or piece
    return first


def _pieces(texts: Sequence[_Text], words: Sequence[str], begin: int = 0) -> Iterator[_Piece]:
    """Places of the words, those in the text `begin` first; of so many that none is special, the first."""
    looks = iter(range(_OCCURRENCES))
    for number in (*range(begin, len(texts)), *range(begin)):
        text = texts[number]
        for first, last in text.places(words, looks):
            yield _Piece(number, text.sentence(first), first, last)


def _follows(texts: Sequence[_Text], one: _Piece, other: _Piece) -> bool:
    """Whether `other` goes on in the same sentence, with no negation and not too much left out between."""
    if (one.text, one.sentence) != (other.text, other.sentence) or other.first < one.last:
        return False
    if other.first - one.last > _LEFT_OUT:
        return False
    words = texts[one.text].words
    gap = words[one.last : other.first]
    scrap = min(_weight(words[piece.first : piece.last]) for piece in (one, other)) < 3
    return _NEGATIONS.isdisjoint(gap) and (not scrap or _weight(gap) <= _NEAR)


def _substantial(texts: Sequence[_Text], group: Sequence[_Piece]) -> bool:
    text = texts[group[0].text]
    weight = sum(_weight(text.words[piece.first : piece.last]) for piece in group)
    return weight >= _SUBSTANTIAL or 2 * weight >= text.length(group[0].sentence)
