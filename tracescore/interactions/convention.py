"""What a convention says about a span, and the small readers its file is written with.

A convention is one file under `conventions/` and one row in `table.py`. It never looks at other spans: how the
pieces of a trace are put together is decided once, for all conventions, in `grouping` and `fields`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from tracescore.interactions import values
from tracescore.interactions.flattened import brief, is_place, unflatten
from tracescore.model import LogRecord, Span

T = TypeVar("T")
Kind = Literal[
    "agent",  # an agent, a workflow, a generation with tools: may stand for an interaction by itself
    "chain",  # any other step that holds steps
    "prompt",  # filling in a template
    "llm",
    "retriever",
    "reranker",  # also joiners: what comes out replaces what went in
    "tool",
    "embedding",
    "guardrail",
    "evaluator",
    "other",
]
FLOWS: tuple[Kind, ...] = ("agent", "chain")
"""The kinds of steps that hold steps, and may stand for an interaction."""
SERVER_KINDS = (2, 5)
"""SERVER and CONSUMER: where a request came in, which is not yet what was done about it."""


class Piece(NamedTuple):  # made for every value: a frozen dataclass takes three times as long
    """A value as recorded, and the key it stood at."""

    key: str
    value: Any


@dataclass(slots=True, eq=False)
class Node:
    """A span in its tree, with the log records that belong to it and the conventions it follows.

    `span` is None for a parent that did not arrive.
    """

    span: Span | None
    logs: list[LogRecord] = field(default_factory=list)
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    conventions: tuple[Convention, ...] = ()
    kind: Kind | None = None
    """None: by no convention a step of answering, so an ordinary span."""
    kinds: frozenset[Kind] = frozenset()
    """The kinds of the span and of all below it."""
    offset: int = 0
    """Nanoseconds to add to the span's times: the clock of another service is put right by its caller's."""
    memo: dict[str, Any] = field(default_factory=dict)
    """What `remembered` functions found out about the span."""
    attributes: Mapping[str, Any] = field(init=False)
    """The span's attributes; empty for a parent that did not arrive."""

    def __post_init__(self) -> None:
        """Takes the attributes from the span, once: they are asked for more than anything else."""
        self.attributes = self.span.attributes if self.span else {}

    @property
    def name(self) -> str:
        """The span's name; empty for a parent that did not arrive."""
        return self.span.name if self.span else ""

    @property
    def start(self) -> int:
        """Start in Unix nanoseconds, by the clock of the outermost service."""
        return self.span.start_unix_nano + self.offset if self.span else 0

    @property
    def end(self) -> int:
        """End in Unix nanoseconds, by the same clock."""
        return self.span.end_unix_nano + self.offset if self.span else 0

    @property
    def failed(self) -> bool:
        """Whether the span says that it ended with an error."""
        if self.span is None:
            return False
        keys = self.attributes
        said = keys.get("langfuse.observation.level") == "ERROR" or keys.get("gen_ai.tool.status") == "error"
        return self.span.is_error or said

    def upwards(self) -> Iterator[Node]:
        """The node and all above it, up to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def read(self, what: FieldName) -> tuple[Piece, ...]:
        """All readings of a field, those of the leading convention first; kept, since many ask."""
        found: tuple[Piece, ...] | None = self.memo.get(what)
        if found is None:
            readers = _readers(self.conventions, what)
            if len(readers) == 1:  # the most
                found = tuple(readers[0](self))
            else:
                found = tuple([piece for reader in readers for piece in reader(self)]) if readers else ()
            self.memo[what] = found
        return found


@functools.lru_cache(maxsize=1024)
def _readers(conventions: tuple[Convention, ...], what: FieldName) -> tuple[Reader, ...]:
    """Who reads a field: of few combinations of conventions, and asked for each span."""
    return tuple(one.readers[what] for one in conventions if what in one.readers)


def remembered(work: Callable[[Node], T]) -> Callable[[Node], T]:
    """A function of one node whose result is kept with the node: the same span is looked at from many sides."""
    key = f"{work.__module__}.{work.__qualname__}"

    @functools.wraps(work)
    def recall(node: Node) -> T:
        memo = node.memo
        if key not in memo:
            memo[key] = work(node)
        found: T = memo[key]
        return found

    return recall


@remembered
def heads(node: Node) -> frozenset[str]:
    """The first two segments of each attribute key; the key itself where it has no more.

    Few even where there are many keys: the elements of a list share theirs.
    """
    keys = node.attributes
    return _heads(tuple(keys)) if brief(keys) else frozenset(map(_head, keys))


@functools.lru_cache(maxsize=1024)
def _heads(keys: tuple[str, ...]) -> frozenset[str]:
    """The heads of keys: an app writes few spans of different keys."""
    return frozenset(map(_head, keys))


def _head(key: str) -> str:
    end = key.find(".", key.find(".") + 1)
    return key if end < 0 else key[:end]


Reader = Callable[[Node], Iterable[Piece]]
FieldName = Literal[
    "trace_input",
    "trace_output",
    "input",
    "output",
    "sent",
    "received",
    "documents",
    "rerank_input",
    "query",
    "variables",
    "tool_name",
    "tool_result",
]


def nothing(_node: Node) -> Iterable[Piece]:
    """The reader of a field that a convention does not have."""
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """One way of recording GenAI work on spans.

    `marks` are the first two segments of attribute keys (the key, where it has no more), or the first with its dot;
    `scopes` beginnings of instrumentation scope names; `events` names of span events or log records. Any of them marks
    a span as recorded this way.
    `switch` is the setting that makes it record content.
    """

    name: str
    switch: str
    kind: Callable[[Node], Kind | None]
    marks: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    trace_input: Reader = nothing
    trace_output: Reader = nothing
    input: Reader = nothing
    output: Reader = nothing
    sent: Reader = nothing
    """What a model was sent: messages, or the prompt's text."""
    received: Reader = nothing
    """What a model replied."""
    documents: Reader = nothing
    """What a retriever found or a reranker kept."""
    rerank_input: Reader = nothing
    query: Reader = nothing
    """What a retriever, a reranker or an embedding was asked."""
    variables: Reader = nothing
    """What was filled into a prompt template: a dict."""
    tool_name: Reader = nothing
    tool_result: Reader = nothing
    readers: dict[FieldName, Reader] = field(init=False, default_factory=dict)
    """Those of the fields that the convention has."""

    def __post_init__(self) -> None:
        """Notes which fields the convention has, so that nobody asks it for another."""
        known = ((name, getattr(self, name)) for name in get_args(FieldName))
        self.readers.update((name, reader) for name, reader in known if reader is not nothing)


