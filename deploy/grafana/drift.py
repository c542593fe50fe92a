"""Whether anything has changed, how sure that is, and whether it is the judge."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import APP, SOURCE, board, chart, chosen, row, share, stacked, states

FILE = Path(__file__).with_name("drift.json")
EVIDENCE = "tracescore_drift_evidence_days"
THRESHOLD = "tracescore_drift_threshold_days"
SHIFT = 'tracescore_drift_anchor_shift_ratio{judge="$judge"}'
PAUSED = 'max by (service_name) (tracescore_drift_paused{service_name="$service_name"}) == 1'
NAMES = ("service_name", "deployment_environment", "judge")


def of_detectors(metric: str, how: str = "max", where: str = "") -> str:
    """A metric by detector, over all replicas."""
    return f"{how} by (detector, against) (tracescore_drift_{metric}{{{APP}{where}}})"


def build() -> dashboard.Dashboard:
    """The dashboard."""
    made = board(
        "drift",
        "drift",
        "Whether answers have become worse than they used to be. Read from the top: what it is, how sure, whose it is.",
        [chosen(name, EVIDENCE, NAMES[:place]) for place, name in enumerate(NAMES)],
    )
    planned = dashboard.AnnotationQuery().name("Planned changes").datasource(SOURCE).enable(enable=True)
    made.annotation(planned.icon_color("purple").expr(PAUSED))
    row(
        made,
        "What has happened",
        states(
            "Diagnosis",
            "The pattern that the changes make. `none`: nothing to do. Anything else: open the page, which says where "
            "to look. `unclear`: begin with the lowest answers.",
            f"max by (pattern) (tracescore_drift_diagnosis{{{APP}}})",
            "{{pattern}}",
        ),
        states(
            "Who moved",
            "`product`: your app. `judge`: the measuring. `unattributed`: there are no anchors, or they don't tell. "
            "`pending`: being found out, for some minutes.",
            f"max by (verdict) (tracescore_drift_verdict{{{APP}}})",
            "{{verdict}}",
        ),
        stacked(
            "Changes that are told",
            "Falls from what was normal (baseline) or below what was asked for (target). Best empty.",
            {"{{detector}} {{against}}": f"{of_detectors('detected')} > 0"},
        ),
    )
    row(
        made,
        "How sure",
        share(
            "Evidence, as a share of what is needed",
            "At 100 % a change is told. Evidence comes and goes; what stays above 5 % is worth a look.",
            {"{{detector}} {{against}}": f"clamp_max({of_detectors('evidence_days')} / scalar(max({THRESHOLD})), 1)"},
        ),
        share(
            "References",
            "What the mean of each has to stay above.",
            {"{{detector}} {{against}}": of_detectors("reference_ratio", "min")},
        ),
        chart(
            "Observations",
            "Tested since the baseline, or learned from so far; a conversation is one.",
            {"{{detector}} {{against}}": of_detectors("scores", "sum")},
        ),
    )
    row(
        made,
        "Can it tell at all",
        share(
            "Still learning",
            "Share of the replicas that do not know yet what is normal: nothing is told before they do.",
            {"{{detector}}": of_detectors("learning", "avg", ', against="baseline"').replace(", against)", ")")},
        ),
        chart(
            "Swing of the day",
            "How far the quarters of the day lay apart. Above twice drift.tolerance set drift.reference: by_block.",
            {"{{detector}}": of_detectors("swing_ratio", where=', against="baseline"')},
        ),
        chart(
            "Difference between days",
            "Standard deviation between the days that were learned; the reference lies at least two of them below what "
            "was learned. Nothing while learning, or where days cannot be told apart.",
            {"{{detector}}": of_detectors("between_days_ratio", where=', against="baseline"')},
        ),
        chart(
            "Shift of the judge",
            "What fixed items score now less what they scored before, the last time anything was suspected.",
            {"{{detector}} {{against}}": f"avg by (detector, against) ({SHIFT})"},
        ).min(-1),
    )
    return made
