"""The YAML file behind a `Config`: reading it, and saying in which line each problem stands.

Why a node tree is kept beside the values: pydantic knows the path of a problem but not its line, and PyYAML lets
the last of two equal keys win without a word.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tracescore.config import Config, cross_checks
from tracescore.config_types import Secret
from tracescore.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of plain values: `off` is text, `010` is ten."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|", ["~", "n", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))


def load(path: Path) -> Config:
    """The configuration in `path`; ConfigError lists everything that is wrong with it, each with its line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{path}: is not UTF-8 text"]) from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Config:
    """`load` for text; `name` stands in front of each problem."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        values = {} if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError([f"{where}: is not YAML: {getattr(error, 'problem', None) or error}"]) from None
    problems = list(_duplicates(root, "")) if root is not None else []
    if not isinstance(values, dict):
        raise ConfigError([f"{name}:1: a mapping of sections expected; got {type(values).__name__}"])
    config = None
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        problems += [_problem(details, root) for details in error.errors()]
    if config is not None:
        problems += [(_line(root, path.split(".")), path, what) for path, what in cross_checks(config)]
    if config is None or problems:
        raise ConfigError([f"{name}:{line}: {path}: {what}" for line, path, what in sorted(set(problems))])
    return config


_Problem = tuple[int, str, str]  # line, path, what is wrong


def _duplicates(node: yaml.Node, path: str) -> Iterator[_Problem]:
    if isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            where = f"{path}.{key.value}".lstrip(".")
            line = key.start_mark.line + 1
            if key.value in first:
                yield line, where, f"set twice (first on line {first[key.value]})"
            first.setdefault(key.value, line)
            yield from _duplicates(value, where)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _duplicates(value, f"{path}[{index}]")


def _problem(details: Any, root: yaml.Node | None) -> _Problem:
    """One pydantic error as line, path and a sentence in our words."""
    steps = _written_steps(details["loc"], root)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".") or "(top)"
    kind, got = details["type"], details["input"]
    if kind == "missing":
        return _line(root, steps[:-1]), path, "required, but not set"
    secret = Secret in _models_at(details["loc"])
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(steps[-1]), _settings_at(details["loc"][:-1]), n=1)
        if secret and not near:  # a secret may have been put where its name belongs
            return _line(root, steps), path.rpartition(".")[0], "env or file expected; got something else (not shown)"
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return _line(root, steps), path, f"unknown setting{hint}"
    if kind in _WORDING:
        what = _WORDING[kind].format(**details.get("ctx", {}))
    else:
        what = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if "; got " not in what:
        what += "; got its value (not shown)" if secret else f"; got {_shown(got, root, steps)}"
    return _line(root, steps), path, what


_WORDING = {
    "string_pattern_mismatch": "has not the form {pattern}",
    "model_type": "a mapping of settings expected",
    "dict_type": "a mapping expected",
    "tuple_type": "a list expected",
    "union_tag_not_found": "kind is required, but not set",
    "union_tag_invalid": "kind must be one of {expected_tags}; got '{tag}'",
}
"""pydantic's error types whose own sentence speaks of Python rather than of the file."""


def _shown(got: object, root: yaml.Node | None, steps: Sequence[int | str]) -> str:
    """A value as it was written, short enough for one line; of a mapping or list only that: it may hold a secret."""
    node = root
    for step in steps:
        node = _child(node, step)
    if isinstance(node, yaml.ScalarNode) and node.value:
        text = repr(node.value) if node.tag.endswith(":str") else node.value
    else:
        kinds = {type(None): "nothing", dict: "a mapping", list: "a list"}
        text = kinds.get(type(got)) or repr(got)
    return text if len(text) <= 80 else text[:77] + "..."


def _written_steps(loc: Sequence[int | str], root: yaml.Node | None) -> list[int | str]:
    """The path as the user wrote it: pydantic puts the tag of a union into it, which stands nowhere in the file."""
    steps: list[int | str] = []
    node = root
    for index, step in enumerate(loc):
        child = _child(node, step)
        if child is None and index + 1 < len(loc) and isinstance(node, yaml.MappingNode):
            continue
        steps.append(step)
        node = child
    return steps


def _child(node: yaml.Node | None, step: int | str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return typing.cast("yaml.Node", node.value[step])
    return None


def _line(root: yaml.Node | None, steps: Sequence[int | str]) -> int:
    """The line of the key at the end of `steps`, or of the nearest thing above it that was written."""
    node, line = root, 1
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            key = next((key for key, _ in node.value if key.value == str(step)), None)
            line = key.start_mark.line + 1 if key is not None else line
        node = _child(node, step)
        if isinstance(step, int) and node is not None:
            line = node.start_mark.line + 1
    return line


def _settings_at(loc: Sequence[int | str]) -> list[str]:
    """Names of the settings that exist at a path, for a hint."""
    return [name for model in _models_at(loc) for name in model.model_fields]


def _models_at(loc: Sequence[int | str]) -> list[type[BaseModel]]:
    """The sections that may stand at a path, or that a plain value there belongs to."""
    models: list[type[BaseModel]] = [Config]
    for step in loc:
        inside = [model.model_fields[step].annotation for model in models if step in model.model_fields]
        models = [found for annotation in inside for found in _models_in(annotation)] or models
    return models


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is not None:
        for argument in typing.get_args(annotation):
            yield from _models_in(argument)
