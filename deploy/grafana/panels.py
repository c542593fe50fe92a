"""What the dashboards are made of: queries, charts, choices. Each dashboard is a module beside this one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import get_args

from grafana_foundation_sdk.builders import common, dashboard, prometheus, statetimeline, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphDrawStyle, StackingMode, VisibilityMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    VariableHide,
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from deploy.prometheus.alerts import PAGE
from deploy.prometheus.estimates import MEAN, NEW, WINDOWS
from tracescore.model import ContextSource

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
APP = 'service_name="$service_name", deployment_environment="$deployment_environment", judge="$judge"'
"""The app and judge that were chosen, as they stand in every query about scores."""
RATE = "[$__rate_interval]"
TAG = "tracescore"

Variables = Sequence[Builder[VariableModel]]


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
        .span(8)
        .min(0)
        .legend(common.VizLegendOptions().show_legend(True))
    )
    for number, (legend, expression) in enumerate(queries.items()):
        panel.with_target(query(expression, legend).ref_id(chr(ord("A") + number)))
    return panel


def share(title: str, about: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """Lines between 0 and 100 %."""
    return chart(title, about, queries).unit("percentunit").max(1)


def stacked(title: str, about: str, queries: Mapping[str, str]) -> timeseries.Panel:
    """Bars that stand on one another: what they add up to is the whole."""
    return (
        chart(title, about, queries)
        .draw_style(GraphDrawStyle.BARS)
        .fill_opacity(60)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    )


def states(title: str, about: str, expression: str, legend: str) -> statetimeline.Panel:
    """Which of several states there were, and when: a row for each, where 1 is what it was."""
    steps = [Threshold(color="transparent", value=None), Threshold(color="orange", value=1.0)]
    return (
        statetimeline.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .height(8)
        .span(8)
        .show_value(VisibilityMode.NEVER)
        .color_scheme(dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(query(expression, legend).ref_id("A"))
    )


def dashed(panel: timeseries.Panel, series: str) -> timeseries.Panel:
    """The panel with one of its series as a dashed line: what is meant to be, beside what is."""
    style = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
    return panel.override_by_name(series, [style])


def banded(panel: timeseries.Panel, *bands: tuple[str, str]) -> timeseries.Panel:
    """The panel with the area between each (lower, upper) pair of its series filled, and those without lines.

    Grafana ties the upper edge to the lower one by the whole name, so a name that a label ends has one band a value.
    """
    no_line = DynamicConfigValue("custom.lineWidth", 0)
    for lower, upper in bands:
        fill = DynamicConfigValue("custom.fillBelowTo", lower)
        panel.override_by_name(lower, [no_line])
        panel.override_by_name(upper, [no_line, fill, DynamicConfigValue("custom.fillOpacity", 20)])
    return panel


def by_source(lower: str, upper: str) -> list[tuple[str, str]]:
    """The bands of two series that end with the context source, or with a blank where there is none."""
    return [(f"{lower} {source}", f"{upper} {source}") for source in ("", *get_args(ContextSource))]


def chosen(name: str, metric: str, filters: Sequence[str] = ()) -> dashboard.QueryVariable:
    """A choice among the values that a label of `metric` has, under what was chosen in the variables `filters`."""
    where = ", ".join(f'{other}="${other}"' for other in filters)
    return (
        dashboard.QueryVariable(name)
        .query(f"label_values({metric}{{{where}}}, {name})")
        .datasource(SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def measures(metric: str, first: str) -> dashboard.QueryVariable:
    """A choice among the measures that have a `metric`, a pattern with one group; those of one's own are among them."""
    name = metric.replace("(", "").replace(")", "")
    return (
        dashboard.QueryVariable("measure")
        .query(f'label_values({{__name__=~"{name}", __name__!~".+_by_slice_.+"}}, __name__)')
        .regex(f"/^{metric}$/")
        .current(VariableOption(text=first, value=first))
        .datasource(SOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def source() -> Builder[VariableModel]:
    """Which Prometheus."""
    return dashboard.DatasourceVariable("datasource").type("prometheus")


def app() -> Variables:
    """Service, environment and judge as they are in the data, and the window of the estimates."""
    names = ("service_name", "deployment_environment", "judge")
    queries = [chosen(name, MEAN, names[:place]) for place, name in enumerate(names)]
    return [*queries, dashboard.CustomVariable("window").values(",".join(WINDOWS))]


def page() -> Builder[VariableModel]:
    """Where people reach the page of tracescore, for links to it."""
    return dashboard.TextBoxVariable("page").default_value(PAGE).hide(VariableHide.HIDE_VARIABLE)


MARKS = {
    "Releases": (
        f"count by (service_name, service_version) ({NEW}) > 0",
        "blue",
        "{{service_name}} {{service_version}}",
    ),
    "Alerts": (
        'ALERTS{alertname=~"Tracescore.+", alertstate="firing"}',
        "red",
        "{{alertname}} {{service_name}} {{measure}} {{cause}}",
    ),
}
"""Annotations of every dashboard: name -> (when, colour, what it says)."""


def board(title: str, uid: str, about: str, variables: Variables) -> dashboard.Dashboard:
    """An empty dashboard, with links to the others that keep time and choices."""
    others = (
        dashboard.DashboardLink("tracescore")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )
    made = (
        dashboard.Dashboard(f"tracescore: {title}")
        .uid(f"tracescore-{uid}")
        .description(about)
        .tags([TAG, "rag"])
        .time("now-24h", "now")
        .refresh("1m")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .editable()
        .link(others)
        .variables([source(), *variables])
    )
    for name, (expression, colour, _) in MARKS.items():
        made.annotation(
            dashboard.AnnotationQuery().name(name).datasource(SOURCE).enable(True).expr(expression).icon_color(colour)
        )
    return made


def row(to: dashboard.Dashboard, title: str, *panels: timeseries.Panel | statetimeline.Panel) -> None:
    """A row with its panels."""
    to.with_row(dashboard.Row(title))
    for panel in panels:
        to.with_panel(panel)


def text(of: dashboard.Dashboard) -> str:
    """The JSON that Grafana loads. The library knows no titles of the marks of a Prometheus."""
    built = json.loads(json.dumps(of.build(), cls=JSONEncoder))
    for mark in built["annotations"]["list"]:
        if mark["name"] in MARKS:
            mark["titleFormat"] = MARKS[mark["name"]][2]
    return json.dumps(built, indent=2, sort_keys=True) + "\n"
