"""Lists and objects that a file or a frame holds as text: JSON, what Python prints, and what numpy prints."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Mapping

from tracescore.datasets.keys import LISTS, OBJECTS
from tracescore.errors import UsageError

_LIKE_A_LIST = re.compile(r"""\[\s*(?:['"{]|\w+\().*\]\Z""", re.DOTALL)
"""A list of texts, of objects, or of what Python shows of an object: `[Document(page_content='...')]`."""


def unprinted(row: Mapping[str, object]) -> dict[str, object]:
    """The row, with the value in place of its text where a key holds lists or objects; other texts stay as they are.

    UsageError for a list that numpy cut short.
    """
    return {name: _value(name, held) if isinstance(held, str) else held for name, held in row.items()}


def _value(name: str, text: str) -> object:
    bare = text.strip()
    if bare.startswith("[") and name in LISTS:
        return _list(name, bare)
    if bare.startswith("{") and name in OBJECTS:
        found = _parsed(bare)
        # an answer may be JSON itself; an object that wraps one has a key that keys.py knows
        return found if isinstance(found, dict) and OBJECTS[name] & found.keys() else text
    return text


def _list(name: str, text: str) -> object:
    found = _texts_in_a_row(name, text) or _parsed(text)
    if found is None and _LIKE_A_LIST.match(text):
        raise UsageError(f"{name}: a list that was printed and cannot be read back; save it as JSON or Parquet")
    return text if found is None else found


def _parsed(text: str) -> object:
    """The value of JSON or of a Python literal; None when it is neither."""
    readers: tuple[Callable[[str], object], ...] = (json.loads, ast.literal_eval)
    for reads in readers:
        try:
            return reads(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _texts_in_a_row(name: str, text: str) -> list[str] | None:
    """The texts of an array as numpy prints it: without commas, which Python would take for one text."""
    try:
        tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.string.strip()]
    except (tokenize.TokenError, SyntaxError):
        return None
    texts = [each for each in tokens[1:-1] if each.type == tokenize.STRING]
    between = {each.string for each in tokens[1:-1] if each.type != tokenize.STRING}
    if texts and between == {"..."}:
        raise UsageError(f"{name}: a list that numpy cut short with '...'; save the whole list as JSON or Parquet")
    return [str(ast.literal_eval(each.string)) for each in texts] if len(texts) > 1 and not between else None
