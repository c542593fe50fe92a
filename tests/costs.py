"""Whether work grows in step with its input: compared within one run, since no machine is as fast as another."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

FACTOR = 10
"""Four times the input may cost this much more: 4 if it grows in step, 16 if with the square, and room for noise."""
_NOISE = 0.005
"""Seconds that anything may take."""


def cpu_seconds(prepare: Callable[[], Callable[[], object]], runs: int = 3) -> float:
    """The least CPU time of some runs, each prepared anew and undisturbed by the garbage collector."""
    least = float("inf")
    for _ in range(runs):
        work = prepare()
        gc.collect()
        gc.disable()
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
        gc.enable()
    return least


def grows_in_step(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Whether `prepare(4 * size)()` costs about four times `prepare(size)()`."""
    few, many = (cpu_seconds(lambda n=n: prepare(n)) for n in (size, 4 * size))
    return many < FACTOR * few + _NOISE
