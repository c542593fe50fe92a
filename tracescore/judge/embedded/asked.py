"""What kind of answer a question wants: yes or no, a sum, a time, a number, a procedure, or anything new."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tracescore.judge.embedded.quantities import MONEY, TIME, quantities
from tracescore.judge.embedded.questions import is_instruction

_NUMBER = frozenset({"number"})
_MEASURES = {
    "mass": "weight weigh heavy",
    "length": "height tall high length distance far deep depth wide width long",
    "speed": "speed fast",
    "data": "storage memory file size",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """`kinds` are dimensions of quantities (or words of `_KINDS`), empty where anything new will do; `announcing`
    holds the positions in the text of the words that only announce the kind of answer."""

    yes_no: bool = False
    kinds: frozenset[str] = frozenset()
    procedure: bool = False
    announcing: frozenset[int] = frozenset()

    @property
    def wants(self) -> frozenset[str] | None:
        """What an answer can be recognised by, or None."""
        return frozenset({"procedure"}) if self.procedure else self.kinds or None


_YES_NO = re.compile(
    r"(?i)^\W*(?:(?:and|so|but|also|or|und|et|y)\s+)?(?:is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|"
    r"would|has|have|had|isn't|aren't|don't|doesn't|didn't|can't|ist|sind|kann|können|gibt|gilt|gelten|hat|haben|darf|muss|"
    r"est-ce|peut-on|puis-je|puedo|hay|se puede|هل|क्या(?=.*(?:है|हैं|सकत))|是否|能否|可否|可以)\b|吗[？?]?$|ですか[？?。]?$|ますか[？?。]?$"
)
_HOW_TO = re.compile(r"(?i)\bhow (?:do|can|could|should|would|must|does|to|may) ?(?:i|we|you|one|someone|customers?|users?)?\b|\bwie (?:kann|können|muss) (?:ich|wir|man)\b|\bwhat (?:should|must) (?:i|we) do\b|\bsteps\b")
_KINDS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), frozenset(kinds))
    for pattern, kinds in (
        (r"\bhow much\b(?=.*\b(?:cost|pay|charge|spend|earn|fee|worth|price)\w*)|\bhow much (?:is|are|does|do) \S|\b(?:price|cost|fee|fare|rent|salary|deposit|deductible|fine|tuition|premium|budget|revenue)s?\b(?=\W|$)|\b(?:preis|kostet|kosten|gebühr)\b|多少钱", MONEY),
        (r"\bhow long\b|\b(?:duration|window|period|term|lifespan|time ?frame|waiting time|delivery time|lead time|processing time|turnaround|battery life)\b|\bwie lange\b|\w+frist\b|多久|多长时间", TIME),
        (r"\bhow (?:often|frequently)\b|\bfrequency\b|\bwie oft\b", TIME | {"often"}),
        (r"\bwhat time\b|\b(?:opening|business|office|working|visiting) (?:hours|times)\b|\buhrzeit\b", frozenset({"clock"})),
        (r"\bwhen\b|\b(?:deadline|due date|date|expiry)\b|\bwann\b|什么时候|何时", frozenset({"clock", "day", "month", "year", *TIME})),
        (r"\bhow (?:many|much|tall|big|large|old|fast|far|heavy|high|deep|wide|hot|cold)\b|\b(?:number|amount|capacity|population|limit|allowance|quota|maximum|minimum|size|weight|height|age|speed|distance|dose|dosage|temperature)\b|\bwie (?:viele?|hoch|groß|alt|weit)\b|多少|几", _NUMBER),
        (r"\b(?:rate|percentage|interest|share|proportion)\b", frozenset({"share"})),
    )
)  # fmt: skip
_NO_KIND = re.compile(r"(?i)^\W*(?:and |so |also )?(?:who|whom|whose|where|why|which (?!year|month|day|date|time))\b|\bhow (?:do|does|can|should) ")
_ANNOUNCED = re.compile(
    r"(?i)\b(?:kind|type|sort|name|way|method|process|point|value|level|colou?r|reason|purpose|information|details?|"
    r"things?|happens?|main|common|available|exactly|much|many|long|often|tall|big|large|old|fast|far|heavy|high|deep|"
    r"wide|hot|cold|cost|costs|price|prices|fee|fees|fare|pay|charged?|window|duration|period|time|times|term|deadline|"
    r"date|due|number|amount|capacity|limit|allowance|quota|size|weight|height|age|speed|distance|dose|rate|percentage|maximum|minimum|"
    r"last|lasts|take|takes|hours|policy|preis|kostet|kosten)\b"
)
_WHICH = re.compile(
    r"(?i)\b(?:which|what)\s+((?:(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|can\b|will\b|should\b|has\b|have\b|i\b|you\b|we\b)[\w-]+\s+){1,3})"
    r"(?:is|are|was|were|do|does|did|can|will|should|has|have|i|you|we)\b"
)
_WHEN = re.compile(
    r"(?i)\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|today|tomorrow|yesterday|spring|summer|autumn|winter|weekdays?|weekends?|"
    r"immediately|instantly|now|soon|daily|weekly|monthly|yearly|annually|hourly|after|before|once|twice|when|until|every|century|during|"
    r"january|february|march|april|june|july|august|september|october|november|december|nightly|always|never|permanent(?:ly)?|"
    r"(?:1\d|20)\d\ds?|first|last|overnight|same[- ]day|lifetime|24/7|forever|indefinitely|täglich|sofort|montags?|immer)\b"
)
_NO_SUM = re.compile(
    r"(?i)\b(?:free|no|included|unlimited|nothing|complimentary|depends?|varies|vary|kostenlos|none|half|double|several|few|dozens?|hundreds|thousands|single|one)\b"
)
_PROCEDURE = re.compile(
    r"(?i)\bby \w+ing\b|\b(?:via|using|through)\b|\b(?:you|we|customers|users|they|ich|sie|man|wir) (?:can|need to|must|should|have to|may|"
    r"will|kann|können|müssen|muss)\b|^\W*to \w+.*,|\b(?:steps?|simply)\b|\bindem\b|点击|选择|打开|クリック|選択"
)
_REPLY = re.compile(r"(?i)^\W*(?:yes|no|yeah|yep|nope|ja|nein|doch|oui|non|sí|sim|是的?|不是|可以|不可以|不|はい|いいえ|نعم|لا|हाँ|हां|नहीं|जी)\b")


@lru_cache(maxsize=1024)
def asked(question: str) -> Asked:
    """The kind of answer that `question` wants."""
    if _YES_NO.search(question):
        return Asked(yes_no=True)
    kinds = next((kinds for pattern, kinds in _KINDS if pattern.search(question)), frozenset())
    if _NO_KIND.search(question):
        kinds = frozenset()
    announcing = {m.start() for m in _ANNOUNCED.finditer(question)}
    for m in _WHICH.finditer(question):
        announcing |= {m.start(1) + w.start() for w in re.finditer(r"[\w-]+", m[1])}
    return Asked(kinds=kinds, procedure=not kinds and bool(_HOW_TO.search(question)), announcing=frozenset(announcing))


def gives(question: Asked, sentence: str) -> bool:
    """Whether `sentence` holds an answer of the wanted kind."""
    if question.procedure:
        return any(map(is_instruction, re.split(r"[,;:]\s*|\band\b\s*", sentence))) or bool(_PROCEDURE.search(sentence))
    if not question.kinds:
        return True
    found = {q.dimension for q in quantities(sentence)}
    if question.kinds & _NUMBER or question.kinds & {"share"}:
        return bool(found) or bool(_NO_SUM.search(sentence))
    if found & question.kinds:
        return True
    if question.kinds & (TIME | {"clock", "often"}):
        return bool(_WHEN.search(sentence))
    return bool(_NO_SUM.search(sentence)) or bool(found & {""})


def answers_yes_or_no(sentence: str) -> bool:
    """Whether `sentence` opens with a yes or no."""
    return bool(_REPLY.match(sentence))
