"""Interactions that wait for the judge, bounded by their number and by what their texts take of the memory."""

from collections import deque
from collections.abc import Collection

import anyio
from prometheus_client import CollectorRegistry, Gauge

from tracescore.config import EvaluatorsConfig
from tracescore.model import Interaction


class Room:
    """How much more may wait: `interactions` that many, and of texts about `size` bytes."""

    def __init__(self, interactions: int, size: int) -> None:
        self.interactions, self.size = interactions, size

    def take(self, interaction: Interaction) -> bool:
        """Whether there is room for it, which it then takes. The last one may be larger than what is left."""
        if self.interactions <= 0 or self.size <= 0:
            return False
        self.interactions -= 1
        self.size -= interaction.size
        return True


class Queue:
    """First in, first out. `room` is asked where interactions are read: what waits after a restart always fits."""

    def __init__(self, settings: EvaluatorsConfig, registry: CollectorRegistry) -> None:
        self._settings = settings
        self._queue: deque[Interaction] = deque()
        self._size = self._idle = 0
        self._news, self._closed = anyio.Event(), False
        about = "Bytes of texts that wait for the judge; at evaluators.max_pending_size tracescore sheds new ones."
        held = Gauge("tracescore_evaluators_waiting_bytes", about, registry=registry)
        held.set_function(lambda: self._size)

    def room(self) -> Room:
        """What is left at this moment; a waiting task takes an interaction at once."""
        waiting = len(self._queue) - self._idle
        return Room(self._settings.max_pending - waiting, self._settings.max_pending_size - self._size)

    def put(self, interaction: Interaction) -> None:
        """Appends it, whatever room there is."""
        self._size += interaction.size
        self._queue.append(interaction)
        self._tell()

    async def take(self) -> Interaction | None:
        """The next one, as soon as there is one; None when no more will come."""
        while not (self._queue or self._closed):
            self._idle += 1
            try:
                await self._news.wait()
            finally:
                self._idle -= 1
        return self.take_now()

    def take_now(self) -> Interaction | None:
        """The next one; None when none waits."""
        if not self._queue:
            return None
        interaction = self._queue.popleft()
        self._size -= interaction.size
        return interaction

    def waiting(self) -> list[Interaction]:
        """All that wait, the next one first."""
        return list(self._queue)

    def remove(self, trace_ids: Collection[bytes]) -> list[Interaction]:
        """Takes those of these traces out."""
        removed = [each for each in self._queue if bytes.fromhex(each.trace_id) in trace_ids]
        if removed:
            gone = {id(each) for each in removed}
            self._queue = deque(each for each in self._queue if id(each) not in gone)
            self._size -= sum(each.size for each in removed)
        return removed

    def close(self) -> None:
        """No more will come; what waits can still be taken."""
        self._closed = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
