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
from numpy.typing import NDArray

from tracescore.formulas import clip
from tracescore.judge.embedded.abstention import abstains, is_echo
from tracescore.judge.embedded.alignment import FORM, Encoder, Floats, Terms, all_terms, gather, similarity
from tracescore.judge.embedded.answer_type import Asked, answers_yes_or_no, asked, gives, grants, holds_value
from tracescore.judge.embedded.clauses import has_verb
from tracescore.judge.embedded.quantities import quantities
from tracescore.judge.embedded.questions import is_instruction
from tracescore.judge.embedded.sentences import rows_of_tables
from tracescore.judge.embedded.steps import Steps
from tracescore.judge.embedded.terms import names, words

COVERED, MISSING = 0.55, 0.4
"""Score from which a part is clearly covered, and up to which it is clearly missing; its credit rises evenly between.
The halves that are there lie at 0.58 and more, those that are not at 0.46 and less, in two-part questions answered
by half."""
HALFWAY = (COVERED + MISSING) / 2
SHARED = 0.3
"""Share of its weight that a word keeps which other parts have too."""
ANNOUNCING = 0.2
"""Share of its weight that a word keeps which only announces the kind of answer."""
SUBJECT = 0.6
"""Share of its weight that the subject of a yes-or-no question keeps: to mention it alone says nothing."""
OTHER_NAME = 0.3
"""Most that another word is worth for a name or a weekday that is asked about: open on Sundays?"""
FLOOR = 0.55
"""Score of a part that alone asks for a kind of answer, in a sentence that gives it and covers no other part."""
ON_SUBJECT = 0.05
"""Alignment that a sentence needs for that beside other parts, which it could suit better."""
NEAR_ANY = 0.2
"""Cosine with one of several parts that a whole sentence needs, so that it is not about something else altogether."""
NEARER = 0.1
"""What the cosine of a sentence with a part must lie above that with any other part to stand in for its alignment."""
ALIGNED_ALONE, NEAR_ALONE = 0.3, 0.3
"""Alignment or cosine that it needs where there is one part only, so that it is not about something else."""

NEAR_ACT = 0.15
"""The cosine that a step needs for how something is done: it leaves out what is asked about, as it is of that."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """`score` in [0, 1] and the sentence or clause of the answer that covers best."""

    score: float
    quote: str

    @property
    def credit(self) -> float:
        """1 where the part is clearly covered, 0 where it is clearly missing, graded between."""
        return clip((self.score - MISSING) / (COVERED - MISSING))


@dataclass(frozen=True, slots=True)
class _Told:
    """A sentence or clause of the answer, the text that is read for it, and whether it opens the answer."""

    terms: Terms
    read: str
    opens: bool


def coverage(parts: Sequence[str], answer: Sequence[str], encoder: Encoder) -> Steps[list[Coverage]]:
    """How far the passages of `answer` cover each of the `parts`."""
    told = yield from _told(answer, parts, encoder)
    if not told or not parts:
        return [Coverage(0.0, "") for _ in parts]
    wanted = yield from all_terms(parts, encoder)
    common = Counter(stem for part in parts for stem in {w.stem for w in words(part)})
    questions = [asked(part) for part in parts]
    aligned = np.zeros((len(parts), len(told)))
    near = np.array([[float(part.vector @ t.terms.vector) for t in told] for part in wanted])
    for i, (part, question) in enumerate(zip(wanted, questions, strict=True)):
        aligned[i] = [aligned_with(part, question, t.terms, common) for t in told]
        yield
    found = []
    for i, part in enumerate(wanted):
        others = [*questions[:i], *questions[i + 1 :]]
        beside = aligned[i], _rivals(aligned, i), near[i], _rivals(near, i)
        scores = [
            _score(_Match(part, questions[i], t, *(float(each[j]) for each in beside)), others, frozenset(common))
            for j, t in enumerate(told)
        ]
        best = int(np.argmax(scores))
        listed = not others and _is_list(questions[i], told, frozenset(common))
        found.append(Coverage(max(scores[best], FLOOR) if listed else scores[best], told[best].terms.text))
        yield
    return found


def _is_list(question: Asked, told: Sequence[_Told], known: frozenset[str]) -> bool:
    """Whether the answer is a bare list of new things, for a question that could be answered by any."""
    is_open = not question.yes_no and not question.wants
    bare = len(told) > 1 and not any(has_verb(t.terms.text) for t in told)
    return is_open and bare and any(_is_news(question, (), t.read, known) for t in told)


def _rivals(table: NDArray[np.float64], part: int) -> NDArray[np.float64]:
    """The best of the other parts for each sentence."""
    rivals: NDArray[np.float64] = np.delete(table, part, axis=0).max(axis=0, initial=0.0)
    return rivals


def _told(answer: Sequence[str], parts: Sequence[str], encoder: Encoder) -> Steps[list[_Told]]:
    """The sentences of the answer that say something, each followed by its clauses where it has several."""
    found: list[_Told] = []
    held = yield from gather([rows_of_tables(text) for text in answer], parts, encoder)
    sentences = [t for t in held.terms if not abstains(t.text) and not is_echo(t.text)]
    for k, sentence in enumerate(sentences):
        after = sentences[k + 1].text if k + 1 < len(sentences) else ""
        heads = is_instruction(after) and not sentence.text.endswith((".", "!", "?", ":"))
        goes_on = sentence.text.endswith(":") or heads or _CONTINUES.match(after)
        read = f"{sentence.text}{':' if heads else ''} {after}" if goes_on else sentence.text
        found.append(_Told(sentence, read, opens=k == 0))
        clauses = [clause for clause in _clauses(sentence.text) if len(words(clause)) >= SHORTEST_CLAUSE]
        if len(clauses) > 1:
            alone = yield from all_terms(clauses, encoder)
            found.extend(_Told(clause, clause.text, opens=False) for clause in alone)
    return found


def _clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, split at any `and` between two values too: it costs 5 euros and takes a week."""
    found: list[str] = []
    for clause in _CLAUSE.split(sentence):
        left, joint, right = clause.partition(m[0]) if (m := _AND.search(clause)) else (clause, "", "")
        found += [left, right] if joint and holds_value(left) and holds_value(right) else [clause]
    return found


