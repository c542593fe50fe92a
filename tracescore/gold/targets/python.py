"""Asking a Python function: for apps that are libraries, and for tests in CI."""

import asyncio
import contextvars
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import anyio
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

from tracescore.config.gold import PythonTargetConfig
from tracescore.errors import TargetFailed, UsageError
from tracescore.gold.items import GoldItem
from tracescore.gold.targets.http import interaction_of
from tracescore.model import Interaction
from tracescore.runtime import drop_tracebacks

_KEYS = frozenset({"answer", "contexts", "release"})
_SETTING = "gold.target.callable"
_MOST_THREADS = 64
"""As many questions as may be asked side by side: with more, the function has not come back from earlier ones."""


class PythonTarget:
    """`kind: python`. A plain function runs in a thread; one that takes `history` or `contexts` gets them by name.

    The threads are its own: a function that never comes back keeps neither anything else from running in a thread nor
    the process from ending.
    """

    def __init__(self, settings: PythonTargetConfig, timeout: float) -> None:
        """UsageError when there is no such function."""
        self._function = _function(settings.callable)
        self._timeout = timeout
        self._threads: set[threading.Thread] = set()
        known = inspect.signature(self._function).parameters
        self._is_async = inspect.iscoroutinefunction(self._function)
        self._takes = [name for name in ("history", "contexts") if name in known]

    async def ask(self, item: GoldItem, trace_id: str) -> Interaction:
        """See `Target`."""
        history = [{"role": turn.role, "content": turn.text} for turn in item.history]
        more = {"history": history, "contexts": list(item.contexts)}
        call = partial(self._function, item.question, **{name: more[name] for name in self._takes})
        above = SpanContext(int(trace_id, 16), 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        try:
            with anyio.fail_after(self._timeout), use_span(NonRecordingSpan(above)):
                answered = await call() if self._is_async else await self._in_thread(call)
                if inspect.isawaitable(answered):
                    answered = await answered
        except TimeoutError:
            raise TargetFailed("timeout", f"no answer within {self._timeout:g} s (gold.timeout)", again=True) from None
        except (Exception, SystemExit) as error:
            drop_tracebacks(error)
            raise TargetFailed("raised", f"the function raised {type(error).__name__}", again=True) from error
        return self._read(item, trace_id, answered)

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        self._threads = {thread for thread in self._threads if thread.is_alive()}
        if len(self._threads) >= _MOST_THREADS:
            raise TimeoutError
        came: Future[Callable[[], Any]] = Future()
        came.set_running_or_notify_cancel()  # the waiting task may go; the thread cannot be stopped
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: came.set_result(_outcome(context, call)), name="gold", daemon=True)
        self._threads.add(thread)
        thread.start()
        return (await asyncio.wrap_future(came))()

    def _read(self, item: GoldItem, trace_id: str, answered: Any) -> Interaction:
        given: Mapping[str, Any] = answered if isinstance(answered, Mapping) else {"answer": answered}
        answer, contexts, release = given.get("answer"), given.get("contexts"), given.get("release", "")
        if not isinstance(answer, str) or not isinstance(release, str) or set(given) - _KEYS:
            got = f"a mapping with {', '.join(sorted(map(str, given)))[:80]}" if given is answered else _name(answered)
            raise TargetFailed(
                "no_answer", f"{_SETTING}: a text or {{answer, contexts?, release?}} expected; got {got}"
            )
        listed = isinstance(contexts, list | tuple) and all(isinstance(text, str) for text in contexts)
        if contexts is not None and not listed:
            raise TargetFailed("no_answer", f"{_SETTING}: contexts: a list of texts expected")
        passages = None if contexts is None else tuple(text for text in contexts if text.strip())
        return interaction_of(item, trace_id, answer, passages, release)

    async def close(self) -> None:
        """See `Target`."""


def _outcome(context: contextvars.Context, call: Callable[[], Any]) -> Callable[[], Any]:
    """Gives what the call gave, or raises what it raised. An exit ends the call and not the service."""
    try:
        answered = context.run(call)
    except Exception as error:  # noqa: BLE001 - whatever the function does
        return partial(_raise, error)
    except BaseException as error:  # noqa: BLE001 - SystemExit, or what a test framework raises to skip
        return partial(_raise, SystemExit(type(error).__name__))
    return lambda: answered


def _raise(error: BaseException) -> None:
    raise error


def _name(value: object) -> str:
    return type(value).__name__


def _function(name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds texts; where people keep the module they name
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the module does when it is imported
        raise UsageError(f"{_SETTING}: {module_name} cannot be imported: {type(error).__name__}: {error}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(f"{_SETTING}: {module_name} has no function {function_name}")
    return function  # type: ignore[no-any-return]
