"""Where the answers are bad. One measure at a time, by release and by slice (route, tenant, turn, ...).

The recording rules sum over releases and know no slices, so these panels ask the counters, which add up as well.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, timeseries

from deploy.grafana.panels import APP, app, board, chart, chosen, row, share
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


def interval(by: str) -> timeseries.Panel:
    """The limits of the mean by the label `by`, from the sums of all replicas: limits of replicas do not add up."""
    weight, score, squares = (f"({total(name, by)})" for name in ("weight", "weighted_score", "weight_squared"))
    count, mean = f"({weight} ^ 2 / ({squares} > 0))", f"({score} / ({weight} > 0))"
    spread = f"({total('weight_squared_score_squared', by)}) - 2 * {mean} * ({total('weight_squared_score', by)})"
    variance = f"clamp_min(({spread} + {mean} ^ 2 * {squares}) / ({squares} > 0), 0)"
    return (
        chart(
            "Interval by release",
            f"95 %, of those with at least {MIN_COUNT} scores in the window. Where they lie apart, releases differ.",
            {
                f"{word} {{{{{by}}}}} {{{{context_source}}}}": (
                    f"{limit(end, mean, variance, count)}\nand {count} >= {MIN_COUNT}"
                )
                for word, end in (("lower", 0), ("upper", 1))
            },
        )
        .decimals(2)
        .max(1)
    )


def build() -> dashboard.Dashboard:
    """The dashboard."""
    by_slice = "tracescore_${measure}_by_slice_weight_total"
    known = ("service_name", "deployment_environment", "judge")
    made = board(
        "releases and slices",
        "slices",
        "One measure by release and by slice. The first score of a new series is missing here.",
        [
            dashboard.CustomVariable("measure").values(",".join(LIVE_MEASURES)),
            *app(),
            chosen("slice_key", by_slice, known),
        ],
    )
    row(made, "By release", *panels("service_version", "release"), interval("service_version"))
    where = ', slice_key="$slice_key"'
    row(made, "By slice: one dimension at a time", *panels("slice", "$slice_key", "by_slice_", where))
    return made