_AND = re.compile(r"(?i)\s(?:and|und|et|y|e|en)\s")
_CONTINUES = re.compile(r"(?i)^(?:it|its|they|their|these|those|this|he|his|she|her|es|sie|er|diese)\b")
"""Opens a sentence that goes on about the same as the one before."""
_CLAUSE = re.compile(
    r"(?i)\s*[;,]\s+(?=(?:and|but|while|which|including|so|or|und|aber|wobei)\b)"
    r"|;\s+|\s+(?=and (?:you|it|they|we|there|the|a|an|is|are|was|were)\b)"
)
SHORTEST_CLAUSE = 2
"""Words of a clause that can answer by itself: 6.50 euros; three days."""


def aligned_with(part: Terms, question: Asked, sentence: Terms, common: Counter[str]) -> float:
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
    if question.yes_no and not _PRONOUN_SUBJECT.match(part.text) and (first := np.flatnonzero(weights)).size > 1:
        weights[first[0]] *= SUBJECT
    if weights[~announcing].any():
        weights[announcing] *= ANNOUNCING
    total = float(weights.sum())
    return float(best @ weights) / total if total else ON_SUBJECT


_PRONOUN_SUBJECT = re.compile(r"(?i)^\W*\w+\s+(?:i|you|we|it|they|he|she|there|one|es|ich|man|sie|wir)\b")


@dataclass(frozen=True, slots=True)
class _Match:
    """A part beside a sentence: how well they align and how near they are, and both of the best other part."""

    part: Terms
    question: Asked
    told: _Told
    aligned: float
    rival: float
    near: float
    near_rival: float


def _score(match: _Match, others: Sequence[Asked], known: frozenset[str]) -> float:
    """The score of one part for one sentence; `others` are the other parts, `known` the stems of all of them."""
    question, aligned = match.question, match.aligned
    if question.yes_no:
        alone = not any(q.yes_no for q in others)
        replied = match.told.opens and answers_yes_or_no(match.told.read) and (alone or aligned >= match.rival)
        granted = grants(match.told.read) and aligned >= max(HALFWAY if others else ALIGNED_ALONE, match.rival)
        return max(aligned, FLOOR) if replied or granted else aligned
    enough = NEAR_ACT if _tells_how(match) else NEAR_ANY
    elsewhere = max(match.near, match.near_rival) < enough and not _refers(match.told)
    if elsewhere or not gives(question, match.told.read) or not _is_news(question, others, match.told.read, known):
        return min(aligned, MISSING / 2)
    alone = bool(question.wants) and all(q.wants != question.wants for q in others)
    if alone and _on_subject(match, bool(others)):
        return max(aligned, FLOOR)
    return max(aligned, match.near) if match.near >= match.near_rival + NEARER else aligned


def _on_subject(match: _Match, has_others: bool) -> bool:
    """Whether the sentence is about what is asked, and not about what another part asks."""
    if match.question.explains:
        return match.near >= max(NEAR_ALONE, match.near_rival)
    if has_others:
        return match.rival < HALFWAY and match.aligned >= ON_SUBJECT
    if _tells_how(match):
        return match.near >= NEAR_ACT
    refers = _refers(match.told)
    return match.aligned >= ALIGNED_ALONE or match.near >= NEAR_ALONE or (refers and match.told.opens)


def _tells_how(match: _Match) -> bool:
    """Whether the sentence is a step, and it is asked how something is done."""
    return match.question.form == "procedure" and is_instruction(match.told.terms.text)


def _refers(told: _Told) -> bool:
    """Whether the sentence leaves its subject to the question or to the sentence before."""
    return bool(_CONTINUES.match(told.terms.text)) or len(told.terms.words) <= SHORT


SHORT = 4
"""Words of an answer that leaves out its subject: up to 35,000 dollars."""


def _is_news(question: Asked, others: Sequence[Asked], sentence: str, known: frozenset[str]) -> bool:
    """Whether `sentence` says more than the questions did. A number may be what another part asked for."""
    if question.kinds:
        return True  # it gives what was asked for
    numbers = quantities(sentence)
    taken = frozenset[str]().union(*(q.kinds for q in others))
    if question.form != "procedure" and not all((n.dimension or "bare") in taken or "number" in taken for n in numbers):
        return True
    inside = [range(n.start, n.end) for n in numbers]
    return any(
        not w.is_function and w.stem not in known and not any(w.start in span for span in inside)
        for w in words(sentence)
    )
