"""Whether the measuring instrument works, and what it costs.

An embedded judge makes no requests: of this dashboard it fills the first row.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import RATE, board, chart, chosen, dashed, row, share, stacked
from deploy.prometheus.alerts import COST_LIMIT, TOKENS_LIMIT
from tracescore.model import LIVE_MEASURES

FILE = Path(__file__).with_name("judge.json")
JUDGE = '{judge="$judge"}'
SCORED = f'outcome="scored", measure=~"{"|".join(LIVE_MEASURES)}"'
"""Without the measures of users, some of which ask no judge."""


def rate(name: str, by: str) -> str:
    """Per second, of the chosen judge."""
    return f"sum by ({by}) (rate(tracescore_judge_{name}_total{JUDGE}{RATE}))"


def within_a_day(name: str) -> str:
    """How much in 24 hours, over all replicas of the deployment that used most."""
    return f"max(sum by (namespace, job) (increase(tracescore_judge_{name}_total{JUDGE}[1d])))"


def build() -> dashboard.Dashboard:
    """The dashboard."""
    made = board(
        "judge",
        "judge",
        "Health, speed and cost of the judge.",
        [chosen("judge", "tracescore_judge_ready")],
    )
    row(
        made,
        "Is it there",
        share(
            "Replicas whose judge answers",
            "Below 100 %, some replicas do not score.",
            {"ready": f"avg(tracescore_judge_ready{JUDGE})"},
        ),
        stacked(
            "Which judge",
            "Replicas by model and epoch. Scores of different epochs are not comparable.",
            {"epoch {{epoch}} {{model}}": f"count by (epoch, model) (tracescore_judge_info{JUDGE})"},
        ),
        chart(
            "Replicas that stopped asking",
            "Replicas whose circuit breaker is open, or tries again, after too many failures.",
            {
                "not asking": (
                    'sum(tracescore_judge_circuit_state{judge="$judge", state!="closed"})'  # 0 while all is well
                )
            },
        ),
    )
    row(
        made,
        "How it answers",
        stacked("Requests", "Requests per second, by outcome.", {"{{outcome}}": rate("requests", "outcome")}),
        chart(
            "Time of a request",
            "95 % of them take no longer, by operation.",
            {
                "{{operation}}": (
                    "histogram_quantile(0.95, sum by (le, operation) "
                    f"(rate(tracescore_judge_request_duration_seconds_bucket{JUDGE}{RATE})))"
                )
            },
        ).unit("s"),
        stacked(
            "Replies that were not as asked",
            "Per second: verdicts that did not count, by reason, and replies that held more than the JSON.",
            {"{{reason}}": rate("dropped", "reason"), "repaired": rate("repaired", "judge")},
        ),
    )
    row(
        made,
        "What it costs",
        dashed(
            chart(
                "Money within a day",
                "In the currency of judge.price; 0 without a price. The dashed line is the limit in the alert rules.",
                {"spent": within_a_day("cost"), "limit": f"max({COST_LIMIT})"},
            ),
            "limit",
        ),
        dashed(
            chart(
                "Tokens within a day",
                "Tokens read and written. The dashed line is the limit in the alert rules.",
                {"used": within_a_day("tokens"), "limit": f"max({TOKENS_LIMIT})"},
            ),
            "limit",
        ).unit("short"),
        stacked("Tokens", "Tokens per second, read and written.", {"{{direction}}": rate("tokens", "direction")}),
        stacked("Money by operation", "Money per second.", {"{{operation}}": rate("cost", "operation")}),
        chart(
            "Money per 1,000 scored interactions",
            "Cost per 1,000 interactions that the most frequent of tracescore's own measures scored.",
            {
                "per 1,000": (
                    f"1000 * sum(increase(tracescore_judge_cost_total{JUDGE}[1d]))\n/\n"
                    f"(max(sum by (measure) (increase(tracescore_evaluations_total{{{SCORED}}}[1d]))) > 0)"
                )
            },
        ),
        stacked(
            "Requests to the embedder",
            "Requests per second, by outcome; an embedder in the process makes none.",
            {"{{outcome}}": f"sum by (outcome) (rate(tracescore_embedder_requests_total{RATE}))"},
        ),
    )
    return made
