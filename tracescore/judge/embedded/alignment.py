"""Soft alignment: every word of a statement looks for its best counterpart among the words of the evidence.

A counterpart is the same word, another form of it, or a word the model places near it in context. This keeps what
plain word overlap misses (paraphrase) and what sentence vectors blur (single words).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tracescore.judge.embedded.agreement import equal
from tracescore.judge.embedded.clauses import resolved, subject_of
from tracescore.judge.embedded.quantities import Quantity
from tracescore.judge.embedded.sentences import key, sentences
from tracescore.judge.embedded.steps import ENCODED, READ, Steps, batches
from tracescore.judge.embedded.terms import Word, forbidding, words

Floats = NDArray[np.float32]

FUNCTION_WEIGHT = 0.3
"""The weight of a function word, beside 1 to 2 of a content word: the best of 0.05 to 1 on dialogue answers."""
NUMBER_WEIGHT = 2.0
"""The weight of a word in digits, as high as that of the rarest word."""
FORM = 0.95
"""Credit for another form of the same word (returned, returns)."""
SHARPNESS = 2
"""Power of the cosine: unrelated words have cosines of 0.2 to 0.4 in context, and must add little."""
MAX_SENTENCES = 48
"""Evidence sentences that are encoded; of longer evidence, those that share the rarest words with the statements."""


class EncodedText(Protocol):
    """One text as a model sees it: see `Encoded` of the local embedder."""

    @property
    def vector(self) -> NDArray[np.float64]:
        """(d,): the whole text."""
        ...

    @property
    def tokens(self) -> Floats:
        """(n, d): unit vectors of the tokens in context."""
        ...

    @property
    def spans(self) -> NDArray[np.int64]:
        """(n, 2): character offsets of the tokens."""
        ...

    @property
    def rarity(self) -> Floats:
        """(n,): how uncommon each token is, in [0, 1]."""
        ...


class Encoder(Protocol):
    """Turns texts into vectors of their tokens; blocks."""

    def encode(self, texts: Sequence[str]) -> Sequence[EncodedText]:
        """One per text, in order."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Terms:
    """A text as n words, and `vector` (d,) for the whole.

    `vectors` (n, d) has unit length, or is 0 where the model knows nothing of the script; `weights` (n,) is what
    each word counts; `exact` and `forms` (n,) are equal for the same word and for forms of one word.
    """

    text: str
    vector: NDArray[np.float64]
    words: tuple[Word, ...]
    vectors: Floats
    weights: Floats
    exact: NDArray[np.int64]
    forms: NDArray[np.int64]


def terms(text: str, encoded: EncodedText) -> Terms:
    """The words of `text` with the vectors of the tokens inside them."""
    found = words(text)
    vectors = np.zeros((len(found), encoded.tokens.shape[1]), dtype=np.float32)
    weights = np.zeros(len(found), dtype=np.float32)
    starts, ends = encoded.spans.reshape(-1, 2).T
    for i, word in enumerate(found):
        inside = np.flatnonzero((starts < word.end) & (ends > word.start))
        if inside.size and word.latin:
            mean = encoded.tokens[inside].mean(axis=0)
            vectors[i] = mean / max(float(np.linalg.norm(mean)), 1e-6)
        # A word in several pieces was too rare for the vocabulary; one beyond the model's length is taken as rare.
        rarity = float(encoded.rarity[inside[0]]) if inside.size == 1 else 1.0
        weights[i] = NUMBER_WEIGHT if word.is_number else FUNCTION_WEIGHT if word.is_function else 1.0 + rarity
    exact = np.array([hash(word.folded) for word in found], dtype=np.int64)
    forms = np.array([hash(word.stem) for word in found], dtype=np.int64)
    return Terms(text, encoded.vector, found, vectors, weights, exact, forms)


def all_terms(texts: Sequence[str], encoder: Encoder) -> Steps[list[Terms]]:
    """The `terms` of each text, in order."""
    found: list[Terms] = []
    for batch in batches(texts, ENCODED, len):
        found.extend(terms(text, encoded) for text, encoded in zip(batch, encoder.encode(batch), strict=True))
        yield
    return found


def similarity(a: Terms, b: Terms) -> Floats:
    """(len(a), len(b)): how well each word of `b` stands for each word of `a`, in [0, 1]."""
    near: Floats = np.clip(a.vectors @ b.vectors.T, 0, 1) ** SHARPNESS
    near[a.forms[:, None] == b.forms[None, :]] = FORM
    for i, j in product(_numbered(a), _numbered(b)):
        near[i, j] = 0.0  # Python2 and Python3; the same ones count below
    near[a.exact[:, None] == b.exact[None, :]] = 1.0
    alone, _ = forbidding(a.text)
    if alone:
        near[np.ix_(alone, forbidding(b.text)[1])] = FORM
    for here, there in [*_equal_quantities(a, b), *_compounds(a, b), *(pair[::-1] for pair in _compounds(b, a))]:
        near[np.ix_(here, there)] = 1.0
    return near


