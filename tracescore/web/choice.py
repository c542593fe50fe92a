"""Which interactions a reader asks to see, read from an address and written into one, so that it can be shared.

service, environment, release, state   exactly this one; so do route, tenant, turn and model_call
q                     words that all stand in question or answer, in any case and any Unicode form
from, to              a moment such as 2027-01-31T08:00Z (UTC without a zone), or a duration such as 24h before now
MEASURE.min, .max     the scores of a measure that are shown; interactions without that score are not
sort                  newest, oldest, question, a measure (the lowest first) or -MEASURE (the highest first)
group                 question: the same question asked again is one row
page, size            which page, and how many rows it has
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode

from pydantic import TypeAdapter, ValidationError

from tracescore.config.types import Duration
from tracescore.model import MEASURES, STATES, Measure, Result, Score

SLICES = ("route", "tenant", "turn", "model_call")
"""The keys of `Interaction.slices`."""
FACETS = ("service", "environment", "release", "state", *SLICES)


def bounds_of(measures: Iterable[Measure]) -> tuple[str, ...]:
    """The fields that bound the scores of measures."""
    return tuple(f"{measure}.{end}" for measure in measures for end in ("min", "max"))


BOUNDS = bounds_of(MEASURES)
FIELDS = ("q", *FACETS, "from", "to", *BOUNDS, "sort", "group", "page", "size")
"""Every field of an address, in the order in which addresses are written."""
SORTS = ("newest", "oldest", "question", *MEASURES, *(f"-{measure}" for measure in MEASURES))
PATH = "/interactions"
LONGEST_VALUE, LONGEST_SEARCH = 255, 200
LARGEST_PAGE, MOST_PAGES, ROWS = 500, 1_000_000, 50
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")


def fold(text: str) -> str:
    """`text` without the differences that a search passes over: case, Unicode forms, marks that are not seen.

    Source: Unicode Standard, section 3.13, compatibility caseless matching. Takes time in proportion to the text.
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFKC", plain.casefold())


