"""What must not be lost: the spans of admitted traces, the interactions that wait, results, and totals.

Everything that happens is a change. It is committed to one SQLite file, many changes in one transaction, and only
then takes effect in memory, in the order of the commits. So at any moment the process may be killed: what had an
effect that anybody saw is on the disk, and what is on the disk has its effect after the restart. An OTLP request is
acknowledged, an interaction is counted and a result is published after the commit that holds it.

Without `spool.path` the same calls take effect at once and nothing is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

import anyio.lowlevel
from prometheus_client import CollectorRegistry

from tracescore.config import SpoolConfig
from tracescore.spool.changes import Change
from tracescore.spool.stored import Stored
from tracescore.spool.writer import Effect, FileSpool

_log = logging.getLogger("tracescore.spool")


class Spool(Protocol):
    """Where changes are committed."""

    @property
    def durable(self) -> bool:
        """Whether anything outlives the process."""
        ...

    @property
    def keeps_texts(self) -> bool:
        """Whether what waits outlives it, with what users wrote."""
        ...

    @property
    def applied(self) -> int:
        """The number of the latest change that has taken effect."""
        ...

    def open(self) -> Stored | None:
        """Opens the file and gives what an earlier process left; UsageError when that is not possible."""
        ...

    def start(self, take_effect: Effect) -> None:
        """Begins to commit; every change is then given to `take_effect`, in the event loop that runs now."""
        ...

    def room(self) -> bool:
        """False when senders must come back later: the file has its full size, or cannot be written."""
        ...

    def stuck(self) -> bool:
        """Whether nothing could be committed for some seconds."""
        ...

    def commit(self, change: Change) -> Awaitable[None]:
        """Commits the change; done when it has taken effect, which it does also when nobody waits for it any more.

        SpoolError when a refusable change could not be written; others are tried until they can.
        """
        ...

    def note(self, change: Change) -> None:
        """Commits a change for which nobody waits."""
        ...

    async def close(self) -> None:
        """Commits what is waiting, within a few seconds."""
        ...


class MemorySpool:
    """Keeps nothing."""

    durable = keeps_texts = False
    applied = 0

    def open(self) -> None:
        """Says what it means to have no file."""
        _log.info(
            'event=memory_only detail="a restart loses what waits and resets all counters; set spool.path to keep them"'
        )

    def start(self, take_effect: Effect) -> None:
        """Nothing to begin."""
        self._take_effect = take_effect

    def room(self) -> bool:
        """The memory has limits of its own."""
        return True

    def stuck(self) -> bool:
        """The memory can always be written."""
        return False

    async def commit(self, change: Change) -> None:
        """Takes effect at once; then everybody else has a turn."""
        self._take_effect(change)
        await anyio.lowlevel.cancel_shielded_checkpoint()

    def note(self, change: Change) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        """Nothing to commit."""


def build_spool(settings: SpoolConfig, registry: CollectorRegistry) -> Spool:
    """The spool that the configuration asks for, not yet open."""
    if settings.path is None:
        return MemorySpool()
    if settings.store == "none":
        _log.info('event=texts_in_memory detail="a restart loses what waits; counters and baselines go on"')
    return FileSpool(Path(settings.path), settings.max_size, registry, texts=settings.store == "all")
