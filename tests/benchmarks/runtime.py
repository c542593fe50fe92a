"""What each trick of `tracescore/runtime.py` buys: `python -m tests.benchmarks.runtime`.

Each figure is measured with the trick and without it, in a process of its own, some times in turn, and the median
counts. What buys nothing here has no place in the package.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import anyio
import orjson

from tests.benchmarks.judge import interaction
from tests.servers import free_port
from tracescore import runtime
from tracescore.exporters import posting

_BODY = b"x" * 300_000
_WAITING = 4_000
"""Interactions that wait for a judge, as many as the memory of a service usually takes."""


async def fairness(on: bool) -> dict[str, float]:
    """Hundreds of replies of a judge come at one moment, a hundred times; requests come meanwhile, one by one."""
    turns, taken = runtime.Fairness(), []
    reply = orjson.dumps({"verdicts": [{"id": str(n), "quote": "thirty days", "verdict": "yes"} for n in range(400)]})

    async def reading() -> None:
        if on:
            await turns.idle(until=time.monotonic() + 0.025)
        else:
            await anyio.lowlevel.checkpoint()
        for _ in range(5):
            orjson.loads(reply)

    async def requests(done: anyio.Event) -> None:
        while not done.is_set():
            begun = time.perf_counter()
            for _ in range(10):  # the steps in which a request is read, parsed, kept and answered
                await anyio.lowlevel.checkpoint()
            taken.append((time.perf_counter() - begun) * 1000)
            await anyio.sleep(0.002)

    done = anyio.Event()
    async with anyio.create_task_group() as sending:
        sending.start_soon(requests, done)
        for _ in range(30):
            async with anyio.create_task_group() as replies:
                for _ in range(200):
                    replies.start_soon(reading)
            await anyio.sleep(0.02)
        done.set()
    return {"ms of the slowest request in a hundred": sorted(taken)[int(len(taken) * 0.99)]}


async def keep_pauses_short(on: bool) -> dict[str, float]:
    """Thousands of interactions wait, and others are read and let go."""
    pauses, begun = [], 0.0

    def watch(phase: str, _info: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.perf_counter()
        else:
            pauses.append((time.perf_counter() - begun) * 1000)

    async with anyio.create_task_group() as tasks:
        if on:
            tasks.start_soon(runtime.keep_pauses_short)
            await anyio.sleep(0.01)
        documents = orjson.dumps([{"id": n, "attributes": {f"key{k}": [k] for k in range(8)}} for n in range(10)])
        gc.callbacks.append(watch)
        waiting = [(interaction(number), orjson.loads(documents)) for number in range(_WAITING)]
        for _ in range(_WAITING):
            waiting.pop(0)
            waiting.append((interaction(0), orjson.loads(documents)))
        gc.callbacks.remove(watch)
        tasks.cancel_scope.cancel()
    return {"ms of the longest pause": max(pauses), "ms of all pauses": sum(pauses)}


async def keep_freed_memory(on: bool) -> dict[str, float]:
    """Bodies are copied on their way from the socket to the parser."""
    if on:
        runtime.keep_freed_memory()
    cpu = time.process_time()
    for _ in range(400):
        body = bytearray(_BODY * 4)
        copies = [bytes(body), bytes(body)]
        del body, copies
    return {"CPU ms per 100 MB of bodies": (time.process_time() - cpu) * 1000 / (400 * len(_BODY) * 4 / 1e8)}


async def drop_tracebacks(on: bool) -> dict[str, float]:
    """Bodies are sent to where nobody listens."""
    if not on:
        posting.drop_tracebacks = lambda _: None
    poster, url = posting.Poster({}, 5.0), f"http://127.0.0.1:{free_port()}"
    left = await _left(lambda: poster.post(url, bytes(bytearray(_BODY))))
    await poster.close()
    return {"kB left per failed request": left}


async def gather(on: bool) -> dict[str, float]:
    """Two calls side by side of which one fails, by `gather` and by a plain group of tasks."""

    async def failing(body: bytes) -> int:
        await anyio.lowlevel.checkpoint()
        raise ValueError(len(body))

    async def waiting(body: bytes) -> int:
        await anyio.sleep_forever()
        return len(body)

    async def by_group(calls: Sequence[Callable[[], Awaitable[int]]]) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                for each in calls:
                    tasks.start_soon(each)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def call() -> None:
        with suppress(ValueError):
            await (runtime.gather if on else by_group)(
                [partial(f, bytes(bytearray(_BODY))) for f in (failing, waiting)]
            )

    return {"kB left per pair of calls": await _left(call)}


async def _left(call: Callable[[], Awaitable[object]], times: int = 20) -> float:
    """Kilobytes per call that only the garbage collector could free."""
    await call()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    for _ in range(times):
        await call()
    await anyio.wait_all_tasks_blocked()
    left = tracemalloc.get_traced_memory()[0]
    gc.collect()
    gc.enable()
    return (left - tracemalloc.get_traced_memory()[0]) / times / 1000


TRICKS = {each.__name__: each for each in (fairness, keep_pauses_short, keep_freed_memory, drop_tracebacks, gather)}


def main(rounds: int) -> None:
    """Prints a table."""
    print(f"{'trick':18} {'measured':40} {'without':>9} {'with':>9}")
    for name in TRICKS:
        found = {on: [_child(name, on=on) for _ in range(rounds)] for on in (False, True)}
        for measured in found[True][0]:
            without, with_it = (statistics.median(run[measured] for run in found[on]) for on in (False, True))
            print(f"{name:18} {measured:40} {without:9.1f} {with_it:9.1f}", flush=True)


def _child(name: str, *, on: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.runtime", "--child", name, *(["--on"] if on else [])]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=TRICKS)
    parser.add_argument("--on", action="store_true")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asyncio.run(TRICKS[options.child](options.on))))
    else:
        main(options.rounds)
