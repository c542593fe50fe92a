"""The processes in which functions of the user's own run, one call at a time each.

Why processes: a function that hangs, exits or holds the interpreter's lock can be ended without ending the service, and
costs the one interaction that it was given. Each leads a group of its own, so that what it has started ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import orjson
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tracescore.config import PythonMeasureConfig
from tracescore.errors import UsageError
from tracescore.evaluators.custom import worker

STARTING = 60.0
"""Seconds to import the function's module; torch takes ten of them on a slow disk."""
_LONGEST_REPLY = 65_536
_ENDING = 2.0
_HANGS, _PATIENT = 3, 10
"""Calls that hang one after the other until nobody waits for a process any more, and until then, for how many times
the time of a call anybody does."""


def command(settings: PythonMeasureConfig, reads: Sequence[str]) -> list[str]:
    """What starts a worker. -P: the folder of worker.py is no place to import from."""
    folder = str(Path(settings.folder).absolute())
    return [sys.executable, "-P", worker.__file__, settings.callable, folder, ",".join(reads)]


def try_start(setting: str, settings: PythonMeasureConfig, reads: Sequence[str]) -> None:
    """Starts a worker and ends it again. UsageError, beginning with the setting, when there is no such function."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command(settings, reads),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=STARTING,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{setting}: {settings.callable.partition(':')[0]} is not imported within {STARTING:g} s"
        ) from None
    told = orjson.loads(line) if (line := done.stdout.partition(b"\n")[0]) else {"error": "its import ends the process"}
    if "error" in told:
        raise UsageError(f"{setting}: {told['error']}")


class Workers:
    """At most `settings.workers` processes, started when they are needed."""

    def __init__(self, settings: PythonMeasureConfig, reads: Sequence[str]) -> None:
        self._command, self._timeout = command(settings, reads), settings.timeout
        self._slots = anyio.Semaphore(settings.workers)
        self._idle: list[_Worker] = []
        self._calls = self._hung = 0

    async def call(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """What `worker.outcome` or `worker.raised` says of a call, or `error` when there is no answer.

        Calls wait for their turn, but not behind a function that hangs again and again: that would hold up all else
        that is measured of an interaction.
        """
        try:
            if self._hung >= _HANGS:
                self._slots.acquire_nowait()
            else:
                with anyio.fail_after(_PATIENT * self._timeout):
                    await self._slots.acquire()
        except (TimeoutError, anyio.WouldBlock):
            return {"error": "no process was free in time (timeout, workers)"}
        try:
            return await self._in_worker(given)
        finally:
            self._slots.release()

    async def _in_worker(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        while self._idle and self._idle[-1].ended:
            await self._idle.pop().end()
        chosen = self._idle.pop() if self._idle else await _Worker.start(self._command)
        if isinstance(chosen, dict):
            return chosen
        self._calls += 1
        request = {"id": self._calls, "given": given, "seconds": self._timeout}
        try:
            with anyio.fail_after(self._timeout):
                told = await chosen.ask(request)
        except TimeoutError:
            self._hung += 1
            await chosen.end()
            return {"error": f"no value within {self._timeout:g} s; its process was killed"}
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await chosen.end()
            return {"error": "the function ended its process"}
        except BaseException:
            await chosen.end()
            raise
        self._hung = 0
        self._idle.append(chosen)
        return told

    async def close(self) -> None:
        """Ends the processes that wait; may be called twice."""
        idle, self._idle = self._idle, []
        for each in idle:
            await each.end()


class _Worker:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._replies = BufferedByteReceiveStream(process.stdout)  # type: ignore[arg-type]

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Worker | dict[str, Any]:
        """One that is ready, or what it said instead."""
        started = cls(await anyio.open_process(command, stderr=subprocess.DEVNULL, start_new_session=True))
        try:
            with anyio.fail_after(STARTING):
                told = await started._reply()
        except (TimeoutError, anyio.EndOfStream, anyio.IncompleteRead):
            told = {"error": "its process does not start"}
        except BaseException:
            await started.end()
            raise
        if "error" in told:
            await started.end()
            return told
        return started

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._process.stdin.send(json.dumps(request).encode() + b"\n")  # type: ignore[union-attr]
        while True:
            told = await self._reply()
            if told.get("id") == request["id"]:  # a process that forked may answer twice
                return told

    async def _reply(self) -> dict[str, Any]:
        try:
            told = orjson.loads(await self._replies.receive_until(b"\n", _LONGEST_REPLY))
        except (anyio.DelimiterNotFound, orjson.JSONDecodeError):
            raise anyio.IncompleteRead from None
        return told if isinstance(told, dict) else {}

    async def end(self) -> None:
        """Kills the process and all that it started."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_ENDING):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.aclose()
