"""What an exporter is, and the two kinds of which more is asked: what a class derives from says what becomes of it."""

from abc import abstractmethod
from typing import Any, Protocol

from tracescore.model import Result
from tracescore.spool.state import Persisted, StateCodec


class Exporter(Protocol):
    """Takes results to one place. After a restart it is shown the recent ones again."""

    @abstractmethod
    async def export(self, result: Result) -> None:
        """Takes one result. Never waits for a slow or dead destination."""

    @abstractmethod
    async def close(self) -> None:
        """Delivers what is waiting, within a deadline of its own; may be called twice."""


class Continuing(Exporter):
    """An exporter with figures of its own, which are persisted and go on after a restart."""

    name: str
    """Names the figures in the spool: under another name they are lost."""

    codec: StateCodec[Any]

    @abstractmethod
    def state(self) -> Persisted:
        """The figures at this moment."""

    @abstractmethod
    def resume(self, state: Any) -> None:
        """Goes on from the figures of an earlier process."""

    def refill(self, result: Result) -> None:
        """Is shown a recent result that the figures hold already."""

    async def close(self) -> None:
        """Has nothing to release."""


class Delivering(Exporter):
    """An exporter whose destination may be away for a while. What it has not settled it is given again."""

    name: str
    """Names the exporter in the spool: what is owed to one that is gone is never delivered."""

    def __init__(self, *, durable: bool = False) -> None:
        """`durable`: whether what is left at the end is kept for a next process."""
        self.durable = durable
        self._settled: list[Result] = []

    def settled(self, result: Result) -> None:
        """To be called when the result has been delivered or given up, by the exporter itself."""
        self._settled.append(result)

    def take_settled(self) -> list[Result]:
        """The results that were settled since the last call."""
        settled, self._settled = self._settled, []
        return settled
