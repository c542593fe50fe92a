"""How often the interval of the recording rules holds the true mean: `python -m tests.benchmarks.interval_from_sums`.

Prints, per shape of scores and effective count, the worst coverage over means and weights, of the interval in
deploy/prometheus/estimates.py and of the plain normal one, and how much wider the first is. Then the same interval for
sessions of four answers that resemble each other, with the squared sums over answers, and over conversations as
tracescore counts them, by way of the very increments of its counters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tracescore.exporters.prometheus.conversations import OpenConversations

Array = NDArray[np.float64]
Z, RUNS = 1.96, 4000
MEANS = (0.05, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9, 0.95)
COUNTS = (20, 30, 50, 100, 500)
SESSION, CORRELATION = 4, 0.3


def bernoulli(rng: np.random.Generator, mean: float, size: tuple[int, int]) -> Array:
    """0 or 1."""
    return (rng.random(size) < mean).astype(float)


def beta10(rng: np.random.Generator, mean: float, size: tuple[int, int]) -> Array:
    """One hump."""
    return rng.beta(10 * mean, 10 * (1 - mean), size)


def bimodal(rng: np.random.Generator, mean: float, size: tuple[int, int]) -> Array:
    """Good ones around .9 and bad ones around .1; means beyond those are not to be had."""
    good = rng.random(size) < (mean - 0.1) / 0.8
    return np.where(good, rng.beta(18, 2, size), rng.beta(2, 18, size))


def mostly_edge(rng: np.random.Generator, mean: float, size: tuple[int, int]) -> Array:
    """Mostly 1 (or 0, for low means), else anything."""
    edge = float(mean >= 0.5)
    return np.where(rng.random(size) < abs(2 * mean - 1), edge, rng.random(size))


SHAPES: tuple[Callable[[np.random.Generator, float, tuple[int, int]], Array], ...] = (
    bernoulli,
    beta10,
    bimodal,
    mostly_edge,
)


def intervals(scores: Array, weights: Array) -> tuple[Array, tuple[Array, Array], tuple[Array, Array]]:
    """Effective count, the limits of the rules and the plain normal ones, of every row."""
    total, squares = weights.sum(1), (weights**2).sum(1)
    n, mean = total**2 / squares, (weights * scores).sum(1) / total
    variance = (weights**2 * (scores - mean[:, None]) ** 2).sum(1) / squares

    below, above = (Z * np.sqrt(n * variance + n * d**2 / (n + 1)) / (n + 1) for d in (mean, 1 - mean))
    rules = (n * mean / (n + 1) - below, (n * mean + 1) / (n + 1) + above)
    plain = Z * np.sqrt(variance / n)
    return n, (np.clip(rules[0], 0, 1), np.clip(rules[1], 0, 1)), (mean - plain, mean + plain)


def row(shape: Callable[..., Array], count: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Worst coverage of the two intervals in percent, and the median ratio of their widths."""
    covered: list[tuple[float, float]] = []
    wider = []
    for mean in MEANS:
        if shape is bimodal and not 0.1 <= mean <= 0.9:
            continue
        for heaviest in (1.0, 10.0, 100.0):
            size = (RUNS, count if heaviest == 1 else 2 * count)
            weights = np.where(rng.random(size) < 0.5, heaviest, 1.0)
            n, rules, plain = intervals(shape(rng, mean, size), weights)
            enough = n >= 20 - 1e-9
            hits = [100 * float(((low <= mean) & (mean <= high))[enough].mean()) for low, high in (rules, plain)]
            covered.append((hits[0], hits[1]))
            spread = np.maximum(plain[1] - plain[0], 1e-9)
            wider.append(float(np.median((rules[1] - rules[0])[enough] / spread[enough])))
    return min(c for c, _ in covered), min(c for _, c in covered), float(np.median(wider))


def sessions(mean: float, count: int, rng: np.random.Generator, runs: int = 1_000) -> tuple[float, float]:
    """Coverage with sums over answers and over conversations: `count` of 0 and 1, in sessions with a correlation."""
    both = 1 / CORRELATION - 1
    held = [0, 0]
    for _ in range(runs):
        good = np.repeat(rng.beta(mean * both, (1 - mean) * both, count // SESSION), SESSION)
        scores = (rng.random(len(good)) < good).astype(float)
        open_, squares = OpenConversations(), np.zeros(3)
        for place, score in enumerate(scores):
            squares += open_.add((), str(place // SESSION), 1.0, float(score), 0.0)
        alone = (len(scores), scores.sum(), scores.sum())
        for kind, (weight_squared, crossed, squared) in enumerate((alone, squares)):
            low, high = rule_limits(len(scores), float(scores.sum()), weight_squared, crossed, squared)
            held[kind] += low <= mean <= high
    return held[0] / runs, held[1] / runs


def rule_limits(weight: float, scored: float, squared: float, crossed: float, both: float) -> tuple[float, float]:
    """The limits of the rules, from the five sums."""
    n, mean = weight**2 / squared, scored / weight
    variance = max(0.0, both - 2 * mean * crossed + mean**2 * squared) / squared
    below, above = (Z * np.sqrt(n * variance + n * d**2 / (n + 1)) / (n + 1) for d in (mean, 1 - mean))
    return n * mean / (n + 1) - below, (n * mean + 1) / (n + 1) + above


def main() -> None:
    """Prints the tables."""
    rng = np.random.default_rng(1)
    print("shape        scores  worst coverage: rules  normal   rules/normal width")
    for shape in SHAPES:
        for count in COUNTS:
            rules, plain, wider = row(shape, count, rng)
            print(f"{shape.__name__:12} {count:6}  {rules:21.1f}  {plain:6.1f}   {wider:18.2f}")

    print(f"\nsessions of {SESSION}, correlation {CORRELATION}: coverage by answers, by conversations")
    for mean in (0.8, 0.9):
        for count in (100, 400):
            by_answers, by_conversations = sessions(mean, count, rng)
            print(f"mean {mean} {count:6} scores {100 * by_answers:15.1f} {100 * by_conversations:11.1f}")


if __name__ == "__main__":
    main()
