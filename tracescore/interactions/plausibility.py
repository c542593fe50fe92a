"""The gate of plausibility: what stands where a text was to be found is a text that somebody said, or nothing.

What may be wrong with a text depends on where it was recorded (`GATES`). A function's input or output is whatever
Python printed: an object is taken apart into its fields (`reprs`), and what holds no text is `implausible`. What a
person or a model said passes, code and JSON included; it is only freed of what no one reads: pictures as base64,
and what a framework wrote around it (`scaffolds`).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from tracescore.interactions import reprs, scaffolds, values
from tracescore.interactions.printed import Role, printed

Source = Literal["input", "output", "message", "reply", "passage"]
"""A function's input, its output, what a user said to a model, what a model said, a piece of evidence."""


class Gate(NamedTuple):
    """What fails or is taken out: what a program printed, and whole reprs; media as base64; an agent's scaffold."""

    printed: Role | None
    media: Literal["inside", "alone"]
    scaffold: bool


GATES: dict[Source, Gate] = {
    "input": Gate("question", media="inside", scaffold=True),
    "output": Gate("answer", media="inside", scaffold=True),
    "message": Gate(None, media="inside", scaffold=True),
    "reply": Gate(None, media="inside", scaffold=True),
    "passage": Gate("passage", media="alone", scaffold=False),
}

_PAYLOAD = r"[A-Za-z0-9+/_%-]"
_INLINE = 120
"""A shorter data URI (characters of its payload) inside a text is what the text is about."""
_RUN = 200
"""As long a run of letters and digits inside a text is no word."""
_WHOLE = 64
"""As long a run is no word where it is all there is."""
_URI = re.compile(
    rf"(?:!\[[^\]\n]{{0,200}}\]\(|<img\b[^<>]{{0,200}}?src=[\"'])?"
    rf"data:[\w.+-]{{1,60}}/[\w.+-]{{1,80}}(?:;[\w=.+-]{{1,80}}){{0,5}}(?:;base64)?,{_PAYLOAD}{{{_INLINE},}}+=*"
    r"(?:[\"'][^<>\n]{0,200}>|\))?"
)
_ONLY_URI = re.compile(rf"\s*data:[\w.+-]{{1,60}}/[\w.+-]{{1,80}}(?:;[\w=.+-]{{1,80}}){{0,5}},{_PAYLOAD}*+=*\s*\Z")
_BARE = re.compile(rf"(?<!{_PAYLOAD}){_PAYLOAD}{{{_RUN},}}+={{0,2}}")
_DOTS = ("...)}", "...')}", '...")}', "...'}", '..."}', "...)]", "...'}]", "...)}]")
_LINE = re.compile(r"^[A-Za-z0-9+/]{60,76}$", re.MULTILINE)
_LINES = re.compile(r"(?:^[A-Za-z0-9+/]{60,76}\r?\n){4,}+(?:[A-Za-z0-9+/]{1,76}={0,2}$)?", re.MULTILINE)
_ONLY = re.compile(rf"\s*(?P<run>{_PAYLOAD}{{{_WHOLE},}}+)={{0,2}}\s*\Z")


def passed(text: str, source: Source) -> tuple[str | None, values.Flaw]:
    """(the text without what nobody said, why nothing is left of it); an empty text passes as it is."""
    gate = GATES[source]
    if gate.printed and _is_printed(text, gate.printed):
        return None, "implausible"
    if not text.strip():
        return text, ""
    if _is_media(text):
        return None, "implausible"
    freed = _without_media(text) if gate.media == "inside" and len(text) >= _INLINE else text
    if gate.scaffold and freed:
        if source in ("output", "reply"):
            return scaffolds.spoken(freed), ""
        freed = scaffolds.task(freed)
    return (freed, "") if freed else (None, "implausible")


def _is_printed(text: str, role: Role) -> bool:
    bare = text.strip()
    return (reprs.begins(bare) and (reprs.read(bare)[0] or _shortened(bare))) or printed(text, role)


def _shortened(text: str) -> bool:
    """Whether a text is a printed dict that ends inside an object whose own repr was shortened: `{'a': B(text...)}`."""
    return "':" in text and text.endswith(_DOTS)


def _is_media(text: str) -> bool:
    """Whether a text is one data URI or one piece of base64 and nothing else."""
    if " " in text[:_WHOLE].strip():
        return False
    only = _ONLY.match(text)
    return bool(_ONLY_URI.match(text)) or (only is not None and _encoded(only["run"]))


def _without_media(text: str) -> str:
    """A text without the pictures and sounds inside it that are written out as base64."""
    freed = _URI.sub("", text) if "data:" in text else text
    if max(map(len, freed.split()), default=0) >= _RUN:
        freed = _BARE.sub(lambda run: "" if _encoded(run[0]) else run[0], freed)
    if "\n" in freed and _LINE.search(freed) and "-----BEGIN" not in freed:
        freed = _LINES.sub("", freed)
    return freed if freed == text else freed.strip()


def _encoded(run: str) -> bool:
    """Whether a run of letters and digits is base64 of bytes: of all cases, and not of JSON, as tokens are."""
    head = run[:4000]
    mixed = any(map(str.isupper, head)) and any(map(str.islower, head)) and any(map(str.isdigit, head))
    return mixed and not head.startswith("eyJ") and sum(map(head.count, "-_/")) <= len(head) // 12
