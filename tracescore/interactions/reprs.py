"""Python reprs as plain data, read and never evaluated: what functions leave in telemetry that writes `str(value)`.

Read whole or not at all, in one pass: `Name(key=..., ...)` of dataclasses, attrs, pydantic and named tuples, however
nested; `key='...' other=...`, as pydantic prints with `str()`; literals with any of these inside; `<generator object
... at 0x...>`. Text that only contains such things is text.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

TYPE: Final = "__type__"
"""The key under which a repr's class name stands, beside its fields."""
POSITIONAL: Final = "__args__"
"""The key under which arguments without a name stand."""

_DEPTH = 60
_CUT = 24
"""A shorter text (characters) tells too little to say that it was cut."""
_SHORTENED = 30
"""A longer text that ends with dots inside an object was shortened by the object's own repr."""
_ESCAPED = 200_000
"""Longest text between quotes (characters) whose escapes Python itself resolves."""
_NAMED = r"[A-Za-z_]\w{0,79}+"
_OPENING = ("[", "(", "{", "<")
_BYTES = ("b'", 'b"', "B'", 'B"')
_HEAD = 810
"""No longer a name (characters) opens a repr."""
_BEGINS = re.compile(
    rf"""(?: (?P<pairs>{_NAMED}=(?=['"\[{{(<\w-]))            # key=...
           | {_NAMED}(?:\.{_NAMED}){{0,9}}+\(                  # Name(
           | [\[({{]\s*(?:['"\[({{<]|\w[\w.]{{0,99}}\(|None\b|\d+\s*:|[\])}}])
           | <(?=[A-Za-z_]) | [bB]['"]
        )""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_TEXT = re.compile(
    r"""(?P<prefix>[bBrRuUfF]{0,2})(?:'(?P<one>[^'\\]*+(?:\\.[^'\\]*+)*+)'|"(?P<two>[^"\\]*+(?:\\.[^"\\]*+)*+)")""",
    re.DOTALL,
)
_OPAQUE = re.compile(r"""<[A-Za-z_](?:[^<>'"]|<[^<>]*+>|'[^']*+'|"[^"]*+")*+>""")
_IS_OPAQUE = re.compile(
    r" at 0x[0-9a-fA-F]|\bobject\b|^<(?:class|function|module|enum|built-in|bound method)\b|^<[\w.]+\("
)
_ENUM = re.compile(r"<[\w.]+: (?P<value>.*)>$", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d[\w.]*(?:[eE][-+]?\d+)?|inf\b|nan\b)")
_CALL = re.compile(rf"(?P<name>{_NAMED}(?:\.{_NAMED}){{0,9}})\(")
_KEY = re.compile(rf"(?P<name>{_NAMED})\s*[=:]\s*")
_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_CONSTANTS = {"None": None, "True": True, "False": False, "Ellipsis": None, "NotGiven": None}
_LOWER = frozenset(("namespace", "defaultdict", "deque", "mappingproxy", "dict_values", "dict_keys", "array", "tensor"))
_LOWER |= frozenset(
    ("UUID", "set", "frozenset", "bytearray", "datetime.datetime", "dict", "list", "tuple", "types.SimpleNamespace")
)
_CAMEL = re.compile(r"(?:[\w]+\.)*_*[A-Z]\w*[a-z]\w*$")


class _NoRepr(ValueError):
    """The text is not a repr, or not to its end."""


class _Cut(_NoRepr):
    """The text is the beginning of a repr, whose end is missing."""


class Opaque:
    """A value whose repr says nothing but what it is: an object at an address, bytes."""

    __slots__ = ()


OPAQUE: Final = Opaque()


def begins(text: str) -> bool:
    """Whether it is worth while to read a text: cheap, and says no to almost all that is no repr."""
    head = text[:_HEAD]
    may_be = head[:1] in _OPENING or "(" in head or "=" in head or head[:2] in _BYTES
    return may_be and _BEGINS.match(text) is not None


def read(text: str) -> tuple[bool, Any, bool]:
    """(whether `text` is a repr, its data, whether its end is missing).

    Objects become dicts of their fields with their class under `TYPE`; what says nothing becomes None. Data of a repr
    that was cut is None.
    """
    stripped = text.strip()
    begun = _BEGINS.match(stripped)
    if begun is None:
        return False, None, False
    reader = _Reader(stripped)
    try:
        found = reader.pairs() if begun["pairs"] else reader.value(0)
        reader.space()
        if stripped.startswith("(input_keys=", reader.at):  # how DSPy prints examples
            reader.at = len(stripped)
        if reader.at < len(stripped) or not reader.telling:
            return False, None, False
    except _Cut:
        return reader.fields > 0 and len(stripped) >= _CUT, None, True
    except _NoRepr:
        return False, None, False
    data = plain(found)
    return True, data if _says(data) or not reader.objects else None, False


def plain(value: Any) -> Any:
    """A value as read, with nothing where something opaque stood."""
    if isinstance(value, Opaque):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _says(data: Any) -> bool:
    """Whether anything but names of classes and fields is in data as read."""
    if isinstance(data, dict):
        return any(key != TYPE and _says(item) for key, item in data.items())
    if isinstance(data, list):
        return any(map(_says, data))
    return isinstance(data, str) and bool(data)


class _Reader:
    """One pass over a text. Each method reads on from `at`; none goes back."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.telling = False
        """Whether anything was met that no text of a person holds: quotes in a literal, fields, an address."""
        self.fields = 0
        self.objects = False
        """Whether anything was met that is no plain data."""

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self) -> str:
        self.space()
        if self.at >= len(self.text):
            raise _Cut
        return self.text[self.at]

    def pairs(self) -> dict[str, Any]:
        """`key=value key=value`, to the end."""
        found: dict[str, Any] = {}
        while self.at < len(self.text):
            key = _KEY.match(self.text, self.at)
            if key is None:
                raise _NoRepr
            self.at = key.end()
            self.fields += 1
            found[key["name"]] = self.value(0)
            self.space()
        return found

    def value(self, depth: int, *, bare: bool = False) -> Any:
        """One value; `bare`: a word without quotes is one, as some write ids."""
        if depth > _DEPTH:
            raise _NoRepr
        first = self.peek()
        if first in "[({":
            return self.container(first, depth)
        if first == "<":
            return self.opaque()
        if text := _TEXT.match(self.text, self.at):
            return self.quoted(text)
        if first in "'\"":
            self.telling = True
            raise _Cut
        if call := _CALL.match(self.text, self.at):
            return self.call(call, depth)
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _number(number[0])
        return self.word(bare=bare)

    def word(self, *, bare: bool) -> Any:
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise _NoRepr
        word = match[0]
        self.at = match.end()
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if self.at >= len(self.text):
            raise _Cut
        if not bare and "." not in word:
            raise _NoRepr
        return word.rpartition(".")[2] if "." in word else word

    def quoted(self, match: re.Match[str]) -> Any:
        self.at = match.end()
        self.telling = True
        if "b" in match["prefix"].lower():
            self.objects = True
            return OPAQUE
        inner = match["one"] if match["one"] is not None else match["two"]
        if self.fields and inner.endswith("...") and len(inner) > _SHORTENED:
            self.objects = True
            return OPAQUE
        if "\\" not in inner or "r" in match["prefix"].lower():
            return inner
        try:
            if len(inner) <= _ESCAPED:
                return str(ast.literal_eval(match[0].lstrip("uUfF")))
        except (ValueError, SyntaxError):  # an escape that is none, a line end inside
            pass
        return inner.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")

    def opaque(self) -> Any:
        match = _OPAQUE.match(self.text, self.at)
        if match is None or not (_IS_OPAQUE.search(match[0]) or _ENUM.match(match[0])):
            raise _NoRepr
        self.at = match.end()
        self.telling = self.objects = True
        if enum := _ENUM.match(match[0]):
            value = _TEXT.fullmatch(enum["value"])
            return self.quoted_alone(value) if value else None
        return OPAQUE

    def quoted_alone(self, match: re.Match[str]) -> Any:
        at, found = self.at, self.quoted(match)
        self.at = at
        return found

    def container(self, opening: str, depth: int) -> Any:
        """A list, tuple, set or dict."""
        closing = {"[": "]", "(": ")", "{": "}"}[opening]
        self.at += 1
        items: list[Any] = []
        members: dict[str, Any] = {}
        while self.peek() != closing:
            item = self.value(depth + 1)
            if opening == "{" and self.peek() == ":":
                self.at += 1
                self.fields += 1
                members[str(plain(item))] = self.value(depth + 1)
            else:
                items.append(item)
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != closing:
                raise _NoRepr
        self.at += 1
        if opening != "(" and items and all(isinstance(item, dict) and TYPE in item for item in items):
            self.telling = True
        return members if opening == "{" and not items else items

    def call(self, match: re.Match[str], depth: int) -> Any:
        """`Name(...)`: fields by name, or by place."""
        self.at = match.end()
        name = match["name"]
        fields: dict[str, Any] = {}
        places: list[Any] = []
        while self.peek() != ")":
            key = _KEY.match(self.text, self.at)
            if key is not None:
                self.at = key.end()
                self.fields += 1
                fields[key["name"]] = self.value(depth + 1, bare=True)
            else:
                places.append(self.value(depth + 1, bare=depth > 0))
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != ")":
                raise _NoRepr
        self.at += 1
        known = name in _LOWER or _CAMEL.match(name)
        if not known and not depth:
            raise _NoRepr  # a call in some code
        empty = not fields and not places and sum(map(str.isupper, name)) > 1
        self.telling = self.telling or bool(fields) or name in _LOWER or empty
        self.objects = True
        if name.startswith("datetime.") or name == "UUID":
            return OPAQUE
        if name in _LOWER and places and not fields:
            return places[-1]
        if not fields and len(places) == 1 and isinstance(places[0], dict):
            fields, places = places[0], []
        return {TYPE: name.rpartition(".")[2], **fields, **({POSITIONAL: places} if places else {})}


def _number(text: str) -> Any:
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text
