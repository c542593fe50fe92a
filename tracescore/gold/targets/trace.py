"""Asking an instrumented app, and reading its answer from the trace that the request caused.

The request goes out over HTTP with a traceparent; what the app answers to it is not looked at. Whoever reads traces
hands those of gold requests to `take`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from tracescore.config.gold import TraceTargetConfig
from tracescore.errors import TargetFailed
from tracescore.gold.items import GoldItem
from tracescore.gold.targets.http import AppClient, body_of
from tracescore.model import Interaction


@dataclass(slots=True)
class _Waiting:
    question: str
    came: anyio.Event = field(default_factory=anyio.Event)
    interaction: Interaction | None = None
    spans_came: bool = False


class TraceTarget:
    """`kind: trace`."""

    def __init__(self, settings: TraceTargetConfig, timeout: float) -> None:
        """UsageError when a secret cannot be read."""
        self._wait = settings.wait
        self._client = AppClient(settings.method, settings.url, settings.headers, body_of(settings), timeout)
        self._waiting: dict[str, _Waiting] = {}

    def take(self, trace_id: str, interactions: Sequence[Interaction]) -> bool:
        """Is shown what was read of a gold trace; whether somebody waits for it.

        Of several interactions in it the one with the item's question is the answer, or else the first.
        """
        waiting = self._waiting.get(trace_id)
        if waiting is None:
            return False
        waiting.spans_came = True
        if interactions:
            same = [one for one in interactions if one.question == waiting.question]
            waiting.interaction = (same or list(interactions))[0]
            waiting.came.set()
        return True

    async def ask(self, item: GoldItem, trace_id: str) -> Interaction:
        """See `Target`."""
        waiting = self._waiting[trace_id] = _Waiting(item.question)
        try:
            await self._client.send(item, trace_id)
            with anyio.move_on_after(self._wait):
                await waiting.came.wait()
            if waiting.interaction is None:
                raise TargetFailed("no_trace", self._missing(came=waiting.spans_came))
            return waiting.interaction
        finally:
            del self._waiting[trace_id]

    def _missing(self, *, came: bool) -> str:
        if came:
            return "spans of the request arrived, but hold no question and answer; see tracescore inspect --explain"
        return (
            f"the app answered, but no span of the request came within {self._wait:g} s: it does not pass the "
            "traceparent header on, or sends its spans to another process than this one"
        )

    async def close(self) -> None:
        """See `Target`."""
        await self._client.close()
