"""The recording rules that hold releases against one another, over all replicas.

`service:tracescore_release_change:mean`, `:lower` and `:upper` are the running release of a service less the one
before it, over the last seven days: what the dashboard of the releases shows. `tracescore compare --prometheus` reads
the hours, for any two. How they are compared, and the interval, stand in tracescore/drift/comparing.py; these rules are
the same in PromQL.

  release:tracescore_scored:hour   the sums (label `sum`) of what a release scored within the last hour, by judge and
                                   fingerprint: with another fingerprint it is another judge. An hour with two of them
                                   is left out.
  release:tracescore_scored:running_hour
                                   the same since the hour (UTC) began, so that a release that went out twenty minutes
                                   ago is seen
  release:tracescore_scored:part   of the hours of the last seven days (`hours="past"`), and of the running one.
                                   `traffic="adjacent"`: all that the release has; `side_by_side`: hours that the
                                   running one and the one before share, weighted n m / (n + m), which is n times one
                                   less its part of the two; `shared`: the weights of those hours as they are
  release:tracescore_scored:week   both parts together

A subquery looks at whole hours, and at whole steps within the running one. `@ end()` picks the two releases, and the
beginning of the running hour, as they are now, also where the past is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from deploy.prometheus.estimates import (
    DEPLOYMENT,
    MEASURES,
    MIN_COUNT,
    RECENT,
    RELEASE,
    Rule,
    by,
    counter,
    first,
    of,
    recording,
)
from tracescore.drift.comparing import CONFIDENT, MADE_UP, SHARED
from tracescore.exporters.prometheus.series import SumName

SERVICE = f"{DEPLOYMENT}, service_name, deployment_environment"
SCORED = f"{SERVICE}, judge, fingerprint, context_source, measure"
"""What scores can be compared within."""
HOURS = "[7d:1h]"
STEP = "5m"
"""In which the running hour is added up: Prometheus has to scrape twice within it."""
SUMS: tuple[SumName, ...] = get_args(SumName)
LINEAR = SUMS[:2]
"""The sums in which a weight stands once; in the others it is squared."""

JUDGE = "judge:tracescore_fingerprint:hour"
RANK = "release:tracescore_release:rank"
PICKED, RUNNING = "release:tracescore_release:picked", "release:tracescore_release:running"
PAIR = "service:tracescore_release:pair"
HOUR, RUNNING_HOUR = "release:tracescore_scored:hour", "release:tracescore_scored:running_hour"
PART, WEEK = "release:tracescore_scored:part", "release:tracescore_scored:week"
BEGUN = "tracescore:running_hour:begin"
MEAN, COUNT = "release:tracescore_score:mean", "release:tracescore_score:effective_count"
VARIANCE, EFFECT = "release:tracescore_score:variance", "release:tracescore_score:design_effect"
LOWER, UPPER = "release:tracescore_score:lower", "release:tracescore_score:upper"
SHARE, CHOSEN = "service:tracescore_release_shared:ratio", "service:tracescore_release_traffic:chosen"
CHANGE = "service:tracescore_release_change"


def picked(expression: str, release: str = PICKED) -> str:
    """An expression by release for those of a service that a rule has picked, at this moment."""
    return f"({expression} and on ({SERVICE}, service_version) {release} @ end())"


def before(expression: str) -> str:
    """An expression by release for the one before the running one."""
    return f"({picked(expression)} unless on ({SERVICE}, service_version) {RUNNING})"


def release_rules() -> Iterator[Rule]:
    """All of them."""
    yield from _picked()
    yield from _hours()
    yield from _weeks()
    yield from _limits()
    yield from _changes()


def _picked() -> Iterator[Rule]:
    """The running release and the one before: those in use, the newest first, then the last used."""
    by = f"{SERVICE}, service_version"
    seen, used, in_use = (
        f"{how} by ({by}) (last_over_time(tracescore_drift_release_{name}[{RECENT}]))"
        for how, name in (
            ("min", "first_seen_timestamp_seconds"),
            ("max", "used_timestamp_seconds"),
            ("max", "in_use"),
        )
    )
    yield {"record": RANK, "expr": f"({seen} + 1e10 and ({in_use} == 1))\nor\n{used}"}
    yield {"record": PICKED, "expr": f"topk by ({SERVICE}) (2, {RANK}) * 0 + 1"}
    yield {"record": RUNNING, "expr": f"topk by ({SERVICE}) (1, {RANK}) * 0 + 1"}
    other = f'label_replace({before(PICKED)}, "before", "$1", "service_version", "(.*)")'
    yield {"record": PAIR, "expr": f"{RUNNING} * on ({SERVICE}) group_left (before) {other}"}


def _hours() -> Iterator[Rule]:
    """The sums of an hour, and of the running one, by release and by what scored them."""
    models = 'last_over_time(tracescore_judge_info{model!=""}[1h])'
    own = 'last_over_time(tracescore_evaluators_custom_info{judge!=""}[1h])'
    own = f'label_replace({own}, "fingerprint", "$1", "version", "(.*)")'
    judges = f"group by ({DEPLOYMENT}, judge, fingerprint) ({models} or {own})"
    yield {
        "record": JUDGE,
        "expr": f"{judges}\nand on ({DEPLOYMENT}, judge) (count by ({DEPLOYMENT}, judge) ({judges}) == 1)",
    }
    yield {"record": BEGUN, "expr": "vector(time() - time() % seconds(1h))"}
    judged = f"* on ({DEPLOYMENT}, judge) group_left (fingerprint) {JUDGE}"
    for measure in MEASURES:
        release = by(RELEASE, measure)
        for name in SUMS:
            of_step = f"{_scored(measure, name, STEP)} and on () (vector(time()) > on () {BEGUN} @ end())"
            for record, sums in (
                (HOUR, _scored(measure, name, "1h")),
                (RUNNING_HOUR, f"sum_over_time((\n  {of_step}\n)[1h:{STEP}])"),
            ):
                expression = f"{sums}\n{judged}"
                if name == "weight":
                    expression = f"(\n  {expression}\n) > 0"
                else:
                    expression += f'\nand on ({release}) {record}{{{of(measure)}, sum="weight"}}'
                yield recording(record, expression, measure, sum=name)


def _scored(measure: str, name: str, duration: str) -> str:
    """A sum of what each release scored within the last so much, what its counters began with included."""
    begun = f"sum_over_time({first(name)}{{{of(measure)}}}[{duration}])"
    return f"sum by ({by(RELEASE, measure)}) (increase({counter(measure, name)}[{duration}]) or {begun})"


def _weeks() -> Iterator[Rule]:
    """The sums of a week, and which part of a release's scores lies in hours of both."""
    for sums, hours, added_up in (
        (HOUR, "past", f"sum_over_time((\n  {{}}\n){HOURS})"),
        (RUNNING_HOUR, "running", "{}"),
    ):
        for traffic, expression in _weighted(sums):
            labels = {"traffic": traffic, "hours": hours}
            yield {"record": PART, "expr": added_up.format(expression), "labels": labels}
    yield {"record": WEEK, "expr": f"sum without (hours) ({PART})"}
    weights = (f'{WEEK}{{traffic="{traffic}", sum="weight"}}' for traffic in ("shared", "adjacent"))
    yield {"record": SHARE, "expr": f"max by ({SCORED}) ({' / ignoring (traffic) '.join(weights)})"}


