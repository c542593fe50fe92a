"""A result that is there is published, however long the disk takes to have room for it."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.results import interaction, relevancy, result
from tests.running import FREE_PORTS
from tracescore.config.file import parse
from tracescore.errors import SpoolError
from tracescore.model import Interaction, Result
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.scorer import Scorer
from tracescore.service import Service
from tracescore.spool.changes import Finished
from tracescore.spool.file import File

pytestmark = pytest.mark.anyio


class Watcher:
    name = "watcher"

    def __init__(self) -> None:
        self.came = anyio.Event()

    async def export(self, result: Result) -> None:
        del result
        self.came.set()

    async def close(self) -> None:
        pass


async def test_a_result_waits_for_a_full_disk_and_is_published_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracescore.pipeline.evaluating._PUBLISH_GRACE", 0.01)
    monkeypatch.setattr("tracescore.spool.writer._RETRY", 0.01)
    really_write, attempts = File.write, iter(range(50))

    def write(file: File, changes: Sequence[Any]) -> None:
        if any(isinstance(change, Finished) for _, change in changes) and next(attempts, None) is not None:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        really_write(file, changes)

    monkeypatch.setattr(File, "write", write)

    async def score(self: Scorer, interaction: Interaction, evaluators: object) -> Result:
        return replace(result(relevancy(0.5)), interaction=interaction)

    monkeypatch.setattr(Scorer, "score", score)
    watcher, stop = Watcher(), anyio.Event()
    service = Service(parse(f"{FREE_PORTS}spool: {{path: '{tmp_path}/spool'}}", "test"), watchers=[watcher])
    waiting = interaction(1)
    service.ledger.started(waiting, ("answer_relevancy",))
    async with anyio.create_task_group() as tasks:
        await tasks.start(service.run, stop)
        service.queue.put(waiting)
        with anyio.fail_after(30):
            await watcher.came.wait()
        stop.set()
    assert all(tally.pending == 0 for tally in service.ledger.evaluations().values())


async def test_what_a_result_that_cannot_be_written_has_held_is_freed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_write = File.write

    def write(file: File, changes: Sequence[Any]) -> None:
        if any(isinstance(change, Finished) for _, change in changes):
            raise ValueError
        really_write(file, changes)

    monkeypatch.setattr(File, "write", write)
    told = anyio.Event()
    monkeypatch.setattr(Defects, "count", lambda *_: told.set())

    async def score(self: Scorer, interaction: Interaction, evaluators: object) -> Result:
        return replace(result(relevancy(0.5)), interaction=interaction)

    monkeypatch.setattr(Scorer, "score", score)
    stop = anyio.Event()
    service = Service(parse(f"{FREE_PORTS}spool: {{path: '{tmp_path}/spool'}}", "test"))
    gc.disable()
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(service.run, stop)
            service.queue.put(interaction(1))
            with anyio.fail_after(30):
                await told.wait()
            stop.set()
        assert not [each for each in gc.get_objects() if type(each) is SpoolError]
    finally:
        gc.enable()
