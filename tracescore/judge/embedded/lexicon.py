"""The word lists beside this file, in `lists/`: what the rules know of languages, apart from the rules.

A line that starts with `#` is a comment.
"""

from __future__ import annotations

import re
from importlib.resources import files


def lines(name: str) -> list[str]:
    """The lines of the list `name`."""
    text = (files(__package__) / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def words(name: str) -> frozenset[str]:
    """The words of the list `name`."""
    return frozenset(word for line in lines(name) for word in line.split())


def values(name: str) -> dict[str, float]:
    """Word -> value, from lines of a value and the words for it."""
    return {word: float(value) for value, *found in map(str.split, lines(name)) for word in found}


def pattern(name: str) -> re.Pattern[str]:
    """One expression that finds what any line of the list `name` finds, ignoring case."""
    return re.compile("|".join(f"(?:{line})" for line in lines(name)), re.IGNORECASE)


def any_of(found: frozenset[str] | dict[str, float]) -> str:
    """The words as alternatives of an expression, longer ones first."""
    return "|".join(sorted(map(re.escape, found), key=len, reverse=True))