def _weighted(sums: str) -> Iterator[tuple[str, str]]:
    """The sums of one hour as each kind of `traffic` takes them."""
    yield "adjacent", sums
    weight = picked(f'{sums}{{sum="weight"}}')
    others = f"(1 - {weight} / on ({SCORED}) group_left () sum by ({SCORED}) ({weight}))"
    for names, part in ((LINEAR, others), (SUMS[len(LINEAR) :], f"{others} ^ 2")):
        of_names = picked(f'{sums}{{sum=~"{"|".join(names)}"}}')
        yield "side_by_side", f"{of_names}\n  * on ({SCORED}, service_version) group_left () {part}"
    yield "shared", f"{weight}\n  and on ({SCORED}) (count by ({SCORED}) ({weight}) == 2)"


def _limits() -> Iterator[Rule]:
    """Mean, count and limits of every release, however its hours are weighted."""
    weight, scored, squared, squared_score, squared_score_squared = (f'{WEEK}{{sum="{name}"}}' for name in SUMS)
    by = "ignoring (sum)"
    near = f"(({COUNT} * {MEAN} + 1) / ({COUNT} + 2))"
    made_up = f"{MADE_UP} * {near} * (1 - {near})"
    part = f"({CONFIDENT**2:.4f} * {EFFECT} / {COUNT})"
    half = f"sqrt({part} * {MEAN} * (1 - {MEAN}) + {part} ^ 2 / 4)"
    # Rounding, and counters that a scrape caught between two updates, can bring means and variances out of bounds.
    expressions = {
        MEAN: f"clamp({scored} / {by} ({weight} > 0), 0, 1)",
        COUNT: f"{weight} ^ 2 / {by} ({squared} > 0)",
        VARIANCE: f"""\
clamp_min(
  (
      {squared_score_squared}
    - {by} 2 * {MEAN} * {by} {squared_score}
    + {by} {MEAN} ^ 2 * {by} {squared}
  ) / {by} ({squared} > 0),
  0
)""",
        EFFECT: f"""\
  ({COUNT} * {VARIANCE} + {made_up})
/ ({COUNT} * {MEAN} * (1 - {MEAN}) + {made_up})""",
        LOWER: f"clamp(({MEAN} + {part} / 2 - {half}) / (1 + {part}), 0, 1)",
        UPPER: f"clamp(({MEAN} + {part} / 2 + {half}) / (1 + {part}), 0, 1)",
    }
    for name, expression in expressions.items():
        yield {"record": name, "expr": expression}


