"""What keeps the event loop responsive: fairness, pauses of the collector, freed memory, calls side by side.

Each trick says what it buys, without and with it, as `python -m tests.benchmarks.runtime` prints it on two busy cores;
what buys nothing measurable is not here.

Errors and what they hold: a traceback holds the frames it passed, and these the texts they worked on. Where a frame
also holds the error, or a future that keeps it, all that is a ring that only the collector finds. So no local variable
keeps a future whose error passes on (await the call itself), and `drop_tracebacks` cuts what libraries keep.
"""

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar, cast

import anyio
import anyio.lowlevel
import anyio.to_thread

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

# ---------------------------------------------------------------- fairness

_QUIET = 5
"""Rounds of the event loop with nothing in them after which it is idle: a request takes many short steps."""
_EMPTY = 0.00003
"""Seconds that such a round takes at the most."""


class Fairness:
    """Scoring is a guest in the event loop: what can wait goes on when nobody else has anything to do.

    Those who wait go on one by one, in the order in which they came, so that others get in between.

    Buys: while 200 replies of a judge come at one moment, again and again, the slowest request in a hundred takes
    23 ms instead of 471.
    """

    def __init__(self) -> None:
        self._first = anyio.Lock()

    async def idle(self, until: float) -> None:
        """Returns when the event loop has nothing else to do, and after `until` (by time.monotonic) in any case.

        It asks again and again; where even empty rounds of the loop take long, it always waits until then.
        """
        quiet, now = 0, time.monotonic()
        async with self._first:
            while True:
                before = now
                await anyio.lowlevel.checkpoint()
                now = time.monotonic()
                quiet = quiet + 1 if now - before < _EMPTY else 0
                if quiet == _QUIET or now >= until:
                    return


SLICE = 0.02
"""Seconds for which something long goes on before everybody else has a turn."""


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Runs the steps to their end, with a turn for everybody else whenever they took long; what they return.

    Buys: while a request of 50,000 spans is split, the slowest turn of the event loop takes 25 ms instead of 300.
    """
    until = time.monotonic() + SLICE
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return cast("T", done.value)
        if time.monotonic() >= until:
            await anyio.lowlevel.checkpoint()
            until = time.monotonic() + SLICE


_one_aside = anyio.CapacityLimiter(1)


async def aside(call: Callable[[], T]) -> T:
    """Runs what is long and cannot be cut into steps in a thread, one such call at a time.

    It is no faster there, but the interpreter takes turns, so that the event loop waits for some milliseconds only.
    """
    return await anyio.to_thread.run_sync(call, limiter=_one_aside)


# ---------------------------------------------------------------- side by side


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Runs the calls side by side; results in the order of `calls`.

    The first error cancels the rest and is raised by itself, not in a group.

    Buys: where one of two calls fails whose texts have 300 kB each, 0.1 kB are left for the collector instead of 608,
    which a plain task group leaves.
    """
    results: dict[int, T] = {}
    errors: list[Exception] = []

    async def run(index: int, scope: anyio.CancelScope) -> None:
        try:
            results[index] = await calls[index]()
        except Exception as error:  # noqa: BLE001 - raised again below, where the caller can see it plainly
            errors[:] = errors or [error]
            scope.cancel()
        except anyio.get_cancelled_exc_class():
            pass  # the group is cancelled whatever comes of it; the group's callback would keep it, and its frames

    if len(calls) == 1:
        return [await calls[0]()]
    async with anyio.create_task_group() as tasks:
        for index in range(len(calls)):
            tasks.start_soon(run, index, tasks.cancel_scope)
    if errors:
        raise errors.pop()  # kept in the list, it would be held by frames that its traceback holds
    return [results[index] for index in range(len(calls))]


async def gather_pair(first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """`gather` for two calls with results of different types."""
    a, b = await gather(cast("Sequence[Callable[[], Awaitable[A | B]]]", (first, second)))
    return cast("A", a), cast("B", b)


# ---------------------------------------------------------------- memory

_NEVER = 2**31 - 1
"""Full collections after which one more is due: none comes by itself."""
_LOOK_EVERY = 10.0
_SWEEP_EVERY = 900.0
"""Seconds. Cycles that become garbage when they are no longer young wait for the sweep."""
_GROWN = 2.0
"""Times the size of the process after the last sweep from which it is swept again."""


async def keep_pauses_short() -> None:
    """Keeps the garbage collector from stopping everything; runs until it is cancelled, one per process.

    Thousands of interactions that wait make it look at hundreds of thousands of objects, for a fifth of a second at
    a time, again and again; nearly all of them will be freed by their reference counts alone. So what is there at
    the start is never looked at, and what has lived for some seconds only now and then, or when the memory grows: an
    error can make a cycle that holds a whole request, and thousands of these would fill the memory.

    Buys: with 4,000 interactions waiting, the longest pause is 24 ms instead of 396, and all together 0.1 s, not 1.4.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], _NEVER)
    since, size = 0.0, _size()
    try:
        while True:
            await anyio.sleep(_LOOK_EVERY)
            since += _LOOK_EVERY
            if since >= _SWEEP_EVERY or _size() > _GROWN * size:
                gc.collect()
                since, size = 0.0, _size()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _size() -> float:
    """The memory of the process, in the system's unit; its peak where the system does not know the present size."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def drop_tracebacks(error: BaseException) -> None:
    """Takes the tracebacks from an exception and from all those that led to it.

    Libraries keep exceptions where the frames of the traceback can reach them, in a future, in a stream or in the list
    of their attempts.

    Buys: of a request of 300 kB that reaches nobody, 1 kB is left for the collector instead of 612.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            waiting += each.__cause__, each.__context__


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h."""
_KEPT = 64 * 2**20
_LARGEST = 32 * 2**20
"""Bytes of free memory that are kept at most, and the largest block that may come from it: glibc takes no more."""


def keep_freed_memory() -> None:
    """Makes glibc keep what was freed instead of giving it back to the system at once; elsewhere does nothing.

    A body is copied several times on its way from the socket to the parser, and each copy is a large block, which would
    have fresh pages every time.

    Buys: 100 MB of bodies of 1.2 MB, copied twice each, cost 24 ms of CPU instead of 88.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
