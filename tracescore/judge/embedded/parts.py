"""A question -> the parts an answer has to cover, by the joints of the sentence.

Split where a second question or request begins, and where two things are asked of one verb or one thing of two
verbs ("the name and address of the supplier"). Names and fixed pairs stay whole.
"""

from __future__ import annotations

import re

from tracescore.errors import JudgeError
from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.reference import resolve
from tracescore.judge.embedded.sentences import sentences
from tracescore.judge.embedded.terms import FUNCTION_WORDS

_DETERMINERS = lexicon.words("determiners")
_PREPOSITIONS = lexicon.words("prepositions")
_PRONOUNS = lexicon.words("pronouns")
FIXED_PAIRS = frozenset(lexicon.lines("fixed_pairs"))
"""Nouns joined by `and` that name one thing."""
MAX_WHOLE = 5_000
"""Characters of a question that is read as one, as no sentence of it asks, or as its answer is only yes or no."""
MAX_WORDS = 16
"""The most words of a clause that is searched for joined phrases; in longer ones `and` seldom lists what is asked."""

_WH = "what|which|who|whom|whose|when|where|why|how"
_AUX = (
    "is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|has|have|had|isn't|aren't|don't|"
    "doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't"
)
_REQUEST = rf"(?:please\s+)?(?:let me know|{lexicon.any_of(lexicon.words('requests'))})"
_OTHER_START = lexicon.any_of(frozenset(word.replace("_", " ") for word in lexicon.words("question_starts")))
_SAYS = re.compile(r"\w\w|\d|[^\W\u0000-\u024f]")
"""A word of two letters, a number, or a letter of another script."""
_AND = r"and(?: also)?|or|also|as well as|plus|but|und(?: auch)?|sowie|et(?: aussi)?|y(?: también)?|e"
_GLUE = rf"(?:\s*[,;]\s*|\s+)(?:{_AND})\s+(?:also\s+)?"
_SUBJECT = lexicon.any_of(_DETERMINERS | _PRONOUNS)
_CHINESE = "吗|什么|多少|多久|几|哪|谁|怎|如何|为什么|是否|能否|可否|何时|呢"
_JOINTS = (
    r"\s*[,;]?\s+and also\s+",
    # and how long ...; and in which ...
    rf"{_GLUE}(?=(?:(?:in|at|on|by|for|to|from|with|during|under|until|since) )?(?:{_WH})\b(?!ever|[?.!]*$))",
    # and according to A, who ...
    rf"{_GLUE}(?=(?:in|at|on|of|for|according to|apart from|besides)\s[^,?]{{2,60}},\s(?:{_WH}|{_AUX})\b)",
    # and is delivery free (not: and is orbited by)
    rf"{_GLUE}(?=(?:{_AUX})\s+(?!\w+(?:ed|en|wn|ing)\s+(?:by|in|at|on|as|to|from|with)\b|not\b|as\b)\w+)",
    # and please list ...; und gilt sie ...
    rf"{_GLUE}(?={_REQUEST}\b\s+\w|if (?:so|not|yes)\b|(?:{_OTHER_START})\s+\w)",
    # en hoe lang ...: en is a preposition in other languages
    r"\s*,?\s+en\s+(?=(?:hoe|wat|wanneer|waar|welke|waarom|wie|kan|mag|moet|zijn|is)\s+\w)",
    # , how long ...; , when is the ... (not: , which is ...)
    r"\s*[,;]\s*(?=(?:how|what|why)\b)",
    rf"\s*[,;]\s*(?=(?:(?:when|where|who|which \w+)\s+)?(?:{_AUX})\s+(?:{_SUBJECT})\b)",
    rf"\s*[，、；]\s*(?:并且|而且|以及|还有|另外|同时|和)?(?=.{{0,12}}(?:{_CHINESE}))",
    rf"(?:以及|并且|还有)(?=.{{0,12}}(?:{_CHINESE}))",
    r"、(?=.{0,20}(?:ですか|ますか|何|いつ|どこ|誰|なぜ|どう|いくら))",
    r"\s*[،,]?\s+و\s?(?=(?:هل|ما|ماذا|متى|أين|كيف|كم|لماذا|من|أي)\b)",
    r"\s*,?\s+(?:और|तथा)\s+(?=\S*\s?\S*\s?\S*(?:क्या|कब|कहाँ|कैसे|कितन|कौन|क्यों))",
)
_JOINT = re.compile("|".join(_JOINTS), re.IGNORECASE)
_OBJECT_OF = re.compile(
    r"(?i)\b(?:know|tell me|explain|describe|see|understand|on|of|about|to|depending on|decide|say|remember)\s*$"
)
"""After this, a question word opens no question of its own: tell me when and how."""
_QUESTION = re.compile(
    r"(?i)^(?:(?:and|but|so|also|ok|hi|hello|please)[, ]+)*"
    rf"(?:(?:\w+ ){{0,2}}(?:{_WH})\b|(?:{_AUX})\b|{_REQUEST}\b|(?:{_OTHER_START})\b)"
)
_OPENING = re.compile(
    r"(?i)^(?:if|when (?:i|you|we)|since|because|given|after|before|while|although|as|in|at|on|of|for|with|without|"
    r"according|considering|during|under|from|by)\b"
)
"""What opens a circumstance of the question to come: In 2024, how many ..."""
_BETWEEN = re.compile(
    r"(?i)\b(?:between|both|from .+ to|compar\w+|differen\w+|relation\w*|versus|vs|combin\w+|same|together|ratio)\b"
)
_SUBORDINATE = re.compile(
    r"(?i)\S\s+(?:when|if|that|while|because|who|which|with|where|after|before)\s|[\"“”‘`]|\s[-–—]\s"
)
"""Where `and` joins what a side clause mentions, not what is asked for."""
_LIST = re.compile(r"(?i)^(?P<left>.+?),?\s+and\s+(?P<right>[^,]+?)[?.!]*$")
_LIKE_ENDINGS = ("ing", "al", "ic", "ed", "ary", "ive", "ous", "port", "er", "est", "ly", "load", "able", "imum")


