"""Ordinary attributes with telling names on spans of the app's own; they never mark a span as recognised."""

from __future__ import annotations

from tracescore.interactions import questions
from tracescore.interactions.convention import Node, Piece

_QUESTIONS = ("question", "user_question", "user_query", "user_input", "query", "input")
_ANSWERS = ("answer", "output", "response")


def question(node: Node) -> Piece | None:
    """A question that an ordinary span carries under a plain name."""
    return _first(node, _QUESTIONS, "question")


def answer(node: Node) -> Piece | None:
    """An answer that an ordinary span carries under a plain name."""
    return _first(node, _ANSWERS, "answer")


def _first(node: Node, names: tuple[str, ...], suffix: str) -> Piece | None:
    for key in (*names, *(key for key in node.attributes if key.endswith(f".{suffix}"))):
        value = node.attributes.get(key)
        if isinstance(value, str) and questions.asked(value).text is not None:
            return Piece(key, value)
    return None
