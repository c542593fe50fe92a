"""How far passages support a statement: alignment of its words, and rules for what may not differ.

A swapped number, name or negation leaves nearly all words in place, so these are compared by themselves, against
the sentences that match best and no others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tracescore.judge.embedded.alignment import FORM, Evidence, Floats, Terms, similarity
from tracescore.judge.embedded.quantities import missing, rivals
from tracescore.judge.embedded.sentences import key, without_reply
from tracescore.judge.embedded.terms import is_acronym, is_negative, names, negated, opposites, resembles

WINDOW = 3
"""Sentences a statement may draw on together."""
GAIN = 0.05
"""What a further sentence must add to the alignment to be drawn on."""
DIFFERS = 0.5
"""Factor on the score for a number, a negation and a name that differ: enough to bring any statement under the
threshold, whatever its other words."""
SUPPORTED = 0.6
"""Score from which a statement counts as supported. Statements of a number in other words than the context lie at 0.76
and above, edited ones at 0.5 and below. Strict readers of chatty answers would set it at 0.8, where
balanced accuracy on human labels is 0.86 instead of 0.81."""
SAME_SUBJECT = 0.6
"""Alignment from which a differing number or negation is a contradiction rather than another subject."""
COUNTERPART = 0.56
"""Similarity (a cosine of 0.75) from which two words are compared for their negation."""
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
    """`score` in [0, 1], the alignment before any rule, whether a rule found a conflict, and the best sentence."""

    score: float
    alignment: float
    conflict: bool
    quote: str

    @property
    def supported(self) -> bool:
        """Whether it counts as supported."""
        return self.score >= SUPPORTED

    @property
    def contradicted(self) -> bool:
        """Whether the evidence is about the same and says otherwise."""
        return not self.supported and self.conflict and self.alignment >= SAME_SUBJECT


NOTHING = Support(0.0, 0.0, conflict=False, quote="")


def support(
    statement: Terms, evidence: Evidence, given: frozenset[str] = frozenset(), denies: bool | None = None
) -> Support:
    """How far `evidence` supports `statement`.

    `given` holds stems of words that need no support. Where `denies` is not None the statement is a yes or no to
    the question that `statement` holds, and only the evidence is searched for negations.
    """
    said = key(statement.text)
    if said and said in evidence.verbatim:
        return Support(1.0, 1.0, conflict=False, quote=evidence.verbatim[said])
    if not statement.words or not evidence.terms:
        return NOTHING
    weights = statement.weights * np.array([GIVEN if w.stem in given else 1.0 for w in statement.words])
    tables = [similarity(statement, terms) for terms in evidence.terms]
    best = np.stack([table.max(axis=1, initial=0.0) for table in tables])
    chosen = _window(best, weights)
    window = [evidence.terms[i] for i in chosen]
    aligned = float(best[chosen].max(axis=0) @ weights / weights.sum())
    text = " ".join(terms.text for terms in window)
    number = bool(missing(statement.text, text))
    if denies is None and len(statement.words) <= PHRASE and not _VERB.search(statement.text):
        negation = False
    elif denies is None:
        negation = _negation_differs(statement, window[0], tables[chosen[0]])
    else:
        negation = denies != is_negative(without_reply(window[0].text))
    name = _has_unknown_name(statement, evidence, given)
    score = aligned * DIFFERS ** (number + negation + name)
    conflict = negation or (number and rivals(statement.text, text))
    return Support(score, aligned, conflict, window[0].text)


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


def _negation_differs(statement: Terms, sentence: Terms, table: Floats) -> bool:
    """Whether a word is negated on one side only, or its counterpart is its opposite."""
    here, there = negated(statement.text), negated(sentence.text)
    for i, word in enumerate(statement.words):
        if word.is_function:
            continue
        j = int(table[i].argmax())
        against = opposites(word)
        opposed = [k for k, other in enumerate(sentence.words) if other.folded in against]
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