@dataclass(frozen=True, slots=True)
class Choice:
    """What the reader asked for. `given` are the fields of the address; the rest is what they mean.

    `since` and `until` are Unix seconds, `since` included and `until` not; `words` are folded.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    since: float | None = None
    until: float | None = None
    ranges: Mapping[Measure, tuple[float, float]] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """From 1."""
        return int(self.given.get("page", 1))

    @property
    def size(self) -> int:
        """Rows of a page."""
        return int(self.given.get("size", ROWS))

    @property
    def grouped(self) -> bool:
        """Whether the same question asked again is one row."""
        return "group" in self.given

    @property
    def narrowed(self) -> bool:
        """Whether anything is left out."""
        return bool(self.words or self.facets or self.ranges) or self.since is not None or self.until is not None

    def query(self, **changes: str | int | None) -> str:
        """The query string with some of the fields changed; empty fields are left out, and the page unless given."""
        fields = {**self.given, "page": None, **changes}
        given = {name: fields[name] for name in dict.fromkeys((*FIELDS, *fields)) if fields.get(name)}
        return urlencode(given, errors="replace")

    def link(self, path: str, **changes: str | int | None) -> str:
        """An address with some of the fields changed."""
        query = self.query(**changes)
        return f"{path}?{query}" if query else path

    def shows(self, result: Result) -> bool:
        """Whether a result is among those asked for."""
        return self._in_facets(result) and self._in_time(result) and self._in_ranges(result) and self._found(result)

    def _in_facets(self, result: Result) -> bool:
        return all(facet_of(result, name) == value for name, value in self.facets)

    def _in_time(self, result: Result) -> bool:
        if self.since is not None and result.ended < self.since:
            return False
        return self.until is None or result.ended < self.until

    def _in_ranges(self, result: Result) -> bool:
        for measure, (low, high) in self.ranges.items():
            score = score_of(result, measure)
            if score is None or not low <= score <= high:
                return False
        return True

    def _found(self, result: Result) -> bool:
        if not self.words:
            return True
        told = result.interaction
        text = fold(f"{told.question or ''}\n{told.answer or ''}")
        return all(word in text for word in self.words)


def narrowed(**fields: str) -> str:
    """The address of the list with these fields."""
    return Choice(fields).link(PATH)


def facet_of(result: Result, name: str) -> str | None:
    """The value of a facet; None where the interaction has none."""
    told = result.interaction
    return told.slices.get(name) if name in SLICES else getattr(told, name)


def score_of(result: Result, measure: Measure) -> float | None:
    """The score of a measure; None where there is none."""
    for evaluation in result.evaluations:
        if evaluation.measure == measure and isinstance(evaluation, Score):
            return evaluation.value
    return None


def read_choice(query: str, now: float, own: Sequence[Measure] = ()) -> Choice:
    """What an address asks for, `now` in Unix seconds; ValueError says what is allowed. An empty field asks nothing.

    `own`: measures of the user's own.
    """
    known = (*FIELDS, *bounds_of(own))
    try:
        values = parse_qs(query, max_num_fields=len(known), errors="replace")
    except ValueError:
        raise ValueError(f"the address has more than {len(known)} fields") from None
    for name, each in values.items():
        if name not in known:
            raise ValueError(f"{', '.join(n for n in FIELDS if '.' not in n)}, MEASURE.min and MEASURE.max expected; "
                             f"got {name[:40]!r}")  # fmt: skip
        if len(each) > 1:
            raise ValueError(f"{name}: one value expected; got {len(each)}")
    given = {name: text for name in known if name in values and (text := values[name][0].strip())}
    _check(given, (*SORTS, *own, *(f"-{measure}" for measure in own)))
    since, until = (_moment(given, name, now) for name in ("from", "to"))
    if since is not None and until is not None and since >= until:
        raise ValueError(f"from: a time before 'to' expected; got {given['from'][:40]!r} and {given['to'][:40]!r}")
    facets = tuple((name, given[name]) for name in FACETS if name in given)
    return Choice(
        given, tuple(fold(given.get("q", "")).split()), facets, since, until, dict(_ranges(given, (*MEASURES, *own)))
    )


def _check(given: Mapping[str, str], sorts: Collection[str]) -> None:
    for name, text in given.items():
        most = LONGEST_SEARCH if name == "q" else LONGEST_VALUE
        if len(text) > most:
            raise ValueError(f"{name}: at most {most} characters expected; got {len(text):,}")
    for name, allowed in (("state", STATES), ("sort", sorts), ("group", ("question",))):
        if name in given and given[name] not in allowed:
            raise ValueError(f"{name}: one of {', '.join(allowed)} expected; got {given[name][:40]!r}")
    for name, most in (("page", MOST_PAGES), ("size", LARGEST_PAGE)):
        text = given.get(name, "1")
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 0 < int(text) <= most):
            raise ValueError(f"{name}: a number from 1 to {most:,} expected; got {text[:40]!r}")


def _moment(given: Mapping[str, str], name: str, now: float) -> float | None:
    if name not in given:
        return None
    text = given[name]
    try:
        return now - TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        pass
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name}: a time such as 2027-01-31T08:00Z or a duration such as 24h expected; got {text[:40]!r}"
        ) from None


def _ranges(given: Mapping[str, str], measures: Iterable[Measure]) -> Iterator[tuple[Measure, tuple[float, float]]]:
    for measure in measures:
        names = f"{measure}.min", f"{measure}.max"
        if any(name in given for name in names):
            low, high = (_ratio(given, name, default) for name, default in zip(names, (0.0, 1.0), strict=True))
            if low > high:
                raise ValueError(f"{names[0]}: at most {names[1]} expected; got {low:g} and {high:g}")
            yield measure, (low, high)


def _ratio(given: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:  # also refuses NaN
        raise ValueError(f"{name}: a number from 0 to 1 expected; got {given[name][:40]!r}")
    return value
