"""Writes overview.json: `python -m deploy.grafana.overview`.

Each measure has a row of its own: they fail independently and no panel adds them up. Means, intervals and counts
come from the recording rules in deploy/prometheus (sums over all replicas), so those have to be loaded; the
gauges of single processes are not drawn, because what they say can't be put together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphDrawStyle, StackingMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    DynamicConfigValue,
    VariableModel,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.prometheus.rules import WINDOWS
from tracescore.model import LIVE_MEASURES, ContextSource

FILE = Path(__file__).with_name("overview.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
APP = 'service_name="$service_name", deployment_environment="$deployment_environment", judge="$judge"'
MEANING = {
    "answer_relevancy": "Does the answer address the question that was asked?",
    "completeness": "Does the answer cover every part of the question?",
    "faithfulness": "Does the retrieved evidence support the answer? One series per place the evidence was read from.",
}
LEGEND = {"faithfulness": " {{context_source}}"}
"""What tells the series of a measure apart, as Grafana fills it in; the others have one series."""
ENDINGS = {"faithfulness": [f" {source}" for source in get_args(ContextSource)]}
"""What LEGEND can become: a band is tied to its lower line by the whole name."""


def query(expression: str, legend: str = "", *, exemplar: bool = False) -> prometheus.Dataquery:
    """A range query; without a legend the series show their labels."""
    built = prometheus.Dataquery().expr(expression).range().datasource(SOURCE).exemplar(exemplar)
    return built.legend_format(legend) if legend else built


def chart(title: str, about: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """Lines over time: {legend: expression}."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .height(8)
        .span(6)
        .min(0)
        .legend(common.VizLegendOptions().show_legend(True))
    )
    for number, (legend, expression) in enumerate(queries.items()):
        panel.with_target(query(expression, legend).ref_id(chr(ord("A") + number)))
    return panel