def _numbered(t: Terms) -> list[int]:
    """Positions of the words that end in digits."""
    return [i for i, word in enumerate(t.words) if word.folded[-1:].isdigit() and not word.is_number]


def _compounds(a: Terms, b: Terms) -> Iterator[tuple[list[int], list[int]]]:
    """Two words of `a` that `b` writes as one: log in and login."""
    single = {word.folded: j for j, word in enumerate(b.words) if word.latin}
    for i, (x, y) in enumerate(pairwise(a.words)):
        if (j := single.get(x.folded + y.folded)) is not None:
            yield [i, i + 1], [j]


def _equal_quantities(a: Terms, b: Terms) -> Iterator[tuple[list[int], list[int]]]:
    """Words of `a` and of `b` that write one and the same number: 6:35 pm and 18:35."""
    for ours, theirs in equal(a.text, b.text):
        yield _inside(a, ours), _inside(b, theirs)


def _inside(t: Terms, numbers: Iterable[Quantity]) -> list[int]:
    """Positions of the words in which the numbers are written."""
    found: dict[int, None] = {}
    for number in numbers:
        first = bisect_right(t.words, number.start, key=lambda word: word.end)
        last = bisect_left(t.words, number.end, key=lambda word: word.start)
        found.update(dict.fromkeys(range(first, last)))
    return list(found)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sentences of some passages, encoded as far as the statements to be held against them need it.

    `verbatim` has every sentence by its `key`; `terms` are those that share most with the statements, in their order.
    `stems` are of the words in these, `initials` the first letters of the words in a row, `text` is all of it. A
    sentence may be `read` with the subject that it leaves to the one before: read so -> as it stands.
    """

    read: Mapping[str, str]
    verbatim: Mapping[str, str]
    terms: Sequence[Terms]
    stems: frozenset[str]
    initials: str
    text: str


def gather(
    passages: Sequence[str], statements: Sequence[str], encoder: Encoder, *, resolve: bool = False
) -> Steps[Evidence]:
    """Reads the passages once and encodes the MAX_SENTENCES sentences nearest to the statements.

    `resolve`: a sentence that opens with a pronoun is read with the subject of the sentence before it.
    """
    wanted = frozenset(w.stem for statement in statements for w in words(statement) if not w.is_function)
    read: dict[str, str] = {}
    verbatim: dict[str, str] = {}
    shared: dict[str, frozenset[str]] = {}
    for passage in passages:
        subject = ""
        for batch in batches(sentences(passage), READ, len):
            for sentence in batch:
                whole = resolved(sentence, subject) if resolve else sentence
                subject = subject if whole != sentence else subject_of(sentence)
                read[whole] = sentence
                verbatim.setdefault(key(sentence), sentence)
                verbatim.setdefault(key(whole), sentence)
                shared[whole] = wanted.intersection(w.stem for w in words(whole)) or _NOTHING
            yield
    chosen = _closest(shared)
    of_like_length = yield from all_terms(sorted(chosen, key=len), encoder)
    by_text = {each.text: each for each in of_like_length}
    return _evidence(read, verbatim, [by_text[sentence] for sentence in chosen])


def of_one(sentence: Terms) -> Evidence:
    """One sentence as the whole evidence."""
    return _evidence({sentence.text: sentence.text}, {key(sentence.text): sentence.text}, [sentence])


def _evidence(read: Mapping[str, str], verbatim: Mapping[str, str], found: Sequence[Terms]) -> Evidence:
    known = [word for each in found for word in each.words]
    initials = "".join(w.folded[0] for w in known)
    return Evidence(read, verbatim, found, frozenset(w.stem for w in known), initials, " ".join(e.text for e in found))


_NOTHING = frozenset[str]()


def _closest(shared: Mapping[str, frozenset[str]]) -> list[str]:
    """The MAX_SENTENCES sentences that share most with the statements, in their own order."""
    if len(shared) <= MAX_SENTENCES:
        return list(shared)
    count = Counter(stem for stems in shared.values() for stem in stems)
    score = [sum(1 / count[stem] for stem in stems) for stems in shared.values()]
    best = frozenset(sorted(range(len(score)), key=lambda i: (-score[i], i))[:MAX_SENTENCES])
    return [sentence for i, sentence in enumerate(shared) if i in best]
