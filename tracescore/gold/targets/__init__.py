"""How a gold question reaches the app, and its answer comes back. `TARGETS` is the table of ways."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, get_args

from tracescore.config.gold import GoldTargetConfig
from tracescore.gold.items import GoldItem
from tracescore.gold.targets.http import http_target, openai_target
from tracescore.gold.targets.python import PythonTarget
from tracescore.gold.targets.trace import TraceTarget
from tracescore.model import Interaction

FailedBecause = Literal["unreachable", "timeout", "http_error", "not_json", "no_answer", "raised", "no_trace"]
"""Nobody there; too slow; an error status; no JSON; nothing where the answer should be; the function raised;
nothing of the request came back as spans."""
FAILED_BECAUSE: tuple[FailedBecause, ...] = get_args(FailedBecause)


class Target(Protocol):
    """Asks the app."""

    async def ask(self, item: GoldItem, trace_id: str) -> Interaction:
        """The item's question as the app answered it, once, as part of the trace of this id (32 hex digits).

        Raises TargetFailed. A `release` or `service` that the app did not tell is "unknown".
        """
        ...

    async def close(self) -> None:
        """Releases connections; may be called twice."""
        ...


TARGETS: Mapping[str, Callable[[Any, float], Target]] = {
    "http": http_target,
    "openai": openai_target,
    "python": PythonTarget,
    "trace": TraceTarget,
}
"""Targets by `gold.target.kind`."""


def build_target(settings: GoldTargetConfig, timeout: float) -> Target:
    """The target that `settings` describe; one answer may take `timeout` seconds. UsageError: it cannot be built."""
    return TARGETS[settings.kind](settings, timeout)


__all__ = ["FAILED_BECAUSE", "FailedBecause", "Target", "TraceTarget", "build_target"]
