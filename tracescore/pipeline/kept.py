"""What is kept of users: it can be looked at and copied, and what is of one of them erased, wherever it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import anyio.lowlevel

from tracescore.config import Config
from tracescore.model import Interaction, RawTrace
from tracescore.otlp.split import Admits
from tracescore.pipeline.journal import Journal
from tracescore.pipeline.recovery import Parts
from tracescore.pipeline.trace_reader import TraceReader
from tracescore.spool.erasure import Erase, digest_of_user
from tracescore.spool.look import Backup, Look

SELECTORS = ("user", "trace", "conversation")


class Keeper(Protocol):
    """What keeps texts beside the spool and what is in memory for it."""

    async def forget_traces(self, trace_ids: frozenset[str]) -> int:
        """Forgets what it keeps of these traces (in hex); how much that was."""
        ...


def admitting(admits: Admits, erased: Container[bytes]) -> Admits:
    """`admits`, but for traces that were erased: what comes of them later is not taken in."""
    return lambda trace_id: trace_id not in erased and admits(trace_id)


class Kept:
    """See the module. `keepers` by the name of the receipt's line."""

    def __init__(
        self, config: Config, journal: Journal, parts: Parts, reader: TraceReader, keepers: Mapping[str, Keeper | None]
    ) -> None:
        self._config, self._journal, self._parts, self._reader, self._keepers = config, journal, parts, reader, keepers

    async def erase(self, what: str, value: str) -> dict[str, Any]:
        """The receipt: what was erased, and where else it may be. ValueError: there is no such selector or id."""
        if what not in SELECTORS or not value:
            raise ValueError(f"one of {', '.join(SELECTORS)} expected, with an id")
        if what == "trace" and (len(value) != 32 or not set(value.lower()) <= set("0123456789abcdef")):
            raise ValueError(f"trace: 32 hex digits expected; got {value[:40]!r}")
        known = {bytes.fromhex(value)} if what == "trace" else await self._in_memory(what, value)
        change = Erase(known, time.time())
        if what == "conversation":
            change.conversation = value
        if what == "user":
            change.user = digest_of_user(self._config.sampling.salt, value)
        await self._journal.erase(change)
        trace_ids = frozenset(each.hex() for each in change.known)
        kept = {"spans and log records": change.pieces, "results": change.results}
        for name, keeper in self._keepers.items():
            if keeper is not None:
                kept[name] = await keeper.forget_traces(trace_ids)
        kept["turns of conversations"] = self._parts.known_turns.forget(trace_ids)
        kept["files moved aside"] = self._remove_aside()
        return {
            "erased": what,
            "traces": len(trace_ids),
            "gone": kept,
            "stays": "counters, windows, baselines and exemplars: figures and trace ids, without anybody's text",
            "not_reached": list(_destinations(self._config)),
        }

    async def save(self) -> None:
        """Commits what was changed by hand, so that no kill takes it back."""
        await self._journal.save()

    async def look(self) -> dict[str, Any]:
        """What is in the spool; ValueError when there is none."""
        if not self._journal.has_file:
            raise ValueError("spool.path is not set: there is no spool")
        look = Look()
        await self._journal.ask(look)
        return look.found

    async def back_up(self, path: str) -> dict[str, Any]:
        """Copies the spool to a new file; ValueError when that is not possible."""
        if not self._journal.has_file:
            raise ValueError("spool.path is not set: there is no spool")
        backup = Backup(path)
        await self._journal.ask(backup)
        if backup.error:
            raise ValueError(backup.error)
        return {"copied": path}

    async def _in_memory(self, what: str, value: str) -> set[bytes]:
        """The traces in which such an interaction is found, of those that are put together, wait, or were read."""
        means = self._means(what, value)
        found = {bytes.fromhex(each.trace_id) for each in self._parts.queue.waiting() if means(each)}
        needle = value.encode(errors="replace")
        for raw in self._parts.assembly.held():
            if any(needle in each.span or needle in each.resource for each in raw.spans) and any(
                means(each) for each in self._read(raw)
            ):
                found.add(raw.trace_id)
            await anyio.lowlevel.checkpoint()
        return found

    def _read(self, raw: RawTrace) -> list[Interaction]:
        try:
            return self._reader.interactions(raw)
        except Exception:  # noqa: BLE001 - what cannot be read has no interaction, and will have none
            return []

    def _means(self, what: str, value: str) -> Callable[[Interaction], bool]:
        if what == "conversation":
            return lambda interaction: interaction.conversation_id == value
        key = self._config.retain.user
        return lambda interaction: str(interaction.attributes.get(key)) == value

    def _remove_aside(self) -> int:
        """Damaged files were set aside to be looked at; nobody can say what of them is whose, so they go whole."""
        if self._config.spool.path is None:
            return 0
        path = Path(self._config.spool.path)
        files = list(path.parent.glob(f"{path.name}.damaged*"))
        for file in files:
            file.unlink(missing_ok=True)
        return len(files)


def _destinations(config: Config) -> Iterator[str]:
    """Where texts may have gone, or still go, that nobody here can take back."""
    exporters, judge, embedder = config.exporters, config.judge, config.embedder
    if exporters.otlp is not None:
        yield f"exporters.otlp {exporters.otlp.endpoint}"
    if exporters.phoenix is not None:
        yield f"exporters.phoenix {exporters.phoenix.endpoint}"
    if exporters.forward is not None:
        for url in (exporters.forward.http, exporters.forward.grpc):
            if url is not None:
                yield f"exporters.forward {url}"
    for name, model in (("judge", judge), ("embedder", embedder)):
        if model.kind == "openai":
            yield f"{name} {model.where}"
    yield "the senders of the spans, and backups of the files"
