"""What drift detection promises, row by row: `python -m tests.benchmarks.drift [SHARE]`.

Every row runs the shipped recursion, baselines and detectors on simulated scores with fixed seeds and says what was
measured and whether that is accepted. SHARE (default 1) scales the number of streams; a tenth is what the test suite
runs. Where a bound is a mean or a share, three standard errors of the simulation are allowed for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from tests.benchmarks import intervals
from tests.benchmarks.drift_streams import (
    BY_NAME,
    PER_DAY,
    SHAPES,
    Shape,
    alarms,
    cusum_delay,
    delay,
    mean_run,
    rolling_delay,
    rolling_limits,
    steady,
)
from tracescore.drift.baseline import BLOCKS, DAY, Sample
from tracescore.drift.stratum import BETS, DOUBT, grown, odds, threshold
from tracescore.formulas import Vector

T = TypeVar("T")

RUN = 10_000.0
"""Scores between false alarms that the rows without a calendar promise."""
TOLERANCE = 0.02
DROPS = (0.1, 0.2, 0.02, 0.05, 0.3)
PROMISED, FAMILY = 30.0, 12
"""Days between false alarms, and detectors, in the rows with a calendar."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    bound: str
    measured: str
    accepted: bool


def _n(full: int, share: float, least: int = 20) -> int:
    return max(least, round(full * share))


def _of(everything: Sequence[T], share: float, few: int) -> Sequence[T]:
    """All of it, or, where only a part of the streams is run, the first few."""
    return everything if share >= 0.5 else everything[:few]


def core(share: float) -> Iterator[Row]:
    """Exact reference, tolerance 0: no more false alarms than promised, and hardly later than who knows everything."""
    for place, shape in enumerate(_of(SHAPES, share, 5)):
        rng, streams = np.random.default_rng(place), _n(500, share)
        runs, _ = alarms(steady(shape, rng), shape.mean, RUN / PER_DAY, streams, 10**7)
        mean, error = float(runs.mean()), float(runs.std()) / streams**0.5
        yield Row(
            f"null, {shape.name}", f">= {RUN:,.0f} - 3 se", f"{mean:,.0f} +- {error:,.0f}", mean + 3 * error >= RUN
        )
        some, yet = _n(400, share), int(4 * RUN)
        limits = rolling_limits(shape, mean, rng, min(200, some))
        for drop in _of(DROPS, share, 2):
            ours = delay(shape, drop, shape.mean, RUN / PER_DAY, rng, some, yet)
            knowing = cusum_delay(shape, drop, mean, rng, min(250, some))
            times = 1.75 if shape.name.startswith("mostly1") and drop < 0.03 else 1.5
            yield _compared(f"drop {drop:.2f}, {shape.name}, v CUSUM", ours, knowing, times, some)
            rolling = rolling_delay(shape, drop, limits, rng, min(200, some), 6_000)
            yield _compared(f"drop {drop:.2f}, {shape.name}, v rolling mean", ours, rolling, 1.2, some)


def _compared(what: str, ours: float, other: float, times: float, streams: int) -> Row:
    noise = 1 + 3 * (2 / streams) ** 0.5 * 0.7  # delays spread by about 0.7 of their mean
    accepted = ours <= max(times * other * noise, other + 8)
    return Row(what, f"<= max({times} x, + 8)", f"{ours:,.0f} v {other:,.0f}: {ours / other:.2f} x", accepted)


def _median_run(shape: Shape, reference: float, rng: np.random.Generator) -> float:
    return float(np.median(alarms(steady(shape, rng), reference, RUN / PER_DAY, 300, int(RUN))[0]))


def _references(shape: Shape, n: int, installs: int, rng: np.random.Generator) -> Vector:
    """What as many installs take for their reference after n scores each."""
    return np.array(
        [
            _sample(shape.draw(rng, (n,), shape.mean)).baseline(TOLERANCE, by_block=False, doubt=DOUBT).references[0]
            for _ in range(installs)
        ]
    )


def _sample(scores: Vector) -> Sample:
    sample = Sample()
    for score in scores:
        sample.add(0.0, float(score), 1.0)
    return sample


