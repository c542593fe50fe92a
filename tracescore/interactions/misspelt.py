"""What an app's own spans say wrongly of what they do: a kind that is none, a key that is nearly the one for it.

Such a span takes no part in answering, and nothing is more silent than that; so the advice names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tracescore.interactions.convention import Node
from tracescore.interactions.conventions import openinference

_KEY = "openinference.span.kind"
_KEYS = ("openinference.", "span.kind", "kind", "span_kind", "spanKind")
"""Beginnings of keys that may be meant for it."""
_LIKE = 0.6
_LONGEST = 20
"""A longer kind (characters) is no slip of the pen, and is not repeated."""


def advice(nodes: Iterable[Node]) -> str:
    """What to set on the first span that says what it does, but wrongly; empty where none does.

    It repeats no more of the app's words than one that is almost a kind, or a key that is almost the right one.
    """
    return next((told for node in nodes if node.kind is None for told in _told(node)), "")


def _told(node: Node) -> Iterator[str]:
    keys = node.attributes
    if _KEY in keys:
        said = str(keys[_KEY])
        meant = get_close_matches(said.upper(), openinference.KINDS, 1, _LIKE)
        known = ", ".join(openinference.KINDS)
        if meant and len(said) <= _LONGEST and said.isalpha():
            yield f"{_KEY} {said} is unknown; set {meant[0]} (or one of {known})"
        else:
            yield f"{_KEY} holds none of its kinds; set one of {known}"
        return
    for key in keys:
        if key.startswith(_KEYS) and str(keys[key]).upper() in openinference.KINDS:
            yield f"the key {key[:40]} is unknown; the kind of a span stands at {_KEY}"
