"""Writes the cases for promtool, *.test.yaml: `python -m deploy.prometheus.cases`.

The cases that the rules must get right, for `promtool test rules`. They are written by code because one stream of
scores moves six counters. Expected values come from the scores themselves, by another road than the rules take.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from deploy.prometheus.drift_cases import drift_cases
from deploy.prometheus.estimates import UPPER
from deploy.prometheus.first_cases import first_cases
from deploy.prometheus.gold_cases import gold_cases
from deploy.prometheus.quality_cases import burning_cases, quality_cases, thin_cases
from deploy.prometheus.release_cases import release_cases, week_cases
from deploy.prometheus.rules import groups
from deploy.prometheus.silence_cases import silence_cases
from deploy.prometheus.streams import (
    READY,
    TARGET,
    Case,
    case,
    counter,
    estimate,
    evaluations,
    found,
    named,
    scores,
    together,
)

FILE = Path(__file__).with_name("tracescore.rules.test.yaml")
WEEK_FILE = FILE.with_name("tracescore.week.test.yaml")

HEADER = """\
# What the rules must do: promtool test rules FILE
# Written by `python -m deploy.prometheus.cases`; to change it, change cases.py beside it.
"""

CONTENT = ["TracescoreContentNotRecorded"]
READ = "tracescore_interactions_total"
OLDEST = "tracescore_evaluations_oldest_pending_seconds"
REFUSED = "tracescore_receiver_refused_requests_total"
FOLDED = "tracescore_exporters_folded_scores_total"
SPANS = "tracescore_interactions_genai_spans_total"
BUDGET = "tracescore_judge_budget_used_ratio"
COST = "tracescore_judge_cost_total"
TOKENS = "tracescore_judge_tokens_total"

NOTHING: dict[str, float | None] = dict.fromkeys(("mean", "effective_count", "lower", "upper"))


def estimate_cases() -> list[Case]:
    """The numbers."""
    replicas = ({"pod": "a"}, {"pod": "b", "instance": "10.0.0.2:9464"}, {"pod": "c", "service_version": "2"})
    mixed = estimate([0.875] * 40 + [0.25] * 40, [1.0] * 40 + [10.0] * 40)
    return [
        case(
            "no traffic: no estimate, no alert",
            scores("completeness", 0.5, 180),
            READY,
            minute=125,
            values=found("completeness", "1h", NOTHING) | {f"count({UPPER})": None},
            firing=[],
        ),
        case(
            "one score: an interval that says next to nothing, and no alert however bad it is",
            scores("completeness", 0.0, 90, 1, 90),
            minute=125,
            values=found("completeness", "1h", estimate([0.0], [1.0])) | {f"count({UPPER})": None},
            firing=[],
        ),
        case(
            "a counter that starts again with its process loses nothing",
            scores("completeness", 0.75, 60, 40, 10, 40, 60, restarts=True),
            minute=165,
            values=found("completeness", "6h", {"mean": 0.75, "effective_count": 80}),
            firing=[],
        ),
        case(
            "a replica that ends and one that takes its place are one stream of scores",
            scores("completeness", 0.75, 60, 40, ends=True),
            scores("completeness", 0.75, 0, 40, 60, born=105, labels={"pod": "b", "instance": "10.0.0.2:9464"}),
            {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "1x99 stale"},
            {named("tracescore_judge_ready", TARGET | {"judge": "gpt", "pod": "b"}): "_x104 0x2 1x60"},
            minute=150,
            values=found("completeness", "6h", {"mean": 0.75})
            | {"sum(service:tracescore_score:effective_count{window='6h'}) > bool 75": 1},
            firing=[],
        ),
        case(
            "another judge is another series: its scores are not mixed with those of the one before",
            scores("completeness", 0.875, 60, 60, ends=True),
            scores("completeness", 0.25, 60, 60, born=60, labels={"judge": "new"}),
            {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): "1x119 stale"},
            {named("tracescore_judge_ready", TARGET | {"judge": "new"}): "_x120 1x120"},
            minute=165,
            values=found("completeness", "6h", {"mean": 0.875})
            | {
                "sum(service:tracescore_score:mean{judge='new', window='6h'})": 0.25,
                "count(ALERTS{alertstate='firing', judge='new'})": 1,
            },
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "replicas with other weights and scores: the mean over all interactions, not of the means",
            scores("faithfulness", 0.875, 70, 40, 70, labels={"context_source": "retrieval"}),
            scores("faithfulness", 0.25, 70, 40, 70, weight=10, labels={"context_source": "retrieval"} | replicas[1]),
            minute=125,
            values=found("faithfulness", "1h", mixed)
            | {"sum(service:tracescore_below_target:ratio{window='1h'})": 10 / 11},
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "a sampling ratio that falls to a tenth moves the count and not the mean",
            scores("completeness", 0.875, 70, 20, 90),
            scores("completeness", 0.625, 70, 20, 90, labels={"pod": "b"}),
            scores("completeness", 0.875, 90, 20, 70, weight=10, labels={"pod": "c"}),
            scores("completeness", 0.625, 90, 20, 70, weight=10, labels={"pod": "d"}),
            minute=125,
            values=found("completeness", "1h", {"mean": 0.75, "effective_count": 440**2 / 4040}),
            firing=[],
        ),
        case(
            "evidence of another source is another series",
            scores("faithfulness", 0.875, 60, 60, 60, labels={"context_source": "retrieval"}),
            scores("faithfulness", 0.625, 60, 60, 60, labels={"context_source": "prompt"}),
            minute=125,
            values={
                "max(service:tracescore_score:mean{window='1h'})": 0.875,
                "min(service:tracescore_score:mean{window='1h'})": 0.625,
            },
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "three replicas with eight bad scores each, none of which suffices alone",
            *(scores("answer_relevancy", 0.25, 60, 8, 120, labels=replica) for replica in replicas),
            minute=80,
            values=found("answer_relevancy", "1h", estimate([0.25] * 24, [1.0] * 24)),
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "two of them have too few scores for an alert",
            *(scores("answer_relevancy", 0.25, 60, 8, 120, labels=replica) for replica in replicas[:2]),
            minute=80,
            values={f"count({UPPER})": None},
            firing=[],
        ),
    ]


def measurement_cases() -> list[Case]:
    """When nobody measures, or nobody can."""
    bad = scores("answer_relevancy", 0.25, 60, 120, 60)
    started = named("tracescore_evaluations_started_total", TARGET | {"measure": "answer_relevancy"})
    second = {named("tracescore_evaluations_pending", TARGET | {"measure": "completeness", "pod": "b"}): "0x240"}
    return [
        case(
            "most evaluations fail: the scores that are left are not believed",
            bad,
            evaluations("answer_relevancy", "scored", "", 60, 120, 60),
            evaluations("answer_relevancy", "unscored", "judge_timeout", 60, 120, 60),
            evaluations("answer_relevancy", "skipped", "no_answer", 60, 120, 60, a_minute=8),
            minute=150,
            values={"sum(job:tracescore_measurement:broken{cause='failing'})": 0.5},
            firing=["TracescoreMeasurementBroken"],
        ),
        case(
            "one evaluation of ten fails: the scores are believed",
            bad,
            evaluations("answer_relevancy", "scored", "", 60, 120, 60, a_minute=9),
            evaluations("answer_relevancy", "unscored", "judge_timeout", 60, 120, 60),
            minute=150,
            values={"sum(job:tracescore_measurement:broken)": None},
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "what has nothing to be scored is no failure",
            bad,
            evaluations("answer_relevancy", "scored", "", 60, 120, 60),
            evaluations("answer_relevancy", "skipped", "no_answer", 60, 120, 60),
            evaluations("answer_relevancy", "unscored", "needs_history", 60, 120, 60),
            minute=150,
            values={"sum(job:tracescore_measurement:broken)": None},
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "evaluations start and none ends",
            {started: counter(1, 60, 120, 60)},
            evaluations("answer_relevancy", "scored", "", 60, 30, 150),
            minute=165,
            values={"sum(job:tracescore_measurement:broken{cause='stopped'}) > bool 0": 1},
            firing=["TracescoreMeasurementBroken"],
        ),
        case(
            "an evaluation that started just now need not have ended",
            {started: counter(1, 157, 3, 60)},
            evaluations("answer_relevancy", "scored", "", 60, 30, 150),
            minute=165,
            values={"sum(job:tracescore_measurement:broken)": None},
            firing=[],
        ),
        case(
            "evaluations start and end",
            {started: counter(1, 60, 120, 60)},
            evaluations("answer_relevancy", "skipped", "no_contexts", 60, 120, 60),
            minute=165,
            values={"sum(job:tracescore_measurement:broken)": None},
            firing=[],
        ),
        *(
            case(
                f"{words}, {after} minutes ago",
                {named("tracescore_evaluations_pending", TARGET | {"measure": "completeness"}): "0x60 stale"},
                *others,
                minute=60 + after,
                values={},
                firing=firing,
            )
            for words, others, after, firing in (
                ("the only replica was there", (), 30, ["TracescoreMeasurementBroken"]),
                ("the only replica was there", (), 4, []),
                ("a deployment was removed for good", (), 400, []),
                ("one of two replicas was there", (second,), 30, []),
            )
        ),
    ]


def upkeep_cases() -> list[Case]:
    """What makes scores late, few or coarse."""
    rising, steady = counter(1, 60, 120, 60), counter(1, 60, 1, 180)
    claims = {"judge": "gpt", "operation": "claims"}
    spent = claims | {"direction": "input"}
    read = case(
        "GenAI spans of which interactions are read",
        {named(SPANS, TARGET): rising, named(READ, TARGET | {"state": "complete"}): rising},
        minute=150,
        values={},
        firing=[],
    )
    return [read] + [
        case(
            f"{alert}: {metric} {values}",
            {named(metric, TARGET | labels): values},
            minute=150,
            values={},
            firing=firing,
        )
        for alert, metric, labels, values, firing in (
            (
                "an app without text",
                "tracescore_interactions_total",
                {"state": "content_not_captured"},
                rising,
                CONTENT,
            ),
            ("one interaction", READ, {"state": "content_not_captured"}, steady, []),
            ("an app with text", READ, {"state": "complete"}, rising, []),
            ("a slow judge", OLDEST, {"measure": "completeness"}, "0x90 1000x90", ["TracescoreLagging"]),
            ("a judge that keeps up", OLDEST, {"measure": "completeness"}, "30x180", []),
            ("nothing like a question", SPANS, {}, rising, ["TracescoreNothingRead"]),
            ("a span now and then", SPANS, {}, steady, []),
            ("no room", REFUSED, {"protocol": "grpc", "reason": "full"}, rising, ["TracescoreRefusing"]),
            ("bad requests", REFUSED, {"protocol": "grpc", "reason": "malformed"}, rising, []),
            ("too many series", FOLDED, {"group": "completeness"}, rising, ["TracescoreSeriesCapped"]),
            ("room for all series", FOLDED, {"group": "completeness"}, "0x180", []),
            ("a spent budget", BUDGET, {"judge": "mini"}, "0.9x90 1x90", ["TracescoreBudgetSpent"]),
            ("a budget that lasts", BUDGET, {"judge": "mini"}, "0.9x180", []),
            ("a dear judge", COST, claims, counter(0.5, 60, 120, 60), ["TracescoreJudgeOverBudget"]),
            ("a cheap judge", COST, claims, counter(0.125, 60, 120, 60), []),
            ("a wordy judge", TOKENS, spent, counter(2**20, 60, 120, 60), ["TracescoreJudgeOverBudget"]),
            ("a terse judge", TOKENS, spent, counter(2**14, 60, 120, 60), []),
        )
    ]


def document(cases: Iterable[Case], interval: str) -> str:
    """The text of a file for promtool, with so much between two evaluations of the rules."""
    made = {
        "rule_files": ["tracescore.rules.yaml", "threshold.rules.yaml"],
        "evaluation_interval": interval,
        "group_eval_order": [*(group["name"] for group in groups()["groups"]), "tracescore-threshold"],
        "tests": [*together(cases)],
    }
    return HEADER + yaml.safe_dump(made, sort_keys=False, width=10_000)


def render() -> str:
    """The text of tracescore.rules.test.yaml."""
    every = (
        *estimate_cases(),
        *first_cases(),
        *quality_cases(),
        *burning_cases(),
        *thin_cases(),
        *drift_cases(),
        *measurement_cases(),
        *silence_cases(),
        *release_cases(),
        *gold_cases(),
        *upkeep_cases(),
    )
    return document(every, "5m")


def render_week() -> str:
    """The text of tracescore.week.test.yaml: ten days, in which the rules are evaluated once an hour."""
    return document(week_cases(), "1h")


if __name__ == "__main__":
    FILE.write_text(render())
    WEEK_FILE.write_text(render_week())