def estimated(share: float) -> Iterator[Row]:
    """A learned reference: hardly an install gets more false alarms than promised because its luck was bad.

    None of 120 can't be had: a limit that holds 199 times in 200 is wrong for one of 120 installs now and then.
    """
    installs, each = _n(120, share), _n(20, share, 5)
    for name in ("bernoulli", "bimodal", "mostly1", "beta10"):
        shape, rng = BY_NAME[name], np.random.default_rng(list(BY_NAME).index(name) + 100)
        for n in (200, 500, 2_000):
            references = np.repeat(_references(shape, n, installs, rng), each)
            runs, _ = alarms(steady(shape, rng), references, RUN / PER_DAY, installs * each, int(RUN))
            told = float(np.isfinite(runs).mean())
            doubtful = references[::each][(runs < RUN / 2).reshape(installs, each).mean(axis=1) > 0.3]
            early = sum(_median_run(shape, float(reference), rng) < RUN / 2 for reference in doubtful)
            allowed = 0.1 + 3 * (0.1 * 0.9 / installs) ** 0.5
            yield Row(
                f"baseline of {n}, {name}: alarm in {RUN:,.0f} null scores",
                "<= .10; 0 of 120 installs with a median under half (1 let pass: chance when so few were learned from)",
                f"{told:.3f}; {early}",
                told <= allowed and early <= max(1, installs / 120),
            )
        for drop, most in zip((0.1, 0.2), {"mostly1": (150, 45), "beta10": (75, 30)}.get(name, (350, 90)), strict=True):
            (reference,) = _references(shape, 2_000, 1, rng)
            late = delay(shape, drop, float(reference), RUN / PER_DAY, rng, _n(400, share), int(RUN))
            yield Row(
                f"baseline of 2,000, {name}: delay of a drop of {drop}", f"<= {most}", f"{late:.0f}", late <= most
            )


# ---------------------------------------------------------------- with a calendar


class Calendar:
    """Moments of the scores of each stream: by day nine times as many as by night, and growing over 30 days."""

    def __init__(
        self, streams: int, rng: np.random.Generator, per_day: float, *, growth: float = 1.0, wave: bool = False
    ) -> None:
        """With `wave` day and night go over into each other."""
        self.now, self._rng, self._per_day = np.zeros(streams), rng, per_day
        self._growth, self._wave = growth, wave
        self.moments = np.zeros((0, streams))

    def _rate(self, days: Vector) -> Vector:
        turn = np.sin(2 * np.pi * days) if self._wave else np.where(days % 1.0 < 0.5, 1.0, -1.0)
        return self._per_day * (1 + 0.8 * turn) * (1 + (self._growth - 1) * np.minimum(days / PROMISED, 1.0))

    def gaps(self, steps: int, streams: Vector) -> Vector:
        """Days between scores, of shape (steps, streams), noting the moments."""
        drawn, now = np.empty((steps, streams.size)), self.now[streams]
        moments = np.empty_like(drawn)
        for step in range(steps):
            drawn[step] = self._rng.exponential(size=streams.size) / self._rate(now)
            now = moments[step] = now + drawn[step]
        self.now[streams] = now
        self.moments = moments
        return drawn


def calendar(share: float) -> Iterator[Row]:
    """The promise is one in days, whatever the traffic does."""
    shape = BY_NAME["bernoulli"]
    for family in (1, FAMILY):
        rng, streams = np.random.default_rng(family), _n(400, share)
        times = Calendar(streams, rng, 100.0, growth=4.0)
        _, days = alarms(
            steady(shape, rng), shape.mean, threshold(PROMISED, family), streams, 10**6, times.gaps, family
        )
        mean, error = float(days.mean()), float(days.std()) / streams**0.5
        what = f"nights a ninth of days, traffic x 4, K = {family}"
        yield Row(what, f">= {PROMISED:.0f} d - 3 se", f"{mean:.0f} +- {error:.0f} d", mean + 3 * error >= PROMISED)


