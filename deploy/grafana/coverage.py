"""What the scores do not speak of. The ledger: what came, what could be read of it, and what became of it.

It counts all apps together: what could not be read has no service to be counted under.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import RATE, board, chart, row, share, stacked

FILE = Path(__file__).with_name("coverage.json")
READ = "tracescore_interactions_total"
ENDED = "tracescore_evaluations_total"


def counted(counter: str, by: str, where: str = "") -> str:
    """How often, since the last point; what never happens is not drawn."""
    return f"sum by ({by}) (increase({counter}{where}{RATE})) > 0"


def portion(counter: str, by: str, part: str, whole: str = "") -> str:
    """The part that one value of a label has."""
    grouping = f" by ({by})" if by else ""
    return (
        f"sum{grouping} (increase({counter}{{{part}}}{RATE}))\n/\n"
        f"(sum{grouping} (increase({counter}{whole}{RATE})) > 0)"
    )


def build() -> dashboard.Dashboard:
    """The dashboard."""
    made = board("coverage", "coverage", "What came, what could be read, what was scored, and why not. All apps.", [])
    row(
        made,
        "What came",
        chart(
            "Spans",
            "Received, and how many of them belong to a GenAI convention.",
            {
                "received": f"sum(increase(tracescore_receiver_spans_total{RATE}))",
                "GenAI": f"sum(increase(tracescore_interactions_genai_spans_total{RATE}))",
            },
        ),
        stacked(
            "Refused",
            "Requests that were refused, by reason: `full` comes back later, the others do not. Best empty.",
            {"{{reason}}": counted("tracescore_receiver_refused_requests_total", "reason")},
        ),
        share(
            "Sampling ratio",
            "Share of the interactions that is scored, by rule.",
            {"{{rule}}": "avg by (rule) (tracescore_sampling_ratio)"},
        ),
    )
    row(
        made,
        "What could be read",
        stacked(
            "Interactions",
            "By what they hold. Only complete ones can get every score.",
            {"{{state}}": counted(READ, "state")},
        ),
        share(
            "Interactions that hold everything",
            "Question, answer and contexts.",
            {"complete": portion(READ, "", 'state="complete"')},
        ),
        share(
            "Interactions without their text",
            "The instrumentation does not record content; the log of tracescore names its switch.",
            {"without text": portion(READ, "", 'state="content_not_captured"')},
        ),
    )
    row(
        made,
        "What became of it",
        stacked(
            "Evaluations",
            "Per measure: scored, tried without a score (unscored), nothing to score (skipped), never tried (shed).",
            {"{{measure}} {{outcome}}": counted(ENDED, "measure, outcome")},
        ),
        stacked(
            "Why there is no score",
            "By reason.",
            {"{{measure}} {{outcome}} {{reason}}": counted(ENDED, "measure, outcome, reason", '{outcome!="scored"}')},
        ),
        share(
            "Evaluations that gave no score though there was something to score",
            "Unscored and shed, of all but the skipped. Above 25 % the quality alerts keep silent.",
            {"{{measure}}": portion(ENDED, "measure", 'outcome=~"unscored|shed"', '{outcome!="skipped"}')},
        ),
        chart(
            "Waiting",
            "Started and not ended. A rising line: the judge is slower than the traffic.",
            {"{{measure}}": "sum by (measure) (tracescore_evaluations_pending)"},
        ),
        chart(
            "Age of what waits longest",
            "Above 15 minutes an alert says so.",
            {"{{measure}}": "max by (measure) (tracescore_evaluations_oldest_pending_seconds)"},
        ).unit("s"),
        chart(
            "From the answer to its score",
            "Half of the scores are there after, and 95 % of them.",
            {
                word: (
                    f"histogram_quantile({q}, sum by (le) (increase(tracescore_evaluations_lag_seconds_bucket{RATE})))"
                )
                for word, q in (("half", 0.5), ("95 %", 0.95))
            },
        ).unit("s"),
    )
    return made
