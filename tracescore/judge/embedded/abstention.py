"""Answers that evade: "I don't know", refusals, "the documents do not say".

An answer that hedges and then answers is an answer; so is a short one with nothing but a fact.
"""

from __future__ import annotations

import re

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.sentences import claims, sentences

_ABSTENTION = lexicon.pattern("abstentions")
_APOLOGY = lexicon.pattern("apologies")
_OFFER = lexicon.pattern("offers")
_ECHO = lexicon.pattern("echoes")
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
        elif not _says_nothing(sentence):
            return ""
    return words


def _says_nothing(sentence: str) -> bool:
    asks = sentence.endswith(("?", "？", "؟"))
    return bool(asks or _APOLOGY.match(sentence) or _OFFER.search(sentence) or is_echo(sentence))


def abstains(sentence: str) -> bool:
    """Whether this one sentence says that something is not known or not told."""
    return bool(_ABSTENTION.search(sentence))


def is_echo(sentence: str) -> bool:
    """Whether `sentence` only repeats what was asked: you would like to know how long it takes."""
    return bool(_ECHO.search(sentence))


def telling(text: str) -> tuple[str, ...]:
    """The claims of `text` but those that evade or only repeat what was asked; all of them where no other is left."""
    found = claims(text)
    return tuple(claim for claim in found if not abstains(claim) and not is_echo(claim)) or found


def _after_but(sentence: str, start: int) -> str:
    """What follows a `but` behind position `start`: I'm not sure, but I think it is 30 days."""
    m = _BUT.search(sentence, start)
    return (m["rest"] or m["list"]) if m else ""