def pipeline(share: float) -> Iterator[Row]:
    """Learned baselines of whole weeks, twelve detectors: false alarms in 30 days, and the delay of falls."""
    installs, limit = _n(40, share, 6), threshold(PROMISED, FAMILY)
    for place, per_day in enumerate(_of((100, 1_000, 3_000), share, 1)):
        for name in ("bernoulli", "beta10"):
            shape, rng = BY_NAME[name], np.random.default_rng([place, len(name)])
            n = per_day * (14 if per_day == 100 else 7)
            references = _references(shape, n, installs * FAMILY, rng)
            times = Calendar(installs, rng, per_day)
            _, days = alarms(steady(shape, rng), references, limit, installs, int(per_day * 32), times.gaps, FAMILY)
            rate = float((days <= PROMISED).sum()) / installs
            yield Row(f"{name}, {per_day}/day: false alarms of 12 in 30 d", "<= 1", f"{rate:.2f}", rate <= 1)
            for drop, most in ((0.1, 500), (0.2, 130)):
                late = _delay_in_days(shape, drop, references, limit, rng, per_day)
                yield Row(
                    f"{name}, {per_day}/day: delay of a drop of {drop}", f"<= {most}", f"{late:.0f}", late <= most
                )


def _delay_in_days(
    shape: Shape, drop: float, references: Vector, limit: float, rng: np.random.Generator, per_day: float
) -> float:
    times = Calendar(references.size, rng, per_day)
    runs, _ = alarms(steady(shape, rng, shape.mean - drop), references, limit, references.size, 20_000, times.gaps)
    return mean_run(runs, 20_000)


# ---------------------------------------------------------------- what real traffic does to simple models


def traffic(share: float) -> Iterator[Row]:
    """Conversations, a ratio that changes, a daily swing of the scores, a release that is bad from its first score."""
    rng, streams = np.random.default_rng(7), _n(500, share)
    runs, _ = alarms(_sessions(rng), 0.8, RUN / PER_DAY, streams, 10**7)
    yield _kept("conversations of 4, correlation .3, one mean each", runs)
    yield _kept("two strata (.95 and .75), the ratio of one halved", _strata(rng, streams))
    yield from _swings(rng, _n(40, share, 6), share)
    shape = BY_NAME["bernoulli"]
    references = _references(shape, 7_000, streams, rng)
    bad, _ = alarms(steady(shape, rng, shape.mean - 0.1), references, threshold(PROMISED, FAMILY), streams, 5_000)
    found = float(np.isfinite(bad).mean())
    what = "a release that is .10 worse from its first score"
    yield Row(what, "detected", f"{found:.0%} within {np.max(bad):,.0f} scores", found == 1)


def _kept(what: str, runs: Vector) -> Row:
    mean, error = float(runs.mean()), float(runs.std()) / runs.size**0.5
    return Row(what, f">= {RUN:,.0f} - 3 se", f"{mean:,.0f} +- {error:,.0f}", mean + 3 * error >= RUN)


def _sessions(rng: np.random.Generator) -> Callable[[int, Vector], Vector]:
    """Means of four scores of 0 or 1 that share a chance of their own: correlation .3 needs a + b = 7 / 3."""
    total = 1 / 0.3 - 1
    return lambda steps, rows: rng.binomial(4, rng.beta(0.8 * total, 0.2 * total, (steps, rows.size))) / 4


def _strata(rng: np.random.Generator, streams: int) -> Vector:
    """Two strata of one detector with means of their own; the ratio of the second has just been halved.

    The mean of all scores rises by that, or would fall were it the first: strata that are told apart do not notice.
    """
    means, chance = np.array([0.75, 0.95]), np.array([2 / 3, 1 / 3])
    evidence, since = np.zeros((streams, 2, len(BETS))), np.zeros((streams, 2))
    runs, step, rows = np.full(streams, np.inf), 0, np.arange(streams)
    while np.isinf(runs).any():
        step += 1
        since += 1 / PER_DAY
        which = (rng.random(streams) < chance[1]).astype(int)
        won = odds((rng.random(streams) < means[which]).astype(float), means[which])
        evidence[rows, which] = grown(evidence[rows, which], won, since[rows, which])
        since[rows, which] = 0.0
        runs[np.isinf(runs) & (evidence.mean(axis=(1, 2)) >= RUN / PER_DAY)] = step
    return runs


