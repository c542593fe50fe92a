"""The thread that commits changes to the file, all that wait in one transaction."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.lowlevel
import anyio.to_thread
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tracescore import logs
from tracescore.errors import SpoolError
from tracescore.runtime import SLICE
from tracescore.spool.changes import Change, Fact
from tracescore.spool.file import TROUBLES, File, Trouble, trouble
from tracescore.spool.stored import Stored

_log = logging.getLogger("tracescore.spool")

_LARGEST_GROUP = 500
"""Changes in one transaction: more would keep the first of them waiting."""
_RETRY = 1.0
"""Seconds between two attempts while the disk is full or does not work."""
_PROBE = Fact("probe", bytes(2**18))
"""Written to find out whether the disk works again: as large as a request may be, or trouble would come and go."""
_STUCK = 3.0
"""Seconds without a commit after which the process is not ready: a shorter time is no reason to leave the Service."""
_LAST_ATTEMPTS = 5.0
"""Seconds that `close` waits for a disk that does not work."""
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


Effect = Callable[[Change], None]
"""What a change does in memory, once it is on the disk."""


@dataclass(slots=True)
class _Waiting:
    """A change in the queue. `done` is None when nobody waits for it."""

    number: int
    change: Change
    done: asyncio.Future[None] | None


class FileSpool:
    """See `tracescore.spool.Spool`. The event loop queues changes; a thread of its own commits them."""

    durable = True

    def __init__(self, path: Path, max_size: int, registry: CollectorRegistry, *, texts: bool = True) -> None:
        self.applied, self.keeps_texts = 0, texts
        self._path, self._max_size = path, max_size
        self._file: File | None = None
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._ending: deque[tuple[_Waiting, SpoolError | None]] = deque()
        """What is on the disk, or cannot be, and has not taken effect."""
        self._at_work = False
        self._numbered = 0
        self._trouble: Trouble | None = None
        self._began: float | None = None
        """When the commit began that is not done."""
        self._troubled_since: float | None = None
        self._give_up = float("inf")
        self._metrics = _Metrics(registry, self)

    def open(self) -> Stored:
        """Opens the file and gives what an earlier process left; UsageError when that is not possible."""
        self._file = file = File(self._path, self._max_size, texts=self.keeps_texts)
        self._metrics.errors["damaged"].inc(file.was_damaged)
        self._metrics.damaged_rows.inc(file.damaged_rows)
        self.applied = self._numbered = file.last_op()
        return Stored(file.db, self._metrics.errors["unreadable"].inc)

    def start(self, take_effect: Effect) -> None:
        """Begins to commit; changes take effect in the event loop that runs now."""
        self._loop, self._effect = asyncio.get_running_loop(), take_effect
        self._thread = threading.Thread(target=self._work, name="spool", daemon=True)
        self._thread.start()

    def room(self) -> bool:
        """Whether more may come."""
        return self._trouble is None and self._file is not None and self._file.used < self._max_size

    def stuck(self) -> bool:
        """Whether nothing could be committed for some seconds; to be full is no such trouble, as that passes."""
        since = min((at for at in (self._began, self._troubled_since) if at is not None), default=None)
        return since is not None and time.monotonic() - since > _STUCK

    def commit(self, change: Change) -> asyncio.Future[None]:
        """Commits the change; done when it has taken effect."""
        done = asyncio.get_running_loop().create_future()
        self._put(change, done)
        return done

    def note(self, change: Change) -> None:
        """Commits a change for which nobody waits."""
        self._put(change, None)

    async def close(self) -> None:
        """Commits what is waiting and closes the file; gives up after a few seconds while that is not possible."""
        if self._file is None or not hasattr(self, "_thread"):
            return
        self._give_up = time.monotonic() + _LAST_ATTEMPTS
        self._queue.put(None)
        await anyio.to_thread.run_sync(self._thread.join)
        while self._ending:
            await anyio.lowlevel.checkpoint()
        self._file.close()

    def bytes(self) -> float:
        """Size on the disk."""
        return float(self._file.size()) if self._file else 0.0

    def waiting(self) -> float:
        """Changes not on disk yet."""
        return float(self._queue.qsize())

    # ---------------------------------------------------------------- in the event loop

    def _put(self, change: Change, done: asyncio.Future[None] | None) -> None:
        self._numbered += 1
        self._queue.put(_Waiting(self._numbered, change, done))

    def _committed(self, group: Sequence[_Waiting], error: SpoolError | None) -> None:
        self._ending.extend((each, error) for each in group)
        if not self._at_work:
            self._at_work = True
            self._end_changes()

    def _end_changes(self) -> None:
        """Ends changes, in the order in which they were committed, with a turn for everybody else in between."""
        until = time.monotonic() + SLICE
        while self._ending:
            self._end(*self._ending.popleft())
            if self._ending and time.monotonic() >= until:
                self._loop.call_soon(self._end_changes)
                return
        self._at_work = False

    def _end(self, each: _Waiting, error: SpoolError | None) -> None:
        failed: Exception | None = error
        if error is None:
            self.applied = each.number
            try:
                self._effect(each.change)
            except Exception as defect:  # noqa: BLE001 - told to whoever waits; the others must not suffer
                failed = defect
        if each.done is None or each.done.done():
            return
        if failed is None:
            each.done.set_result(None)
        else:
            each.done.set_exception(failed)

    # ---------------------------------------------------------------- in the thread

    def _work(self) -> None:
        group: list[_Waiting] = []
        ending = False
        while not (ending and not group):
            ending = self._collect(group) or ending
            if group or self._trouble:
                group = self._write(group)
            if group or self._trouble:
                if ending and time.monotonic() > self._give_up:
                    _log.error(
                        'event=spool_given_up changes=%d detail="tracescore repeats them after a restart"', len(group)
                    )
                    return
                time.sleep(_RETRY)

    def _collect(self, group: list[_Waiting]) -> bool:
        """Adds what is waiting, and waits for it when there is nothing; whether that was all for ever."""
        try:
            while len(group) < _LARGEST_GROUP:
                each = self._queue.get(block=not group and self._trouble is None)
                if each is None:
                    return True
                group.append(each)
        except queue.Empty:
            pass
        return False

    def _write(self, group: list[_Waiting]) -> list[_Waiting]:
        """Commits the group; gives back what is to be tried again."""
        try:
            self._commit(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            return self._failed(group, error)
        self._recovered()
        self._tell(group)
        return []

    def _commit(self, group: Sequence[_Waiting]) -> None:
        """One transaction; an empty group asks whether the disk works again."""
        assert self._file is not None  # noqa: S101 - the thread is started after `open`
        changes = [(each.number, each.change) for each in group]
        self._began = began = time.monotonic()
        damaged = self._file.damaged_rows
        try:
            self._file.write(changes or [(self.applied, _PROBE)])
        finally:
            self._began = None
            self._metrics.damaged_rows.inc(self._file.damaged_rows - damaged)  # of a mend that had to wait for room
        self._metrics.committed(time.monotonic() - began)

    def _failed(self, group: list[_Waiting], error: Exception) -> list[_Waiting]:
        kind = trouble(error)
        self._metrics.errors[kind].inc()
        if kind == "defect":
            return self._one_by_one(group, error)
        if kind == "damaged":
            self._mend()
        elif self._trouble != kind:
            _log.error('event=spool_%s detail="%s; tracescore asks senders to come back later"', kind, error)
        self._trouble = kind
        self._troubled_since = self._troubled_since or time.monotonic()
        self._tell(
            [each for each in group if each.change.refusable], SpoolError(f"the spool cannot be written: {kind}")
        )
        return [each for each in group if not each.change.refusable]

    def _one_by_one(self, group: list[_Waiting], error: Exception) -> list[_Waiting]:
        """Finds the change that cannot be written, so that the others can."""
        if len(group) == 1:
            change = type(group[0].change).__name__
            logs.defect(_log, error, change=change)
            self._tell(group, SpoolError(f"the spool cannot write a {change}: {type(error).__name__}"))
            return []
        for place, each in enumerate(group, 1):
            if again := self._write([each]):
                return again + group[place:]
        return []

    def _mend(self) -> None:
        assert self._file is not None  # noqa: S101 - as above
        try:
            before = self._file.damaged_rows
            self._file.mend()
            self._metrics.damaged_rows.inc(self._file.damaged_rows - before)
        except Exception as error:  # noqa: BLE001 - it is tried again with the next group
            _log.error('event=spool_damaged detail="tracescore cannot repair it: %s"', error)

    def _recovered(self) -> None:
        if self._trouble is not None:
            self._trouble = self._troubled_since = None
            _log.info("event=spool_recovered")

    def _tell(self, group: Sequence[_Waiting], error: SpoolError | None = None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._committed, group, error)
        except RuntimeError:
            _log.warning("event=spool_unheard changes=%d", len(group))  # the loop has ended before `close`

    @property
    def writable(self) -> bool:
        """Whether the last attempt to write succeeded."""
        return self._trouble is None


class _Metrics:
    """What the spool counts."""

    def __init__(self, registry: CollectorRegistry, spool: FileSpool) -> None:
        def gauge(name: str, meaning: str, read: Callable[[], float]) -> None:
            Gauge(f"tracescore_spool_{name}", meaning, registry=registry).set_function(read)

        gauge(
            "bytes",
            "Size of the spool file; at spool.max_size tracescore asks senders to come back later.",
            spool.bytes,
        )
        gauge("waiting_changes", "Changes not on disk yet.", spool.waiting)
        gauge("writable", "1 while tracescore can write the spool.", lambda: float(spool.writable))
        errors = Counter(
            "tracescore_spool_errors", "Errors of the spool file, by reason.", ["reason"], registry=registry
        )
        self.errors = {reason: errors.labels(reason) for reason in TROUBLES}
        self.damaged_rows = Counter(
            "tracescore_spool_damaged_rows",
            "Rows that tracescore left out because their checksum is wrong or their page unreadable.",
            registry=registry,
        )
        self._commits = Counter("tracescore_spool_commits", "Committed transactions.", registry=registry)
        self._durations = Histogram(
            "tracescore_spool_commit_duration_seconds",
            "Duration of a transaction until it is on disk.",
            buckets=_BUCKETS,
            registry=registry,
        )

    def committed(self, seconds: float) -> None:
        """Counts a transaction."""
        self._commits.inc()
        self._durations.observe(seconds)