def required_parts(question: str) -> tuple[str, ...]:
    """The parts of `question`, each readable by itself; the question itself where it is one.

    None where it is blank or no more than single letters.

    Raises JudgeError when no sentence asks and the whole is too long.
    """
    if not _SAYS.search(question):
        return ()
    asked = [sentence for sentence in sentences(question) if _asks(sentence)] or [whole(question)]
    parts = [part for sentence in asked for clause in _clauses(sentence) for part in _listed(clause)]
    first, *others = parts
    return tuple(dict.fromkeys(filter(None, map(_tidy, [first, *(resolve(part, first) for part in others)]))))


def whole(question: str) -> str:
    """The question where it has to be read as one; JudgeError when it is too long for that."""
    stripped = question.strip()
    if len(stripped) > MAX_WHOLE:
        expected = f"at most {MAX_WHOLE} characters expected of a question that is read as one"
        raise JudgeError("judge_input_too_long", f"{expected}; got {len(stripped)}")
    return stripped


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”’)").endswith(("?", "？", "؟")) or bool(_QUESTION.match(sentence))


def _clauses(sentence: str) -> list[str]:
    """Split where a further question begins, unless it is the object of a verb (tell me when and how)."""
    found: list[str] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        left = sentence[start : joint.start()]
        if _can_stand(left) and not _OBJECT_OF.search(left):
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


def _listed(clause: str) -> list[str]:
    """A, B and C asked in one clause -> one question each; the clause itself where nothing is listed."""
    m = _LIST.match(clause.strip()) if len(clause.split()) <= MAX_WORDS else None
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
    alike = any(a.endswith(ending) and b.endswith(ending) for ending in _LIKE_ENDINGS)
    return alike or prefix[-1].lower() in _PRONOUNS


def _without_determiner(phrase: list[str], prefix: list[str]) -> list[str]:
    if prefix and prefix[-1].lower() in _DETERMINERS and phrase[0].lower() in _DETERMINERS:
        return phrase[1:]
    return phrase


def _tidy(part: str) -> str:
    return re.sub(r"(?i)^(?:and|also|und|et|y)\s+", "", part.strip().strip(",;，、； "))
