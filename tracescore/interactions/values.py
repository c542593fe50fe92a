"""Attribute values as they come: text, JSON in a string, JSON in JSON in a string, Python reprs, cut or redacted.

`parse` turns a value into plain data and says what is wrong with it; it never raises and never guesses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import orjson

from tracescore.interactions import reprs

Flaw = Literal["", "truncated", "redacted", "implausible"]
"""What hides a text or is wrong with it; `implausible`: what stands there is nothing that anyone said."""

_MASKS = ("__REDACTED__", "<fully masked due to failed mask function>", "[REDACTED]", "<redacted>", "***REDACTED***")
_NOTHING = ("null", "None", "undefined")
"""How a missing value is written by those who write everything as text."""
_LONGEST_MARK = max(map(len, (*_MASKS, *_NOTHING)))
_OPENING = ("[", "{", '"')
_JSON_START = re.compile(r'\s*(?:[\[{]\s*(?:["\[{\]}\d-]|true|false|null|$)|")')
_UNESCAPED = re.compile(r'\[\s*"(?P<inside>.*)"\s*\]$', re.DOTALL)
_JOINT = re.compile(r'"\s*,\s*"')
_LENIENT = json.JSONDecoder(strict=False)
_LITERAL_LIMIT = 200_000
"""Longest cut JSON (characters) that is read: it is slow."""
CUT_LENGTHS = frozenset({255, 256, 512, 1000, 1024, 2000, 2048, 4000, 4095, 4096, 8000, 8191, 8192})
CUT_LENGTHS |= frozenset({10_000, 12_000, 12_288, 16_384, 32_000, 32_768, 65_535, 65_536})
"""Lengths that are common settings of OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and of backends."""


class Parsed(NamedTuple):  # made for every value: a frozen dataclass takes three times as long
    """Plain data (str, number, bool, None, list, dict), and what is wrong with it."""

    data: Any
    flaw: Flaw = ""


def worst(flaws: Iterable[Flaw]) -> Flaw:
    """Redacted before truncated before implausible before none."""
    met = set(flaws)
    order: tuple[Flaw, ...] = ("redacted", "truncated", "implausible")
    return next((flaw for flaw in order if flaw in met), "")


def redacted(value: Any) -> bool:
    """Whether a text was withheld on purpose and only a mask stands in its place."""
    return isinstance(value, str) and value.strip() in _MASKS


def parse(value: Any) -> Parsed:
    """`value` as plain data; JSON strings are unwrapped at most twice (as proxies and MLflow encode them)."""
    if not isinstance(value, (str, bytes)):
        return Parsed(value)
    flaw: Flaw = ""
    for _ in range(2):
        if not isinstance(value, str):
            break
        bare = value.strip()
        if len(bare) <= _LONGEST_MARK:
            if bare in _MASKS:
                return Parsed(None, "redacted")
            if bare in _NOTHING:
                return Parsed(None)
        begun = (bare[:1] in _OPENING and _JSON_START.match(bare)) or reprs.begins(bare)
        inner = _structure(value) if begun else None
        if inner is None:
            return Parsed(value)
        value, flaw = inner.data, inner.flaw
        if flaw:
            break
    if redacted(value):
        return Parsed(None, "redacted")
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return Parsed(value, flaw)


def data(value: Any) -> Any:
    """`parse(value).data`."""
    return parse(value).data if isinstance(value, (str, bytes)) else value


def squeezed(text: str) -> str:
    """A text with every run of white space as one blank: how texts are compared."""
    return " ".join(text.split())


def cut(text: str) -> bool:
    """Whether a text looks cut: exactly as long as a common limit and ending in the middle of a sentence."""
    return len(text) in CUT_LENGTHS and (text[-1:].isalnum() or text[-1:] in " ,;:-")


def _structure(text: str) -> Parsed | None:
    """What JSON or a Python repr in `text` says; None for ordinary text."""
    if _JSON_START.match(text):
        try:
            return Parsed(_loads(text))
        except RecursionError:
            return Parsed(None, "truncated")
        except json.JSONDecodeError as error:
            found = _literal(text)
            if found is not None and found.flaw != "truncated":
                return found
            if texts := _unescaped(text):
                return Parsed(texts)
            if _breaks_off(error, text):
                return Parsed(_whole_part(text), "truncated")
        except ValueError:  # an integer of thousands of digits: text, whatever it looks like
            return None
    return _literal(text)


def _loads(text: str) -> Any:
    """JSON as most write it, else as some do (NaN, control characters, lone surrogates)."""
    try:
        return orjson.loads(text)
    except ValueError:
        return _plain(_LENIENT.decode(text))


def _literal(text: str) -> Parsed | None:
    """A Python repr; one that holds nothing, or is cut off, reads as nothing."""
    is_repr, data, cut = reprs.read(text)
    if not is_repr:
        return None
    return Parsed(_plain(data), "truncated" if cut else "implausible" if data is None else "")


def _unescaped(text: str) -> list[str]:
    """A list of texts that someone joined with quotes and commas and never escaped; empty where it is none."""
    match = _UNESCAPED.match(text.strip())
    return _JOINT.split(match["inside"]) if match else []


def _breaks_off(error: json.JSONDecodeError, text: str) -> bool:
    """Whether JSON was fine up to its very end, which is missing (and not just another syntax)."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return False
    unterminated = error.msg.startswith("Unterminated string")
    return unterminated or error.pos >= len(text.rstrip()) - 1 or stripped.endswith("...")


def _whole_part(text: str) -> Any:
    """What stands complete in JSON that was cut: everything up to the last whole member, brackets closed."""
    if len(text) > _LITERAL_LIMIT:
        return None
    closers: list[str] = []
    keep: tuple[int, str] | None = None
    in_text = escaped = False
    for at, char in enumerate(text):
        if in_text:
            in_text = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_text = True
        elif char in "{[":
            closers.append("}" if char == "{" else "]")
        elif char in "}]" and closers:
            closers.pop()
            keep = (at + 1, "".join(reversed(closers)))
        elif char == ",":
            keep = (at, "".join(reversed(closers)))
    if keep is None:
        return None
    try:
        return _loads(text[: keep[0]] + keep[1])
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """Tuples and sets as lists, keys as text, and no text with half a character in it."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, dict):
        return {_whole(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


def _whole(text: str) -> str:
    """A text with its surrogates joined; one left alone, which nothing could send on, becomes a replacement mark."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
