"""The file of a gold set -> its items, or a `ConfigError` that lists every problem with its line.

Read once as rows of plain values with the line each began on (YAML here, the other formats in datasets/files.py), and
validated then by one set of rules for all. In YAML every scalar is text: `reference: No` is the answer "No". The keys
of other tools are read by the table of datasets/keys.py.
"""

import difflib
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tracescore.config.yaml import bytes_within, problem_of, text_within, weigh
from tracescore.datasets import files
from tracescore.datasets.case import conversation
from tracescore.datasets.files import Problems, Row
from tracescore.datasets.keys import LANGSMITH, find, taken, unclear
from tracescore.errors import ConfigError, UsageError
from tracescore.model import Message

KEYS = ("id", "question", "reference", "tags", "required", "contexts", "history", "weight")
LARGEST = 16 * 2**20
"""Bytes of a file."""
MOST_VALUES = 500_000
"""Values in a YAML file, those behind an alias counted every time."""
_LISTS = ("tags", "required", "contexts")
_LONGEST_TAG = 64
_LONGEST_ID = 128
_LARGEST_WEIGHT = 1e6
"""Squares of weights are added up."""

Complain = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GoldItem:
    """A question with its reference answer, one row of a gold set.

    `required` are the parts that an answer must have, where they are given; `contexts` are for apps that take the
    passages with the question; `weight` counts in every mean over the set.
    """

    id: str
    question: str
    reference: str
    tags: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldSet:
    """The items of a file in its order. `hash` changes with whatever could change a score.

    `keys` says which keys of another tool were read.
    """

    name: str
    items: tuple[GoldItem, ...]
    hash: str
    keys: str = ""


def load(path: Path, name: str | None = None) -> GoldSet:
    """The gold set in `path`, called `name` or else as the file; ConfigError lists everything that is wrong with it."""
    try:
        problems: Problems = []
        rows = list(_rows(path, problems))
    except OSError as error:
        raise ConfigError([f"gold.set: {path} cannot be read from {Path.cwd()}: {error.strerror}"]) from None
    items = _items(rows, problems)
    if not items and not problems:
        problems.append((1, "no items; at least one with question and reference expected"))
    if problems:
        raise ConfigError([f"{path}:{line}: {what}" for line, what in sorted(problems)])
    marks = [mark_of(item) for item in sorted(items, key=lambda item: item.id)]
    keys = taken((row for _, row in rows if isinstance(row, Mapping)), ("question", "reference"))
    return GoldSet(name or path.stem, tuple(items), _hash(marks), keys)


def mark_of(item: GoldItem) -> str:
    """Changes when an item is another one under its id: its scores can then not be compared with those before."""
    content = asdict(item)
    return _hash([content[key] for key in KEYS if key not in ("id", "tags", "weight")])


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:12]


# ---------------------------------------------------------------- formats


def _rows(path: Path, problems: Problems) -> Iterator[Row]:
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return _yaml_rows(str(path), text_within(path, LARGEST), problems)
    if suffix not in files.SUFFIXES:
        problems.append((1, f"a name ending in .yaml, .jsonl, .json, .csv or .parquet expected; got {path.name!r}"))
        return iter(())
    try:
        return files.read(bytes_within(path, LARGEST), suffix, problems)
    except UsageError as error:
        raise error if isinstance(error, ConfigError) else ConfigError([f"{path}: {error}"]) from None


def _yaml_rows(name: str, text: str, problems: Problems) -> Iterator[Row]:
    """A list of items, or a mapping with one under `items`."""
    try:
        loader = yaml.BaseLoader(text)
        root = loader.get_single_node()
        if root is not None:
            weigh(root, name, MOST_VALUES)
        if isinstance(root, yaml.MappingNode):
            root = next((value for key, value in root.value if key.value == "items"), root)
        if not isinstance(root, yaml.SequenceNode):
            if root is not None:
                problems.append((root.start_mark.line + 1, "a list of items expected"))
            return
        for node in root.value:
            problems += _twice(node)
            yield node.start_mark.line + 1, loader.construct_object(node, deep=True)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0))
        if isinstance(error, yaml.MarkedYAMLError):
            said = problem_of(error)
        else:
            said = getattr(error, "reason", "nested too deep or broken")
        problems.append((line + 1, f"is not YAML: {said}"))


def _twice(node: yaml.Node) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        name = str(key.value)  # of a key that is no text, which is refused later, whatever
        if name in seen:
            yield key.start_mark.line + 1, f"{name}: set twice in one item"
        seen.add(name)


# ---------------------------------------------------------------- the rules


def _items(rows: Iterable[Row], problems: Problems) -> list[GoldItem]:
    items: list[GoldItem] = []
    ids: dict[str, int] = {}
    asked: dict[tuple[object, ...], int] = {}
    for line, row in rows:
        wrong: list[str] = []
        item = _item(row, wrong.append)
        if item is not None:
            first = ids.setdefault(item.id, line)
            same = asked.setdefault((item.question, item.history, item.contexts), line)
            if same != line:
                wrong.append(f"question: asked before, on line {same}; an item each expected")
            elif first != line:
                wrong.append(f"id: {item.id!r} was given before, on line {first}; a name of its own expected")
            items.append(item)
        problems += [(line, what) for what in wrong]
    return items


