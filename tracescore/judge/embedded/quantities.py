"""Numbers in a text with their units, whichever way they are written."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from tracescore.judge.embedded import lexicon

_UNITS: dict[str, tuple[str, float]] = {
    name.replace("_", " "): (dimension, float(factor))
    for dimension, factor, *names in map(str.split, lexicon.lines("units"))
    for name in names
}
"""Name -> its dimension and its factor to the base unit of that."""
FACTORS: dict[str, frozenset[float]] = {
    dimension: frozenset(factor for other, factor in _UNITS.values() if other == dimension)
    for dimension, _ in _UNITS.values()
}
"""Dimension -> the factors of its units to its base unit."""
_SCALES = lexicon.values("scales")
_SPELLED = lexicon.values("numbers")
_MONTHS = lexicon.values("months")
_ORDINALS = {
    word: value
    for value, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 1
    )
}

FREE = "free"
"""Dimension of nothing to pay, which is a sum in no currency."""
MONEY = frozenset({FREE, "pound", *(dimension for dimension in FACTORS if dimension.startswith("money/"))})
TIME = frozenset({"time", "months"})

_SCALE = lexicon.any_of(frozenset(s for s in _SCALES if len(s) > 2))
_SHORT_SCALE = "(?:(?(currency)mn?|mn)|(?(currency)bn?|bn)|k|万|萬|亿|億|千)"
"""A lone m or b is metres or bits unless it is money."""
_ADJECTIVE = r"(?:(?:working|business|calendar|consecutive|full|whole|school|square|US|more)\s)?"
_UNIT = rf"{_ADJECTIVE}(?P<unit>{lexicon.any_of(frozenset(_UNITS))})(?![A-Za-z\u00c0-\u024f])"
_CURRENCY = r"US\$|[$€£¥₹]|\b(?:USD|EUR|GBP|INR|JPY|CNY|RMB|CHF|Rs)\b\.?"
_MONTH = lexicon.any_of(_MONTHS)

_NUMBER = re.compile(
    rf"(?i)(?P<currency>{_CURRENCY})?\s?"
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:[,.'’\u00a0\u202f]\d{2,3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
    r"(?:(?P<ordinal>st|nd|rd|th)\b)?"
    rf"(?:(?P<short>{_SHORT_SCALE})(?![^\W_])|[\s-]?(?P<scale>(?:{_SCALE})(?:[\s-](?:{_SCALE}))*)\b)?"
    rf"(?:[\s-]?(?:(?P<symbol>%|٪|°[CF]|℃|℉|[$€£¥₹¢])|{_UNIT}))?"
)
_WORDS = re.compile(
    rf"(?i)(?<![\w-])(?P<first>{lexicon.any_of(_SPELLED)})"
    r"(?:[\s-](?P<second>one|two|three|four|five|six|seven|eight|nine))?"
    rf"(?:[\s-](?P<scale>(?:{_SCALE})(?:[\s-](?:{_SCALE}))*))?(?![\w])(?:[\s-]{_UNIT})?"
)
_ORDINAL = re.compile(rf"(?i)\b({'|'.join(_ORDINALS)})\b")
_FREE = lexicon.pattern("free")
_FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_FRACTION = re.compile(
    rf"(?i)\b(?P<count>an?|one|two|three|four)[\s-](?P<part>{'|'.join(_FRACTIONS)})s?\b(?!\s(?:time|place|day|year|floor)\b)"
    rf"(?:\sof\san?\s{_UNIT})?"
)
_ONE_UNIT = re.compile(rf"(?i)\b(?:an?|une?|un[ao]|eine?[nm]?|uma?|een)\s{_UNIT}")
_LONGEST_RATE = 16
"""Characters in which a number stands before what it is counted by: 12 euros a month."""
_HALF_MORE = re.compile(
    rf"(?i)\b(?:(?P<one>an?|one)\s(?P<unit1>hour|day|week|month|year|mile|litre|liter|metre|meter|kilo)"
    rf"|(?P<count>{lexicon.any_of(_SPELLED)}|\d+))\sand\sa\s(?P<part>half|quarter)\b(?:\s{_UNIT})?|\bhalf\s(?:an?\s)(?P<unit3>hour|day|year|mile|litre|liter|kilo)\b"
)
_DATE = re.compile(
    rf"(?i)\b(?P<y1>\d{{4}})-(?P<m1>\d{{2}})-(?P<d1>\d{{2}})\b|\b(?P<a>\d{{1,2}})[./](?P<b>\d{{1,2}})[./](?P<y2>\d{{4}})\b"
    rf"|\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+of)?\s+(?P<m3>{_MONTH})\b\.?,?(?:\s+(?P<y3>\d{{4}})\b)?"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s?:)(?:,?\s+(?P<y4>\d{{4}})\b)?"
    r"|(?P<y5>\d{4})年(?:(?P<m5>\d{1,2})月)?(?:(?P<d5>\d{1,2})日)?"
)
_MONTH_ALONE = re.compile(
    rf"\b(?:in|since|until|by|of|from|to|during|im|seit|bis)\s+(?P<month>{_MONTH})\b", re.IGNORECASE
)
_TIME = re.compile(
    r"(?i)\b(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s?(?P<half>a\.?m\.?|p\.?m\.?)(?![a-z])"
    r"|\b(?P<hour2>\d{1,2}):(?P<minute2>\d{2})\b|\b(?P<hour3>\d{1,2})(?:[.:](?P<minute3>\d{2}))?\s?Uhr\b"
    r"|\b(?P<noon>noon|midday|midnight)\b"
    r"|\b(?:a las|alle(?: ore)?|às)\s(?P<hour4>\d{1,2})(?!\d|[.,:]\d)(?:\s(?:horas|ore)\b)?"
)
_HEDGE = re.compile(
    r"(?i)(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|more than|just under|just over|"
    r"some|circa|ca\.?|etwa|rund|ungefähr|knapp|environ|unos)|~|≈|约|約|大约)\s*$"
)
_LONGEST_HEDGE = 24
"""Characters, blanks included."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its place.

    `values` are its possible readings (1.250 is 1.25 or 1250), in the base unit of `dimension`; the dimension is
    empty for a bare number. `firm` is false for words such as `one` and `first`, which are often no numbers at all
    and are never demanded. `rounded` says that it is given as about so much.
    """

    values: frozenset[float]
    dimension: str
    start: int
    end: int
    firm: bool = True
    rounded: bool = False


@lru_cache(maxsize=1024)
def quantities(text: str) -> tuple[Quantity, ...]:
    """All numbers of `text`: digits of any script, spelled-out numbers, dates by component, times of day."""
    text = _ascii_digits(text)
    found: list[Quantity] = []
    taken = bytearray(len(text))
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            start, end = match.span()
            if taken.find(1, start, end) < 0:
                found.extend(read(match, bool(_HEDGE.search(text, max(0, start - _LONGEST_HEDGE), start))))
                taken[start:end] = b"\x01" * (end - start)
    return tuple(sorted(found, key=lambda q: q.start))


def dimension_of(unit: str) -> str:
    """The dimension that a unit measures by its name (kilograms: mass); empty for what is no unit."""
    return _unit_of(unit)[0]


def _ascii_digits(text: str) -> str:
    return "".join(
        str(unicodedata.digit(c)) if c.isdigit() and not c.isascii() and unicodedata.category(c) == "Nd" else c
        for c in text
    )


def _number(m: re.Match[str], rounded: bool) -> list[Quantity]:
    scale = _SCALES.get((m["short"] or "").lower(), 1.0)
    for word in re.split(r"[\s-]", m["scale"] or ""):
        scale *= _SCALES.get(word.lower(), 1.0)
    unit = _unit_of(m["symbol"] or m["unit"] or m["currency"] or "")
    values = frozenset(value * scale * unit[1] for value in _parse(m["digits"]))
    if unit[0] == "pound":  # of sterling or of mass
        values |= {value * _UNITS["lb"][1] for value in values}
    return [Quantity(values, unit[0], m.start("digits"), m.end(), rounded=rounded)]


def _spelled(m: re.Match[str], rounded: bool) -> list[Quantity]:
    value = _SPELLED[m["first"].lower()]
    if m["second"]:
        if value < 20:
            return []
        value += _SPELLED[m["second"].lower()]
    for word in re.split(r"[\s-]", m["scale"] or ""):
        value *= _SCALES.get(word.lower(), 1.0)
    unit = _unit_of(m["unit"] or "")
    firm = value > 1 or bool(unit[0])
    return [Quantity(frozenset({value * unit[1]}), unit[0], m.start(), m.end(), firm, rounded)]


def _ordinal(m: re.Match[str], rounded: bool) -> list[Quantity]:
    return [Quantity(frozenset({float(_ORDINALS[m[1].lower()])}), "", m.start(), m.end(), False, rounded)]


def _date(m: re.Match[str], rounded: bool) -> list[Quantity]:
    del rounded
    parts: list[tuple[set[int], str]] = []
    year = m["y1"] or m["y2"] or m["y3"] or m["y4"] or m["y5"]
    month = m["m1"] or m["m3"] or m["m4"] or m["m5"]
    day = m["d1"] or m["d3"] or m["d4"] or m["d5"]
    if m["a"]:
        either = {int(m["a"]), int(m["b"])}
        parts += [({v for v in either if v <= 12}, "month"), (either, "day")]
    if month:
        parts.append(({int(_MONTHS.get(month.lower()) or month)}, "month"))
    if day:
        parts.append(({int(day)}, "day"))
    if year:
        parts.append(({int(year)}, ""))
    return [Quantity(frozenset(map(float, values)), kind, m.start(), m.end()) for values, kind in parts if values]


def _free(m: re.Match[str], rounded: bool) -> list[Quantity]:
    del rounded
    return [Quantity(frozenset({0.0}), FREE, m.start(), m.end())]


def _fraction(m: re.Match[str], rounded: bool) -> list[Quantity]:
    """A third of something, in percent; of an hour, in seconds. Never demanded: a quarter is a part of town too."""
    count = _SPELLED.get(m["count"].lower(), 1.0)
    part = count / _FRACTIONS[m["part"].lower()]
    dimension, factor = _unit_of(m["unit"]) if m["unit"] else ("share", 100.0)
    about = rounded or _FRACTIONS[m["part"].lower()] == 3  # a third is 33 percent
    return [Quantity(frozenset({part * factor}), dimension, m.start(), m.end(), bool(m["unit"]), about)]


def _half_more(m: re.Match[str], rounded: bool) -> list[Quantity]:
    """An hour and a half, two and a half metres, half an hour."""
    count = m["count"] or ""
    more = {"half": 0.5, "quarter": 0.25}.get((m["part"] or "half").lower(), 0.0)
    whole = float(count) if count.isdigit() else _SPELLED.get(count.lower(), 1.0 if m["one"] else 0.0)
    dimension, factor = _unit_of(m["unit1"] or m["unit"] or m["unit3"] or "")
    return [Quantity(frozenset({(whole + more) * factor}), dimension, m.start(), m.end(), rounded=rounded)]


def _one_unit(m: re.Match[str], rounded: bool) -> list[Quantity]:
    """A year, ein Jahr: never demanded, and no number where it only says per what."""
    before = m.string[max(0, m.start() - _LONGEST_RATE) : m.start()]
    dimension, factor = _unit_of(m["unit"])
    if dimension not in TIME or any(c.isdigit() for c in before):
        return []
    return [Quantity(frozenset({factor}), dimension, m.start(), m.end(), False, rounded)]


def _month(m: re.Match[str], rounded: bool) -> list[Quantity]:
    del rounded
    return [Quantity(frozenset({float(_MONTHS[m["month"].lower()])}), "month", m.start("month"), m.end())]


def _time(m: re.Match[str], rounded: bool) -> list[Quantity]:
    """Minutes after midnight; 5:00 may be morning or afternoon."""
    if m["noon"]:
        minutes = {0.0, 1440.0} if m["noon"].lower() == "midnight" else {720.0}
    elif m["half"]:
        hour = int(m["hour"]) % 12 + (12 if m["half"].lower().startswith("p") else 0)
        minutes = {hour * 60.0 + int(m["minute"] or 0)}
    else:
        hour, minute = int(m["hour2"] or m["hour3"] or m["hour4"]), int(m["minute2"] or m["minute3"] or 0)
        minutes = {hour * 60.0 + minute} | ({hour * 60.0 + minute + 720} if hour < 12 and not m["hour3"] else set())
    return [Quantity(frozenset(minutes), "clock", m.start(), m.end(), rounded=rounded)]


def _parse(digits: str) -> set[float]:
    """Every way to read a numeral: points and commas group or separate, depending on the country."""
    digits = re.sub(r"['’\u00a0\u202f]", "", digits)
    marks = [c for c in digits if c in ".,"]
    if not marks:
        return {float(digits)}
    last = marks[-1]
    head, _, tail = digits.rpartition(last)
    grouped = float(re.sub(r"[.,]", "", digits))
    decimal = float(re.sub(r"[.,]", "", head) + "." + tail)
    if len(set(marks)) == 2:
        return {decimal}
    if len(marks) > 1:
        return {grouped}
    if len(tail) != 3 or head.startswith("0"):
        return {decimal}
    return {grouped} if last == "," else {grouped, decimal}


def _unit_of(name: str) -> tuple[str, float]:
    key = re.sub(r"\s+", " ", name.strip().rstrip(".").casefold())
    return _UNITS.get(key, ("", 1.0))


_READERS = (
    (_DATE, _date),
    (_TIME, _time),
    (_FREE, _free),
    (_HALF_MORE, _half_more),
    (_FRACTION, _fraction),
    (_NUMBER, _number),
    (_WORDS, _spelled),
    (_ORDINAL, _ordinal),
    (_ONE_UNIT, _one_unit),
    (_MONTH_ALONE, _month),
)
"""In this order: what one has read the next does not read again."""
