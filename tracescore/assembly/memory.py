"""What was read of traces that are long closed: enough to recognise a repeat."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict

from prometheus_client import Counter

from tracescore.assembly.held import HeldTrace
from tracescore.model import REMEMBERED_TRACES

REMEMBERED_SECONDS = 3600.0
IDS_OVERHEAD = 250
"""Bytes a remembered trace takes beside 8 for each id."""

_NOTHING = (0.0, array("Q"))


class Memory:
    """Which pieces of traces long closed have been read: 8 bytes each, sorted, the oldest trace forgotten first."""

    def __init__(self, max_bytes: int, forgotten: Counter) -> None:
        self._max_bytes, self._forgotten = max_bytes, forgotten
        self._traces: OrderedDict[bytes, tuple[float, array[int]]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._traces)

    def ids(self, trace_id: bytes) -> array[int]:
        """The pieces of a trace that have been read and let go, in order."""
        return self._traces.get(trace_id, _NOTHING)[1]

    def add(self, held: HeldTrace, now: float) -> None:
        """Adds the ids of a trace, beside those that are remembered of it."""
        _, known = self._pop(held.trace_id)
        ids = {*known, *held.ids()} if known else held.ids()
        self.resume(held.trace_id, array("Q", sorted(ids)), now)

    def resume(self, trace_id: bytes, ids: array[int], at: float) -> None:
        """Adds a trace by all ids that are to be remembered of it, in order."""
        self._traces[trace_id] = at, ids
        self._bytes += IDS_OVERHEAD + 8 * len(ids)
        while len(self._traces) > REMEMBERED_TRACES or self._bytes > self._max_bytes:
            self._pop(next(iter(self._traces)))
            self._forgotten.inc()

    def expire(self, now: float) -> None:
        """Forgets what was added more than an hour ago."""
        while self._traces and next(iter(self._traces.values()))[0] + REMEMBERED_SECONDS <= now:
            self._pop(next(iter(self._traces)))

    def _pop(self, trace_id: bytes) -> tuple[float, array[int]]:
        entry = self._traces.pop(trace_id, None)
        if entry is None:
            return _NOTHING
        self._bytes -= IDS_OVERHEAD + 8 * len(entry[1])
        return entry


def contains(ids: array[int], number: int) -> bool:
    """Whether a number is among those `Memory.ids` gave."""
    at = bisect_left(ids, number)
    return at < len(ids) and ids[at] == number
