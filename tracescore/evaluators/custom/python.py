"""A Python function of the user's own. Whatever it does is its own trouble: the interaction has no score, and why."""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio

from tracescore import logs
from tracescore.config import PythonMeasureConfig
from tracescore.errors import UsageError
from tracescore.evaluators.custom import worker
from tracescore.evaluators.custom.measure import OwnMeasure
from tracescore.evaluators.custom.process import Workers, try_start
from tracescore.judge.operations import Session
from tracescore.model import Evaluation, Interaction, Measure, Unscored

_log = logging.getLogger("tracescore.evaluators")
_QUIET = 60.0
"""Seconds between two lines of the log about one measure: it may fail for every interaction."""


class PythonMeasure(OwnMeasure):
    """Calls the function by keyword: in processes of its own, or with `in_process` here, where nothing can end it."""

    kind = "python"

    def __init__(self, setting: str, measure: Measure, settings: PythonMeasureConfig) -> None:
        """UsageError when there is no such function."""
        parts = (settings.callable, str(settings.version), *settings.reads)
        version = hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]
        super().__init__(measure, settings.reads, version, judge=f"python:{measure}")
        self._said = float("-inf")
        self._workers = Workers(settings, self.reads)
        self._call = self._workers.call
        if settings.in_process:
            self._call = _InProcess(setting, settings).call
        else:
            try_start(f"{setting}.callable", settings, self.reads)

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """See `Evaluator`."""
        del session
        told = await self._call(self.texts(interaction))
        if "error" not in told:
            return self.scored(told["value"], told["reason"])
        if time.monotonic() - self._said >= _QUIET:
            self._said = time.monotonic()
            _log.warning('event=custom_measure_failed measure=%s detail="%s"', self.measure, logs.plain(told["error"]))
        return Unscored(self.measure, "internal_error", told["error"])

    async def close(self) -> None:
        """See `OwnMeasure`."""
        await self._workers.close()


class _InProcess:
    """The function in this process: awaited where it is async, else in a thread, of which there are as many."""

    def __init__(self, setting: str, settings: PythonMeasureConfig) -> None:
        try:
            self._function = worker.function_of(settings.callable, settings.folder, settings.reads)
        except ImportError as error:
            raise UsageError(f"{setting}.callable: {error}") from None
        self._timeout, self._threads = settings.timeout, anyio.CapacityLimiter(settings.workers)
        self._is_async = inspect.iscoroutinefunction(self._function)

    async def call(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Workers.call`. A thread that does not come back goes on holding its place."""
        call: Callable[[], Any] = partial(self._function, **given)
        try:
            with anyio.fail_after(self._timeout):
                if self._is_async:
                    returned = await call()
                else:
                    returned = await anyio.to_thread.run_sync(
                        _kept, call, abandon_on_cancel=True, limiter=self._threads
                    )
                    if isinstance(returned, BaseException):
                        return worker.raised(returned)
                if inspect.isawaitable(returned):
                    returned = await returned
            return worker.outcome(returned)
        except TimeoutError:
            return {"error": f"no value within {self._timeout:g} s"}
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the function does
            return worker.raised(error)


def _kept(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - an exit ends the call and not the service
        return error
