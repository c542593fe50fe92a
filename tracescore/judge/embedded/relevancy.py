"""Whether an answer deals with the question, seen sentence by sentence.

A sentence deals with it when it is about its words, near to it in meaning, and of the kind that is asked for. The
best sentence counts: what stands around it moves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tracescore.errors import JudgeError
from tracescore.judge.embedded.abstention import abstains, is_echo, telling
from tracescore.judge.embedded.alignment import Encoder, Terms, all_terms
from tracescore.judge.embedded.answer_type import Asked, answers_yes_or_no, asked, gives, is_value
from tracescore.judge.embedded.coverage import aligned_with
from tracescore.judge.embedded.grading import Coefficients
from tracescore.judge.embedded.language import is_latin
from tracescore.judge.embedded.parts import required_parts
from tracescore.judge.embedded.sentences import without_reply
from tracescore.judge.embedded.steps import Steps
from tracescore.judge.operations import Relevance

FRAGMENT = 6
"""Words of an answer that leaves out its subject, which is the question's."""
_VERB = re.compile(r"(?i)\b(?:is|are|was|were|has|have|had|can|will|may|must|do|does|did|ist|sind|est|sont|es|son|è)\b")


@dataclass(frozen=True, slots=True)
class Dealing:
    """How one sentence of the answer deals with the question: its `features`, and whether a rule denies it."""

    features: Mapping[str, float]
    denied: bool
    quote: str


def relevance(question: str, answer: str, encoder: Encoder, coefficients: Coefficients) -> Steps[Relevance]:
    """The credit of the sentence that deals with the question best; 0 where none says anything.

    Raises JudgeError(unsupported_language) outside Latin script, of which the model knows nothing.
    """
    if not (is_latin(question) and is_latin(answer)):
        raise JudgeError("unsupported_language", "relevancy is judged in Latin script only")
    found = yield from dealings(question, answer, encoder)
    graded = [Relevance(0.0 if d.denied else coefficients.grade("relevancy", d.features), d.quote) for d in found]
    return max(graded, key=lambda rated: rated.credit, default=Relevance(0.0))


def dealings(question: str, answer: str, encoder: Encoder) -> Steps[list[Dealing]]:
    """One per sentence of `answer` that says something."""
    said = [without_reply(claim) for claim in telling(answer) if not abstains(claim) and not is_echo(claim)]
    parts = required_parts(question)
    if not parts:
        raise JudgeError("no_questions", "the question asks nothing: no word of two letters and no number")
    if not said:
        return []
    whole, *asked_for = yield from all_terms([question, *parts], encoder)
    told = yield from all_terms(said, encoder)
    kinds = [asked(part.text) for part in asked_for]
    found = []
    for sentence in told:
        found.append(_dealing(whole, asked_for, kinds, sentence))
        yield
    return found


def _dealing(whole: Terms, parts: list[Terms], kinds: list[Asked], sentence: Terms) -> Dealing:
    aligned = max(aligned_with(p, k, sentence, Counter()) for p, k in zip(parts, kinds, strict=True))
    given = [_given(kind, sentence.text) for kind in kinds]
    explains = all(kind.explains for kind in kinds)
    fragment = not explains and _is_fragment(sentence)
    features = {
        "cosine": float(whole.vector @ sentence.vector),
        "aligned": aligned,
        "fragment": float(fragment and max(given) >= 0),
        "fragment_given": float(fragment and max(given) > 0),
        "explains": float(explains),
    }
    return Dealing(features, _is_empty(whole, kinds, sentence), sentence.text)


def _is_fragment(sentence: Terms) -> bool:
    """Whether it is no sentence: few words, or hardly any beside numbers and times: Monday to Saturday, 10am to 7pm."""
    if _VERB.search(sentence.text):
        return False
    values = [word for word in sentence.words if is_value(word, sentence.text)]
    content = [word for word in sentence.words if not word.is_function and word not in values]
    return len(sentence.words) <= FRAGMENT or len(content) < min(len(values), FRAGMENT)


def _given(kind: Asked, sentence: str) -> int:
    """1 where the sentence gives the kind that is asked for, -1 where it does not, 0 where that cannot be told."""
    if kind.yes_no:
        return int(answers_yes_or_no(sentence))
    return (1 if gives(kind, sentence) else -1) if kind.wants else 0


def _is_empty(question: Terms, kinds: list[Asked], sentence: Terms) -> bool:
    """Whether the sentence says nothing that the question does not, where more is asked for than yes or no."""
    known = {w.stem for w in question.words}
    news = any(not w.is_function and w.stem not in known for w in sentence.words)
    return not news and not all(kind.yes_no for kind in kinds)
