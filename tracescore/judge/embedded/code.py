"""Code as a claim: a line of it says that what it names, passes and sets is there.

In code words do not inflect and order is grammar, so names and numbers are looked for as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tracescore.judge.embedded import lexicon
from tracescore.judge.embedded.agreement import missing
from tracescore.judge.embedded.terms import FUNCTION_WORDS

_GRAMMAR = lexicon.words("code_words")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*(?<!\.)")
_ASSIGNED = re.compile(
    r"^\s*(?:(?:const|let|var|val|auto)\s+)?(?P<names>[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*)\s*:?=(?![=>])"
)
_MARKED = re.compile(r"`[^`]+`")


def blocks(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of `text` between fences, and whether a piece is code; the last block may have no end."""
    for number, piece in enumerate(_FENCE.split(text)):
        if piece.strip():
            yield piece, number % 2 == 1


def lines(block: str) -> Iterator[str]:
    """The lines of a block of code that name something, in backticks, which is what marks a claim as code."""
    for line in block.splitlines():
        if _named(line):
            yield f"`{line.strip().replace('`', '')}`"


def is_code(statement: str) -> bool:
    """Whether all of `statement` is marked as code."""
    return _MARKED.fullmatch(statement) is not None


def assigned(statements: Iterable[str]) -> frozenset[str]:
    """The names that lines of code give to what they make: they are free to choose."""
    found = (_ASSIGNED.match(statement.strip("`")) for statement in statements if is_code(statement))
    return frozenset(name.strip() for match in found if match for name in match["names"].lower().split(","))


def share_found(statement: str, evidence: str, own: frozenset[str]) -> float:
    """The share of the names and numbers of a line that stand in `evidence`; 0 where a number stands for another.

    `own` are names the code gives itself.
    """
    there = _tokens(evidence)
    known = frozenset(there)
    numbers = [(before, token) for before, token in _beside(_tokens(statement)) if token[0].isdigit()]
    lacking = bool(missing(statement, evidence))
    if any((token not in known and lacking) or _set_otherwise(before, token, there) for before, token in numbers):
        return 0.0
    named = [token for token in _named(statement) if token not in own] or _named(statement)
    found = [token in known or (token[0].isdigit() and not lacking) for token in named]
    return sum(found) / len(found) if found else 1.0


def _set_otherwise(key: str, value: str, there: list[str]) -> bool:
    """Whether the evidence has another number right behind `key`, and this one nowhere behind it."""
    values = {token for before, token in _beside(there) if before == key and token[0].isdigit()}
    return bool(key and values) and value not in values


def _beside(tokens: list[str]) -> Iterator[tuple[str, str]]:
    return zip(["", *tokens], tokens, strict=False)


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text.lower()) if token not in FUNCTION_WORDS or token in _GRAMMAR]


def _named(line: str) -> list[str]:
    """The tokens of a line but the grammar of languages, and single letters."""
    return [token for token in _tokens(line) if token not in _GRAMMAR and (len(token) > 1 or token.isdigit())]
