"""Paths into a JSON response (`choices.0.message.content`), and what stands at their end."""

import re
from typing import Any

from tracescore.errors import TargetFailed

_POSITION = re.compile(r"[0-9]{1,9}")
_SHOWN = 8


def text_at(payload: Any, path: str, setting: str) -> str:
    """The text at `path`; TargetFailed(`no_answer`) says how far the path leads, in the words of `setting`."""
    found = _follow(payload, path, setting)
    if len(found) == 1 and isinstance(found[0], str):
        return found[0]
    got = _kind(found[0]) if len(found) == 1 else f"{len(found)} values"
    raise TargetFailed("no_answer", f"{setting}: {path} leads to {got}; one text expected")


def texts_at(payload: Any, path: str, setting: str) -> tuple[str, ...]:
    """The texts at `path`: one, a list of them, or what `*` finds inside a list. Blank ones are left out."""
    found = _follow(payload, path, setting)
    flat = [each for value in found for each in (value if isinstance(value, list) else [value])]
    for value in flat:
        if not isinstance(value, str):
            raise TargetFailed("no_answer", f"{setting}: {path} leads to {_kind(value)}; texts expected")
    return tuple(text for text in flat if text.strip())


def _follow(payload: Any, path: str, setting: str) -> list[Any]:
    """All values that the path leads to; TargetFailed where a step leads nowhere."""
    values, walked = [payload], ""
    for step in path.split("."):
        if step == "*":
            if not all(isinstance(value, list) for value in values):
                raise TargetFailed("no_answer", f"{setting}: {path} matches nothing: {_place(walked)} is no list")
            values = [each for value in values for each in value]
        else:
            found = [_step(value, step) for value in values]
            if _NOTHING in found:
                there = _there(next(value for value in values if _step(value, step) is _NOTHING))
                where = f"{_place(walked)} holds {there}, and no {step}"
                raise TargetFailed("no_answer", f"{setting}: {path} matches nothing in the response: {where}")
            values = found
        walked = f"{walked}.{step}".lstrip(".")
    return values


_NOTHING: Any = object()


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _NOTHING)
    if isinstance(value, list) and _POSITION.fullmatch(step) and int(step) < len(value):
        return value[int(step)]
    return _NOTHING


def _place(walked: str) -> str:
    return walked or "it"


def _there(value: Any) -> str:
    """The keys of an object, for someone who looks for the right one; they are the app's words, so cut and cleaned."""
    if not isinstance(value, dict) or not value:
        return _kind(value)
    keys = [re.sub(r"[^\w.-]", "?", str(key)[:32]) for key in value]
    return ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    return {str: "a text", type(None): "null", bool: "true or false"}.get(type(value), "a number")
