"""The yes or no that a text is or opens with, and what it says of the question."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.alignment import FORM, Evidence, Terms, similarity
from tracescore.judge.embedded.support import opposed, says_opposite
from tracescore.judge.embedded.terms import NEGATIONS, is_negative, words
from tracescore.judge.sentences import MAX_LENGTH

_WORDS = {
    said: "|".join(line.partition(": ")[2] for line in lexicon.lines("replies") if line.startswith(said))
    for said in ("yes", "no")
}
_OPENING = re.compile(
    rf"(?i)^\W*(?:(?P<no>{_WORDS['no']})|(?P<yes>{_WORDS['yes']}))(?:\s*[,.;:!–—，。、،।-]+\s*|\s*$)(?P<rest>.*)$",
    re.DOTALL,
)


_STATES = re.compile(
    r"(?i)\b(?:is|are|was|were|do|does|did|can(?:not)?|could|will|would|has|have|had|may|must|should|\w+n['’]t|not|"
    r"ist|sind|war|kann|darf|nicht|est|sont|peut|pas|es|son|está|puede|è|sono|può|é|são|pode|kan|mag|zijn|niet)\b"
)
"""The verb of an answer that repeats nothing of the question: it is, you can't."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A yes, or a no that `denies`, and the `rest` of the text behind it (may be empty)."""

    denies: bool
    rest: str


def reply(text: str) -> Reply | None:
    """The reply that `text` is or opens with; None for any other text."""
    found = _OPENING.match(text[:MAX_LENGTH])
    return Reply(bool(found["no"]), text[found.start("rest") :].strip()) if found else None


def polarity(text: str) -> bool | None:
    """True for a bare no ("No, it isn't."), False for a bare yes, None for anything that says more."""
    if len(text) > MAX_LENGTH:
        return None
    said = reply(text)
    rest = said.rest if said else text
    if said and not words(rest):
        return said.denies
    says_more = any(not word.is_function and word.folded not in NEGATIONS for word in words(rest))
    if says_more or not (said or _STATES.search(rest)):
        return None
    return is_negative(rest)


def denies(text: str) -> bool:
    """Whether `text` denies: by the reply that it opens with, else by its negations."""
    said = reply(text)
    return is_negative(text) if said is None else said.denies


def affirmed(question: Terms, evidence: Evidence) -> bool | None:
    """Whether the evidence affirms what a yes-or-no question asks.

    None where no sentence holds every content word of the question or its opposite, and where such sentences differ.
    """
    content = [i for i, word in enumerate(question.words) if not word.is_function and word.folded not in NEGATIONS]
    said: set[bool] = set()
    for sentence in evidence.terms:
        table = similarity(question, sentence)
        if content and all(table[i].max(initial=0.0) >= FORM or opposed(question.words[i], sentence) for i in content):
            said.add(not says_opposite(question, sentence, table))
    return said.pop() if len(said) == 1 else None


def only_repeats(rest: str, question: str) -> bool:
    """Whether what follows a reply says no more than the question: no, it isn't heated."""
    known = {word.stem for word in words(question)}
    return all(word.is_function or word.stem in known or word.folded in NEGATIONS for word in words(rest))
