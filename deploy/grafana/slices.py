"""Where the answers are bad. One measure at a time, by release and by slice (route, tenant, turn, ...).

The recording rules sum over releases and know no slices, so these panels ask the counters, which add up as well.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, timeseries

from deploy.grafana.panels import APP, app, board, chart, chosen, dashed, measures, row, share
from deploy.prometheus.estimates import MIN_COUNT, limit
from tracescore.model import LIVE_MEASURES

FILE = Path(__file__).with_name("slices.json")
SHOWN = 10


def total(name: str, by: str, prefix: str = "", where: str = "") -> str:
    """A sum over the window, of all replicas."""
    counter = f"tracescore_${{measure}}_{prefix}{name}_total{{{APP}{where}}}"
    return f"sum by ({by}, context_source) (increase({counter}[$window]))"


def panels(by: str, word: str, prefix: str = "", where: str = "") -> list[timeseries.Panel]:
    """Mean, share below the target and count, by the label `by`."""

    def of(name: str) -> str:
        return total(name, by, prefix, where)

    count = f"{of('weight')} ^ 2 / ({of('weight_squared')} > 0)"
    mean = f"{of('weighted_score')} / ({of('weight')} > 0)"
    below = f"{of('below_target_weight')} / ({of('weight')} > 0)"
    legend = f"{{{{{by}}}}} {{{{context_source}}}}"
    enough = f"and ({count} >= {MIN_COUNT})"
    return [
        chart(
            f"Mean by {word}",
            f"The {SHOWN} lowest with at least {MIN_COUNT} scores in the window.",
            {legend: f"bottomk({SHOWN}, {mean} {enough})"},
        )
        .decimals(2)
        .max(1),
        share(
            f"Share below target by {word}",
            f"The {SHOWN} highest with at least {MIN_COUNT} scores in the window.",
            {legend: f"topk({SHOWN}, {below} {enough})"},
        ),
        chart(
            f"Scores by {word}",
            f"Effective scores (as equally weighted ones); the {SHOWN} largest.",
            {legend: f"topk({SHOWN}, {count})"},
        ),
    ]


def limits(end: int, by: str, prefix: str = "", where: str = "", z: str = "1.96") -> str:
    """A limit of the mean by the label `by`, from the sums of all replicas: limits of replicas do not add up."""

    def of(name: str) -> str:
        return f"({total(name, by, prefix, where)})"

    weight, score, squares = (of(name) for name in ("weight", "weighted_score", "weight_squared"))
    count, mean = f"({weight} ^ 2 / ({squares} > 0))", f"({score} / ({weight} > 0))"
    spread = f"{of('weight_squared_score_squared')} - 2 * {mean} * {of('weight_squared_score')}"
    variance = f"clamp_min(({spread} + {mean} ^ 2 * {squares}) / ({squares} > 0), 0)"
    return f"{limit(end, mean, variance, count, z)}\nand {count} >= {MIN_COUNT}"


def interval(by: str) -> timeseries.Panel:
    """The limits of the mean by the label `by`."""
    return (
        chart(
            "Interval by release",
            f"95 %, of those with at least {MIN_COUNT} scores in the window. Where they lie apart, releases differ.",
            {
                f"{word} {{{{{by}}}}} {{{{context_source}}}}": limits(end, by)
                for word, end in (("lower", 0), ("upper", 1))
            },
        )
        .decimals(2)
        .max(1)
    )


def surely_low(where: str) -> timeseries.Panel:
    """The upper limits of the lowest slices, each wrong with its share of 2.5 % (Bonferroni), beside the mean of all.

    The quantile is Abramowitz and Stegun's 26.2.23, right to .0005: PromQL has none.
    """
    looked_at = f"count({total('weight', 'slice', 'by_slice_', where)} > 0)"
    t = f"scalar(sqrt(-2 * ln(0.025 / {looked_at})))"
    z = (
        f"({t} - (2.515517 + 0.802853 * {t} + 0.010328 * {t} ^ 2)"
        f" / (1 + 1.432788 * {t} + 0.189269 * {t} ^ 2 + 0.001308 * {t} ^ 3))"
    )
    weight, score = (
        f"sum(increase(tracescore_${{measure}}_by_slice_{name}_total{{{APP}{where}}}[$window]))"
        for name in ("weight", "weighted_score")
    )
    panel = chart(
        "Surely low by $slice_key",
        "Upper limits of the means of the lowest, corrected for how many are looked at: all of them hold together with "
        "97.5 %. One below the dashed line, the mean of all, is low by more than the luck of being one of many.",
        {
            "{{slice}} {{context_source}}": f"bottomk({SHOWN}, {limits(1, 'slice', 'by_slice_', where, z)})",
            "all": f"{score} / ({weight} > 0)",
        },
    )
    return dashed(panel, "all").decimals(2).max(1)


def build() -> dashboard.Dashboard:
    """The dashboard."""
    by_slice = "tracescore_${measure}_by_slice_weight_total"
    known = ("service_name", "deployment_environment", "judge")
    made = board(
        "releases and slices",
        "slices",
        "One measure by release and by slice. The first score of a new series is missing here.",
        [
            measures("tracescore_(.+)_weighted_score_total", LIVE_MEASURES[0]),
            *app(),
            chosen("slice_key", by_slice, known),
        ],
    )
    row(made, "By release", *panels("service_version", "release"), interval("service_version"))
    where = ', slice_key="$slice_key"'
    row(
        made, "By slice: one dimension at a time", *panels("slice", "$slice_key", "by_slice_", where), surely_low(where)
    )
    return made
