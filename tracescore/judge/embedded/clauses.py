"""Sentences -> the clauses they join, and the subject that a clause or the next sentence leaves out."""

from __future__ import annotations

import re

from tracescore.judge.embedded import lexicon

_VERBS = lexicon.any_of(lexicon.words("verbs"))
_AND = "and|but|und|aber|et|mais|y|pero|e|ma|en|maar"
_JOINT = re.compile(rf"(?i)\s*[;,]\s+(?:(?:{_AND})\s+)?|\s+(?:{_AND})\s+")
_PRONOUN = (
    "it|he|she|they|these|this|that|you|we|es|er|sie|il|elle|ils|elles|on|él|ella|ellos|ellas|lui|lei|ele|ela|eles|elas|"
    "hij|zij|ze|het"
)
_ADVERB = r"(?:(?:also|then|usually|normally|currently|now|only|auch|aussi|también|anche|também|ook)\s+)?"
_OBJECT = r"(?:the|a|an|its|their|his|her|\d|in|at|on|by|for|from|to|up|with|until|into|only)"
_VERB = rf"(?:(?:{_VERBS})(?!\w)|\w{{3,}}(?:(?<!s)s|ed)\s+{_OBJECT}(?!\w))"
_LED = re.compile(rf"(?i){_ADVERB}{_VERB}")
_HAS_VERB = re.compile(rf"(?i)(?<=\s){_VERB}|['’](?:s|re|ll)\b")
_OWN_SUBJECT = re.compile(rf"(?i)(?:{_PRONOUN})(?:['’]\w+|\s+\w)|(?:\S+\s+){{1,5}}?(?:{_VERBS})(?!\w)")
_FIRST_VERB = re.compile(rf"(?i)(?<=\s)(?:{_VERBS}|can|['’]s)(?!\w)")
_OPENS = re.compile(
    rf"(?i)(?:it|he|she|they|these|es|er|sie|il|elle|ils|elles|él|ella|ellos|ellas|lui|lei|ele|ela|eles|elas|hij|zij|ze)\s+"
    rf"(?=(?:{_VERBS})(?!\w)|\w{{3,}}(?:(?<!s)s|ed)\s)"
)
LONGEST_SUBJECT = 8
"""Words of a subject that is repeated for a clause without one."""
FEWEST = 2
"""Words of a clause: a shorter piece stays with what it follows."""


def subject_of(sentence: str) -> str:
    """What stands before the first verb of a sentence; empty where that is long, a pronoun, or no verb is known."""
    verb = _FIRST_VERB.search(sentence)
    subject = sentence[: verb.start()].strip() if verb else ""
    is_plain = subject and len(subject.split()) <= LONGEST_SUBJECT and not re.search(r"[,;:()]", subject)
    return subject if is_plain and not re.fullmatch(rf"(?i){_PRONOUN}|there|i|wir|ich", subject) else ""


def has_verb(text: str) -> bool:
    """Whether a finite verb that is known, or looks like one, stands behind the first word of `text`."""
    return _HAS_VERB.search(text) is not None


def resolved(sentence: str, subject: str) -> str:
    """A sentence that opens with a pronoun, with the `subject` of an earlier one in its place; else as it is."""
    opening = _OPENS.match(sentence) if subject else None
    return f"{subject} {sentence[opening.end() :]}" if opening else sentence


def clauses(sentence: str) -> tuple[str, ...]:
    """The clauses that a sentence joins, each with its subject; none where it is one clause."""
    found: list[str] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        rest = sentence[joint.end() :]
        is_clause = _LED.match(rest) or _OWN_SUBJECT.match(rest)
        if is_clause and len(rest.split()) >= FEWEST and _HAS_VERB.search(sentence, start, joint.start()):
            found.append(sentence[start : joint.start()])
            start = joint.end()
    if not found:
        return ()
    first, *others = [*found, sentence[start:].rstrip(" .!")]
    subject = subject_of(first)
    return (first, *(f"{subject} {text}" if subject and _LED.match(text) else text for text in others))
