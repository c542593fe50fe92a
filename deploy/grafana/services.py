"""All services in one table: who is worse than a week ago or than with the release before, and where to look."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, stat, table
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import BigValueGraphMode

from deploy.grafana.panels import SOURCE, board, chosen, page, query
from deploy.prometheus.estimates import COUNT, LOWER, MEAN, TARGET, WINDOWS
from deploy.prometheus.releases import CHANGE
from tracescore.model import LIVE_MEASURES

FILE = Path(__file__).with_name("services.json")
KEY = "service_name, deployment_environment, judge"
"""What has a row. Of several sources of evidence the lowest mean is shown."""
SCOPE = 'measure="$measure", window="$window"'
ABOUT = {
    "mean": "Mean",
    "lower": "Lower",
    "upper": "Upper",
    "scores": "Scores",
    "target": "Target",
    "week": "Since last week",
    "release": "Since last release",
    "alerts": "Alerts",
    "course": "Course",
}
"""Column -> heading, in the order of the table."""
_SERVICE = "${__data.fields.Service}"
COLUMNS = {
    "mean": f"min by ({KEY}) ({MEAN}{{{SCOPE}}})",
    "lower": f"min by ({KEY}) ({LOWER}{{{SCOPE}}})",
    "upper": f"min by ({KEY}) (service:tracescore_score:upper{{{SCOPE}}})",
    "scores": f"min by ({KEY}) ({COUNT}{{{SCOPE}}})",
    "target": (
        f"min by ({KEY}) ({MEAN}{{{SCOPE}}} * 0\n+ on (namespace, job, measure, service_name) group_left ()\n{TARGET})"
    ),
    "week": f"min by ({KEY}) ({MEAN}{{{SCOPE}}})\n- min by ({KEY}) ({MEAN}{{{SCOPE}}} offset 7d)",
    "release": f'min by ({KEY}) ({CHANGE}:mean{{measure="$measure"}})',
    "alerts": (
        f'count by ({KEY}) (ALERTS{{alertname=~"Tracescore.+", alertstate="firing", service_name!="", judge!=""}})'
        f"\nor\nmin by ({KEY}) ({MEAN}{{{SCOPE}}}) * 0"
    ),
}


def build() -> dashboard.Dashboard:
    """The dashboard."""
    made = board(
        "all services",
        "services",
        "Every service by one measure. Needs the recording rules of tracescore.",
        [
            chosen("measure", MEAN).current(models.VariableOption(text=LIVE_MEASURES[0], value=LIVE_MEASURES[0])),
            dashboard.CustomVariable("window").values(",".join(WINDOWS)),
            page(),
            dashboard.DatasourceVariable("traces").type("tempo").hide(models.VariableHide.HIDE_VARIABLE),
        ],
    )
    return made.with_panel(_table()).with_panel(_against_targets())


def _table() -> table.Panel:
    panel = (
        table.Panel()
        .title("All services")
        .description(
            "Means of the window, with the limits of their 95 % intervals and the effective count. Changes are "
            "differences of means; the page says whether they are more than chance. A click on a service leads on."
        )
        .datasource(SOURCE)
        .height(14)
        .span(24)
        .decimals(2)
        .show_header(True)
    )
    for ref, expression in COLUMNS.items():
        panel.with_target(query(expression).instant().format("table").ref_id(ref))
    panel.with_target(query(COLUMNS["mean"]).ref_id("course"))
    for identifier, options in (
        ("timeSeriesTable", {"course": {"timeField": "Time"}}),
        ("merge", {}),
        ("organize", {"excludeByName": {"Time": True}, "renameByName": _headings(), "indexByName": _order()}),
    ):
        panel.with_transformation(models.DataTransformerConfig(id_val=identifier, options=options))
    return _columns(panel)


def _fields() -> dict[str, str]:
    """Column -> the name of its field before it is renamed."""
    return {name: "Trend #course" if name == "course" else f"Value #{name}" for name in ABOUT}


def _headings() -> dict[str, str]:
    named = {"service_name": "Service", "deployment_environment": "Environment", "judge": "Judge"}
    return named | {field: ABOUT[name] for name, field in _fields().items()}


def _order() -> dict[str, int]:
    return {field: place for place, field in enumerate(_headings())}


def _columns(panel: table.Panel) -> table.Panel:
    """What each column looks like, and where a click on a service leads."""
    value = models.DynamicConfigValue
    red_below_0 = {
        "mode": "absolute",
        "steps": [
            {"color": "red", "value": None},
            {"color": "text", "value": -0.02},
            {"color": "green", "value": 0.02},
        ],
    }
    firing = {"mode": "absolute", "steps": [{"color": "green", "value": None}, {"color": "red", "value": 1}]}
    calm = [{"type": "value", "options": {"0": {"text": "none", "index": 0}}}]
    coloured = value("custom.cellOptions", {"type": "color-text"})
    for name in ("week", "release"):
        panel.override_by_name(ABOUT[name], [value("thresholds", red_below_0), coloured])
    panel.override_by_name(ABOUT["scores"], [value("decimals", 0), value("unit", "short")])
    panel.override_by_name(
        ABOUT["alerts"], [value("decimals", 0), value("thresholds", firing), value("mappings", calm), coloured]
    )
    panel.override_by_name(ABOUT["course"], [value("custom.cellOptions", {"type": "sparkline"})])
    of = f"var-service_name={_SERVICE}&var-deployment_environment=${{__data.fields.Environment}}"
    low = f'{{ resource.service.name = "{_SERVICE}" }} && {{ span.tracescore.${{measure}} < 0.5 }}'
    traces = {"type": "tempo", "uid": "${traces}"}
    asked = {"refId": "A", "datasource": traces, "queryType": "traceql", "query": low}
    pane = {"datasource": "${traces}", "queries": [asked], "range": {"from": "${__from}", "to": "${__to}"}}
    links = [
        {"title": "Lowest answers, on the page", "url": "${page}/?measure=${measure}&service=${__data.fields.Service}"},
        {"title": "Low answers, as traces", "url": f"/explore?schemaVersion=1&panes={json.dumps({'low': pane})}"},
        {"title": "Overview", "url": f"/d/tracescore-overview?{of}&var-judge=${{__data.fields.Judge}}"},
        {"title": "Releases and slices", "url": f"/d/tracescore-slices?{of}&var-judge=${{__data.fields.Judge}}"},
    ]
    return panel.override_by_name("Service", [value("links", links)])


def _against_targets() -> stat.Panel:
    """The means as numbers whose colour says on which side of their own target they lie."""
    above = f"{COLUMNS['mean']}\n-\n({COLUMNS['target']})"
    steps = [models.Threshold(color="red", value=None), models.Threshold(color="green", value=0.0)]
    return (
        stat.Panel()
        .title("Mean above its target")
        .description("How far the mean of each service lies above its target; red below it.")
        .datasource(SOURCE)
        .height(7)
        .span(24)
        .decimals(2)
        .graph_mode(BigValueGraphMode.AREA)
        .thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .with_target(query(above, "{{service_name}} {{deployment_environment}}").ref_id("A"))
    )
