"""The recording rules: what is known of every measure over every window, from the counters of all replicas.

Why sums: the gauges that tracescore exposes are the view of one process, and an average of averages is wrong as soon
as two replicas scored differently many interactions.

The interval, with n the effective count, m the mean, V the variance, z = 1.96:

    upper = (n m + 1) / (n + 1) + z sqrt(n V + n (1 - m)^2 / (n + 1)) / (n + 1)
    lower =     n m   / (n + 1) - z sqrt(n V + n      m^2  / (n + 1)) / (n + 1)      both clipped to [0, 1]

This is the normal interval after adding one score of 1 (for the upper limit) or of 0 (for the lower one): the
pseudo-observation of Gaffke's interval, which needs the single scores and is what one process shows in its gauges.
Why not the plain normal interval: it has no width at all when all scores are equal. In simulations it held the mean
in 94.9 % of the runs or more where the plain one went down to 63 % (tests/benchmarks/interval_from_sums.py prints
them). Limits of it: below an effective count of 20 nothing is promised, and it holds at each moment, not over all
moments together. The squared sums are over conversations, so answers that resemble each other promise no more than they
know; a conversation that is spread over replicas is one for each of them.

The share of scores below the target has the same interval, with V = m (1 - m); where weights differ that takes them
as no heavier among bad scores than among good ones.

Two things about counters. `increase` does not see what a series begins with, so the rules add the first value of a
release (of a service, environment, judge and context source) that no replica has shown for a week; counters that a
replica restored under a new `instance`, and those of a release that returns, add nothing. And `increase` extrapolates
to the edges of the window, for all sums of a series nearly alike. Means and intervals stand; counts are not exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracescore.config.drift import DriftConfig
from tracescore.model import LIVE_MEASURES

Rule = dict[str, Any]

DAY, WEEK = "1d", "7d"
WINDOWS = ("1h", "6h", DAY, WEEK)
"""Shortest first."""
SUMS = (
    "weight",
    "weighted_score",
    "weight_squared",
    "weight_squared_score",
    "weight_squared_score_squared",
    "below_target_weight",
)
MIN_COUNT = DriftConfig().min_count
"""Effective scores that a window needs before it says anything."""

DEPLOYMENT = "namespace, job"
"""What tells one tracescore deployment from another; its replicas share both."""
IDENTITY = f"{DEPLOYMENT}, service_name, deployment_environment, judge, context_source"
RELEASE = f"{IDENTITY}, service_version"
RECENT = "10m"
"""How far back the rules look for the last value of a gauge, so that a failed scrape changes nothing."""

MEAN, VARIANCE, COUNT = (f"service:tracescore_score:{name}" for name in ("mean", "variance", "effective_count"))
BELOW = "service:tracescore_below_target:ratio"
BELOW_LOWER = "service:tracescore_below_target:lower"
LOWER = "service:tracescore_score:lower"
UPPER = "service:tracescore_score:upper_below_target"
TARGET = "service:tracescore_target:ratio"
EMPTY = '""'
SCRAPED = "job:tracescore_target:scraped"
KNOWN, NEW = "release:tracescore_scores:known", "release:tracescore_scores:new"


OWN = ""
"""Stands for all measures of the users' own, whose counters carry the label `measure`: one rule reads all of them."""
MEASURES = (*LIVE_MEASURES, OWN)


def counter(measure: str, name: str) -> str:
    """The selector of the counters `name` of a measure, without those of slices."""
    if measure != OWN:
        return f"tracescore_{measure}_{name}_total"
    longer = ', __name__!~".+_below_target_weight_total"' if name == "weight" else ""
    return f'{{__name__=~"tracescore_custom_.+_{name}_total"{longer}, slice_key=""}}'


def of(measure: str) -> str:
    """The matcher of what is recorded of a measure."""
    return f'measure="{measure}"' if measure != OWN else f'measure!~"{"|".join(LIVE_MEASURES)}"'


def by(labels: str, measure: str) -> str:
    """What sums of a measure are told apart by: what is recorded of one measure gets its name as a label."""
    return labels if measure != OWN else f"{labels}, measure"


def recording(name: str, expression: str, measure: str, **labels: str) -> Rule:
    """A recording rule about a measure."""
    given = {"measure": measure, **labels} if measure != OWN else labels
    return {"record": name, "expr": expression, **({"labels": given} if given else {})}


def total(name: str) -> str:
    """The recorded sum over a window."""
    return f"service:tracescore_{name}:increase"


def first(name: str) -> str:
    """The recorded first value of a counter of a new release, at the one moment at which the release appears."""
    return f"release:tracescore_{name}:first"


