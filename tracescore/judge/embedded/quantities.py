"""Numbers in a text with their units, and whether one text states the numbers of another.

Embeddings put 4 percent beside 5.5 percent; so numbers are compared as numbers, whichever way they are written.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_UNITS: dict[str, tuple[str, float, str]] = {}
"""Word -> (dimension, factor to the base unit, words as they are looked up)."""


def _unit(dimension: str, factor: float, names: str) -> None:
    for name in names.split():
        _UNITS[name.replace("_", " ")] = (dimension, factor, name)


_unit("share", 1, "% percent per_cent percentage pct prozent % pour_cent por_ciento ٪ प्रतिशत")
_unit("share", 0.01, "bp bps basis_points basis_point")
_unit("time", 1, "sec secs second seconds sekunde sekunden 秒")
_unit("time", 60, "min mins minute minutes minuten 分钟 分間 دقيقة मिनट")
_unit("time", 3600, "h hr hrs hour hours stunde stunden 小时 時間 ساعة घंटे")
_unit("time", 86400, "day days tag tage tagen 天 日間 يوم يوما يومًا أيام दिन दिनों jour jours día días")
_unit("time", 604800, "week weeks woche wochen 周 週間 أسابيع सप्ताह semaine semaines semana semanas")
_unit("months", 1, "month months monat monate monaten 个月 ヶ月 か月 أشهر महीने mois mes meses")
_unit("months", 12, "year years yr yrs jahr jahre jahren سنوات साल an ans año años")
_unit("length", 1e-3, "mm millimetre millimetres millimeter millimeters")
_unit("length", 1e-2, "cm centimetre centimetres centimeter centimeters zentimeter")
_unit("length", 1, "m metre metres meter meters 米 メートル")
_unit("length", 1e3, "km kilometre kilometres kilometer kilometers 公里 キロ")
_unit("length", 0.0254, "inch inches zoll")
_unit("length", 0.3048, "ft foot feet fuß")
_unit("length", 1609.344, "mi mile miles meilen")
_unit("area", 1, "m2 m² sqm square_metres square_meters quadratmeter")
_unit("area", 0.09290304, "sq_ft square_feet")
_unit("speed", 1, "km/h kph kmh")
_unit("speed", 1.609344, "mph")
_unit("mass", 1e-6, "mg milligram milligrams milligramm")
_unit("mass", 1e-9, "µg mcg microgram micrograms")
_unit("mass", 1e-3, "g gram grams gramm")
_unit("mass", 1, "kg kilo kilos kilogram kilograms kilogramm 公斤 千克")
_unit("mass", 1e3, "t ton tons tonne tonnes tonnen")
_unit("mass", 0.45359237, "lb lbs pound pounds")
_unit("mass", 0.028349523, "oz ounce ounces")
_unit("volume", 1e-3, "ml millilitre millilitres milliliter milliliters")
_unit("volume", 1, "l litre litres liter liters")
_unit("volume", 3.785411784, "gallon gallons")
_unit("data", 1e3, "kb kilobyte kilobytes")
_unit("data", 1e6, "mb megabyte megabytes")
_unit("data", 1e9, "gb gigabyte gigabytes")
_unit("data", 1e12, "tb terabyte terabytes")
_unit("rate", 1, "mbps mbit/s")
_unit("rate", 1e3, "gbps gbit/s")
_unit("power", 1, "w watt watts")
_unit("power", 1e3, "kw kilowatt kilowatts")
_unit("energy", 1, "wh")
_unit("energy", 1e3, "kwh")
_unit("voltage", 1, "v volt volts")
_unit("celsius", 1, "°c ℃ celsius degrees_celsius grad")
_unit("fahrenheit", 1, "°f ℉ fahrenheit degrees_fahrenheit")
_unit("usd", 1, "$ usd us$ dollar dollars 美元")
_unit("usd", 0.01, "cent cents ¢")
_unit("eur", 1, "€ eur euro euros 欧元")
_unit("gbp", 1, "£ gbp quid")
_unit("inr", 1, "₹ inr rupee rupees rs रुपये")
_unit("jpy", 1, "¥ jpy yen 円")
_unit("cny", 1, "rmb cny yuan 元")
_unit("chf", 1, "chf francs")

MONEY = frozenset({"usd", "eur", "gbp", "inr", "jpy", "cny", "chf", "money"})
TIME = frozenset({"time", "months"})

_SCALES = {
    **dict.fromkeys(("hundred",), 1e2),
    **dict.fromkeys(("k", "thousand", "tausend", "千"), 1e3),
    **dict.fromkeys(("lakh", "lakhs"), 1e5),
    **dict.fromkeys(("m", "mn", "million", "millions", "mio", "millionen"), 1e6),
    **dict.fromkeys(("crore", "crores"), 1e7),
    **dict.fromkeys(("bn", "b", "billion", "billions", "mrd", "milliarden", "milliarde"), 1e9),
    **dict.fromkeys(("trillion", "trillions", "billionen"), 1e12),
    "万": 1e4,
    "萬": 1e4,
    "亿": 1e8,
    "億": 1e8,
}
_SMALL = {
    word: value
    for value, names in enumerate(
        "zero null|one eins|two zwei dos deux|three drei tres trois|four vier cuatro quatre|five fünf cinco cinq|"
        "six sechs seis|seven sieben siete sept|eight acht ocho huit|nine neun nueve neuf|ten zehn diez dix|eleven elf|"
        "twelve zwölf dozen|thirteen dreizehn|fourteen vierzehn|fifteen fünfzehn|sixteen sechzehn|seventeen siebzehn|"
        "eighteen achtzehn|nineteen neunzehn".split("|")
    )
    for word in names.split()
}
_TENS = {
    word: 10 * value
    for value, names in enumerate(
        "twenty zwanzig|thirty dreißig|forty vierzig|fifty fünfzig|sixty sechzig|seventy siebzig|eighty achtzig|"
        "ninety neunzig".split("|"),
        2,
    )
    for word in names.split()
}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), 1
    )
}
_MONTHS = {
    name: value
    for value, names in enumerate(
        "january jan januar|february feb februar|march mar märz|april apr|may mai|june jun juni|july jul juli|"
        "august aug|september sep sept|october oct oktober|november nov|december dec dezember".split("|"),
        1,
    )
    for name in names.split()
}

_SPELLED = "|".join(sorted({*_SMALL, *_TENS}, key=len, reverse=True))
_SCALE = "|".join(sorted((re.escape(s) for s in _SCALES if len(s) > 2), key=len, reverse=True))
_SHORT_SCALE = "(?:(?(currency)mn?|mn)|(?(currency)bn?|bn)|k|万|萬|亿|億|千)"
"""A lone m or b is metres or bits unless it is money."""
_UNIT = "|".join(sorted((re.escape(u) for u in _UNITS), key=len, reverse=True))
_CURRENCY = r"US\$|[$€£¥₹]|\b(?:USD|EUR|GBP|INR|JPY|CNY|RMB|CHF|Rs)\b\.?"
_ADJECTIVE = r"(?:(?:working|business|calendar|consecutive|full|whole|school|square|US|more)\s)?"
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))

_NUMBER = re.compile(
    rf"(?i)(?P<currency>{_CURRENCY})?\s?"
    r"(?<![\w.,])(?P<digits>\d{1,3}(?:[,.'’\u00a0\u202f]\d{2,3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?)"
    rf"(?:(?P<ordinal>st|nd|rd|th)\b)?"
    rf"(?:(?P<short>{_SHORT_SCALE})(?![^\W_])|[\s-]?(?P<scale>(?:{_SCALE})(?:[\s-](?:{_SCALE}))*)\b)?"
    rf"(?:[\s-]?(?:(?P<symbol>%|٪|°[CF]|℃|℉|[$€£¥₹¢])|{_ADJECTIVE}(?P<unit>{_UNIT})(?![A-Za-z\u00c0-\u024f])))?"
)
_WORDS = re.compile(
    rf"(?i)(?<![\w-])(?P<first>{_SPELLED})(?:[\s-](?P<second>{'|'.join(k for k, v in _SMALL.items() if 0 < v < 10)}))?"
    rf"(?:[\s-](?P<scale>(?:{_SCALE})(?:[\s-](?:{_SCALE}))*))?(?![\w])(?:[\s-]{_ADJECTIVE}(?P<unit>{_UNIT})(?![A-Za-z\u00c0-\u024f]))?"
)
_ORDINAL = re.compile(rf"(?i)\b({'|'.join(_ORDINALS)})\b(?!\s(?:of all|place))")
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
)
_HEDGE = re.compile(
    r"(?i)(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|over|more than|just under|just over|"
    r"some|circa|ca\.?|etwa|rund|ungefähr|knapp|environ|unos)|~|≈|约|約|大约)\s*$"
)
HEDGED_TOLERANCE = 0.05
"""`about 400` may stand for 418: rounding to two digits moves a number by at most this share."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its place. `values` are its possible readings (1.250 is 1.25 or 1250), in the base unit of
    `dimension`; the dimension is empty for a bare number. `firm` is false for words such as `one` and `first`,
    which are often no numbers at all and are never demanded."""

    values: frozenset[float]
    dimension: str
    start: int
    end: int
    firm: bool = True
    rounded: bool = False


@lru_cache(maxsize=4096)
def quantities(text: str) -> tuple[Quantity, ...]:
    """All numbers of `text`: digits of any script, spelled-out numbers, dates by component, times of day."""
    text = _ascii_digits(text)
    found: list[Quantity] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in (
        (_DATE, _date), (_TIME, _time), (_NUMBER, _number), (_WORDS, _spelled), (_ORDINAL, _ordinal), (_MONTH_ALONE, _month),
    ):  # fmt: skip
        for match in pattern.finditer(text):
            if not any(match.start() < end and start < match.end() for start, end in taken):
                found.extend(read(match, bool(_HEDGE.search(text[: match.start()]))))
                taken.append(match.span())
    return tuple(sorted(found, key=lambda q: q.start))


def same(a: Quantity, b: Quantity) -> bool:
    """Whether two numbers say the same; a missing unit agrees with any."""
    if a.dimension and b.dimension and not _comparable(a.dimension, b.dimension):
        return False
    tolerance = HEDGED_TOLERANCE if a.rounded or b.rounded else 1e-6
    bare = not (a.dimension and b.dimension)
    for x in _readings(a, bare):
        for y in _readings(b, bare):
            if abs(x - y) <= tolerance * max(abs(x), abs(y)):
                return True
    return False


def missing(claim: str, evidence: str) -> tuple[Quantity, ...]:
    """The firm numbers of `claim` that `evidence` does not state."""
    stated = quantities(evidence)
    return tuple(q for q in quantities(claim) if q.firm and not any(same(q, s) for s in stated))


def rivals(claim: str, evidence: str) -> bool:
    """Whether `evidence` has, for a number of `claim` that it does not state, another of the same kind."""
    stated = [q for q in quantities(evidence) if q.firm]
    return any(any(_comparable(q.dimension, s.dimension) for s in stated) for q in missing(claim, evidence))


def _comparable(a: str, b: str) -> bool:
    return a == b or (a in MONEY and b in MONEY and "money" in (a, b))


def _readings(q: Quantity, bare: bool) -> frozenset[float]:
    """The values to compare: as written when only one of two numbers has a unit."""
    return q.values if not bare or not q.dimension else q.values | _as_written(q)


def _as_written(q: Quantity) -> frozenset[float]:
    return frozenset(value / factor for value in q.values for factor in _FACTORS.get(q.dimension, ()))


_FACTORS: dict[str, frozenset[float]] = {}
for _dimension, _factor, _ in _UNITS.values():
    _FACTORS[_dimension] = _FACTORS.get(_dimension, frozenset()) | {_factor}


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
    return [Quantity(values, unit[0], m.start("digits"), m.end(), rounded=rounded)]


def _spelled(m: re.Match[str], rounded: bool) -> list[Quantity]:
    first = m["first"].lower()
    value = float(_TENS.get(first, _SMALL.get(first, 0)))
    if m["second"]:
        if first not in _TENS:
            return []
        value += _SMALL[m["second"].lower()]
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
        parts.append(({_MONTHS.get(month.lower()) or int(month)}, "month"))
    if day:
        parts.append(({int(day)}, "day"))
    if year:
        parts.append(({int(year)}, ""))
    return [Quantity(frozenset(map(float, values)), kind, m.start(), m.end()) for values, kind in parts if values]


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
        hour, minute = int(m["hour2"] or m["hour3"]), int(m["minute2"] or m["minute3"] or 0)
        minutes = {hour * 60.0 + minute} | ({hour * 60.0 + minute + 720} if hour < 12 and m["hour2"] else set())
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
    dimension, factor, _ = _UNITS.get(key, ("", 1.0, ""))
    return dimension, factor
