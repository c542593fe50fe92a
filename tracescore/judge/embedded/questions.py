"""An answer -> the questions it answers, by the form of its sentences; and whether it evades.

There is no model that writes questions here. A statement tells by its form what it answers: "To X, do Y" answers
how to X, "X costs 5 dollars" how much X costs. Where no form is recognised it answers whether it is true: beside a
question about something else, that comes out lower than any shorter question about its subject would.
"""

from __future__ import annotations

import re

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.clauses import has_verb
from tracescore.judge.embedded.quantities import MONEY, TIME, quantities
from tracescore.judge.embedded.sentences import claims, without_reply
from tracescore.judge.embedded.terms import FUNCTION_WORDS

IMPERATIVES = lexicon.words("imperatives")
"""Verbs that open an instruction."""

_TO_DO = re.compile(r"(?i)^(?:in order )?to (?P<aim>[a-z].+?), (?:please |you |simply |just |first )*\w+")
_IF = re.compile(
    r"(?i)^(?:if|when) (?P<case>.+?), (?:please |simply |just |you (?:should|can|must) |we )*(?P<act>\w+)\b"
)
_CAN = re.compile(
    r"(?i)^(?P<who>(?:\S+ ){0,6}\S+) (?P<can>can|may|could|must|should|will|need to|have to) (?P<act>.+?)"
    r"(?P<means>,? (?:(?:either )?by \w+ing|via|using|through)\b.*)?$"
)
_BECAUSE = re.compile(r"(?i)^(?P<fact>.+?),? (?:because|due to|as a result of)\b")
_COSTS = re.compile(r"(?i)^(?P<what>.+?) costs?\b(?P<rest>.*)$")
_LASTS = re.compile(r"(?i)^(?P<what>.+?) (?P<verb>takes?|lasts?)\b")
_OPENS = re.compile(
    r"(?i)^(?!on|in|at|from|during|every)(?P<what>.+?) "
    r"(?P<verb>opens?|closes?|starts?|begins?|ends?|arrives?|expires?|leaves?)\b"
)
_WHERE = re.compile(r"(?i)^(?P<what>.+?) (?P<be>is|are) (?:located|situated|found)\b")
_COURTEOUS = re.compile(r"(?i)^(?:(?:please|simply|just|first|then|next|now|also|you need to)[, ]+)*")
_SUBJECT_BE = re.compile(r"(?i)^(?P<what>.+?) (?P<be>is|are|was|were|has|have|can|will|did) (?P<rest>.+)$")

_PARTICLE = "down|up|off|out|away|together|twice|it|them|him|her"
_ACT = re.compile(
    rf"(?i)(?!(?:{lexicon.any_of(FUNCTION_WORDS)})\b)[a-z]*(?:ss|[^s\W])(?<!ed)(?<!ing)(?<!ly) "
    rf"(?:(?:{_PARTICLE}) |(?:(?:down|up|off|out|on|in) )?(?:the|a|an|your|both|all|each|any|one|two|\d+) )"
)
"""A word in its bare form before a thing, in a sentence without another verb: hold down both arrows."""
_SWAP = {"you": "I", "your": "my", "yours": "mine", "yourself": "myself", "our": "your", "we": "you", "us": "you"}
_PERSON = re.compile(rf"(?i)\b(?:{'|'.join(_SWAP)})\b")


def pseudo_questions(answer: str, n: int) -> tuple[str, ...]:
    """Questions that the first `n` statements of `answer` answer, fewer for a short one; none for a blank one."""
    return tuple(dict.fromkeys(_question(without_reply(claim).rstrip(".!。！।")) for claim in claims(answer)))[:n]


def _question(statement: str) -> str:
    """What `statement` answers, in the words of the one who asks."""
    statement = statement[:MAX_LENGTH]
    return _turn(_form(statement) or f"is it true that {_low(statement)}") + "?"


MAX_LENGTH = 1000
"""The most characters of a statement that is turned into a question; the model reads less."""


def _form(statement: str) -> str | None:
    """The question of a statement whose form shows it, still in the words of the one who answers."""
    if m := _TO_DO.match(statement):
        return f"How do I {m['aim']}"
    if (m := _IF.match(statement)) and m["act"].lower() in IMPERATIVES:
        return f"What should I do if {m['case']}"
    if is_instruction(statement):
        return f"How do I {_low(_COURTEOUS.sub('', statement))}"
    if m := _BECAUSE.match(statement):
        return f"Why {_invert(m['fact'])}"
    kinds = {q.dimension for q in quantities(statement) if q.firm}
    if kinds & MONEY and (m := _COSTS.match(statement)):
        return f"How much does {_low(m['what'])} cost"
    if kinds & TIME and (m := _LASTS.match(statement)):
        return f"How long does {_low(m['what'])} {m['verb'].removesuffix('s')}"
    if kinds & {"clock", "day", "month"} and (m := _OPENS.match(statement)):
        return f"When does {_low(m['what'])} {m['verb'].removesuffix('s')}"
    if m := _WHERE.match(statement):
        return f"Where {m['be']} {_low(m['what'])}"
    if m := _CAN.match(statement):
        return _can(m)
    return None


def _can(m: re.Match[str]) -> str:
    """You can X by Y answers how you can X; without Y, whether."""
    can = "do" if m["can"].lower().endswith(" to") else m["can"].lower()
    return f"{'how ' if m['means'] else ''}{can} {_low(m['who'])} {m['act']}"


def is_instruction(statement: str) -> bool:
    """Whether `statement` tells what to do: by its first verb, or by what follows a first word that may be one."""
    told = _COURTEOUS.sub("", statement)
    first = re.match(r"([A-Za-z]+)\b(?!'| (?:is|are|was|were|has|have|will|can|may)\b)", told)
    return first is not None and (first[1].lower() in IMPERATIVES or bool(_ACT.match(told) and not has_verb(told)))


def _invert(fact: str) -> str:
    """The visa was refused -> was the visa refused."""
    m = _SUBJECT_BE.match(fact)
    return f"{m['be'].lower()} {_low(m['what'])} {m['rest']}" if m else _low(fact)


def _low(text: str) -> str:
    return text if not text or re.match(r"[A-Z]{2}|I\b|\W", text) else text[0].lower() + text[1:]


def _turn(question: str) -> str:
    """From the view of the one who asks: your password -> my password."""
    turned = _PERSON.sub(lambda m: _SWAP[m[0].lower()], question)
    return turned[0].upper() + turned[1:]
