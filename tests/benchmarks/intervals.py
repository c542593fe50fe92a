"""Coverage and width of the interval of a window: `python -m tests.benchmarks.intervals [STREAMS]`.

Per shape of scores, number of scores and spread of weights: the share of simulated windows whose 95 % interval holds
the true mean, and its width against the normal interval, which is the plain alternative. A row is accepted with a
coverage of at least 95 % less three standard errors of the simulation. The normal interval's own coverage stands
beside it: where it is far below 95 %, being wider is the point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from tracescore.formulas import Vector, effective_count, gaffke_interval, weighted_mean

Draw = Callable[[np.random.Generator, int], Vector]

SHAPES: dict[str, tuple[float, Draw]] = {
    "bernoulli .9": (0.9, lambda rng, n: (rng.random(n) < 0.9).astype(float)),
    "bernoulli .5": (0.5, lambda rng, n: (rng.random(n) < 0.5).astype(float)),
    "beta10 .8": (0.8, lambda rng, n: rng.beta(8, 2, n)),
    "bimodal .7": (0.66, lambda rng, n: np.where(rng.random(n) < 0.7, rng.beta(18, 2, n), rng.beta(2, 18, n))),
    "mostly1 .9": (0.95, lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, rng.random(n))),
    "parts2": (0.7, lambda rng, n: rng.choice([0.0, 0.5, 1.0], n, p=[0.1, 0.4, 0.5])),
    "uniform": (0.5, lambda rng, n: rng.random(n)),
}
"""Name -> (true mean, how to draw)."""
SIZES, WEIGHTS = (5, 20, 50, 100, 500), (1.0, 10.0, 100.0)
CONFIDENT = 1.96


def normal_interval(scores: Vector, weights: Vector) -> tuple[float, float]:
    """Mean and standard error of the weighted scores, as most dashboards would show it."""
    mean, count = weighted_mean(scores, weights) or 0.0, effective_count(weights)
    spread = float(np.sqrt(weighted_mean((scores - mean) ** 2, weights) or 0.0))
    half = CONFIDENT * spread / float(np.sqrt(max(count - 1, 1)))
    return mean - half, mean + half


def row(name: str, size: int, largest: float, streams: int) -> tuple[float, float, float]:
    """Coverage of the interval and of the normal one, and the ratio of their mean widths."""
    rng = np.random.default_rng([size, int(largest), list(SHAPES).index(name)])
    mean, draw = SHAPES[name]
    held = held_normal = 0
    width = width_normal = 0.0
    for _ in range(streams):
        scores = draw(rng, size)
        weights = np.where(rng.random(size) < 0.5, largest, 1.0)
        lower, upper = gaffke_interval(scores, weights, largest)
        low, high = normal_interval(scores, weights)
        held += lower <= mean <= upper
        held_normal += low <= mean <= high
        width += upper - lower
        width_normal += high - low
    return held / streams, held_normal / streams, width / max(width_normal, 1e-9)


def main(streams: int) -> int:
    """Prints the table; 1 when a row is not accepted."""
    least = 0.95 - 3 * (0.95 * 0.05 / streams) ** 0.5
    print(f"{streams} windows a row; accepted from {least:.3f}")
    print(f"{'shape':14} {'n':>4} {'weights':>8} {'coverage':>9} {'normal':>7} {'width':>6}")
    refused = 0
    for name in SHAPES:
        for size in SIZES:
            for largest in WEIGHTS:
                covers, normal, width = row(name, size, largest, streams)
                refused += covers < least
                mark = "" if covers >= least else "  refused"
                print(f"{name:14} {size:4} {largest:6.0f}:1 {covers:9.3f} {normal:7.3f} {width:6.2f}{mark}", flush=True)
    print(f"{refused} rows refused")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