def _item(row: object, complain: Complain) -> GoldItem | None:
    if not isinstance(row, Mapping):
        complain(f"an item with question and reference expected; got {_kind(row)}")
        return None
    row = _in_own_words(row, complain)
    for key in row:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, n=1)
            complain(
                f"{key}: unknown key" + (f"; did you mean '{near[0]}'?" if near else f"; known: {', '.join(KEYS)}")
            )
    question, reference = (_text(row, key, complain) for key in ("question", "reference"))
    lists = {key: _texts(row, key, complain) for key in _LISTS}
    if any(len(tag) > _LONGEST_TAG for tag in lists["tags"]):
        complain(f"tags: at most {_LONGEST_TAG} characters each expected")
    history = _history(row, complain)
    item_id = _id(row, question, history, lists["contexts"], complain)
    weight = _weight(row, complain)
    if question is None or reference is None:
        return None
    return GoldItem(item_id, question, reference, history=history, weight=weight, **lists)


def _in_own_words(row: Mapping[Any, Any], complain: Complain) -> Mapping[Any, Any]:
    """A row of another tool as an item; what else it holds (an answer, passages that were retrieved) is left.

    The outputs of an example in a data set of LangSmith are its reference.
    """
    question, reference = find(row, "question"), find(row, "reference")
    if question is None or not (question.key.foreign or (reference is not None and reference.key.foreign)):
        return row
    if reference is None and (answer := find(row, "answer")) is not None and LANGSMITH in answer.key.tools:
        reference = answer
    for what in unclear(row):
        complain(what)
    item = {key: row[key] for key in ("id", "tags", "required", "history", "weight") if row.get(key) is not None}
    item["question"] = question.value
    if isinstance(question.value, list):
        try:
            item["question"], item["history"], _ = conversation(question.value)
        except UsageError as error:
            complain(str(error))
    if reference is not None:
        one = isinstance(reference.value, list) and len(reference.value) == 1
        item["reference"] = reference.value[0] if one else reference.value
    return item


def _kind(value: object) -> str:
    kinds = {str: "text", dict: "a mapping", list: "a list", type(None): "nothing", bool: "true or false"}
    return kinds.get(type(value), "a number")


def _text(row: Mapping[str, object], key: str, complain: Complain) -> str | None:
    value = row.get(key)
    if isinstance(value, str) and value.strip():
        return value
    missing = "required, but not set" if key not in row else None
    complain(
        f"{key}: {missing or ('text expected; got ' + ('a blank one' if isinstance(value, str) else _kind(value)))}"
    )
    return None


def _texts(row: Mapping[str, object], key: str, complain: Complain) -> tuple[str, ...]:
    value = row.get(key)
    values = [value] if isinstance(value, str) else value
    if value is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(each, str) and each.strip() for each in values):
        complain(f"{key}: a list of texts, none of them blank, expected")
        return ()
    return tuple(dict.fromkeys(values)) if key == "tags" else tuple(values)


def _history(row: Mapping[str, object], complain: Complain) -> tuple[Message, ...]:
    turns = row.get("history")
    messages: list[Message] = []
    for turn in turns if isinstance(turns, list) else [turns] if turns is not None else []:
        role, text = (turn.get("role"), turn.get("content")) if isinstance(turn, Mapping) else (None, None)
        if role not in ("user", "assistant") or not isinstance(text, str) or set(turn) != {"role", "content"}:  # type: ignore[arg-type]
            complain("history: a list of turns {role: user or assistant, content: text} expected")
            return ()
        messages.append(Message(str(role), text))
    return tuple(messages)


def _id(
    row: Mapping[str, object],
    question: str | None,
    history: tuple[Message, ...],
    contexts: tuple[str, ...],
    complain: Complain,
) -> str:
    """The id given, or one that stays while question, history and contexts stay."""
    given = row.get("id")
    if given is None:
        return _hash([question, [asdict(turn) for turn in history], contexts])
    shown = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if not isinstance(shown, str) or not shown.strip() or len(shown) > _LONGEST_ID or not shown.isprintable():
        complain(f"id: a name of 1 to {_LONGEST_ID} printable characters expected")
        return ""
    return shown


def _weight(row: Mapping[str, object], complain: Complain) -> float:
    given = 1.0 if row.get("weight") is None else row["weight"]
    try:
        weight = float(given) if isinstance(given, int | float | str) and not isinstance(given, bool) else math.nan
    except (ValueError, OverflowError):
        weight = math.nan
    if not 0 < weight <= _LARGEST_WEIGHT:
        complain(f"weight: a number above 0, at most {_LARGEST_WEIGHT:,.0f}, expected; got {str(given)[:40]!r}")
        return 1.0
    return weight
