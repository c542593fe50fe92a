"""A question -> the parts an answer has to cover, by the joints of the sentence.

Split where a second question or request begins, and where two things are asked of one verb or one thing of two
verbs ("the name and address of the supplier"). Names and fixed pairs stay whole.
"""

from __future__ import annotations

import re

from tracescore.judge.embedded.sentences import sentences
from tracescore.judge.embedded.terms import FUNCTION_WORDS

_WH = "what|which|who|whom|whose|when|where|why|how"
_AUX = (
    "is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had|isn't|aren't|don't|"
    "doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't"
)
_REQUEST = (
    "tell|explain|list|describe|give|show|name|compare|summari[sz]e|outline|define|provide|state|identify|mention|"
    "calculate|specify|include|say|let me know|help|find|suggest|recommend"
)
_OTHER_START = (
    # German, French, Spanish: question words and the verbs that open a question
    "wer|was|wann|wo|wohin|woher|warum|wieso|wie|welche[rsnm]?|wieviel|ist|sind|kann|können|gibt|gilt|hat|haben|muss|müssen|"
    "darf|dürfen|wird|werden|kostet|"
    "qui|que|quoi|quand|où|pourquoi|comment|combien|quels?|quelles?|est-ce|est|peut-on|puis-je|y a-t-il|"
    "qué|quién|cuándo|dónde|cómo|cuánto|cuántos|cuánta|cuántas|cuál|cuáles|por qué|puedo|hay|es|incluye|cubre"
)
_AND = r"and(?: also)?|or|also|as well as|plus|but|und(?: auch)?|sowie|et(?: aussi)?|y(?: también)?|e"
_SUBJECT = (
    r"(?:the|a|an|my|your|our|their|his|her|its|this|that|these|those|there|it|they|you|we|i|he|she|any|each|all|every|"
    r"someone|anyone|one|people|customers|users|\w+)"
)
_PRONOUN_OR_DETERMINER = "the|a|an|my|your|our|their|his|her|its|this|that|these|those|there|it|they|you|we|i|he|she|any"
_JOINT = re.compile(
    # and how long ..., and is delivery ..., and in which ..., and please list ...
    r"(?i)\s*[,;]?\s+and also\s+|"
    rf"(?:\s*[,;]\s*|\s+)(?:{_AND})\s+(?:also\s+)?"
    rf"(?=(?:(?:in|at|on|by|for|to|from|with|during|under|until|since) )?(?:{_WH})\b(?!ever|[?.!]*$)"
    rf"|(?:in|at|on|of|for|according to|apart from|besides)\s[^,?]{{2,60}},\s(?:{_WH}|{_AUX})\b"
    rf"|(?:{_AUX})\s+(?!\w+(?:ed|en|wn|ing)\s+(?:by|in|at|on|as|to|from|with)\b|not\b|as\b)\w+|(?:please\s+)?(?:{_REQUEST})\b\s+\w|if (?:so|not|yes)\b"
    rf"|(?:{_OTHER_START})\s+\w)"
    # , how long ... (not: , which is ...)
    rf"|\s*[,;]\s*(?=(?:how|what|why)\b|(?:when|where|who|which \w+)\s+(?:{_AUX})\s+(?:{_PRONOUN_OR_DETERMINER})\b"
    rf"|(?:{_AUX})\s+(?:{_PRONOUN_OR_DETERMINER})\b)"
    # Chinese, Japanese, Arabic, Hindi
    r"|\s*[，、；]\s*(?:并且|而且|以及|还有|另外|同时|和)?(?=.{0,12}(?:吗|什么|多少|多久|几|哪|谁|怎|如何|为什么|是否|能否|可否|何时|呢))"
    r"|(?:以及|并且|还有)(?=.{0,12}(?:吗|什么|多少|多久|几|哪|谁|怎|如何|为什么|是否|能否|可否|何时))"
    r"|、(?=.{0,20}(?:ですか|ますか|何|いつ|どこ|誰|なぜ|どう|いくら))"
    r"|\s*[،,]?\s+و\s?(?=(?:هل|ما|ماذا|متى|أين|كيف|كم|لماذا|من|أي)\b)"
    r"|\s*,?\s+(?:और|तथा)\s+(?=\S*\s?\S*\s?\S*(?:क्या|कब|कहाँ|कैसे|कितन|कौन|क्यों))"
)
_RELATIVE = re.compile(r"(?i)(?:\b(?:know|tell me|explain|describe|see|understand|on|of|about|to|depending on|decide|say|remember)\s*)$")
_QUESTION = re.compile(rf"(?i)^(?:(?:and|but|so|also|ok|hi|hello|please)[, ]+)*(?:(?:\w+ ){{0,2}}(?:{_WH})\b|(?:{_AUX})\b|(?:please )?(?:{_REQUEST})\b|(?:{_OTHER_START})\b)")

_OPENING = re.compile(
    r"(?i)^(?:if|when (?:i|you|we)|since|because|given|after|before|while|although|as|in|at|on|of|for|with|without|"
    r"according|considering|during|under|from|by)\b"
)
"""What opens a circumstance of the question to come: In 2024, how many ..."""

