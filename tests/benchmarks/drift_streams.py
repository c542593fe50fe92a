"""Streams of scores for the benchmark of drift detection, the shipped recursion over many of them, and its rivals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tracescore.drift.stratum import BETS, grown, odds
from tracescore.formulas import Vector

Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, ...], float], Vector]
Gain = Callable[[Vector, float, float], Vector]
PER_DAY = 100.0
"""Scores a day where time does not matter: thresholds counted in scores are this many times those in days."""
BLOCK = 128
WARM = 8 * BLOCK
"""Scores before a change, so that no detector meets it in a state that it has only at its start."""


@dataclass(frozen=True)
class Shape:
    """A kind of scores: its usual mean, how to draw (rng, shape, mean), and log p(x | after) / p(x | before)."""

    name: str
    mean: float
    draw: Draw
    gain: Gain


def _bernoulli(rng: Rng, size: tuple[int, ...], mean: float) -> Vector:
    return (rng.random(size) < mean).astype(float)


def _counted(x: Vector, before: float, after: float) -> Vector:
    return x * math.log(after / before) + (1 - x) * math.log((1 - after) / (1 - before))


def _beta_gain(x: Vector, before: float, after: float) -> Vector:
    x = x.clip(1e-12, 1 - 1e-12)
    norm = sum(sign * (math.lgamma(10 * m) + math.lgamma(10 * (1 - m))) for sign, m in ((1, before), (-1, after)))
    return 10 * (after - before) * (np.log(x) - np.log1p(-x)) + norm


def _bimodal(rng: Rng, size: tuple[int, ...], mean: float) -> Vector:
    high = rng.random(size) < (mean - 0.1) / 0.8
    drawn = rng.beta(18, 2, size)  # the other half is its mirror image
    return np.where(high, drawn, 1 - drawn)


def _bimodal_gain(x: Vector, before: float, after: float) -> Vector:
    x = x.clip(1e-12, 1 - 1e-12)
    ratio = 16 * (np.log(x) - np.log1p(-x))
    of = [np.logaddexp(math.log((m - 0.1) / 0.8) + ratio, math.log((0.9 - m) / 0.8)) for m in (after, before)]
    return np.asarray(of[0] - of[1])


def _mostly1(rng: Rng, size: tuple[int, ...], mean: float) -> Vector:
    return np.where(rng.random(size) < 2 * mean - 1, 1.0, rng.random(size))


def _mostly1_gain(x: Vector, before: float, after: float) -> Vector:
    p, q = 2 * before - 1, 2 * after - 1
    return np.where(x == 1, math.log(q / p), math.log((1 - q) / (1 - p)))


SHAPES = (
    Shape("bernoulli .9", 0.9, _bernoulli, _counted),
    Shape("bernoulli .7", 0.7, _bernoulli, _counted),
    Shape("beta10 .8", 0.8, lambda rng, size, m: rng.beta(10 * m, 10 * (1 - m), size), _beta_gain),
    Shape("bimodal .8", 0.8, _bimodal, _bimodal_gain),
    Shape("mostly1 .95", 0.95, _mostly1, _mostly1_gain),
    Shape("parts2 .7", 0.7, lambda rng, size, m: rng.binomial(2, m, size) / 2, lambda *a: 2 * _counted(*a)),
)
BY_NAME = {shape.name.split()[0] if shape.mean != 0.7 else shape.name: shape for shape in SHAPES}


def alarms(
    draw: Callable[[int, Vector], Vector],
    reference: float | Vector | Callable[[int, Vector], Vector],
    limit: float,
    streams: int,
    most: int,
    gaps: Callable[[int, Vector], Vector] | None = None,
    family: int = 1,
) -> tuple[Vector, Vector]:
    """Runs the shipped recursion on many streams until the family of each has passed `limit` (days).

    `reference` is a value, one per row, or given by (step of the block, rows). `draw(steps, rows)` and
    `gaps(steps, rows)` give what comes next for some rows, of shape (steps, rows); gaps are asked for first. Rows
    are streams x family. Returns (scores, days) until the alarm, of shape (streams,); inf where there was none
    within `most` scores.
    """
    if callable(reference):
        at = reference
    else:
        fixed = np.broadcast_to(np.asarray(reference, dtype=float), (streams * family,))
        at = lambda _, rows: fixed[rows]  # noqa: E731
    scores, days = np.full(streams, math.inf), np.full(streams, math.inf)
    alive, elapsed, step = np.arange(streams), np.zeros(streams), 0
    evidence = np.zeros((streams * family, len(BETS)))
    while alive.size and step < most:
        rows = (alive[:, None] * family + np.arange(family)).ravel()
        told = np.zeros(alive.size, dtype=bool)
        times = np.full((BLOCK, alive.size), 1 / PER_DAY) if gaps is None else gaps(BLOCK, alive)
        block = draw(BLOCK, rows)
        for number in range(BLOCK):
            gap = times[number]
            evidence = grown(
                evidence, odds(block[number], at(number, rows)), np.repeat(gap, family) if family > 1 else gap
            )
            elapsed += gap
            top = evidence.mean(axis=1)
            passed = (top.reshape(-1, family).max(axis=1) if family > 1 else top) >= limit
            new = passed & ~told
            if new.any():
                scores[alive[new]], days[alive[new]] = step + number + 1, elapsed[new]
                told |= new
        step += BLOCK
        evidence = evidence[np.repeat(~told, family)]
        alive, elapsed = alive[~told], elapsed[~told]
    scores[scores > most] = math.inf
    return scores, days


def steady(shape: Shape, rng: Rng, mean: float | None = None) -> Callable[[int, Vector], Vector]:
    """Independent scores of one mean."""
    return lambda steps, rows: shape.draw(rng, (steps, rows.size), shape.mean if mean is None else mean)


def changing(shape: Shape, rng: Rng, drop: float) -> Callable[[int, Vector], Vector]:
    """WARM scores as usual, then lower ones."""
    drawn = 0

    def draw(steps: int, rows: Vector) -> Vector:
        nonlocal drawn
        drawn += steps
        return shape.draw(rng, (steps, rows.size), shape.mean - (drop if drawn > WARM else 0))

    return draw


def delay(shape: Shape, drop: float, reference: float, limit: float, rng: Rng, streams: int, most: int) -> float:
    """Mean scores from the change to the alarm of the shipped recursion; streams that alarmed before do not count."""
    scores, _ = alarms(changing(shape, rng, drop), reference, limit, streams, WARM + most)
    return mean_run(scores[scores > WARM] - WARM, most)


def mean_run(first: Vector, most: int) -> float:
    """Mean run length from first passages (inf: none within `most`), taken as exponential."""
    seen = np.isfinite(first)
    return float(np.where(seen, first, most).sum()) / max(1, int(seen.sum()))


def _first_over(paths: Vector, limit: float) -> Vector:
    """First step (from 1) at which each column passes the limit."""
    over = paths >= limit
    return np.where(over.any(axis=0), over.argmax(axis=0) + 1.0, math.inf)


def _limit_for(highest: Vector, run: float) -> float:
    """The limit whose mean run length is `run`, given the running maxima (steps, streams) without any change."""
    low, high = 0.0, float(highest[-1].max()) * 1.5 + 1e-9
    for _ in range(30):
        middle = (low + high) / 2
        if mean_run(_first_over(highest, middle), len(highest)) >= run:
            high = middle
        else:
            low = middle
    return high


def _cusum(gains: Vector) -> Vector:
    paths, now = np.empty_like(gains), np.zeros(gains.shape[1])
    for step, gain in enumerate(gains):
        now = np.maximum(0.0, now + gain)
        paths[step] = now
    return paths


def cusum_delay(shape: Shape, drop: float, run: float, rng: Rng, streams: int) -> float:
    """Mean delay of a CUSUM that knows both distributions, at the mean run length `run` without a change."""
    after, steps = shape.mean - drop, int(2 * run)
    null = _cusum(shape.gain(shape.draw(rng, (steps, streams), shape.mean), shape.mean, after))
    limit = _limit_for(np.maximum.accumulate(null, axis=0), run)
    most = min(steps, 20_000)
    scores = np.vstack([shape.draw(rng, (WARM, streams), shape.mean), shape.draw(rng, (most, streams), after)])
    first = _first_over(_cusum(shape.gain(scores, shape.mean, after)), limit)
    return mean_run(first[first > WARM] - WARM, most)


WINDOWS = (10, 20, 40, 80, 160, 320, 640, 1280)


def rolling_limits(shape: Shape, run: float, rng: Rng, streams: int) -> dict[int, float]:
    """For each length of a rolling mean, the fall that it alarms at, for the mean run length `run`."""
    scores = shape.draw(rng, (int(2 * run), streams), shape.mean)
    falls = {n: _falls(scores, n, shape.mean) for n in WINDOWS}
    return {n: _limit_for(np.maximum.accumulate(fall, axis=0), run) for n, fall in falls.items()}


def _falls(scores: Vector, n: int, mean: float) -> Vector:
    sums = np.cumsum(np.vstack([np.zeros((1, scores.shape[1])), scores]), axis=0)
    return np.asarray(mean - (sums[n:] - sums[:-n]) / n).clip(0)


def rolling_delay(shape: Shape, drop: float, limits: dict[int, float], rng: Rng, streams: int, most: int) -> float:
    """Mean delay of the rolling mean that is best for this very drop; its window is full when the change comes."""
    delays = []
    for n, limit in limits.items():
        before, after = (shape.draw(rng, (k, streams), m) for k, m in ((n - 1, shape.mean), (most, shape.mean - drop)))
        delays.append(mean_run(_first_over(_falls(np.vstack([before, after]), n, shape.mean), limit), most))
    return min(delays)
