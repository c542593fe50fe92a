"""Whether the answers are getting worse. Each measure in a row of its own.

They fail independently, so no panel adds them up. Means, intervals and counts come from the recording rules in
deploy/prometheus (sums over all replicas), so those have to be loaded; the gauges of single processes are not drawn,
because what they say can't be put together.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, heatmap, timeseries
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.grafana.panels import APP, RATE, SOURCE, app, banded, board, by_source, chart, dashed, query, row, share
from deploy.prometheus.estimates import BELOW, COUNT, MEAN, MIN_COUNT, TARGET
from tracescore.model import LIVE_MEASURES

FILE = Path(__file__).with_name("overview.json")
MEANING = {
    "answer_relevancy": "Does the answer address the question?",
    "completeness": "Does the answer cover every part of the question?",
    "context_precision": "Do the passages that help stand first? Only where `measures` asks for it.",
    "faithfulness": "Do the passages support the answer? One series per source of the passages.",
}
LEGEND = {"faithfulness": " {{context_source}}"}
"""What tells the series of a measure apart, as Grafana fills it in; the others have one series."""


def recorded(name: str, measure: str) -> str:
    """A recorded estimate of the chosen app and window."""
    return f'{name}{{measure="{measure}", window="$window", {APP}}}'


def mean(measure: str) -> timeseries.Panel:
    """The mean inside the band of its interval, and the target as a dashed line."""
    queries = {
        f"{name}{LEGEND.get(measure, '')}": recorded(f"service:tracescore_score:{name}", measure)
        for name in ("upper", "mean", "lower")
    }
    queries["target"] = f'max({TARGET}{{measure="{measure}", service_name="$service_name"}})'
    panel = chart(f"{measure}: mean", f"{MEANING[measure]} The band is the 95 % interval of the mean.", queries)
    bands = by_source("lower", "upper") if measure in LEGEND else [("lower", "upper")]
    return dashed(banded(panel, *bands), "target").decimals(2).max(1).span(9)


def distribution(measure: str) -> heatmap.Panel:
    """How the scores lie, as the mean hides it; each dot is an exemplar that leads to a trace."""
    buckets = f"sum by (le) (increase(tracescore_{measure}_score_bucket{{{APP}}}{RATE}))"
    return (
        heatmap.Panel()
        .title(f"{measure}: scores")
        .description("Every score, unweighted. A dot is one interaction: click it for its trace.")
        .datasource(SOURCE)
        .height(8)
        .span(6)
        .calculate(False)
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(64))
        .y_axis(heatmap.YAxisConfig().min(0).max(1))
        .with_target(query(buckets, "{{le}}", exemplar=True).format(PromQueryFormat.HEATMAP).ref_id("A"))
    )


def measure_row(to: dashboard.Dashboard, measure: str) -> None:
    """Four panels about one measure."""
    to.with_row(dashboard.Row(measure))
    to.with_panel(mean(measure))
    to.with_panel(distribution(measure))
    to.with_panel(
        chart(
            f"{measure}: scores behind the mean",
            f"Scores, counted as equally weighted ones. Below {MIN_COUNT}, do not trust the interval.",
            {f"scores{LEGEND.get(measure, '')}": recorded(COUNT, measure)},
        ).span(4)
    )
    to.with_panel(
        share(
            f"{measure}: share below target",
            "Share of interactions with a score below the target.",
            {f"below target{LEGEND.get(measure, '')}": recorded(BELOW, measure)},
        ).span(5)
    )


def own_row(to: dashboard.Dashboard) -> None:
    """Three panels about all measures that users define; without such measures they are empty.

    Some of them have a judge of their own, so whichever it is.
    """

    def own(name: str) -> str:
        where = 'service_name="$service_name", deployment_environment="$deployment_environment"'
        return f'{name}{{measure!~"{"|".join(LIVE_MEASURES)}", window="$window", {where}}}'

    legend = "{{measure}}"
    row(
        to,
        "Measures of your own (none unless `evaluators.custom` names some)",
        chart("Own measures: mean", "Mean of the window.", {legend: own(MEAN)}).decimals(2).max(1),
        chart(
            "Own measures: scores behind the mean", "Scores, counted as equally weighted ones.", {legend: own(COUNT)}
        ),
        share("Own measures: share below target", "Of those with a target.", {legend: own(BELOW)}),
    )


def build() -> dashboard.Dashboard:
    """The dashboard."""
    about = "Scores of live RAG answers. Needs the recording rules of tracescore."
    made = board("answers", "overview", about, app())
    for measure in LIVE_MEASURES:
        measure_row(made, measure)
    own_row(made)
    row(
        made,
        "Can these numbers be trusted? (all apps; more under coverage and judge)",
        share(
            "Evaluations that gave a score",
            "Of those that had something to score. What fails is rarely like what succeeds.",
            {
                "{{measure}}": (
                    f'sum by (measure) (increase(tracescore_evaluations_total{{outcome="scored"}}{RATE}))\n/\n'
                    f'(sum by (measure) (increase(tracescore_evaluations_total{{outcome!="skipped"}}{RATE})) > 0)'
                )
            },
        ),
        share(
            "Replicas whose judge answers",
            "Below 100 %, some replicas do not score.",
            {"{{judge}}": "avg by (judge) (tracescore_judge_ready)"},
        ),
        chart(
            "Alerts",
            "Alerts that fire now.",
            {
                "{{alertname}} {{measure}} {{cause}}": (
                    'sum by (alertname, measure, cause) (ALERTS{alertname=~"Tracescore.+", alertstate="firing"})'
                )
            },
        ),
    )
    return made
