"""docs/configuration.md: every key with its type, default, meaning and an example, from the models of the code.

A meaning is the docstring below the attribute. Examples come from `example.yaml`, whose documents are configurations
that `check` accepts and together set every key.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import yaml
from annotated_types import Ge, Gt, Le, Lt
from pydantic import JsonValue
from pydantic_core import PydanticUndefined

from tests.documents import DOCS, cell
from tracescore.config import Config
from tracescore.config.access import KnownName, Token
from tracescore.config.gold import Cron, ResponsePath, Zone
from tracescore.config.sampling import AttributePattern
from tracescore.config.types import Address, Duration, Expression, FunctionName, HeaderName, Secret, Section, Size, Url

FILE = DOCS / "configuration.md"
EXAMPLES = Path(__file__).parent / "example.yaml"
NAMES: dict[Any, str] = {
    Address: "address",
    AttributePattern: "text",
    Cron: "cron expression",
    Duration: "duration",
    Expression: "RE2 expression",
    FunctionName: "module:function",
    HeaderName: "header name",
    JsonValue: "any value",
    KnownName: "name",
    ResponsePath: "path into JSON",
    Secret: "secret",
    Size: "size",
    Token: "secret",
    Url: "URL",
    Zone: "time zone",
    bool: "`true`, `false`",
    float: "number",
    int: "whole number",
    str: "text",
}
BOUNDS = ((Gt, "gt", "above"), (Ge, "ge", "at least"), (Lt, "lt", "below"), (Le, "le", "at most"))
UNITS = {
    Duration: ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"), (0.001, "ms")),
    Size: ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
}
UNSET = PydanticUndefined


class Key(NamedTuple):
    """A row: the key below its section, how it is annotated and bounded, its default, what it means."""

    name: str
    hint: Any
    bounds: tuple[Any, ...]
    default: Any
    meaning: str


class Table(NamedTuple):
    """The keys of a section, or of one of its kinds; `path` is where they stand in a file."""

    path: str
    kind: str
    model: type[Section]
    keys: tuple[Key, ...]


def page() -> str:
    """The text of docs/configuration.md: what is written by hand above the first generated heading, and the rest."""
    head = FILE.read_text(encoding="utf-8").split("\n## All defaults\n")[0]
    return head + "\n## All defaults\n\n```yaml\n" + _yaml(_plain(Config())) + "```\n" + "".join(map(_shown, tables()))


def tables() -> list[Table]:
    """Every key there is, section by section."""
    default, hints = Config(), _hints(Config)
    sections = [table for name, hint in hints.items() for table in _tables(name, hint, getattr(default, name))]
    return [*sections, Table("", "", Config, tuple(_keys(Config, default)))]


def _tables(path: str, hint: Any, default: Any) -> Iterator[Table]:
    """The table of a section, or one for each of its kinds; and of the choices between kinds inside."""
    models = _models(hint)
    for model in models:
        kind = get_args(model.model_fields["kind"].annotation)[0] if len(models) > 1 else ""
        yield Table(path, kind, model, tuple(_keys(model, default if isinstance(default, model) else UNSET)))
        for name, inner in _hints(model).items():
            if len(_models(inner)) > 1:
                named = any(get_origin(each) is dict for each in (inner, *get_args(inner)))
                yield from _tables(f"{path}.{name}{'.*' if named else ''}", inner, UNSET)


def _keys(model: type[Section], defaults: Any, prefix: str = "") -> Iterator[Key]:
    """The keys of a model, those of a section inside by their path; sections with kinds have tables of their own."""
    for name, hint in sorted(_hints(model).items(), key=lambda one: one[0] != "kind"):
        field, inner = model.model_fields[name], _models(hint)
        default = (
            getattr(defaults, name) if isinstance(defaults, model) else field.get_default(call_default_factory=True)
        )  # type: ignore[call-arg]
        if not inner or (len(inner) == 1 and not isinstance(default, inner[0]) and isinstance(default, str)):
            yield Key(prefix + name, hint, tuple(field.metadata), default, _texts(model).get(name, ""))
        if len(inner) == 1 and model is not Config:
            many = "[]" if get_origin(hint) is tuple else ""
            yield from _keys(inner[0], default, f"{prefix}{name}{many}.")


def _shown(table: Table) -> str:
    title = f"`{table.path}`" if table.path else "Beside the sections"
    kind = f", kind `{table.kind}`" if table.kind else ""
    about = "" if table.model is Config else inspect.cleandoc(table.model.__doc__ or "") + "\n\n"
    rows = "".join(_row(table, key) for key in table.keys)
    return f"\n## {title}{kind}\n\n{about}| key | type | default | meaning | example |\n|---|---|---|---|---|\n{rows}"


def _row(table: Table, key: Key) -> str:
    kind = cell(_type(key.hint) + _bounds(key.hint, key.bounds))
    shown = cell(_inline(example(table, key)))
    return f"| `{key.name}` | {kind} | {_default(key)} | {cell(key.meaning)} | `{shown}` |\n"


def _default(key: Key) -> str:
    if key.default is UNSET:
        return "required"
    return "none" if key.default in (None, (), {}) else f"`{_inline(_written(key.hint, key.default))}`"


def example(table: Table, key: Key) -> Any:
    """The value of a key in the examples. KeyError, with its path, where no example sets it."""
    path = f"{table.path}.{key.name}".removeprefix(".")
    for document in _examples():
        found = _at(document, path.split("."), table)
        if found is not UNSET:
            return found
    raise KeyError(f"{EXAMPLES.name} sets no {path} ({table.kind or 'any kind'})")


def _at(value: Any, path: list[str], table: Table) -> Any:
    """What stands at the path, in a section of the kind of the table."""
    for depth, step in enumerate(path, start=1):
        if step == "*":
            value = next((each for each in value.values() if each["kind"] == table.kind), UNSET)
            continue
        if not isinstance(value, dict) or step.removesuffix("[]") not in value:
            return UNSET
        value = value[step.removesuffix("[]")]
        if table.kind and depth == table.path.count(".") + 1 and value.get("kind") != table.kind:
            return UNSET
        if step.endswith("[]"):
            value = {name: inner for each in reversed(value) for name, inner in each.items()}
    return value


@cache
def _examples() -> tuple[Any, ...]:
    return tuple(yaml.safe_load_all(EXAMPLES.read_text(encoding="utf-8")))


def _type(hint: Any) -> str:
    """What a value is, in words; its own bounds are said by `_bounds`."""
    known = next((name for kind, name in NAMES.items() if hint is kind), None)
    if known is not None:
        return known
    if _models(hint) == [hint]:
        return "map, see below"
    inside = get_args(hint)
    if get_origin(hint) is Annotated:
        return _type(inside[0])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(each) for each in inside if each is not type(None)))
    if get_origin(hint) is dict:
        of = inside[1]
        name = get_args(inside[0])[-1] if get_origin(inside[0]) is Annotated else "name"
        return f"map: {_type(of)}{_bounds(of, getattr(of, '__metadata__', ()))} by {name}"
    return f"list of {_type(inside[0])}" if inside[-1] is Ellipsis or len(inside) == 1 else f"{len(inside)} numbers"


def _bounds(hint: Any, metadata: tuple[Any, ...]) -> str:
    """The limits among what an annotation or pydantic says of a value."""
    return "".join(
        f", {word} {_written(hint, getattr(one, attribute))}"
        for each in metadata
        for one in getattr(each, "metadata", (each,))
        for kind, attribute, word in BOUNDS
        if isinstance(one, kind)
    )


def _plain(section: Section) -> dict[str, Any]:
    """A section as it would stand in a file; what has no default is left out."""
    written = {name: _written(hint, getattr(section, name)) for name, hint in _hints(type(section)).items()}
    return {name: value for name, value in written.items() if value is not None}


def _written(hint: Any, value: Any) -> Any:
    """A value as it stands in a file: with its unit where it has one."""
    if isinstance(value, Section):
        return _plain(value)
    for kind, units in UNITS.items():
        if value is not None and any(each is kind for each in (hint, *get_args(hint))):
            factor, unit = next((factor, unit) for factor, unit in units if value % factor == 0)
            return f"{value / factor:.0f}{unit}"
    return list(value) if isinstance(value, tuple) else value


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=110)


def _inline(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).split("\n...")[0].strip()


def _hints(model: type[Section]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}


def _models(hint: Any) -> list[type[Section]]:
    if isinstance(hint, type) and issubclass(hint, Section):
        return [] if issubclass(hint, Secret) else [hint]
    return [model for each in get_args(hint) for model in _models(each)]


@cache
def _texts(model: type[Section]) -> dict[str, str]:
    """What the docstring below each attribute says, of the model and those it is derived from."""
    found: dict[str, str] = {}
    for each in reversed([one for one in model.__mro__ if one.__module__.startswith("tracescore")]):
        (body,) = [node for node in ast.parse(inspect.getsource(each)).body if isinstance(node, ast.ClassDef)]
        for node, after in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                found[node.target.id] = str(after.value.value)
    return found