def stacked(title: str, about: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """Bars that stand on one another: what they add up to is the whole."""
    return (
        chart(title, about, queries)
        .draw_style(GraphDrawStyle.BARS)
        .fill_opacity(60)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    )


def recorded(name: str, measure: str) -> str:
    """A recorded estimate of the chosen app and window."""
    return f'{name}{{measure="{measure}", window="$window", {APP}}}'


def mean(measure: str) -> timeseries.Panel:
    """The mean inside the band of its interval, and the target as a dashed line."""
    queries = {
        f"{name}{LEGEND.get(measure, '')}": recorded(f"service:tracescore_score:{name}", measure)
        for name in ("upper", "mean", "lower")
    }
    queries["target"] = f'measure:tracescore_target:ratio{{measure="{measure}"}}'
    panel = chart(f"{measure}: mean", f"{MEANING[measure]} The band is the 95 % interval of the mean.", queries)
    no_line = DynamicConfigValue("custom.lineWidth", 0)
    for ending in ENDINGS.get(measure, [""]):
        fill = DynamicConfigValue("custom.fillBelowTo", f"lower{ending}")
        panel.override_by_name(f"lower{ending}", [no_line])
        panel.override_by_name(f"upper{ending}", [no_line, fill, DynamicConfigValue("custom.fillOpacity", 20)])
    dashes = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
    return panel.override_by_name("target", [dashes]).decimals(2).max(1).span(9)


def distribution(measure: str) -> heatmap.Panel:
    """How the scores lie, as the mean hides it; each dot is an exemplar that leads to a trace."""
    buckets = f"sum by (le) (increase(tracescore_{measure}_score_bucket{{{APP}}}[$__rate_interval]))"
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


def measure_row(board: dashboard.Dashboard, measure: str) -> None:
    """Four panels about one measure."""
    board.with_row(dashboard.Row(measure))
    board.with_panel(mean(measure))
    board.with_panel(distribution(measure))
    board.with_panel(
        chart(
            f"{measure}: scores behind the mean",
            "As many equally weighted scores would say as much. Below 20 the interval promises nothing.",
            {f"scores{LEGEND.get(measure, '')}": recorded("service:tracescore_score:effective_count", measure)},
        ).span(4)
    )
    board.with_panel(
        chart(
            f"{measure}: share below target",
            "Share of the interactions whose own score lies below the target.",
            {f"below target{LEGEND.get(measure, '')}": recorded("service:tracescore_below_target:ratio", measure)},
        )
        .unit("percentunit")
        .max(1)
        .span(5)
    )


def coverage_row(board: dashboard.Dashboard) -> None:
    """The ledger: what the scores above do not speak of."""
    board.with_row(dashboard.Row("Coverage: what was read and what became of it (all apps)"))
    board.with_panel(
        stacked(
            "Interactions read",
            "By what they hold. Only complete ones can get every score.",
            {"{{state}}": "sum by (state) (increase(tracescore_interactions_total[$__rate_interval])) > 0"},
        ).span(8)
    )
    board.with_panel(
        stacked(
            "Evaluations",
            "Per measure: scored, tried without a score (unscored), nothing to score (skipped), never tried (shed).",
            {
                "{{measure}} {{outcome}}": (
                    "sum by (measure, outcome) (increase(tracescore_evaluations_total[$__rate_interval])) > 0"
                )
            },
        ).span(8)
    )
    board.with_panel(
        stacked(
            "Why there is no score",
            "By reason.",
            {
                "{{measure}} {{reason}}": (
                    "sum by (measure, reason) "
                    '(increase(tracescore_evaluations_total{outcome!="scored"}[$__rate_interval])) > 0'
                )
            },
        ).span(8)
    )


def judge_row(board: dashboard.Dashboard) -> None:
    """Whether the measuring instrument works."""
    rate = "[$__rate_interval]"
    board.with_row(dashboard.Row("Judge"))
    for panel in (
        chart(
            "Replicas whose judge answers",
            "Share of the replicas; below 1 some do not score.",
            {"{{judge}}": "avg by (judge) (tracescore_judge_ready)"},
        )
        .unit("percentunit")
        .max(1),
        chart(
            "Evaluations waiting",
            "Started and not ended. A rising line: the judge is slower than the traffic.",
            {"{{measure}}": "sum by (measure) (tracescore_evaluations_pending)"},
        ),
        stacked(
            "Judge requests",
            "Per second, by outcome. An embedded judge makes none.",
            {"{{judge}} {{outcome}}": f"sum by (judge, outcome) (rate(tracescore_judge_requests_total{rate}))"},
        ),
        stacked(
            "Judge tokens",
            "Per second, read and written.",
            {"{{judge}} {{direction}}": f"sum by (judge, direction) (rate(tracescore_judge_tokens_total{rate}))"},
        ),
    ):
        board.with_panel(panel)


def variables() -> list[Builder[VariableModel]]:
    """Data source, service, environment and judge as they are in the data, and the window of the estimates."""
    chosen: list[str] = []
    queries = []
    for name in ("service_name", "deployment_environment", "judge"):
        of = f"service:tracescore_score:mean{{{', '.join(chosen)}}}"
        queries.append(
            dashboard.QueryVariable(name)
            .query(f"label_values({of}, {name})")
            .datasource(SOURCE)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
        )
        chosen.append(f'{name}="${name}"')
    source = dashboard.DatasourceVariable("datasource").type("prometheus")
    return [source, *queries, dashboard.CustomVariable("window").values(",".join(WINDOWS))]


def build() -> dashboard.Dashboard:
    """The dashboard."""
    board = (
        dashboard.Dashboard("tracescore: answers")
        .uid("tracescore-overview")
        .description("Scores of live RAG answers. Needs the recording rules of tracescore.")
        .tags(["tracescore", "rag"])
        .time("now-24h", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .editable()
        .variables(variables())
    )
    for measure in LIVE_MEASURES:
        measure_row(board, measure)
    coverage_row(board)
    judge_row(board)
    return board


def render() -> str:
    """The text of overview.json."""
    return json.dumps(build().build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