def firsts() -> Iterator[Rule]:
    """Per measure, what the counters of a release begin with.

    Only while the deployment is scraped already: what stands in the first scrape of all may be years old.
    """
    yield {"record": SCRAPED, "expr": f"group by ({DEPLOYMENT}) (tracescore_target_ratio)"}
    for measure in MEASURES:
        known, release = f"{KNOWN}{{{of(measure)}}}", by(RELEASE, measure)
        appears = (
            f"{known}\nunless last_over_time({known}[{WEEK}] offset 1s)\n"
            f"and on ({DEPLOYMENT}) last_over_time({SCRAPED}[{RECENT}] offset 1s)"
        )
        for record, expression in (
            (KNOWN, f"group by ({release}) ({counter(measure, 'weight')})"),
            (NEW, appears),
            *(
                (
                    first(name),
                    (
                        f"sum by ({release}) (min_over_time({counter(measure, name)}[5m]))\n"
                        f"and on ({release}) {NEW}{{{of(measure)}}}"
                    ),
                )
                for name in SUMS
            ),
        ):
            yield recording(record, expression, measure)


def sums() -> Iterator[Rule]:
    """Per measure and window, the sums over all replicas and releases.

    A week of raw counters would be read again every minute; the sums of its days are there already. A subquery looks
    at whole multiples of its step, so the week is that of the last 7 whole days, in UTC.
    """
    for measure in MEASURES:
        for window in WINDOWS:
            for name in SUMS:
                counters = (
                    f"sum by ({by(IDENTITY, measure)}) (\n  increase({counter(measure, name)}[{window}])\n"
                    f"  or sum_over_time({first(name)}{{{of(measure)}}}[{window}])\n)"
                )
                days = f'sum_over_time({total(name)}{{{of(measure)}, window="{DAY}"}}[{WEEK}:{DAY}])'
                yield recording(total(name), days if window == WEEK else counters, measure, window=window)


def estimates() -> list[Rule]:
    """Mean, effective count and intervals of every measure and window, from the sums alone."""
    weight, squares = total("weight"), total("weight_squared")
    expressions = {
        MEAN: f"{total('weighted_score')} / ({weight} > 0)",
        COUNT: f"{weight} ^ 2 / ({squares} > 0)",
        # Rounding, and counters that a scrape caught between two updates, can bring it just below 0.
        VARIANCE: f"""\
clamp_min(
  (
      {total("weight_squared_score_squared")}
    - 2 * {MEAN} * {total("weight_squared_score")}
    + {MEAN} ^ 2 * {squares}
  ) / ({squares} > 0),
  0
)""",
        LOWER: limit(0, MEAN, VARIANCE),
        "service:tracescore_score:upper": limit(1, MEAN, VARIANCE),
        BELOW: f"{total('below_target_weight')} / ({weight} > 0)",
        BELOW_LOWER: limit(0, BELOW, f"{BELOW} * (1 - {BELOW})"),
    }
    return [{"record": name, "expr": expression} for name, expression in expressions.items()]


def limit(end: int, mean: str, variance: str, count: str = COUNT, z: str = "1.96") -> str:
    """The limit of an interval on the side of `end`, 0 or 1, which is also the score of the pseudo-observation.

    `z` is the normal quantile, 1.96 for 95 %.
    """
    sign, known, distance = (
        ("+", f"({count} * {mean} + 1)", f"(1 - {mean}) ^ 2") if end else ("-", f"{count} * {mean}", f"{mean} ^ 2")
    )
    return f"""\
clamp(
    {known} / ({count} + 1)
  {sign} {z} * sqrt(
      {count} * {variance}
    + {count} * {distance} / ({count} + 1)
  ) / ({count} + 1),
  0, 1
)"""


def enough(name: str, window: str) -> str:
    """A recorded estimate where its window, or each of several joined by `|`, holds enough scores."""
    return f'({name}{{window=~"{window}"}} and {COUNT}{{window=~"{window}"}} >= {MIN_COUNT})'


def quality_limit() -> Rule:
    """The lowest upper limit of the windows that are below the target and not contradicted by shorter ones.

    A window is contradicted when the mean of the next shorter one is not below the target, or when the interval of
    any shorter one lies above it: a repair ends the alert long before the bad scores leave the longer windows. A
    shorter window without scores contradicts nothing.
    """
    target = f"on ({DEPLOYMENT}, measure, service_name) group_left () {TARGET}"
    windows = []
    for index, window in enumerate(WINDOWS):
        parts = [f"{enough('service:tracescore_score:upper', window)} < {target}"]
        if index:
            shorter = "|".join(WINDOWS[:index])
            parts += [
                f'({MEAN}{{window="{WINDOWS[index - 1]}"}} >= {target})',
                f"({enough(LOWER, shorter)} >= {target})",
            ]
        windows.append("\n    unless ignoring (window) ".join(parts))
    joined = "\n  or\n    ".join(windows)
    return {"record": UPPER, "expr": f"min without (window) (\n    {joined}\n)"}


def targets() -> Rule:
    """What the mean of each measure of a service should not fall below, as the replicas have it configured."""
    given = "last_over_time(tracescore_target_ratio{{service_name{}}}[{}])"
    own = f"max by ({DEPLOYMENT}, measure, service_name) ({given.format('!=' + EMPTY, RECENT)})"
    of_others = f"max by ({DEPLOYMENT}, measure) ({given.format('=' + EMPTY, RECENT)})"
    expression = (
        f"{own}\nor\n"
        f"group by ({DEPLOYMENT}, measure, service_name) ({MEAN})\n"
        f"* on ({DEPLOYMENT}, measure) group_left ()\n{of_others}"
    )
    return {"record": TARGET, "expr": expression}
