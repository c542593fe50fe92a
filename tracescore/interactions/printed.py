"""What a program printed, in whatever language: whole texts that are a value's own form and that nobody wrote.

Beside the reprs that `reprs` takes apart: those that say nothing (`<Response [200]>`, `com.acme.Doc@4f2a10b3`), arrays,
frames, protobuf's text form, ids, hashes and paths. Only whole texts; one that mentions such a thing is text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Role = Literal["question", "answer", "passage"]
"""What a text was to be. A number, a date, a path or a truth may be an answer; none of them asks or proves anything."""
_ALL: frozenset[Role] = frozenset(("question", "answer", "passage"))
_UNSAID: frozenset[Role] = frozenset(("question", "passage"))

_LONGEST = 20_000
"""Nobody prints a longer value (characters) into a question or an answer."""
_TOKEN = 400
_SENTENCE = 4
"""Words from which on what stands between two tags is a sentence."""
_DIGIT_GROUPS = 4
"""A word with more of them, in letters of both cases, is no name."""

# Repetitions are possessive wherever they can be: no text is read twice from the same place.
_HEX = r"[0-9a-fA-F]"
_UUID = rf"\{{?{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}\}}?"
_HASH = "|".join(rf"{_HEX}{{{length}}}" for length in (24, 32, 40, 56, 64, 96, 128))
_ID = rf"['\"]?(?:[a-z]\w{{0,20}}?[-_:])?(?:{_UUID}|{_HASH})(?!\w)['\"]?"
_NAME = r"(?=[A-Z][A-Z0-9_]{0,60}[a-z])\w{2,80}+"
_JAVA = rf"\[?(?:[a-z]\w{{0,40}}\.){{1,10}}[A-Z]\w{{0,60}}(?:\$\w{{1,60}})?;?@{_HEX}{{4,16}}"
_NUMPY = r"(?:np|numpy)\.\w++\([^()]{1,60}\)"
_NUMBERS = r"(?=[^\n]{0,80}\d)(?:[\s\d.,+\[\]-]++|nan|inf|e[+-]?\d)++"
_GO = r"(?:[A-Z]\w*+:\S*+\s++)*+[A-Z]\w*+:[^\s}]*+"


class Form(NamedTuple):
    """A form in which values are printed: what all of such a text looks like, and what it cannot be."""

    name: str
    whole: str
    never: frozenset[Role]


def _form(name: str, *whole: str, never: frozenset[Role] = _ALL) -> Form:
    return Form(name, "|".join(whole), never)


TOKENS: tuple[Form, ...] = (
    _form("an id or a hash", _ID),
    _form("an id in Crockford's base 32", r"[0-7](?=[A-Z]*\d)(?=\d*[A-Z])[0-9A-HJKMNP-TV-Z]{25}"),
    _form("a JSON web token", r"eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*"),
    _form("an address", rf"0x{_HEX}{{6,16}}"),
    _form("an object of Java", _JAVA),
    _form("a type of .NET", r"System\.[\w.]+`\d(?:\[[\w.,`\[\]]*\])?", r"System\.[\w.]+\[\]"),
    _form("a member of an enumeration", r"[A-Z][a-z]\w{0,60}\.[A-Z][A-Z_0-9]{2,60}"),
    _form("a serialised value of PHP", r"[abdisOC]:\d+:.*[;}]"),
    _form("no number, nothing", r"nan|NaN|NaT|-?inf|undefined|null|None"),
    _form("a path", r"(?:/[\w.@+~-]++){2,}+/?", r"~/[\w./@+~-]+", r"[A-Za-z]:\\[^\s:*?\"<>|]+", never=_UNSAID),
    _form("an address of a file", r"(?:s3|gs|file|abfss?|hdfs|dbfs|wasbs?)://\S+", never=_UNSAID),
    _form("a moment", r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", never=_UNSAID),
    _form("a truth", r"(?i:true|false)", never=_UNSAID),
)
"""Texts of one word."""

FORMS: tuple[Form, ...] = (
    _form(
        "an object of Python",
        rf"<(?:{_NAME}[:\s\[(]|(?:coroutine|async_generator|generator|object)\b)[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>",
        rf"[\[({{]\s*+(?:<{_NAME}[^<>]*+>[\s,]*+)++[\])}}]",
    ),
    _form("several ids", rf"[\[({{]?\s*+{_ID}(?:[\s,;]++{_ID})++\s*+[\])}}]?"),
    _form("an array", rf"\[{_NUMBERS}(?<=\])", rf"(?:\w{{1,9}}\.)?(?:array|[tT]ensor)\(\[{_NUMBERS}[^\n]{{0,200}}\)"),
    _form("an array that was shortened", r"(?:\w{1,9}\.)?(?:array|[tT]ensor)\(\[[\s\d.,+\[\]e-]++[^\n]{0,200}\)"),
    _form("numbers of numpy", _NUMPY, rf"\[(?:{_NUMPY}[,\s]*+)++\]"),
    _form("a set of numbers", r"[{(][\s\d.,eE+-]++[})]"),
    _form("nothing", r"[\[({]\s*+[\])}]"),
    _form("numbers", r"[\d\s.,;:-]++", never=_UNSAID),
    _form("a range", r"(?:range|slice)\([\d\s,-]*+\)", never=_UNSAID),
    _form("a call around a mapping or a function", rf"{_NAME}\(\{{.*\}}\)", r"functools\.partial\(<.*\)"),
    _form(
        "an object of JavaScript or Rust",
        rf"(?:{_NAME}|Promise) \{{[^;]*\}}",
        rf"(?:{_NAME}\s)?\[(?:AsyncGenerator|Generator|Function|Object|class)\b[^\]]*+\](?:\s\{{\}})?",
        r"\[object \w++\](?:[\s,]++\[object \w++\])*+",
    ),
    _form("objects of Java", rf"\[(?:{_JAVA}[,\s]*+)++\]"),
    _form("a value of Go", rf"&?\{{{_GO}\}}", r"map\[(?:[\w.-]++:[^\s\]]*+\s*+)*+\]", r"\[(?:0xc0[0-9a-f]{8}\s*+)++\]"),
    _form("an object of Ruby or Clojure", r"#<[A-Z][\w:]*+[^<>]*+>", r"#(?:object\[|inst \"|uuid \")[^\n]*+"),
)
"""Texts of several."""


def _any_of(*forms: Form) -> dict[Role, re.Pattern[str]]:
    """By what a text was to be, the forms in which it cannot be that, as one pattern: ten times as fast."""
    wanted = {role: "|".join(form.whole for form in forms if role in form.never) for role in _ALL}
    return {role: re.compile(rf"(?:{whole})\Z", re.DOTALL) for role, whole in wanted.items()}


_TOKENS, _FORMS = _any_of(*TOKENS, *FORMS), _any_of(*FORMS)
_HEAD = re.compile(r"[<\[({&#\d'\"-]|[A-Z][\w.]* ?[\[({]|map\[|[a-z]\w*[.(-]|" + _HEX)
"""How texts in these forms begin: cheap, and says no to most others."""
_SCRAMBLED = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}\Z")
_FRAME = re.compile(r"[ ]{2,}\S[^\n]*+\n0[ ]{2,}[^\n]*+(?:\n\d++[ ][^\n]*+)*+\s*\Z")
_FRAME_END = re.compile(r"\n(?:\[\d+ rows x \d+ columns\]|(?:(?:Name|Length): [^\n]*, )?dtype: \w+)\s*\Z")
_SCALAR = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|-?[\d.eE+-]++|[A-Z][A-Z0-9_]*+|true|false"
_FIELD = r"[\w.\[\]/]++"
_PROTOBUF = re.compile(rf"(?:[ \t]*+(?:{_FIELD}(?: ?\{{|: (?:{_SCALAR}))|\}})[ \t]*+(?:\n|\Z))++\Z")
_XML = re.compile(r"<(?P<name>[A-Za-z][\w.:-]*)(?:\s[^<>]*)?>(?P<inside>.*)</(?P=name)>\Z", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_HTML = frozenset(
    ("a", "article", "b", "body", "code", "div", "dl", "em", "h1", "h2", "h3", "h4", "html", "i", "li", "main", "ol")
).union(("p", "pre", "section", "span", "strong", "table", "ul"))


def printed(text: str, role: Role) -> bool:
    """Whether a program printed the whole of a text in which a person's or a model's words were to be found."""
    bare = text.strip()
    if not bare or len(bare) > _LONGEST:
        return False
    alone = len(bare) <= _TOKEN and len(bare.split(None, 1)) == 1
    if alone and (_TOKENS[role].match(bare) or _is_scrambled(bare)):
        return True
    if not alone and _HEAD.match(bare) and _FORMS[role].match(bare):
        return True
    return _is_frame(text) or _is_protobuf(bare) or _is_state(bare)


def _is_scrambled(token: str) -> bool:
    """Whether a word is base64, or an id of letters and digits in all cases: no word and no name."""
    if not _SCRAMBLED.match(token) or not (any(map(str.isupper, token)) and any(map(str.islower, token))):
        return False
    groups = len(re.findall(r"\d+", token))
    return groups >= _DIGIT_GROUPS or (token.endswith("=") and len(token) % 4 == 0 and groups > 0)


def _is_frame(text: str) -> bool:
    """Whether a text is a table as pandas prints it: its rows numbered from 0, or its size or type at its end."""
    if text[:1] not in " 0" or "\n" not in text:
        return False
    return bool(_FRAME_END.search(text) or _FRAME.match(text))


def _is_protobuf(text: str) -> bool:
    return "{\n" in text and text.count("{") == text.count("}") and _PROTOBUF.match(text) is not None


def _is_state(text: str) -> bool:
    """Whether a text is XML of several elements, none of which holds a sentence."""
    found = _XML.match(text) if text[0] == "<" else None
    if found is None or found["inside"].count("</") < 2 or found["name"].lower() in _HTML:
        return False
    return all(len(piece.split()) < _SENTENCE for piece in _TAG.split(text))
