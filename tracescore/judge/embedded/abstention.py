"""Answers that evade: "I don't know", refusals, "the documents do not say".

An answer that hedges and then answers is an answer; so is a short one with nothing but a fact.
"""

from __future__ import annotations

import re

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.sentences import sentences

_ABSTENTION = lexicon.pattern("abstentions")
_APOLOGY = lexicon.pattern("apologies")
_OFFER = lexicon.pattern("offers")
_BUT = re.compile(
    r"(?i)(?:[,;:–—-]|\.\s)\s*(?:but|however|although|though|aber|jedoch|mais|pero|ma|但是?|不过|ですが|لكن|लेकिन|но)\s+"
    r"(?P<rest>.+)$|[:：]\s+(?P<list>.+)$"
)


def abstention(answer: str) -> str:
    """The words with which `answer` evades, or an empty string when it answers something.

    It evades when a sentence says so and no other sentence says more than where else to ask.
    """
    words = ""
    for sentence in sentences(answer):
        if found := _ABSTENTION.search(sentence):
            words = words or found[0].strip()
            rest = _after_but(sentence, found.end())
            if rest and not _ABSTENTION.search(rest) and not _OFFER.search(rest):
                return ""
        elif not (_APOLOGY.match(sentence) or _OFFER.search(sentence) or sentence.endswith(("?", "？", "؟"))):
            return ""
    return words


def abstains(sentence: str) -> bool:
    """Whether this one sentence says that something is not known or not told."""
    return bool(_ABSTENTION.search(sentence))


def _after_but(sentence: str, start: int) -> str:
    """What follows a `but` behind position `start`: I'm not sure, but I think it is 30 days."""
    m = _BUT.search(sentence, start)
    return (m["rest"] or m["list"]) if m else ""
