"""Work of the model's thread in steps: everybody else gets a turn between two of them, and who is gone takes no more.

All interactions share that thread, and a process that ends waits for the step that is running. So no step may depend
on the size of a text: it reads some sentences, encodes some of them, or compares one statement.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Yields after each step and returns the result."""

ENCODED = 16
"""Texts a step encodes: about a second where each is as long as the model reads."""


def advance(steps: Steps[T]) -> tuple[T] | None:
    """Takes one step: the result, in a tuple, or None while there are more steps to take."""
    try:
        next(steps)
    except StopIteration as stop:
        return (stop.value,)
    return None


def finish(steps: Steps[T]) -> T:
    """Takes all steps at once."""
    while (done := advance(steps)) is None:
        pass
    return done[0]


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`, the last one shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
