"""Runs a function of the user's own in a process that may be killed: `python worker.py MODULE:FUNCTION FOLDER READS`.

Stands on the standard library alone, so that it starts at once and whatever the function imports is its own. Requests
come as lines of JSON on standard input, and a line answers each on standard output. Both are put out of the function's
reach first: what it prints goes nowhere, for it could be what a user wrote.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
import numbers
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LONGEST_REASON = 1_000
"""Characters of a reason that are kept."""
OVERTIME = 5.0
"""Seconds after its time from which the process ends itself, should nobody be left to kill it."""
_WANTED = "a number in [0, 1], a bool, None or (value, reason) expected"


def function_of(name: str, folder: str, reads: Sequence[str]) -> Callable[..., Any]:
    """The function MODULE:FUNCTION, from `folder` or where Python looks. ImportError says in a line what is wrong."""
    module_name, _, function_name = name.partition(":")
    for path in (os.getcwd(), folder):  # noqa: PTH109 - sys.path holds texts
        if path not in sys.path:
            sys.path.insert(0, path)
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # noqa: BLE001 - whatever the module does when it is imported, an exit included
        said = " ".join(str(error).split())[:200]
        raise ImportError(f"{module_name} cannot be imported: {type(error).__name__}: {said}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ImportError(f"{module_name} has no function {function_name}")  # noqa: TRY004 - one error for the setting
    try:
        inspect.signature(function).bind(**dict.fromkeys(reads))
    except TypeError as error:
        raise ImportError(f"{name} cannot be called with {', '.join(reads)} by keyword: {error}") from None
    except ValueError:  # a builtin without a signature
        pass
    return function  # type: ignore[no-any-return]


def outcome(returned: Any) -> dict[str, Any]:
    """What a function returned, as `value` (None: not applicable) and `reason`, or as `error`."""
    reason = ""
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], str | None):
        returned, reason = returned[0], (returned[1] or "")[:LONGEST_REASON].encode(errors="replace").decode()
    if returned is None:
        return {"value": None, "reason": reason}
    if not isinstance(returned, numbers.Real) and callable(getattr(returned, "item", None)):
        returned = returned.item()  # of numpy or torch
    if not isinstance(returned, numbers.Real):
        return {"error": f"{_WANTED}; got {type(returned).__name__}"}
    try:
        value = float(returned)
    except OverflowError:
        value = math.inf
    if not 0.0 <= value <= 1.0:  # NaN is not, either
        return {"error": f"{_WANTED}; got {value:g}"}
    return {"value": value, "reason": reason}


def raised(error: BaseException) -> dict[str, Any]:
    """What a function raised: type and place, never the text, which may be what a user wrote."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return {"error": f"the function raised {type(error).__name__}{place}"}


def main() -> None:
    """Answers requests until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(at, mode) for at, mode in ((0, "r"), (1, "w"), (2, "w")))

    def reply(told: dict[str, Any]) -> None:
        replies.write(json.dumps(told).encode() + b"\n")
        replies.flush()

    name, folder, reads = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    sys.argv = [sys.argv[0]]
    process, loop = os.getpid(), asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        function = function_of(name, folder, reads)
    except ImportError as error:
        reply({"error": str(error)})
        return
    reply({"ready": True})
    for line in requests:
        request = json.loads(line)
        told = _called(function, request, loop)
        if os.getpid() != process:  # the function forked and came back twice
            os._exit(0)
        reply({"id": request["id"], **told})


def _called(function: Callable[..., Any], request: dict[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"] + OVERTIME)
    try:
        returned = function(**request["given"])
        if inspect.isawaitable(returned):
            returned = loop.run_until_complete(_awaited(returned))
        return outcome(returned)
    except BaseException as error:  # noqa: BLE001 - whatever the function does, an exit included
        return raised(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


async def _awaited(returned: Any) -> Any:
    return await returned


if __name__ == "__main__":
    main()