FIXED_PAIRS = frozenset(
    """research development|terms conditions|pros cons|bed breakfast|supply demand|rules regulations|health safety|
    profit loss|salt pepper|black white|search rescue|trial error|mergers acquisitions|drag drop|copy paste|back forth|
    cause effect|wear tear|lost found|arts crafts|track trace|plug play|questions answers|oil gas|stocks bonds|
    food drink|law order|peace quiet|trade industry|science technology|parts labor|parts labour|room board|
    shipping handling|rock roll|hide seek|war peace|pride prejudice|crime punishment|nuts bolts|do don'ts|dos don'ts|
    checks balances|goods services|fish chips|first last|ins outs|privacy cookies|media entertainment|more more|
    mac cheese|gin tonic|man woman|men women|husband wife|mother father|brothers sisters|rise fall|command control|
    knowledge skills|hope fear|time date|date time|sales marketing|property casualty|heating cooling|bow arrow|
    cut dry|safe sound|sick tired|try see|go get|come see""".replace("\n", " ").replace("| ", "|").split("|")
)
"""Nouns joined by `and` that name one thing."""
_BETWEEN = re.compile(r"(?i)\b(?:between|both|from .+ to|compar\w+|differen\w+|relationship|versus|vs|combin\w+|same|together|mix|ratio)\b")

_SUBORDINATE = re.compile(r"(?i)\S\s+(?:when|if|that|while|because|who|which|with|where|after|before)\s|[\"“”‘`]|\s[-–—]\s")
"""Where `and` joins what a side clause mentions, not what is asked for."""
MAX_WORDS = 16
"""Of a clause that is searched for joined phrases; in longer ones `and` seldom lists what is asked for."""

_AND_TAIL = re.compile(r"(?i)^(?P<left>.+?)(?P<comma>,?)\s+and\s+(?P<right>[^,]+?)(?P<end>[?.!]*)$")
_DETERMINERS = frozenset("the a an my your our their his her its this that these those any some each every all no".split())
_PREPOSITIONS = frozenset(
    "of in on at for to from with by under over during after before about into without per within through between "
    "if when while as than because until via using against".split()
)
_PRONOUNS = frozenset("i you we they he she it one there someone anyone".split())
_IT = re.compile(r"(?i)(?<!\bdo )(?<!\bdid )\b(?:(?P<one>it|this one|that one|(?<=get )one|(?<=have )one|(?<=buy )one)|(?P<many>they|them|these|those)|(?P<its>its)|(?P<their>their))\b")
_EXPLETIVE = re.compile(r"(?i)\b(?:take|takes|cost|rain|matter|possible|necessary|mean|safe|ok|okay|better|worth|legal|allowed|true|work)\b")


def required_parts(question: str) -> tuple[str, ...]:
    """The parts of `question`, each readable by itself; the question itself where it has one. Never empty for text."""
    asked = [s for s in sentences(question) if _asks(s)] or [question.strip()]
    parts: list[str] = []
    for sentence in asked:
        for clause in _clauses(sentence):
            parts.extend(_coordinated(clause))
    first = parts[0] if parts else ""
    resolved = [first, *(_resolve(part, first) for part in parts[1:])] if parts else []
    return tuple(dict.fromkeys(_tidy(part) for part in resolved if part.strip()))


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)").endswith(("?", "？", "؟")) or bool(_QUESTION.match(sentence))


def _clauses(sentence: str) -> list[str]:
    """Split where a further question begins, unless it is the object of a verb (tell me when and how)."""
    found: list[str] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        left = sentence[start : joint.start()]
        if _can_stand(left) and not _RELATIVE.search(left):
            found.append(left)
            start = joint.end()
    found.append(sentence[start:])
    return found


def _can_stand(clause: str) -> bool:
    """Whether a clause asks something by itself: more than its question word, and no mere condition."""
    stripped = clause.strip()
    if _OPENING.match(stripped) and not re.search(rf"(?i)\b(?:{_WH}|{_AUX})\b", stripped.split(maxsplit=1)[-1]):
        return False
    if re.search(r"[^\x00-\u024f]", stripped):
        return len(stripped) >= 3
    content = [w for w in re.findall(r"[\w'-]+", stripped.lower()) if w not in FUNCTION_WORDS]
    return bool(content) and len(stripped.split()) >= 2


def _coordinated(clause: str) -> list[str]:
    """A, B and C asked in one clause -> one question each; the clause itself where nothing is listed."""
    m = _AND_TAIL.match(clause.strip()) if len(clause.split()) <= MAX_WORDS else None
    if not m or _BETWEEN.search(clause) or _SUBORDINATE.search(m["left"]):
        return [clause]
    y, suffix = _first_phrase(m["right"].split())
    *listed, last = (item.split() for item in re.split(r",\s*", m["left"]))
    first = listed[0] if listed else last
    x = _last_phrase(first, y)
    prefix = first[: len(first) - len(x)]
    if not x or not prefix or _is_one_thing(last, y):
        return [clause]
    if not listed and len(x) < len(y) and _share_head(x, y, prefix):
        x = [*x, *y[len(x) :]]
    phrases = [x, *listed[1:], last, y] if listed else [x, y]
    return [" ".join([*prefix, *_without_determiner(p, prefix), *suffix]) for p in phrases]


