"""Small edits that turn a supported answer into an unsupported one: one number, one name, one negation."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from tracescore.judge.embedded.terms import names

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BE = re.compile(r"\b(?:is|are|was|were|can|could|will|would|has been|have been|may|should)\b(?! not)")
_NOT = re.compile(r"\b(is|are|was|were|can|could|will|would|may|should) not\b|\bnever ")


def edits(text: str, others: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Kind and text of each edit that `text` has a place for; names are taken from the `others`."""
    if numbers := list(_NUMBER.finditer(text)):
        m = rng.choice(numbers)
        changed = re.sub(r"\d(?=\D*$)", lambda d: str((int(d[0]) + rng.randint(1, 8)) % 10), m[0])
        yield "number", text[: m.start()] + changed + text[m.end() :]
    if m := _NOT.search(text):
        yield "negation", text[: m.start()] + (m[1] + " " if m[1] else "") + text[m.end() :].lstrip()
    elif m := _BE.search(text):
        yield "negation", f"{text[: m.end()]} not{text[m.end() :]}"
    ours = names(text)
    theirs = [name.text for name in names(rng.choice(others)) if name.text not in text]
    if ours and theirs:
        name = rng.choice(ours)
        yield "name", text[: name.start] + rng.choice(theirs) + text[name.end :]
