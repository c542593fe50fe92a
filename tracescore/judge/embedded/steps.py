"""Work of the model's thread in steps: everybody else gets a turn between two of them, and who is gone takes no more.

All interactions share that thread, and a process that ends waits for the step that is running. So no step may depend
on the size of a text: it reads some sentences, encodes some of them, or compares one statement.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Yields after each step and returns the result."""

READ, ENCODED = 50_000, 8_000
"""Characters that a step reads and encodes: each is some tenths of a second, whatever they are."""


def advance(steps: Steps[T]) -> tuple[T] | None:
    """Takes one step: the result, in a tuple, or None while there are more steps to take."""
    try:
        next(steps)
    except StopIteration as stop:
        return (stop.value,)
    return None


def batches(items: Iterable[T], size: int, measure: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in lists that measure `size` or a little more, the last one less. An empty item counts as 1."""
    batch: list[T] = []
    room = size
    for item in items:
        batch.append(item)
        room -= measure(item) or 1
        if room <= 0:
            yield batch
            batch, room = [], size
    if batch:
        yield batch
