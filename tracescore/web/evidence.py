"""What the page of one interaction shows of its texts: marks in them, and where else the trace can be opened.

The words of texts are marked and never changed: whatever users, apps and judges wrote is escaped piece by piece.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from tracescore.model import Evaluation, Interaction, Item, Result
from tracescore.web.glossary import BAD_VERDICTS, GOOD_VERDICTS
from tracescore.web.marking import Mark, claims_in, marked, quotes_in

MARGIN = 1_800.0
"""Seconds before and after an interaction for which a link asks: its trace may be longer than its span."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the answer. `id` is its place on the page, `placed` whether its words stand in the answer."""

    number: int
    id: str
    item: Item
    placed: bool


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage with the quoted words marked, and the id or URI of its `document` where that is known.

    `quoted_by` are the claims, `useful` the verdict of context precision.
    """

    number: int
    document: str
    start: str
    text: Markup
    quoted_by: Sequence[Claim]
    useful: str


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """What the claims of an answer rest on. `answer` is None where there is none."""

    answer: Markup | None
    claims: Sequence[Claim]
    passages: Sequence[PassageView]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many claims have each verdict."""
        found: dict[str, int] = defaultdict(int)
        for claim in self.claims:
            found[claim.item.verdict] += 1
        return found


def tone(verdict: str) -> str:
    """How a verdict looks: good, bad, or half."""
    return "good" if verdict in GOOD_VERDICTS else "bad" if verdict in BAD_VERDICTS else "half"


def evidence(result: Result, place: str) -> AnswerEvidence:
    """The evidence of one result; `place` makes ids of it that no other result on the page has."""
    told = result.interaction
    items = [item for item in _items(result, "faithfulness") if item.kind == "claim"]
    places = claims_in(told.answer or "", [item.text for item in items])
    claims = [
        Claim(number, f"{place}-claim-{number}", item, where is not None)
        for number, (item, where) in enumerate(zip(items, places, strict=True), 1)
    ]
    marks = [_mark(claim, where) for claim, where in zip(claims, places, strict=True) if where is not None]
    answer = None if told.answer is None else marked(told.answer, marks)
    return AnswerEvidence(answer, claims, _passages(result, claims))


def _mark(claim: Claim, place: tuple[int, int]) -> Mark:
    verdict = claim.item.verdict or "no verdict"
    label = f"{verdict.replace('_', ' ')}: claim"
    return Mark(place, f"claim {claim.item.verdict or 'unknown'}", label, claim.number, claim.id)


def _items(result: Result, measure: str) -> Sequence[Item]:
    found: Evaluation | None = next((each for each in result.evaluations if each.measure == measure), None)
    return found.items if found is not None else ()


def _passages(result: Result, claims: Sequence[Claim]) -> list[PassageView]:
    useful = {item.passage: item.verdict for item in _items(result, "context_precision")}
    of = defaultdict[int | None, list[Claim]](list)
    for claim in claims:
        of[claim.item.passage].append(claim)
    told = result.interaction
    documents = told.documents or ("",) * len(told.contexts)
    return [
        _passage(number, document, text, of[number], useful.get(number, ""))
        for number, (document, text) in enumerate(zip(documents, told.contexts, strict=True))
    ]


def _passage(number: int, document: str, text: str, claims: Sequence[Claim], useful: str) -> PassageView:
    places = quotes_in(text, [claim.item.quote for claim in claims])
    marks = [_mark(claim, place) for claim, found in zip(claims, places, strict=True) for place in found]
    return PassageView(number + 1, document, text[:110], marked(text, marks), claims, useful)


# ---------------------------------------------------------------- where else it can be opened


def trace_links(templates: Mapping[str, str], told: Interaction, ended: float) -> list[tuple[str, str]]:
    """Names and URLs of the places where the trace can be opened; `ended` in Unix seconds, where no span says it."""
    began = told.start_unix_nano / 1e9 or ended
    values = {
        "trace_id": told.trace_id,
        "span_id": told.span_id,
        "start": str(int((min(began, ended) - MARGIN) * 1000)),
        "end": str(int((ended + MARGIN) * 1000)),
    }
    return [(name, _filled(template, values)) for name, template in templates.items()]


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template
