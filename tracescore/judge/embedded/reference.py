"""The pronouns of a later part of a question -> what the first part is about, where that is clear."""

from __future__ import annotations

import re

from tracescore.judge.embedded import lexicon

_IT = re.compile(
    r"(?i)(?<!\bdo )(?<!\bdid )\b(?:(?P<one>it|this one|that one|(?<=get )one|(?<=have )one|(?<=buy )one)"
    r"|(?P<many>they|them|these|those)|(?P<its>its)|(?P<their>their))\b"
)
_NOBODY = re.compile(
    r"(?i)(?:how long|is|how much)\b.*\bit\b.{0,14}\b(?:takes?|cost|possible|necessary|safe|okay?|worth|legal)\b"
)
"""`It` that stands for nothing: how long does it take?"""
_AUX = "is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had"
_ENDS_NOUN = (
    rf"{_AUX}|what|which|who|whom|whose|when|where|why|how|{lexicon.any_of(lexicon.words('prepositions'))}|"
    r"i|you|we|they|it|that|and|or|costs?|use|start|end|work|last|take|cover|include|open|close|support"
)
_NOUN = re.compile(
    r"(?i)(?:(?P<aux>do|does|did|can|will|should|must|^is|^are|^was|^were)\s+)?"
    r"\b(?P<det>the|my|your|our|this|a|an|which|what|how many)\s+"
    rf"(?P<noun>(?!(?:{_AUX})\b)[\w-]+(?:\s+(?!(?:{_ENDS_NOUN})\b)[\w-]+){{0,3}})(?P<rest>.*)$"
)
_OF = re.compile(r"(?i)of (?P<det>(?:the|a|an|my|your|our|this) )?(?P<noun>[\w-]+(?: [\w-]+)?)$")
_KEPT_DETERMINERS = ("the", "my", "your", "our", "this", "")


def resolve(part: str, first: str) -> str:
    """`part` with its first pronoun replaced by the topic of `first`; as it is where there is none that fits."""
    m = _IT.search(part)
    if not m or (m["one"] and _NOBODY.match(part.strip())):
        return part
    thing = _topic(first, plural=bool(m["many"] or m["their"]))
    if thing and (m["its"] or m["their"]):
        thing += "'" if thing.endswith("s") else "'s"
    return part[: m.start()] + (thing or m[0]) + part[m.end() :]


def _topic(text: str, *, plural: bool) -> str:
    """The first noun phrase of the wanted number that a determiner or question word introduces, else a name.

    Of `the boiling point of ethanol` it is the ethanol.
    """
    start = 0
    while m := _NOUN.search(text, start):
        start = m.start("noun")
        determiner, noun = _phrase(m)
        if (noun[-1].endswith("s") and not noun[-1].endswith(("ss", "us", "is"))) == plural:
            return f"{determiner} {' '.join(noun)}".strip()
    names = re.findall(r"(?<!^)\b[A-Z][\w-]+(?: [A-Z][\w-]+)*", text)
    return str(names[-1]) if names and not plural else ""


def _phrase(m: re.Match[str]) -> tuple[str, list[str]]:
    """Determiner and noun of a match, without the verb that may follow the noun."""
    noun, determiner, rest = m["noun"].split(), m["det"].lower(), m["rest"].strip(" ?.")
    if of := _OF.match(rest):
        return ("the" if of["det"] else ""), of["noun"].split()
    if m["aux"] and not rest and len(noun) > 1:
        noun = noun[:-1]  # the verb of `does the app sync`
    if determiner in ("which", "what", "how many") and not re.match(rf"(?i)(?:{_AUX})\b", rest):
        noun = noun[:1]
    return (determiner if determiner in _KEPT_DETERMINERS else "the"), noun
