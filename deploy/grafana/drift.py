"""Whether anything has changed, how sure tracescore is, and whether it is the judge."""

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
        "Did answers get worse? Read from the top: what changed, how sure tracescore is, and whether it can tell.",
        [chosen(name, EVIDENCE, NAMES[:place]) for place, name in enumerate(NAMES)],
    )
    planned = dashboard.AnnotationQuery().name("Planned changes").datasource(SOURCE).enable(enable=True)
    made.annotation(planned.icon_color("purple").expr(PAUSED))
    row(
        made,
        "What has happened",
        states(
            "Diagnosis",
            "The pattern of the drops. `none`: nothing to do. Anything else: open the page, which says where to look. "
            "`unclear`: start with the lowest answers.",
            f"max by (pattern) (tracescore_drift_diagnosis{{{APP}}})",
            "{{pattern}}",
        ),
        states(
            "Who moved",
            "`product`: your app. `judge`: the judge. `unattributed`: there are no anchors, or they do not tell. "
            "`pending`: the judge is scoring the anchors, which takes minutes.",
            f"max by (verdict) (tracescore_drift_verdict{{{APP}}})",
            "{{verdict}}",
        ),
        stacked(
            "Drops reported",
            "Drops below what was normal (baseline) or below what you ask for (target). Best empty.",
            {"{{detector}} {{against}}": f"{of_detectors('detected')} > 0"},
        ),
    )
    row(
        made,
        "How sure",
        share(
            "Evidence, as a share of what a report takes",
            "At 100 % tracescore reports a drop. Evidence comes and goes; look at what stays above 5 %.",
            {"{{detector}} {{against}}": f"clamp_max({of_detectors('evidence_days')} / scalar(max({THRESHOLD})), 1)"},
        ),
        share(
            "References",
            "tracescore reports a mean that drops below its reference.",
            {"{{detector}} {{against}}": of_detectors("reference_ratio", "min")},
        ),
        chart(
            "Observations",
            "Scores tested since the baseline, or learned so far. A conversation counts once.",
            {"{{detector}} {{against}}": of_detectors("scores", "sum")},
        ),
    )
    row(
        made,
        "Can it tell?",
        share(
            "Still learning",
            "Share of the replicas that do not know yet what is normal; they report no drop until they do.",
            {"{{detector}}": of_detectors("learning", "avg", ', against="baseline"').replace(", against)", ")")},
        ),
        chart(
            "Swing of the day",
            "How far apart the quarters of the day are. Above twice drift.tolerance, set drift.reference: by_block.",
            {"{{detector}}": of_detectors("swing_ratio", where=', against="baseline"')},
        ),
        chart(
            "Difference between days",
            "Standard deviation between the days that tracescore learned from; the reference lies at least two of them "
            "below the learned mean. Empty while it learns, or where it saw too few days.",
            {"{{detector}}": of_detectors("between_days_ratio", where=', against="baseline"')},
        ),
        chart(
            "Shift of the judge",
            "Scores of the anchors less their first ones, as of the last suspected drop.",
            {"{{detector}} {{against}}": f"avg by (detector, against) ({SHIFT})"},
        ).min(-1),
    )
    return made
