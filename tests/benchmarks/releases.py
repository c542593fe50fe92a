"""How often the interval of a release difference holds it: `python -m tests.benchmarks.releases [RUNS]`.

Per shape of scores and number of scores of the new release against 1,000 of the old one, both alike: the share of runs
whose 95 % interval holds 0, that of the plain normal interval, and how much wider the first is. A row is accepted with
a coverage of at least .93 less two standard errors of the simulation and, at 200 scores, a width of at most 1.2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from tracescore.drift.comparing import CONFIDENT, compare
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.formulas import Vector

Draw = Callable[[np.random.Generator, int], Vector]

SHAPES: dict[str, Draw] = {
    "bernoulli .95": lambda rng, n: (rng.random(n) < 0.95).astype(float),
    "bernoulli .98": lambda rng, n: (rng.random(n) < 0.98).astype(float),
    "beta10 .8": lambda rng, n: rng.beta(8, 2, n),
    "beta10 .95": lambda rng, n: rng.beta(9.5, 0.5, n),
    "90 % ones, else uniform": lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, rng.random(n)),
    "90 % ones, else around .5": lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, rng.beta(5, 5, n)),
}
SIZES, OLD = (25, 50, 200), 1_000
LEAST, WIDEST = 0.93, 1.2


def sums(scores: Vector) -> WeightedSums:
    """Of scores of weight 1."""
    n, total, squares = len(scores), float(scores.sum()), float((scores * scores).sum())
    return WeightedSums(n, total, n, total, squares)


def row(name: str, size: int, runs: int) -> tuple[float, float, float]:
    """Coverage of the interval and of the plain one, and the ratio of their mean widths."""
    rng = np.random.default_rng([size, list(SHAPES).index(name)])
    held = held_plain = 0
    width = width_plain = 0.0
    for _ in range(runs):
        new, old = (SHAPES[name](rng, count) for count in (size, OLD))
        found = compare({0: sums(new)}, {0: sums(old)})
        if found is None:
            raise ValueError("too few scores")
        half = CONFIDENT * float(np.sqrt(new.var() / size + old.var() / OLD))
        held += found.lower <= 0 <= found.upper
        held_plain += abs(found.difference) <= half
        width += found.upper - found.lower
        width_plain += 2 * half
    return held / runs, held_plain / runs, width / width_plain


def main(runs: int) -> int:
    """Prints the table; 1 when a row is not accepted."""
    least = LEAST - 2 * (LEAST * (1 - LEAST) / runs) ** 0.5
    print(f"{runs} runs a row; accepted from {least:.3f}, at {SIZES[-1]} scores up to a width of {WIDEST}")
    print(f"{'shape':26} {'n':>4} {'coverage':>9} {'plain':>6} {'width':>6}")
    refused = 0
    for name in SHAPES:
        for size in SIZES:
            covers, plain, width = row(name, size, runs)
            bad = covers < least or (size == SIZES[-1] and width > WIDEST)
            refused += bad
            print(f"{name:26} {size:4} {covers:9.3f} {plain:6.3f} {width:6.2f}{'  refused' if bad else ''}", flush=True)
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000))
