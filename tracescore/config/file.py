"""The YAML file behind a `Config`: reading it, and saying in which line each problem stands.

Why a node tree is kept beside the values: pydantic knows the path of a problem but not its line, and PyYAML lets
the last of two equal keys win without a word.
"""

from __future__ import annotations

import difflib
import itertools
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tracescore.config import Config
from tracescore.config.checks import cross_checks, missing_secrets
from tracescore.config.types import Secret
from tracescore.config.yaml import read_yaml, text_of
from tracescore.errors import ConfigError


def load(path: Path, *, secrets: bool = False) -> Config:
    """The configuration in `path`; ConfigError lists everything that is wrong with it, each with its line.

    With `secrets`, those that cannot be read are among it.
    """
    return parse(text_of(path), str(path), secrets=secrets)


def parse(text: str, name: str, *, secrets: bool = False) -> Config:
    """`load` for text; `name` stands in front of each problem."""
    root, values = read_yaml(text, name)
    problems = list(_duplicates(root, "")) if root is not None else []
    if not isinstance(values, dict):
        raise ConfigError([f"{name}:1: a mapping of sections expected; got {type(values).__name__}"])
    config, wrong, left_out = _validated(values, root, Path(name).parent)
    problems += wrong
    for path, what, between in cross_checks(config):
        if not any(_is_within(setting, gone) for setting in between for gone in left_out):
            problems.append((_line(root, path.split(".")), path, what))
    for steps, what in missing_secrets(config) if secrets else ():
        problems.append((_line(root, steps), ".".join(steps), what))
    if problems:
        raise ConfigError([f"{name}:{line}: {_on_a_line(path, what)}" for line, path, what in sorted(set(problems))])
    return config


def _on_a_line(path: str, what: str) -> str:
    """A problem as it can be printed: a misspelt name and a value may hold anything."""
    return "".join(character if character.isprintable() else "?" for character in f"{path}: {what}")


def _validated(
    values: dict[str, Any], root: yaml.Node | None, folder: Path
) -> tuple[Config, list[_Problem], list[str]]:
    """The configuration, what is wrong with its settings one by one, and the paths of those it was built without.

    It is built without them, so that one try reports the problems between sections as well.
    """
    problems: list[_Problem] | None = None
    left_out: list[str] = []
    while True:
        try:
            return Config.model_validate(values, context={"folder": folder}), problems or [], left_out
        except ValidationError as error:
            found = error.errors()
        if problems is None:  # what is found later may come from what was left out
            problems = [_problem(details, root) for details in found]
        gone: list[str] = []
        for details in found:
            gone += _leave_out(values, _written_steps(details["loc"], root), gone)
        left_out += gone


def _leave_out(values: dict[str, Any], steps: Sequence[int | str], gone: Sequence[str]) -> list[str]:
    """Takes the setting at `steps`, or the nearest above it, out of `values`, unless it is `gone`; its path."""
    named = [str(step) for step in itertools.takewhile(lambda step: isinstance(step, str), steps)]
    if any(_is_within(".".join(named), each) for each in gone):
        return []
    while named:
        holder: Any = values
        for step in named[:-1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and named[-1] in holder:
            del holder[named[-1]]
            return [".".join(named)]
        named.pop()
    values.clear()
    return [""]


def _is_within(setting: str, other: str) -> bool:
    """Whether one path is the other's or below it; the empty one is that of everything."""
    return not other or f"{setting}.".startswith(f"{other}.")


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


_OF_A_KEY = "[key]"
"""What pydantic ends the path with where a name is wrong itself."""


def _problem(details: Any, root: yaml.Node | None) -> _Problem:
    """One pydantic error as line, path and a sentence in our words."""
    steps = _written_steps(details["loc"], root)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".") or "(top)"
    path = path.removesuffix(f".{_OF_A_KEY}")
    kind, got = details["type"], details["input"]
    if kind == "missing":
        return _line(root, steps[:-1]), path, "required, but not set"
    secret = Secret in _models_at(details["loc"])
    if kind == "extra_forbidden":
        near = _near(details["loc"])
        if secret and not near:  # a secret may have been put where its name belongs
            return _line(root, steps), path.rpartition(".")[0], "env or file expected; got something else (not shown)"
        if near == steps[-1]:
            return _line(root, steps), path, f"no setting of kind: {details['loc'][-2]}"
        hint = f"; did you mean '{near}'?" if near else ""
        return _line(root, steps), path, f"unknown setting{hint}"
    if kind == "union_tag_not_found":
        return _line(root, steps), path, f"kind is required, one of {', '.join(_kinds_at(details['loc']))}"
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
        inside_a_map = isinstance(node, yaml.MappingNode) and index + 1 < len(loc)
        if child is None and step != _OF_A_KEY and (inside_a_map or isinstance(node, yaml.ScalarNode)):
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


def _near(loc: Sequence[int | str]) -> str | None:
    """The setting that was probably meant by the unknown one at a path: of that section, or of one below the top."""
    name = str(loc[-1])
    near = difflib.get_close_matches(name, _settings_at(loc[:-1]), n=1)
    if near or len(loc) > 1:
        return near[0] if near else None
    return next((f"{section}.{name}" for section in Config.model_fields if name in _settings_at([section])), None)


def _kinds_at(loc: Sequence[int | str]) -> list[str]:
    """The values of `kind` that the section at a path may have."""
    return [str(kind) for model in _models_at(loc) for kind in typing.get_args(model.model_fields["kind"].annotation)]


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
