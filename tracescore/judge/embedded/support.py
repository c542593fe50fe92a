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

from tracescore.judge.embedded.alignment import FORM, Evidence, Floats, Terms, similarity
from tracescore.judge.embedded.quantities import missing, quantities, rivals
from tracescore.judge.embedded.sentences import key
from tracescore.judge.embedded.terms import are_opposite, is_acronym, is_negative, names, negated, resembles

WINDOW = 3
"""Sentences a statement may draw on together."""
GAIN = 0.05
"""What a further sentence must add to the alignment to be drawn on."""
SAME_SUBJECT = 0.6
"""Alignment from which a differing number or negation is a contradiction rather than another subject."""
COUNTERPART = 0.56
"""Similarity (a cosine of 0.75) from which two words are compared for their negation."""
FIGURES, FIGURES_SHORT, FEW = 0.85, 0.75, 8
"""Alignment from which a statement of a number is clearly supported by sentences that state the number, and that of
a statement of at most so many content words: in other words than the context these lie at 0.76 and above."""
NEAR = 0.6
"""Alignment and cosine under which nothing of the evidence is near the statement: on labelled talk, 19 of 20 are not
supported."""
PHRASE = 3
"""Words of a text without a verb that says nothing that could be negated: a name, a phrase."""
_VERB = re.compile(
    r"(?i)\b(?:is|are|was|were|be|do|does|did|has|have|had|can|will|may|must|not|never|no|ist|sind|nicht)\b"
)
NAMES = 32
"""Names of a statement that are looked for: each unknown one is held against every word of the evidence."""
GIVEN = 0.1
"""Share of its weight that a word of the question keeps where it is given and only the rest is news."""


@dataclass(frozen=True, slots=True)
class Support:
    """What is seen of a statement beside its evidence: the `features` by name, the best sentence as `quote`.

    `clear` is 1 or 0 where a rule decides; `contradicted` says that the evidence is about the same and says otherwise.
    """

    features: Mapping[str, float] = field(default_factory=dict)
    clear: float | None = None
    contradicted: bool = False
    quote: str = ""


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
    if not statement.words or not evidence.terms:
        return NOTHING
    weights = statement.weights * np.array([GIVEN if w.stem in given else 1.0 for w in statement.words])
    tables = [similarity(statement, terms) for terms in evidence.terms]
    best = np.stack([table.max(axis=1, initial=0.0) for table in tables])
    chosen = _window(best, weights)
    window = [evidence.terms[i] for i in chosen]
    text = " ".join(terms.text for terms in window)
    aligned = float(best[chosen].max(axis=0) @ weights / weights.sum())
    number = bool(missing(statement.text, text))
    negation = _negation_differs(statement, window[0], tables[chosen[0]], denies=denies)
    name = _has_unknown_name(statement, evidence, given)
    nowhere = number and bool(missing(statement.text, evidence.text))
    cosine = max(float(statement.vector @ terms.vector) for terms in evidence.terms)
    features = {
        "aligned": aligned,
        "cosine": cosine,
        "near": (aligned + cosine) / 2,
        "pairs": _pairs(statement, evidence),
        "searched": math.log(len(evidence.terms)),
        "number": float(nowhere),
        "negation": float(negation),
        "name": float(name),
    }
    contradicted = aligned >= SAME_SUBJECT and (negation or (number and rivals(statement.text, text)))
    clear = _clear(statement, best[chosen[0]], features, given)
    if denies is not None and aligned >= SAME_SUBJECT:
        clear = float(not negation)
    if given and nowhere and rivals(statement.text, evidence.text):
        clear = 0.0  # to one question, another number is another answer
    if not any(word.latin for word in statement.words) and is_negative(statement.text) != is_negative(window[0].text):
        clear = None  # what a negation bears on is known of languages in Latin script alone
    return Support(features, clear, contradicted, window[0].text)


def _clear(statement: Terms, best: Floats, features: Mapping[str, float], given: frozenset[str]) -> float | None:
    """1 or 0 where it is clear, None where it is not.

    1: every content word that is not given stands in the best sentence, or the numbers do and most of the rest.
    0: nothing is near, or about the same is said with another number, negation or name. Beside what is given neither
    is clear of few words, of which a name may be spelled in many ways.
    """
    aligned = features["aligned"]
    if not given and aligned < NEAR and features["cosine"] < NEAR:
        return 0.0
    if features["number"] or features["negation"] or features["name"]:
        spelled = given and not (features["number"] or features["negation"])
        return 0.0 if aligned >= SAME_SUBJECT and not spelled else None
    content = [i for i, word in enumerate(statement.words) if not word.is_function and word.stem not in given]
    if content and all(best[i] >= FORM for i in content):
        return 1.0
    figures = any(q.firm for q in quantities(statement.text))
    enough = FIGURES_SHORT if len(content) <= FEW else FIGURES
    return 1.0 if figures and aligned >= enough else None


def _pairs(statement: Terms, evidence: Evidence) -> float:
    """Share of the neighbouring content words that are neighbours in the evidence too."""
    ours = _neighbours(statement)
    theirs = frozenset(pair for terms in evidence.terms for pair in _neighbours(terms))
    return sum(pair in theirs for pair in ours) / len(ours) if ours else 0.0


def _neighbours(terms: Terms) -> list[tuple[str, str]]:
    return list(pairwise(word.stem for word in terms.words if not word.is_function))


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
    differs = _is_opposite(statement, sentence, table)
    return not differs if denies else differs


def _is_opposite(statement: Terms, sentence: Terms, table: Floats) -> bool:
    """Whether a word is negated on one side only, or its counterpart is its opposite."""
    here, there = negated(statement.text), negated(sentence.text)
    for i, word in enumerate(statement.words):
        if word.is_function:
            continue
        j = int(table[i].argmax())
        opposed = [k for k, other in enumerate(sentence.words) if are_opposite(word, other)]
        if opposed and table[i, j] < FORM:
            if (i in here) == any(k in there for k in opposed):
                return True
        elif table[i, j] >= COUNTERPART and (i in here) != (j in there):
            return True
    return False


def _has_unknown_name(statement: Terms, evidence: Evidence, given: frozenset[str]) -> bool:
    """Whether `statement` names what stands nowhere in the evidence."""
    return any(
        name.stem not in given
        and name.stem not in evidence.stems
        and not is_acronym(name, evidence.initials)
        and not resembles(name, evidence.stems)
        for name in names(statement.text)[:NAMES]
    )
