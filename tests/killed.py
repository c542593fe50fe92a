"""Runs the command line and kills it with SIGKILL: `python -m tests.killed POINT TIMES serve ...`.

It dies when it comes to the point for the `TIMES`th time. The points are methods of the product that are wrapped
here, so that the product knows nothing of them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tracescore.cli import main as cli
from tracescore.exporters.otlp.exporter import OtlpExporter
from tracescore.exporters.prometheus.exporter import PrometheusExporter
from tracescore.pipeline import journal
from tracescore.pipeline.journal import Journal
from tracescore.service import Service
from tracescore.spool import changes
from tracescore.spool.file import File
from tracescore.spool.writer import FileSpool


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    def __init__(self, times: int) -> None:
        self._left, self._lock = times, threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                die()


def before(owner: type, method: str, countdown: Countdown) -> None:
    original = getattr(owner, method)

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        countdown()
        return original(self, *args, **kwargs)

    setattr(owner, method, wrapped)


def commit(kind: type, countdown: Countdown, *, after: bool) -> None:
    """Before or after a transaction that holds a change of this kind."""
    original = FileSpool._commit

    def wrapped(self: FileSpool, group: Any) -> None:
        here = any(isinstance(each.change, kind) for each in group)
        if here and not after:
            countdown()
        original(self, group)
        if here and after:
            countdown()

    FileSpool._commit = wrapped  # type: ignore[method-assign]


def within(kind: type, countdown: Countdown) -> None:
    """In the middle of a transaction, when a change of this kind has been written and others may follow."""
    original = kind.write  # type: ignore[attr-defined]

    def wrapped(self: Any, tables: Any, op: int) -> None:
        original(self, tables, op)
        countdown()

    kind.write = wrapped  # type: ignore[attr-defined]


def at_any_moment(countdown: Countdown) -> None:
    """About so many tenths of a second after the start."""

    def later() -> None:
        time.sleep(countdown._left * random.uniform(0, 0.2))
        die()

    before(Service, "_started", Countdown(0))
    original = Service._started

    def wrapped(self: Service, *args: Any) -> Any:
        threading.Thread(target=later, daemon=True).start()
        return original(self, *args)

    Service._started = wrapped  # type: ignore[method-assign]


POINTS: dict[str, Callable[[Countdown], None]] = {
    "a request was read": lambda c: before(Journal, "take", c),
    "before the commit of a request": lambda c: commit(changes.Pieces, c, after=False),
    "in the commit of a request": lambda c: within(changes.Pieces, c),
    "after the commit of a request": lambda c: commit(changes.Pieces, c, after=True),
    "before the commit of a reading": lambda c: commit(changes.TracesRead, c, after=False),
    "after the commit of a reading": lambda c: commit(changes.TracesRead, c, after=True),
    "before the commit of a result": lambda c: commit(changes.Finished, c, after=False),
    "after the commit of a result": lambda c: commit(changes.Finished, c, after=True),
    "before the first exporter": lambda c: before(PrometheusExporter, "export", c),
    "between two exporters": lambda c: before(OtlpExporter, "export", c),
    "after a delivery": lambda c: commit(changes.Delivered, c, after=False),
    "before the commit of the totals": lambda c: commit(changes.Totals, c, after=False),
    "in the commit of the totals": lambda c: within(changes.Totals, c),
    "after the commit of the totals": lambda c: commit(changes.Totals, c, after=True),
    "after spans were passed on": lambda c: commit(changes.PassedOn, c, after=False),
    "while the file is opened": lambda c: before(File, "last_op", Countdown(1)),
    "at any moment": at_any_moment,
}


def main() -> None:
    point, times, *arguments = sys.argv[1:]
    journal._TOTALS_EVERY = 0.3  # so that there are totals to die at
    POINTS[point](Countdown(int(times)))
    sys.argv = ["tracescore", *arguments]
    cli.main()


if __name__ == "__main__":
    main()