def _changes() -> Iterator[Rule]:
    """The running release less the one before, where both have scores enough."""
    most = f"on ({SCORED}) {SHARE} >= {SHARED}"
    beside = f'{CHOSEN}{{traffic="side_by_side"}}'
    yield {"record": CHOSEN, "expr": f"{_enough('side_by_side')}\nand {most}"}
    yield {"record": CHOSEN, "expr": f"{_enough('adjacent')}\nunless on ({SCORED}) {beside}"}
    running = {name: f"sum by ({SCORED}, traffic) {picked(name, RUNNING)}" for name in (MEAN, LOWER, UPPER)}
    other = {name: f"sum by ({SCORED}, traffic) {before(name)}" for name in (MEAN, LOWER, UPPER)}
    mean = f"({running[MEAN]} - {other[MEAN]})"
    down = f"sqrt(({running[MEAN]} - {running[LOWER]}) ^ 2 + ({other[UPPER]} - {other[MEAN]}) ^ 2)"
    up = f"sqrt(({running[UPPER]} - {running[MEAN]}) ^ 2 + ({other[MEAN]} - {other[LOWER]}) ^ 2)"
    for name, expression in (("mean", mean), ("lower", f"{mean} - {down}"), ("upper", f"{mean} + {up}")):
        compared = f"(\n  {expression}\n  and {CHOSEN}\n)"
        yield {
            "record": f"{CHANGE}:{name}",
            "expr": f"{compared}\n* on ({SERVICE}) group_left (service_version, before) {PAIR}",
        }


def _enough(traffic: str) -> str:
    """Where both releases have scores enough."""
    count = picked(f'{COUNT}{{traffic="{traffic}"}}')
    return f"(min by ({SCORED}, traffic) ({count}) >= {MIN_COUNT}\nand count by ({SCORED}, traffic) ({count}) == 2)"
