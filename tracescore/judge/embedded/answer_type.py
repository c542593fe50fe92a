"""What kind of answer a question wants: yes or no, a sum, a time, a number, a person, a procedure, or anything new."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.clauses import has_verb
from tracescore.judge.embedded.quantities import MONEY, dimension_of, quantities
from tracescore.judge.embedded.questions import is_instruction
from tracescore.judge.embedded.terms import Word, words


@dataclass(frozen=True, slots=True)
class Asked:
    """What one question wants.

    `kinds` are dimensions of quantities (`number` for any, `bare` for none), empty where none is asked for; `form`
    names what else is asked for (`procedure`, `person`, `place`, `reason`, `explanation`); `announcing` holds
    the places in the text of the words that only announce the kind of answer, `said` all of its words in lower case.
    """

    yes_no: bool = False
    kinds: frozenset[str] = frozenset()
    form: str = ""
    announcing: frozenset[int] = frozenset()
    said: frozenset[str] = frozenset()

    @property
    def explains(self) -> bool:
        """Whether an explanation is asked for, which can have any words: how does it work, why."""
        return self.form in ("explanation", "reason")

    @property
    def wants(self) -> frozenset[str]:
        """What an answer can be recognised by; empty where it cannot."""
        return frozenset({self.form}) if self.form else self.kinds


def _labelled(name: str) -> list[tuple[str, re.Pattern[str]]]:
    pairs = (line.split(": ", 1) for line in lexicon.lines(name))
    return [(label, re.compile(pattern, re.IGNORECASE)) for label, pattern in pairs]


_KINDS = [(MONEY if label == "money" else frozenset(label.split()), pattern) for label, pattern in _labelled("kinds")]
_FORMS = _labelled("forms")
_GIVEN: dict[str, list[re.Pattern[str]]] = defaultdict(list)
for _form, _pattern in _labelled("forms_given"):
    _GIVEN[_form].append(_pattern)
_ANNOUNCING = lexicon.words("announcing")
_TIMES = lexicon.words("times")
_SUMS = lexicon.words("sums")
_ANY_NUMBER = frozenset({"number"})

_AUX = "is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had"
_YES_NO = re.compile(
    rf"(?i)^\W*(?:(?:and|so|but|also|or|und|et|y|e|en)\s+)?(?:(?:{_AUX})(?:n't)?|can't|won't|ist|sind|kann|können|gibt|"
    r"gilt|gelten|hat|haben|darf|dürfen|muss|müssen|wird|werden|brauche|braucht|est-(?:ce|il|elle)|sont-(?:ils|elles)|"
    r"peut-on|puis-je|dois-je|faut-il|y a-t-il|a-t-il|es|son|está|están|puedo|puede|hay|se puede|incluye|cubre|è|sono|"
    r"c'è|ci sono|posso|si può|può|é|são|há|pode|tem|zijn|kan|kunnen|mag|moet|wordt|heeft)(?!\w)"
    r"|^(?!.*\b(?:quel\w*|quand|où|pourquoi|comment|combien|qui)\b).*\b(?:est|sont|peut|peuvent)-(?:il|elle)s?\b"
)
_GRANTS = re.compile(
    r"(?i)\b(?:accept(?:ed|s)?|allow(?:ed|s)?|permit(?:ted|s)?|welcome|possible|available|eligible|can(?:not|'t)?|may|"
    r"must|free to|forbidden|prohibited|not|erlaubt|möglich|kann|können|darf|dürfen|nicht|possible|permis|autorisé|"
    r"peut|peuvent|posible|permite|puede|pueden|possível|permitid[oa]s?|pode|podem|possibile|consentit[oaie]|può|"
    r"possono|mogelijk|toegestaan|kan|kunnen|mag|niet)\b"
)
_HOW_MANY = re.compile(
    r"(?i)\b(?:how (?:many|much)|wie ?viele?|combien d(?:e |['’])|cuánt[oa]s?|quant[oaie]s?|hoeveel)\s*"
    r"(?P<unit>[^\W\d_]+(?:\s[^\W\d_]+)?)"
)
_WHICH = re.compile(
    rf"(?i)\b(?:which|what)\s+(?P<nouns>(?:(?!(?:{_AUX}|i|you|we)\b)[\w-]+\s+){{1,3}})(?:{_AUX}|i|you|we)\b"
)
_CAPITAL = re.compile(r"(?<=\w[\s:,] )[A-Z]\w|(?<=\w\s)[A-Z]\w|\d")
_NOUN_PHRASE = re.compile(r"(?i)^\W*(?:the|our|your|any|der|die|das|le|la|les|el|los|il|o|de|het)\s[^\W\d]")
_YEAR = re.compile(r"\b(?:1\d|20)\d\ds?\b")
_REPLY = re.compile(r"(?i)^\W*(?:yes|no|yeah|yep|nope|ja|nein|doch|oui|non|sí|sim)(?!\w)")


@lru_cache(maxsize=1024)
def asked(question: str) -> Asked:
    """The kind of answer that `question` wants."""
    if _YES_NO.search(question):
        return Asked(yes_no=True)
    announcing = {word.start for word in words(question) if word.folded in _ANNOUNCING}
    for m in _WHICH.finditer(question):
        announcing |= {word.start for word in words(question) if m.start("nouns") <= word.start < m.end("nouns")}
    form = next((form for form, pattern in _FORMS if pattern.search(question)), "")
    found = () if form else (kinds for kinds, pattern in _KINDS if pattern.search(question))
    measured = frozenset[str]() if form else _asked_unit(question)
    kinds = measured or next(iter(found), frozenset())
    said = frozenset(word.folded for word in words(question))
    return Asked(kinds=kinds, form=form, announcing=frozenset(announcing), said=said)


def _asked_unit(question: str) -> frozenset[str]:
    """The dimension of the unit that is asked for, with what stands for it; empty where none is named."""
    m = _HOW_MANY.search(question)
    dimension = m and (dimension_of(m["unit"]) or dimension_of(m["unit"].split()[0]))
    if not dimension:
        return frozenset()
    return frozenset({"time", "months"}) if dimension in ("time", "months") else frozenset({dimension, "bare"})


def gives(question: Asked, sentence: str) -> bool:
    """Whether `sentence` holds an answer of the wanted kind; true where no kind can be told."""
    if question.form:
        return question.explains or _has_form(question.form, sentence)
    if not question.kinds:
        return True
    found = {q.dimension or "bare" for q in quantities(sentence)}
    said = {word.folded for word in words(sentence)} - question.said
    if found & question.kinds or (question.kinds == _ANY_NUMBER and found):
        return True
    if "day" in question.kinds and _YEAR.search(sentence):
        return True
    if said & _TIMES and (question.kinds == _ANY_NUMBER or question.kinds & {"clock", "often", "time"}):
        return True
    timed = question.kinds & {"clock", "often", "time"} and "bare" not in question.kinds
    return not timed and (bool(said & _SUMS) or (question.kinds == MONEY and "bare" in found))


def _has_form(form: str, sentence: str) -> bool:
    if any(pattern.search(sentence) for pattern in _GIVEN[form]):
        return True
    if form == "procedure":
        return any(map(is_instruction, re.split(r"[,;:]\s*|\band\b\s*", sentence)))
    named = _CAPITAL.search(sentence) or (_NOUN_PHRASE.match(sentence) and not has_verb(sentence))
    return form in ("person", "place") and bool(named)


def grants(sentence: str) -> bool:
    """Whether `sentence` allows or forbids, which answers whether one may: returns are accepted."""
    return bool(_GRANTS.search(sentence))


def answers_yes_or_no(sentence: str) -> bool:
    """Whether `sentence` opens with a yes or no."""
    return bool(_REPLY.match(sentence))


def is_value(word: Word, text: str) -> bool:
    """Whether a word of `text` is part of a number with its unit, or tells a time or a sum without one."""
    inside = any(q.start <= word.start < q.end for q in quantities(text))
    return inside or word.folded in _TIMES or word.folded in _SUMS


def holds_value(text: str) -> bool:
    """Whether `text` has a number, a time or a sum."""
    return any(is_value(word, text) for word in words(text))