def attribute(*keys: str) -> Reader:
    """Reads the attributes named, in this order."""

    def read_one(node: Node) -> tuple[Piece, ...]:
        value = node.attributes.get(keys[0])
        return () if value is None else (Piece(keys[0], value),)

    def read(node: Node) -> list[Piece]:
        attributes = node.attributes
        return [Piece(key, value) for key in keys if (value := attributes.get(key)) is not None]

    return read_one if len(keys) == 1 else read


def member(key: str, *names: str) -> Reader:
    """Reads members of a JSON attribute; empty ones are how nothing is written."""

    def read(node: Node) -> Iterator[Piece]:
        data = values.data(node.attributes.get(key))
        for name in names:
            if isinstance(data, dict) and data.get(name):
                yield Piece(f"{key}/{name}", data[name])

    return read


def happening(read: Reader) -> Reader:
    """A reader of span events and log records, which most spans have none of."""

    def read_those(node: Node) -> Iterable[Piece]:
        return read(node) if node.logs or (node.span is not None and node.span.events) else ()

    return read_those


def event(name: str, *keys: str) -> Reader:
    """Reads attributes of the span events called `name`."""

    def read(node: Node) -> Iterator[Piece]:
        for happened in node.span.events if node.span else ():
            if happened.name == name:
                for key in keys:
                    if happened.attributes.get(key) is not None:
                        yield Piece(f"event {name}/{key}", happened.attributes[key])

    return read


def indexed(prefix: str) -> Reader:
    """Reads flattened lists: `prefix.0.a.b`, `prefix.1.a.b` become `[{"a": {"b": ...}}, ...]`."""
    assert prefix.count(".") == 1, prefix  # noqa: S101 - as `heads` are
    start = prefix + "."

    def read(node: Node) -> Iterator[Piece]:
        if prefix in heads(node):
            items = unflatten(node.attributes, start)
            if isinstance(items, dict):  # some keys are no places in a list: they cost themselves
                items = [items[key] for key in sorted(filter(is_place, items), key=int)]
            if items:
                yield Piece(f"{prefix}.N", items)

    return read


def either(*readers: Reader) -> Reader:
    """All readings of several readers, in their order."""

    def read(node: Node) -> list[Piece]:
        return [piece for reader in readers for piece in reader(node)]

    return read


def when(kinds: tuple[Kind, ...], reader: Reader) -> Reader:
    """Reads spans of the given kinds only."""

    def read(node: Node) -> Iterable[Piece]:
        return reader(node) if node.kind in kinds else ()

    return read
