"""How far passages support a statement: what can be seen of it as numbers, and the rules for what is clear.

A swapped number, name or negation leaves nearly all words in place, so these are compared by themselves, against
the sentences that match best and no others. What no rule decides is left to a small model over the features.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.agreement import missing, rivals
from tracescore.judge.embedded.alignment import FORM, Evidence, Floats, Terms, similarity
from tracescore.judge.embedded.quantities import quantities
from tracescore.judge.embedded.sentences import key
from tracescore.judge.embedded.terms import (
    Word,
    are_opposite,
    forbidding,
    is_acronym,
    is_negative,
    names,
    negated,
    resembles,
)

WINDOW = 3
"""Sentences an answer may meet a reference with together."""
GAIN = 0.05
"""What a further sentence must add to the alignment to be drawn on."""
SAME_SUBJECT = 0.6
"""Alignment from which a differing number, name or negation is a contradiction rather than another subject."""
SAME_MATTER = 0.65
"""The same for a claim and one sentence of passages, of which there may be many."""
SAME_SENTENCE = 0.85
"""The same where only a negation differs in a claim of more than FEW content words: long sentences negate one thing
beside another."""
COUNTERPART = 0.56
"""Similarity (a cosine of 0.75) from which two words are compared for their negation."""
FIGURES, FIGURES_SHORT, FEW = 0.85, 0.75, 8
"""Alignment from which an answer that states a number is clearly that of a reference with the number, and that of an
answer of at most so many content words: in other words these lie at 0.76 and above."""
BRIEF, ALIKE, ORDERED = 5, 0.7, 0.5
"""Content words of a claim that is little more than a number and what it is of; and for any other claim the cosine
with a sentence, and the share of its neighbouring words that are neighbours there, from which the sentence says the
same and not only the same words: of 220 labelled claims that rules find supported, 8 are not."""
BRIEF_ALIKE = 0.65
"""Cosine from which a brief claim of a number may have one word that the sentence has not."""
STRANGE = 0.5
"""Similarity under which a word has no counterpart."""
FAR = 0.4
"""Alignment and cosine under which nothing of the evidence is near the claim."""
PHRASE = 3
"""Words of a text without a verb that says nothing that could be negated: a name, a phrase."""
_VERB = re.compile(
    r"(?i)\b(?:is|are|was|were|be|do|does|did|has|have|had|can|will|may|must|not|never|no|ist|sind|nicht)\b"
)
_LIGHT = lexicon.words("light_verbs")
NAMES = 32
"""Names of a statement that are looked for: each unknown one is held against every word of the evidence."""
GIVEN = 0.1
"""Share of its weight that a word of the question keeps where it is given and only the rest is news."""


@dataclass(frozen=True, slots=True)
class Support:
    """What is seen of a statement beside its evidence: the `features` by name, the best sentence as `quote`.

    `clear` is the credit where a rule decides; `contradicted` says that the evidence is about the same and says
    otherwise. `clauses` is what is seen of each of the clauses that the statement joins.
    """

    features: Mapping[str, float] = field(default_factory=dict)
    clear: float | None = None
    contradicted: bool = False
    quote: str = ""
    clauses: tuple[Support, ...] = ()


NOTHING = Support(clear=0.0)


def support(
    statement: Terms, evidence: Evidence, given: frozenset[str] = frozenset(), denies: bool | None = None
) -> Support:
    """How far `evidence` supports `statement`.

    `given` holds stems of words that need no support. Where `denies` is not None the statement is a yes or no to
    the question that `statement` holds, and only the evidence is searched for negations.
    """
    said = key(statement.text)
    if said and said in evidence.verbatim:
        return Support(clear=1.0, quote=evidence.verbatim[said])
    if not evidence.terms or not any(given or not word.is_function for word in statement.words):
        return NOTHING
    weights = statement.weights * np.array([GIVEN if w.stem in given else 1.0 for w in statement.words])
    tables = [similarity(statement, terms) for terms in evidence.terms]
    best = np.stack([table.max(axis=1, initial=0.0) for table in tables])
    chosen = _window(best, weights)
    first = chosen[0]
    text = " ".join(evidence.terms[i].text for i in chosen)
    cosine = max(float(statement.vector @ terms.vector) for terms in evidence.terms)
    aligned = float(best[chosen].max(axis=0) @ weights / weights.sum())
    number = bool(missing(statement.text, text))
    negation = _negation_differs(statement, evidence.terms[first], tables[first], denies=denies)
    nowhere = number and bool(missing(statement.text, evidence.text))
    features = {
        "aligned": aligned,
        "one": float(best[first] @ weights / weights.sum()),
        "cosine": cosine,
        "pairs": _pairs(statement, evidence),
        "number": float(nowhere),
        "negation": float(negation),
        "name": float(_has_unknown_name(statement, evidence, given)),
        **_in_one_place(statement, evidence, best, weights, cosine),
    }
    contradicted = aligned >= SAME_SUBJECT and (negation or (number and rivals(statement.text, text)))
    clear = _met(statement, best[first], features, given) if given else _clear(statement, best[first], features)
    if denies is not None and aligned >= SAME_SUBJECT:
        clear = float(not negation)
    if given and nowhere and rivals(statement.text, evidence.text):
        clear = 0.0  # to one question, another number is another answer
    is_latin = any(word.latin for word in statement.words)
    if not is_latin and is_negative(statement.text) != is_negative(evidence.terms[first].text):
        clear = None  # what a negation bears on is known of languages in Latin script alone
    return Support(features, clear, contradicted, evidence.read[evidence.terms[first].text])


def _in_one_place(
    statement: Terms, evidence: Evidence, best: Floats, weights: Floats, cosine: float
) -> dict[str, float]:
    """What one place of the evidence says of the statement, however much is searched beside it.

    `near` is the mean of the cosine and of the alignment with the best sentence or two in a row, `together` the share
    of neighbouring words that are neighbours in one sentence, `apart` says that a number stands elsewhere at best,
    `weakest` is how well the content word stands in these sentences that stands there worst, and `length` the
    logarithm of how many there are.
    """
    content = _content(statement) or list(range(len(best[0])))
    rows = np.maximum(best, np.vstack([best[1:], best[-1:]]))
    i = int((rows @ weights).argmax())
    pairs = _neighbours(statement)
    place = " ".join(terms.text for terms in evidence.terms[max(0, i - 1) : i + 3])
    return {
        "near": (float(rows[i] @ weights / weights.sum()) + cosine) / 2,
        "together": max(len(pairs & _neighbours(terms)) for terms in evidence.terms) / len(pairs) if pairs else 0.0,
        "apart": float(bool(missing(statement.text, place))),
        "weakest": float(rows[i][content].min()),
        "length": math.log1p(len(content)),
    }


def _clear(statement: Terms, best: Floats, features: Mapping[str, float]) -> float | None:
    """1 or 0 where it is clear that one sentence supports a claim or that nothing does, None where it is not.

    1: every content word stands in the best sentence, in the same order or beside the claim's number.
    0: nothing is near, or about the same is said with another number, negation or name.
    """
    if features["one"] < FAR and features["cosine"] < FAR:
        return 0.0
    content = _content(statement)
    if features["number"] or features["negation"] or features["name"]:
        short = features["number"] or features["name"] or len(content) <= FEW
        enough = SAME_MATTER if short else SAME_SENTENCE
        return 0.0 if features["one"] >= enough or _only_one_differs(statement, best, features) else None
    if features["apart"]:
        return None
    lost = sum(best[i] < FORM for i in content)
    brief = len(content) <= BRIEF and any(q.firm for q in quantities(statement.text))
    if content and not lost:
        if len(content) == 1 and features["one"] >= FORM:
            return 1.0
        alike = features["cosine"] >= ALIKE or not any(word.latin for word in statement.words)
        return 1.0 if brief or (alike and features["together"] >= ORDERED) else None
    strange = sum(best[i] < STRANGE for i in content)
    same = features["one"] >= FIGURES_SHORT and features["cosine"] >= BRIEF_ALIKE
    return 1.0 if brief and same and strange <= 1 else None


def _content(statement: Terms) -> list[int]:
    """Positions of the words that say something: beside a number with its unit, not that it is paid or taken."""
    measured = any(q.firm and q.dimension for q in quantities(statement.text))
    return [
        i for i, word in enumerate(statement.words) if not (word.is_function or (measured and word.folded in _LIGHT))
    ]


def _only_one_differs(statement: Terms, best: Floats, features: Mapping[str, float]) -> bool:
    """Whether everything else of a claim with a name or a number that stands nowhere is in the sentence."""
    named = {word.start for word in names(statement.text)} if features["name"] else set()
    figures = [q for q in quantities(statement.text) if features["number"] and q.firm]
    rest = [
        i
        for i, word in enumerate(statement.words)
        if not (word.is_function or word.start in named or any(q.start <= word.start < q.end for q in figures))
    ]
    return bool((named or figures) and rest) and all(best[i] >= FORM for i in rest)


def _met(statement: Terms, best: Floats, features: Mapping[str, float], given: frozenset[str]) -> float | None:
    """1 or 0 where it is clear that an answer meets a reference or that it does not, beside what is given.

    1: every content word that is not given stands in the best sentence, or the numbers do and most of the rest.
    0: about the same is said with another number or negation. A name may be spelled in many ways.
    """
    if features["number"] or features["negation"] or features["name"]:
        spelled = not (features["number"] or features["negation"])
        return 0.0 if features["aligned"] >= SAME_SUBJECT and not spelled else None
    content = [i for i, word in enumerate(statement.words) if not word.is_function and word.stem not in given]
    if content and all(best[i] >= FORM for i in content):
        return 1.0
    figures = any(q.firm for q in quantities(statement.text))
    enough = FIGURES_SHORT if len(content) <= FEW else FIGURES
    return 1.0 if figures and features["aligned"] >= enough else None


def _pairs(statement: Terms, evidence: Evidence) -> float:
    """Share of the neighbouring content words that are neighbours anywhere in the evidence."""
    ours = _neighbours(statement)
    return len(ours & frozenset().union(*map(_neighbours, evidence.terms))) / len(ours) if ours else 0.0


def _neighbours(terms: Terms) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(word.stem for word in terms.words if not word.is_function))


def _window(best: Floats, weights: Floats) -> list[int]:
    """Sentences by what each adds to the alignment, the best first. `best` is (sentences, words)."""
    total = float(weights.sum())
    chosen: list[int] = [int((best @ weights).argmax())]
    reached = best[chosen[0]]
    while len(chosen) < WINDOW:
        joined = np.maximum(best, reached) @ weights
        i = int(joined.argmax())
        if joined[i] - reached @ weights < GAIN * total:
            break
        chosen.append(i)
        reached = np.maximum(reached, best[i])
    return chosen


def _negation_differs(statement: Terms, sentence: Terms, table: Floats, denies: bool | None) -> bool:
    """Whether the sentence says the opposite; of a statement that `denies` what is asked, whether it affirms it."""
    is_phrase = denies is None and len(statement.words) <= PHRASE and not _VERB.search(statement.text)
    if is_phrase and any(word.is_number or word.text[0].isupper() for word in statement.words[-1:]):
        return False
    differs = says_opposite(statement, sentence, table)
    return not differs if denies else differs


def opposed(word: Word, sentence: Terms) -> list[int]:
    """Positions of the words of `sentence` that say the opposite of `word`."""
    return [k for k, other in enumerate(sentence.words) if are_opposite(word, other)]


def says_opposite(statement: Terms, sentence: Terms, table: Floats) -> bool:
    """Whether a word is negated on one side only, or its counterpart is its opposite.

    Forbidden and not allowed are the same, whatever words the negation bears on.
    """
    here, there = negated(statement.text), negated(sentence.text)
    (ours, ours_negated), (theirs, theirs_negated) = forbidding(statement.text), forbidding(sentence.text)
    alike = (ours and theirs_negated) or (theirs and ours_negated)
    for i, word in enumerate(statement.words):
        if word.is_function:
            continue
        j = int(table[i].argmax())
        against = opposed(word, sentence)
        if against and table[i, j] < FORM:
            if (i in here) == any(k in there for k in against):
                return True
        elif table[i, j] >= COUNTERPART and (i in here) != (j in there) and not alike:
            return True
    return False


def _has_unknown_name(statement: Terms, evidence: Evidence, given: frozenset[str]) -> bool:
    """Whether `statement` names what stands nowhere in the evidence. The month of a date is part of its number."""
    dated = quantities(statement.text)
    return any(
        name.stem not in given
        and not any(q.start <= name.start < q.end for q in dated)
        and name.stem not in evidence.stems
        and not is_acronym(name, evidence.initials)
        and not resembles(name, evidence.stems)
        for name in names(statement.text)[:NAMES]
    )
