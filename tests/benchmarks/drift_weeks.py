"""What the detectors make of traffic that is not stationary: false alarms, drops, and how soon a mend is noticed.

Prints the table of docs/drift.md: `python -m tests.benchmarks.drift_weeks [STREAMS] [SEED]`. Each stream is a detector
with default settings beside seven others, 300 scores a day from a Monday on unless the row says otherwise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from tracescore.config.drift import DriftConfig
from tracescore.drift.baseline import DAY
from tracescore.drift.detector import Detector
from tracescore.drift.stratum import threshold
from tracescore.drift.told import ReportedDrop, gone_on
from tracescore.formulas import Vector

MONDAY = 1_700_438_400.0
LIMIT = threshold(30, 8)
TOLERANCE = DriftConfig().tolerance
NULL_DAYS, FALL, MOST = 30, 0.1, 3_000

Means = Callable[[Vector, np.random.Generator], Vector]
"""(days since Monday, generator) -> the mean of each score."""


def _beta(means: Vector, rng: np.random.Generator) -> Vector:
    return rng.beta(10 * means, 10 * (1 - means))


def _bernoulli(means: Vector, rng: np.random.Generator) -> Vector:
    return (rng.random(means.size) < means) * 1.0


def _weekend(by: float) -> Means:
    return lambda days, _: 0.8 - by * (days % 7 >= 5)


def _unequal_days(days: Vector, rng: np.random.Generator) -> Vector:
    return (0.8 + rng.normal(0, 0.02, int(days[-1]) + 1))[days.astype(int)].clip(0.05, 0.95)


def _tenants(days: Vector, rng: np.random.Generator) -> Vector:
    """Two tenants, of means .87 and .65; the second has 10 to 50 % of the traffic, another share each day."""
    share = rng.uniform(0.1, 0.5, int(days[-1]) + 1)[days.astype(int)]
    return np.where(rng.random(days.size) < share, 0.65, 0.87)


class Traffic(NamedTuple):
    """How the means go, how scores spread about them, and how many there are a day."""

    means: Means
    draw: Callable[[Vector, np.random.Generator], Vector] = _beta
    per_day: int = 300


TRAFFIC = {
    "steady, beta .8": Traffic(_weekend(0)),
    "steady, 0 or 1, .9": Traffic(lambda days, _: np.full(days.size, 0.9), _bernoulli),
    "weekend lower by .05": Traffic(_weekend(0.05)),
    "weekend lower by .10": Traffic(_weekend(0.1)),
    "day-to-day sd .02": Traffic(_unequal_days),
    "mix of tenants, by day": Traffic(_tenants),
    "steady, beta .8, 50 a day": Traffic(_weekend(0), per_day=50),
}
MENDS = (
    ("steady, beta .8", 0.2, 100),
    ("steady, beta .8", 0.1, 500),
    ("steady, beta .8", 0.2, 1_000),
    ("steady, 0 or 1, .9", 0.2, 1_000),
    ("steady, 0 or 1, .9", 0.1, 2_000),
    ("steady, beta .8, 50 a day", 0.2, 100),
)


class Stream:
    """A detector that has learned, and the scores that follow."""

    def __init__(self, traffic: Traffic, days: float, rng: np.random.Generator) -> None:
        """`days` after learning."""
        moments = np.sort(rng.uniform(0, days + 8, rng.poisson(traffic.per_day * (days + 8))))
        self._scores, self._rng = traffic.draw(traffic.means(moments, rng), rng), rng
        self._moments, self._whole = MONDAY + DAY * moments, traffic.draw is _bernoulli
        self.detector, self._next, self.alarms = Detector(DriftConfig()), 0, 0
        self._told: ReportedDrop | None = None
        while self.detector.is_learning:
            self.take()
        self.began = self._next

    @property
    def alarmed(self) -> bool:
        """Whether a change is reported."""
        return self._told is not None

    def take(self, fall: float = 0.0) -> None:
        """The next score, lower by `fall`: of those that are 0 or 1, so many of the ones are none."""
        at, score = float(self._moments[self._next]), float(self._scores[self._next])
        lower = score * (self._rng.random() >= fall / 0.9) if self._whole else max(0.0, score - fall)
        self._next += 1
        self.detector.take(at, "default", lower, weight=1.0, max_weight=1.0, threshold=LIMIT)
        if self._told is None and self.detector.evidence >= LIMIT:
            self._told = ReportedDrop(at, at)
            self.alarms += 1
        self._told = self._told and gone_on(self._told, self.detector, LIMIT)

    def until(self, alarmed: bool, fall: float = 0.0) -> float:
        """Scores until the alarm is as wanted; infinite if it is not within `MOST`."""
        for count in range(1, MOST + 1):
            self.take(fall)
            if self.alarmed == alarmed:
                return count
        return math.inf


class Nulls(NamedTuple):
    """What streams without a fall came to: alarms a month, days learned, and how far references lie below means."""

    alarms: float
    learned: float
    gap: float


def nulls(traffic: Traffic, streams: int, seed: int) -> Nulls:
    """Streams of 30 days on which nothing happens."""
    alarms, learned, gaps = 0, [], []
    for number in range(streams):
        stream = Stream(traffic, NULL_DAYS + 14, np.random.default_rng([seed, 1, number]))
        learned.append((float(stream._moments[stream.began - 1]) - MONDAY) / DAY)
        for _ in range(NULL_DAYS * traffic.per_day):
            stream.take()
        alarms += stream.alarms
        (tested,) = stream.detector.tested.values()
        week = [MONDAY + day * DAY for day in range(7)]
        gaps.append(float(np.mean([tested.baseline.mean_at(at) - tested.baseline.reference_at(at) for at in week])))
    return Nulls(alarms / streams, median(learned), median(gaps))


def falls(traffic: Traffic, streams: int, seed: int) -> list[float]:
    """Scores after a fall of .10 at the end of learning until it is reported."""
    days = MOST / traffic.per_day + 20
    rngs = (np.random.default_rng([seed, 2, number]) for number in range(streams))
    return [Stream(traffic, days, rng).until(alarmed=True, fall=FALL) for rng in rngs]


def mends(traffic: Traffic, fall: float, lasts: int, streams: int, seed: int) -> tuple[list[float], float]:
    """Scores after a mend until the alert ends, and how often it ended while the fall lasted, of a stream."""
    stayed, flapped = [], 0
    for number in range(streams):
        stream = Stream(traffic, (lasts + MOST) / traffic.per_day + 20, np.random.default_rng([seed, 3, number]))
        for _ in range(lasts):
            stream.take(fall)
        flapped += max(0, stream.alarms - 1)
        if stream.alarmed:
            stayed.append(stream.until(alarmed=False))
    return stayed, flapped / streams


def table(streams: int, seed: int) -> Iterator[str]:
    """The lines, in Markdown."""
    yield (
        "| traffic | days learned | reference below the mean, of that swing | false alarms in 30 days "
        "| drop of .10: reported | after scores (median, 90 %) |"
    )
    yield "|---|---|---|---|---|---|"
    for name, traffic in TRAFFIC.items():
        null, told = nulls(traffic, streams, seed), falls(traffic, streams, seed)
        known = sum(map(math.isfinite, told))
        late = np.quantile(told, [0.5, 0.9], method="higher")
        yield (
            f"| {name} | {null.learned:.0f} | {null.gap:.3f}, {max(0.0, null.gap - TOLERANCE):.3f} "
            f"| {null.alarms:.2f} | {known} of {streams} | {late[0]:,.0f}, {late[1]:,.0f} |"
        )
    yield ""
    yield "| drop that is mended | alert over after scores (median, 90 %) | ends and begins again before the mend |"
    yield "|---|---|---|"
    for name, fall, lasts in MENDS:
        stayed, flapped = mends(TRAFFIC[name], fall, lasts, streams, seed)
        late = np.quantile(stayed, [0.5, 0.9], method="higher")
        yield f"| {name}: .{100 * fall:.0f} for {lasts:,} scores | {late[0]:,.0f}, {late[1]:,.0f} | {flapped:.2f} |"


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    for line in table(*(given + [60, 4711][len(given) :])):
        print(line, flush=True)
