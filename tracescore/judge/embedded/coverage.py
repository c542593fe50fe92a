"""Whether an answer covers a part of the question, without knowing whether it is true.

What a question asks for is not repeated in its answer; its subject is. So the words of a part look for counterparts
in a sentence of the answer. Words that only announce the kind of answer (price, deadline, which colours) are met by
an answer of that kind, and words that other parts have too count little: they cannot tell the parts apart. Beside
that, a question that is not answered by yes or no wants something new, and of its kind: a time, a sum, a procedure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracescore.judge.embedded.abstention import abstains
from tracescore.judge.embedded.alignment import FORM, Encoder, Evidence, Floats, Terms, similarity, terms
from tracescore.judge.embedded.asked import Asked, answers_yes_or_no, asked, gives
from tracescore.judge.embedded.quantities import quantities
from tracescore.judge.embedded.terms import names, words

COVERED, PARTIAL = 0.5, 0.47
"""Score from which a part counts as covered or partly so. Between the halves that are there (0.58 and more) and
those that are not (0.46 and less) of two-part questions answered by half; hence the narrow band between."""
SHARED = 0.3
"""Share of its weight that a word keeps which other parts have too."""
ANNOUNCING = 0.2
"""Share of its weight that a word keeps which only announces the kind of answer."""
OTHER_NAME = 0.3
"""Most that another word is worth for a name or a weekday that is asked about: open on Sundays?"""
FLOOR = 0.55
"""Score of a part that alone asks for a kind of answer, in a sentence that gives it and covers no other part."""
ON_SUBJECT, ON_SUBJECT_ALONE = 0.05, 0.3
"""Alignment that a sentence needs for that, so that it is not about something else: beside other parts, which it
could suit better, and where there is one part only."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """`score` in [0, 1] and the sentence or clause of the answer that covers best."""

    score: float
    quote: str


def coverage(parts: Sequence[str], answer: Sequence[str], encoder: Encoder) -> list[Coverage]:
    """How far the passages of `answer` cover each of the `parts`."""
    told = _told(answer, parts, encoder)
    if not told or not parts:
        return [Coverage(0.0, "") for _ in parts]
    questions = [asked(part) for part in parts]
    wanted = [terms(part, encoded) for part, encoded in zip(parts, encoder.encode(parts), strict=True)]
    common = Counter(stem for part in parts for stem in {w.stem for w in words(part)})
    aligned = np.array([[_aligned(w, q, s, common) for s in told] for w, q in zip(wanted, questions, strict=True)])
    known = frozenset(common)
    read = [_with_next(told, j) for j in range(len(told))]
    scores = np.array(
        [[_score(i, j, questions, read[j], known, aligned) for j in range(len(told))] for i in range(len(parts))]
    )
    return [Coverage(float(row.max()), told[int(row.argmax())].text) for row in scores]


def _told(answer: Sequence[str], parts: Sequence[str], encoder: Encoder) -> list[Terms]:
    """The sentences of the answer that say something, each followed by its clauses where it has several."""
    found: list[Terms] = []
    for sentence in Evidence(answer, parts, encoder).terms:
        if abstains(sentence.text):
            continue
        found.append(sentence)
        clauses = [clause for clause in _CLAUSE.split(sentence.text) if len(words(clause)) >= SHORTEST_CLAUSE]
        if len(clauses) > 1:
            found.extend(terms(c, e) for c, e in zip(clauses, encoder.encode(clauses), strict=True))
    return found


_CLAUSE = re.compile(
    r"(?i)(?:\s*;|,)\s+(?=(?:and|but|while|which|including|so|or|und|aber|wobei)\b)|\s+(?=and (?:you|it|they|we|there|the|a|an|is|are|was|were)\b)"
    r"|[，；]"
)
SHORTEST_CLAUSE = 3
"""Words; `and more` answers nothing."""


def _aligned(part: Terms, question: Asked, sentence: Terms, common: Counter[str]) -> float:
    """Weighted mean over the content words of `part` of their best counterpart in `sentence`."""
    if not part.words or not sentence.words:
        return 0.0
    best: Floats = similarity(part, sentence).max(axis=1)
    weights = part.weights.copy()
    special = {w.start for w in names(part.text)} if question.yes_no else set()
    met = bool(question.kinds) and gives(question, sentence.text)
    announcing = np.array([w.start in question.announcing for w in part.words])
    for i, word in enumerate(part.words):
        if word.is_function:
            weights[i] = 0.0
        if common[word.stem] > 1:
            weights[i] *= SHARED
        if announcing[i] and met:
            best[i] = 1.0
        elif word.start in special and best[i] < FORM:
            best[i] = min(best[i], OTHER_NAME)
    if weights[~announcing].any():
        weights[announcing] *= ANNOUNCING
    total = float(weights.sum())
    return float(best @ weights) / total if total else ON_SUBJECT


def _score(i: int, j: int, questions: Sequence[Asked], sentence: str, known: frozenset[str], aligned: Floats) -> float:
    """The score of part `i` for sentence `j`, whose text is `sentence`. `aligned` is (parts, sentences)."""
    question, score = questions[i], float(aligned[i, j])
    rivals = [float(aligned[k, j]) for k in range(len(questions)) if k != i]
    if question.yes_no:
        alone = sum(q.yes_no for q in questions) == 1
        affirmed = j == 0 and answers_yes_or_no(sentence) and (alone or score >= max(rivals, default=0.0))
        return max(score, FLOOR) if affirmed else score
    if not gives(question, sentence) or not _is_news(i, questions, sentence, known):
        return min(score, PARTIAL / 2)
    alone = question.wants is not None and sum(q.wants == question.wants for q in questions) == 1
    free = max(rivals, default=0.0) < COVERED
    return max(score, FLOOR) if alone and free and score >= (ON_SUBJECT if rivals else ON_SUBJECT_ALONE) else score


def _is_news(i: int, questions: Sequence[Asked], sentence: str, known: frozenset[str]) -> bool:
    """Whether `sentence` says more than the questions did. A number may be what another part asked for."""
    if questions[i].kinds:
        return True  # it gives what was asked for
    others = frozenset().union(*(q.kinds for q in questions))
    numbers = quantities(sentence)
    if not questions[i].procedure and not all(n.dimension in others or "number" in others for n in numbers):
        return True
    inside = [range(q.start, q.end) for q in numbers]
    return any(
        not w.is_function and w.stem not in known and not any(w.start in span for span in inside) for w in words(sentence)
    )


_CONTINUES = re.compile(r"(?i)^(?:it|its|they|their|these|those|this|he|his|she|her|es|sie|er|diese)\b")


def _with_next(told: Sequence[Terms], j: int) -> str:
    """The text of sentence `j`, together with the next where that goes on about the same: a list, a pronoun."""
    text = told[j].text
    if j + 1 < len(told) and (text.endswith(":") or _CONTINUES.match(told[j + 1].text)):
        return f"{text} {told[j + 1].text}"
    return text
