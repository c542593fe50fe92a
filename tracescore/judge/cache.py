"""Remembers answers that do not depend on the interaction, and lets simultaneous askers share one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from tracescore.errors import JudgeError

V = TypeVar("V")


@dataclass(slots=True)
class _Flight:
    landed: anyio.Event = field(default_factory=anyio.Event)
    error: JudgeError | None = None


class Cache(Generic[V]):
    """At most `size` values, the least recently used going first. Errors are shared while in flight, never kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[V]]) -> V:
        """The value of `key`, computed once however many ask for it at the same time.

        Whoever comes first computes. When that one is cancelled or runs out of its own time, the next one
        that waits takes over; any other JudgeError is everybody's.
        """
        while key not in self._values and (flight := self._flights.get(key)) is not None:
            await flight.landed.wait()
            if flight.error is not None and flight.error.reason not in _OWN:
                raise JudgeError(flight.error.reason, flight.error.detail)
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        return await self._compute(key, compute)

    async def _compute(self, key: Hashable, compute: Callable[[], Awaitable[V]]) -> V:
        flight = self._flights[key] = _Flight()
        try:
            value = await compute()
        except JudgeError as error:
            flight.error = JudgeError(error.reason, error.detail)  # `error` itself holds this frame, and so the flight
            raise
        else:
            self._values[key] = value
            if len(self._values) > self._size:
                self._values.popitem(last=False)
            return value
        finally:
            del self._flights[key]
            flight.landed.set()

    def clear(self) -> None:
        """Forgets all values; calls in flight go on."""
        self._values.clear()


_OWN = frozenset({"judge_timeout", "judge_mixed"})
"""Failures of the interaction that asked, not of the question."""