def _first_phrase(right: list[str]) -> tuple[list[str], list[str]]:
    """The second of two joined phrases, and what follows and belongs to both: (address) (of the supplier)."""
    for i, word in enumerate(right):
        if i and word.lower() in _PREPOSITIONS:
            return right[:i], right[i:]
    return right, []


def _last_phrase(left: list[str], y: list[str]) -> list[str]:
    """The first of two joined phrases: built like the second, which is known."""
    verbal = len(y) > 1 and y[1].lower() in _DETERMINERS
    for i in range(len(left) - 1, 0, -1):
        word = left[i].lower()
        if verbal and left[i - 1].lower() in _PRONOUNS:
            return left[i:]
        if verbal:
            continue
        if y[0].lower() in _DETERMINERS and word in _DETERMINERS:
            return left[i:]
        before = left[i - 1].lower()
        if y[0].lower() not in _DETERMINERS and (
            before in _DETERMINERS or before in _PRONOUNS or before in _PREPOSITIONS or len(left) - i >= len(y)
        ):
            return left[i:]
    return []


def _is_one_thing(x: list[str], y: list[str]) -> bool:
    a, b = x[-1].lower().strip("'\""), y[0].lower().strip("'\"?")
    if f"{a} {b}" in FIXED_PAIRS:
        return True
    return (x[-1][:1].isupper() and y[0][:1].isupper()) or bool(re.fullmatch(rf"(?i){_AUX}", y[0]))


def _share_head(x: list[str], y: list[str], prefix: list[str]) -> bool:
    """Boiling and melting point; export and import contacts. Not: name and phone number."""
    a, b = x[-1].lower(), y[0].lower()
    alike = any(a.endswith(s) and b.endswith(s) for s in ("ing", "al", "ic", "ed", "ary", "ive", "ous", "port", "er", "est", "ly", "load", "able", "imum"))
    return alike or prefix[-1].lower() in _PRONOUNS


def _without_determiner(phrase: list[str], prefix: list[str]) -> list[str]:
    if prefix and prefix[-1].lower() in _DETERMINERS and phrase[0].lower() in _DETERMINERS:
        return phrase[1:]
    return phrase


def _resolve(part: str, first: str) -> str:
    """`part` with its pronoun replaced by what the first part is about, where that is clear."""
    m = _IT.search(part)
    if not m or (m["one"] and _EXPLETIVE.search(part[m.end() : m.end() + 14]) and re.match(r"(?i)how long|is it|how much", part.strip())):
        return part
    plural = bool(m["many"] or m["their"])
    thing = _topic(first, plural=plural)
    if not thing:
        return part
    if m["its"] or m["their"]:
        thing += "'" if thing.endswith("s") else "'s"
    return part[: m.start()] + thing + part[m.end() :]


_NOUN = re.compile(
    rf"(?i)(?:(?P<aux>do|does|did|can|will|should|must|^is|^are|^was|^were)\s+)?\b(?P<det>the|my|your|our|this|a|an|which|what|how many)\s+"
    rf"(?P<noun>(?!(?:{_AUX})\b)[\w-]+(?:\s+(?!(?:{_AUX}|{_WH}|{'|'.join(_PREPOSITIONS)}|i|you|we|they|it|that|and|or|cost|"
    r"costs|use|start|end|work|last|take|cover|include|open|close|support)\b)[\w-]+){0,3})(?P<rest>.*)$"
)


def _topic(text: str, *, plural: bool) -> str:
    """The first noun phrase of the wanted number that a determiner or question word introduces, else a name.

    Of `the boiling point of ethanol` it is the ethanol.
    """
    start = 0
    while m := _NOUN.search(text, start):
        start = m.start("noun")
        noun, det = m["noun"].split(), m["det"].lower()
        rest = m["rest"].strip(" ?.")
        if m["aux"] and not rest and len(noun) > 1:
            noun = noun[:-1]  # the verb of `does the app sync`
        if det in ("which", "what", "how many") and not re.match(rf"(?i)(?:{_AUX})\b", rest):
            noun = noun[:1]
        if of := re.match(r"(?i)of (?:(?:the|a|an|my|your|our|this) )?([\w-]+(?: [\w-]+)?)$", rest):
            noun, det = of[1].split(), "the" if " the " in f" {of[0]} " else ""
        if (noun[-1].endswith("s") and not noun[-1].endswith(("ss", "us", "is"))) == plural:
            det = det if det in ("the", "my", "your", "our", "this", "") else "the"
            return f"{det} {' '.join(noun)}".strip()
    capital = re.findall(r"(?<!^)\b[A-Z][\w-]+(?: [A-Z][\w-]+)*", text)
    return str(capital[-1]) if capital and not plural else ""


def _tidy(part: str) -> str:
    part = re.sub(r"(?i)^(?:and|also|und|et|y)\s+", "", part.strip().strip(",;，、； "))
    return part