def _swings(rng: np.random.Generator, installs: int, share: float) -> Iterator[Row]:
    """Scores .04 better at noon and worse at midnight, when there is a ninth of the traffic: false alarms in 30 days.

    With one reference for the day the nights are below it, and the more scores a night has, the surer that is found:
    no test of a mean can promise otherwise. With one for each quarter of the day it is kept.
    """
    shape = BY_NAME["bernoulli"]
    cases = ((300.0, True), (300.0, False), (1_000.0, False), (1_000.0, True), (3_000.0, True))
    for per_day, by_block in _of(cases, share, 1):
        times, limit = Calendar(installs, rng, per_day, wave=True), threshold(PROMISED, FAMILY)

        def draw(steps: int, rows: Vector, times: Calendar = times) -> Vector:
            means = shape.mean + 0.04 * np.sin(2 * np.pi * np.repeat(times.moments, FAMILY, axis=1))
            return (rng.random((steps, rows.size)) < means).astype(float)

        learned = _weeks(shape, per_day, by_block, rng, installs * FAMILY)

        def at(step: int, rows: Vector, times: Calendar = times, learned: Vector = learned) -> Vector:
            return learned[rows, np.repeat(times.moments[step] % 1.0 * BLOCKS, FAMILY).astype(int)]

        _, days = alarms(draw, at, limit, installs, int(32 * per_day), times.gaps, FAMILY)
        rate = float((days <= PROMISED).sum()) / installs
        what = f"daily swing of .04, {per_day:,.0f}/day, reference {'by block' if by_block else 'flat'}"
        yield Row(what, "<= 1 in 30 d", f"{rate:.2f}", rate <= 1)


def _weeks(shape: Shape, per_day: float, by_block: bool, rng: np.random.Generator, rows: int) -> Vector:
    """The references, of shape (rows, blocks), that are learned from a week with the swing."""
    times, steps = Calendar(rows, rng, per_day, wave=True), int(7 * per_day)
    times.gaps(steps, np.arange(rows))
    scores = rng.random((steps, rows)) < shape.mean + 0.04 * np.sin(2 * np.pi * times.moments)
    learned = []
    for moments, column in zip(times.moments.T, scores.T, strict=True):
        sample = Sample()
        for at, score in zip((moments * DAY).tolist(), column.tolist(), strict=True):
            sample.add(at, score, 1.0)
        learned.append(sample.baseline(TOLERANCE, by_block=by_block, doubt=DOUBT).references)
    return np.array(learned)


def interval(share: float) -> Iterator[Row]:
    """Intervals of a window: the worst coverage over shapes and weights, the worst width where weights are equal."""
    streams, most = _n(400, share, 40), {50: 1.6, 100: 1.4, 500: 1.2}
    least = 0.95 - 3 * (0.95 * 0.05 / streams) ** 0.5
    for size in intervals.SIZES:
        rows = {
            (name, weight): intervals.row(name, size, weight, streams)
            for name in intervals.SHAPES
            for weight in intervals.WEIGHTS
        }
        covers = min(row[0] for row in rows.values())
        widths = [ratio for (_, weight), (_, normal, ratio) in rows.items() if weight == 1 and normal >= 0.9]
        width, widest = max(widths, default=0.0), most.get(size, float("inf"))
        bound = f"coverage >= {least:.3f}" + (f", width <= {widest} x normal" if size in most else "")
        shown = f"{covers:.3f}" + (f", {width:.2f} x" if size in most else "")
        yield Row(f"interval, n = {size}", bound, shown, covers >= least and width <= widest)


PARTS = (core, estimated, calendar, pipeline, traffic, interval)


def main(share: float) -> int:
    """Prints the table; 1 when a row is not accepted."""
    refused = 0
    for part in PARTS:
        print(f"\n{(part.__doc__ or '').splitlines()[0]}")
        for row in part(share):
            refused += not row.accepted
            mark = "" if row.accepted else "  REFUSED"
            print(f"  {row.what:62} {row.bound:44} {row.measured}{mark}", flush=True)
    print(f"\n{refused} rows refused")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
