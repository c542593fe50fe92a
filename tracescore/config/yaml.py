"""YAML text -> its values, and the tree of nodes they came from, which knows the lines.

Bounded in size, depth and what aliases multiply: the author of the file is no enemy, but a start that hangs or ends
in a traceback tells nobody what to change.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tracescore.errors import ConfigError

LARGEST = 2**20
"""Bytes of a file."""
MOST_VALUES = 10_000
"""Values in a file, those behind an alias counted every time."""
DEEPEST = 50
"""Levels of nesting."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of plain values: `off` is text, `010` is ten. Knows no tags but those of JSON's types."""


def _constructor(what: str, convert: Callable[[str], object]) -> Callable[[_Loader, yaml.Node], object]:
    def construct(_: _Loader, node: yaml.Node) -> object:
        try:
            return convert(node.value)
        except (KeyError, TypeError, ValueError):  # an explicit tag on something else, or 5,000 digits
            raise yaml.constructor.ConstructorError(
                None, None, f"{what} of sensible length expected", node.start_mark
            ) from None

    return construct


_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    tag: yaml.SafeLoader.yaml_constructors[tag]
    for tag in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:str", None)
}
for _name, _convert, _pattern, _first in (
    ("bool", {"true": True, "false": False}.__getitem__, r"true|false", "tf"),
    ("null", lambda _: None, r"~|null|", ["~", "n", ""]),
    ("int", int, r"[-+]?[0-9]+", "-+0123456789"),
    ("float", float, r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), list(_first))
    _Loader.add_constructor(f"tag:yaml.org,2002:{_name}", _constructor(_name, _convert))


def text_of(path: Path) -> str:
    """The text of a file; ConfigError when it cannot be read, is too large or not UTF-8."""
    try:
        return text_within(path, LARGEST)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None


def bytes_within(path: Path, largest: int) -> bytes:
    """What is in a file of at most `largest` bytes, whole MiB; OSError, and ConfigError for more."""
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ConfigError([f"{path}: at most {largest // 2**20} MiB expected; is this the right file?"])
    return content


def text_within(path: Path, largest: int) -> str:
    """The text of a file of at most `largest` bytes, whole MiB; OSError, and ConfigError for more or for no UTF-8."""
    try:
        return bytes_within(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError([f"{path}: is not UTF-8 text"]) from None


def read_yaml(text: str, name: str) -> tuple[yaml.Node | None, Any]:
    """The root node (None where there is nothing) and the values; ConfigError in one line that begins with `name`."""
    loader = None
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None, {}
        weigh(root, name, MOST_VALUES)
        return root, loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError([f"{where}: is not YAML: {problem_of(error)}"]) from None
    except RecursionError:
        line = loader.line + 1 if loader else 1
        raise ConfigError([f"{name}:{line}: nested too deeply; at most {DEEPEST} levels expected"]) from None


def problem_of(error: yaml.YAMLError) -> str:
    """What is wrong in one line; of the commonest cause, an unquoted cron expression, what to do."""
    if getattr(error, "context", None) == "while scanning an alias":
        return 'a text that begins with * expected in quotes, as in "* * * * *"'
    return getattr(error, "problem", None) or str(error).partition("\n")[0]


def weigh(root: yaml.Node, name: str, most: int) -> None:
    """ConfigError when the nodes stand for more than `most` values or are nested too deeply; `name` is the file's."""
    _weight(root, name, most, {}, 0)


def _weight(node: yaml.Node, name: str, most: int, known: dict[int, int], depth: int) -> int:
    """How many values `node` stands for. `known` holds weights, 0 while one is being found."""
    where = f"{name}:{node.start_mark.line + 1}"
    if depth > DEEPEST:
        raise ConfigError([f"{where}: nested too deeply; at most {DEEPEST} levels expected"])
    weight = known.get(id(node))
    if weight == 0:
        raise ConfigError([f"{where}: an alias contains itself"])
    if weight is None:
        known[id(node)] = 0
        weight = known[id(node)] = 1 + sum(_weight(child, name, most, known, depth + 1) for child in _children(node))
    if weight > most:
        raise ConfigError([f"{where}: at most {most} values expected, counting an alias each time it is used"])
    return weight


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
