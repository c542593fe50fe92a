"""Correctness on the gold set. A point is the latest good run; releases stay until they are old."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import board, chart, chosen, dashed, measures, row, stacked

FILE = Path(__file__).with_name("gold.json")
SET = 'gold_set="$gold_set"'
RUN = f'{SET}, judge="$judge"'
RELEASE = "{{service_name}} {{service_version}}"


def newest(name: str, by: str = "service_name, service_version", where: str = RUN) -> str:
    """A gauge of the gold set, whichever replica shows it."""
    return f"max by ({by}) (tracescore_gold_{name}{{{where}}})"


def build() -> dashboard.Dashboard:
    """The dashboard."""
    measure = "${measure}"
    made = board(
        "gold set",
        "gold",
        "Questions with known answers that tracescore asks the app on a schedule.",
        [
            chosen("gold_set", "tracescore_gold_info"),
            chosen("judge", "tracescore_gold_items", ("gold_set",)),
            measures("tracescore_gold_(.+)_lower_ratio", "factual"),
        ],
    )
    row(
        made,
        "How right are the answers",
        chart(
            "Gold: mean by release",
            "Mean of the chosen measure. If correctness drops while faithfulness stays, passages are stale or wrong.",
            {RELEASE: newest(f"{measure}_ratio")},
        ).max(1),
        chart(
            "Gold: interval by release",
            "95 %. With few questions it is wide.",
            {
                f"lower {RELEASE}": newest(f"{measure}_lower_ratio"),
                f"upper {RELEASE}": newest(f"{measure}_upper_ratio"),
            },
        ).max(1),
        chart(
            "Gold: mean by tag",
            "Mean of the chosen measure over the items with a tag.",
            {"{{slice}} {{service_version}}": newest(f"{measure}_by_slice_ratio", "slice, service_version")},
        ).max(1),
    )
    row(
        made,
        "Against the pinned reference",
        dashed(
            chart(
                "Gold: change",
                "Newest run minus the pinned runs, over the same items. The dashed line is the tolerance.",
                {
                    "{{measure}}": newest("change_ratio", "measure"),
                    "tolerance": f"-max(tracescore_gold_tolerance_ratio{{{SET}}})",
                },
            ).min(-1),
            "tolerance",
        ),
        chart("Gold: items that changed sides", "", {"{{direction}}": newest("flips", "direction")}),
        stacked(
            "Gold: claims",
            "tp: stand in the reference; fp: do not; fn: were missed. By release.",
            {"{{verdict}} {{service_version}}": newest("claims", "verdict, service_version")},
        ),
    )
    row(
        made,
        "Is it measured",
        stacked(
            "Gold: items",
            "Items by outcome and release.",
            {"{{outcome}} {{service_version}}": newest("items", "outcome, service_version")},
        ),
        chart(
            "Gold: since the last good run",
            "Time since the last good run, and its duration.",
            {
                "since": f"time() - {newest('last_success_timestamp_seconds', 'gold_set', SET)}",
                "took": newest("run_duration_seconds", "gold_set", SET),
            },
        ).unit("s"),
        chart(
            "Gold: last run",
            "1: good; 0: failed.",
            {"good": newest("last_run_ok", "gold_set", SET)},
        ).max(1),
    )
    return made
