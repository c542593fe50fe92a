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
    made = board(
        "coverage", "coverage", "What tracescore received, read and scored, and what not and why. All apps.", []
    )
    row(
        made,
        "What came",
        chart(
            "Spans",
            "Spans received, and how many belong to a GenAI convention.",
            {
                "received": f"sum(increase(tracescore_receiver_spans_total{RATE}))",
                "GenAI": f"sum(increase(tracescore_interactions_genai_spans_total{RATE}))",
            },
        ),
        stacked(
            "Refused",
            "Refused requests, by reason. Senders repeat those refused as `full`, and no others. Best empty.",
            {"{{reason}}": counted("tracescore_receiver_refused_requests_total", "reason")},
        ),
        share(
            "Sampling ratio",
            "Share of interactions that tracescore scores, by rule.",
            {"{{rule}}": "avg by (rule) (tracescore_sampling_ratio)"},
        ),
    )
    row(
        made,
        "What could be read",
        stacked(
            "Interactions",
            "Interactions by what they hold. Only complete ones can get every score.",
            {"{{state}}": counted(READ, "state")},
        ),
        share(
            "Interactions that hold everything",
            "Share with question, answer and passages.",
            {"complete": portion(READ, "", 'state="complete"')},
        ),
        share(
            "Interactions without their text",
            "The instrumentation records no texts; tracescore's log names the setting that turns them on.",
            {"without text": portion(READ, "", 'state="content_not_captured"')},
        ),
    )
    row(
        made,
        "What became of it",
        stacked(
            "Evaluations",
            "Per measure: scored; unscored (tried in vain); skipped (nothing to score); shed (too many waited).",
            {"{{measure}} {{outcome}}": counted(ENDED, "measure, outcome")},
        ),
        stacked(
            "Why there is no score",
            "Evaluations without a score, by reason.",
            {"{{measure}} {{outcome}} {{reason}}": counted(ENDED, "measure, outcome, reason", '{outcome!="scored"}')},
        ),
        share(
            "Evaluations that gave no score though there was something to score",
            "Unscored and shed, as a share of all but the skipped. Above 25 % the quality alerts are silent.",
            {"{{measure}}": portion(ENDED, "measure", 'outcome=~"unscored|shed"', '{outcome!="skipped"}')},
        ),
        chart(
            "Waiting",
            "Evaluations that wait or run. A rising line: the judge is slower than the traffic.",
            {"{{measure}}": "sum by (measure) (tracescore_evaluations_pending)"},
        ),
        chart(
            "Age of what waits longest",
            "An alert fires above 15 minutes.",
            {"{{measure}}": "max by (measure) (tracescore_evaluations_oldest_pending_seconds)"},
        ).unit("s"),
        chart(
            "From the answer to its score",
            "Time within which half, and 95 %, of the scores arrive.",
            {
                word: (
                    f"histogram_quantile({q}, sum by (le) (increase(tracescore_evaluations_lag_seconds_bucket{RATE})))"
                )
                for word, q in (("half", 0.5), ("95 %", 0.95))
            },
        ).unit("s"),
    )
    return made
