"""Splits texts of any script into sentences, so that a judge can name one by its number."""

from __future__ import annotations

import re

_END = re.compile(
    r"(?<=[.!?\u061f\u06d4\u0964\u0965\u2026][\"')\]\u201d\u00bb])\s+"  # a closing quote or bracket comes along
    r"|(?<=[.!?\u061f\u06d4\u0964\u0965\u2026])\s+"  # Latin, Arabic, Urdu, Hindi: the end, then a space
    r"|(?<=[\u3002\uff01\uff1f\uff0e][\u300d\u300f\u201d\uff09])"
    r"|(?<=[\u3002\uff01\uff1f\uff0e])(?![\u300d\u300f\u201d\uff09])"  # Chinese and Japanese: no space follows
    r"|\s*\n+\s*"
)


def split(text: str) -> tuple[str, ...]:
    """The sentences of `text`, stripped, none blank. Abbreviations may split one in two; no character is lost."""
    return tuple(piece.strip() for piece in _END.split(text) if piece and piece.strip())
