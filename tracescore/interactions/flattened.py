"""Attribute keys that flatten what a span recorded, `prefix.0.message.content`, back into lists and dicts."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

_DIGITS = 8
"""A place in a list has fewer."""


def brief(keys: Collection[str]) -> bool:
    """Whether keys are so few and short that they may be kept beyond their span: at most 64, of 4,096 characters."""
    return len(keys) <= 64 and sum(map(len, keys)) <= 4096


def unflatten(flat: Mapping[str, Any], start: str) -> Any:
    """The keys that begin with `start`, which ends with a dot, as nested dicts of what follows.

    A level whose keys are all numbers is a list.
    """
    keys = tuple([key for key in flat if key.startswith(start)])
    shape = _shape if brief(keys) else _shape.__wrapped__
    return _filled(shape(keys, start.count(".")), flat)


@functools.lru_cache(maxsize=1024)
def _shape(keys: tuple[str, ...], depth: int) -> Any:
    """What the keys make of the values, with each key in the place of its value: an app has few sets of keys.

    `depth`: segments that all keys share, and that are left out.
    """
    tree: dict[str, Any] = {}
    path, level = "", tree
    for key in keys:
        above, _, name = key.rpartition(".")
        if above != path:  # what belongs together mostly stands together
            path, level = above, _level(tree, above.split(".")[depth:])
        if not isinstance(level.get(name), dict):
            level[name] = key
    return _with_lists(tree)


def _filled(shape: Any, flat: Mapping[str, Any]) -> Any:
    """The shape with the values in it."""
    if isinstance(shape, str):
        value = flat[shape]
        return _with_lists(value) if isinstance(value, dict) else value
    if isinstance(shape, list):
        return [_filled(each, flat) for each in shape]
    return {key: _filled(each, flat) for key, each in shape.items()}


def is_place(key: str) -> bool:
    """Whether a key may be a place in a list that fits on a span."""
    return key.isascii() and key.isdecimal() and len(key) < _DIGITS


def _level(tree: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The dict at a path, made where there is none; one of no tree where something else stands in the way."""
    level = tree
    for part in path:
        inner = level.setdefault(part, {})
        if not isinstance(inner, dict):
            return {}
        level = inner
    return level


def _with_lists(tree: dict[str, Any]) -> Any:
    found = {key: _with_lists(value) if isinstance(value, dict) else value for key, value in tree.items()}
    if found and all(map(is_place, found)):
        return [found[key] for key in sorted(found, key=int)]
    return found
