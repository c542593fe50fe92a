"""Writes tracescore.rules.test.yaml: `python -m deploy.prometheus.cases`.

The cases that the rules must get right, for `promtool test rules`. They are written by code because one stream of
scores moves six counters. Expected values come from the scores themselves, by another road than the rules take.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from deploy.prometheus.streams import READY, TARGET, Case, case, counter, estimate, evaluations, found, named, scores

FILE = Path(__file__).with_name("tracescore.rules.test.yaml")

HEADER = """\
# What the rules must do: promtool test rules tracescore.rules.test.yaml
# Written by `python -m deploy.prometheus.cases`; to change it, change cases.py beside it.
"""

CONTENT = ["TracescoreContentNotRecorded"]
READ = "tracescore_interactions_total"
OLDEST = "tracescore_evaluations_oldest_pending_seconds"
REFUSED = "tracescore_receiver_refused_requests_total"
FOLDED = "tracescore_exporters_folded_scores_total"

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
            values=found("completeness", "1h", NOTHING) | {"sum(service:tracescore_quality:upper)": None},
            firing=[],
        ),
        case(
            "one score: an interval that says next to nothing, and no alert however bad it is",
            scores("completeness", 0.0, 90, 1, 90),
            minute=125,
            values=found("completeness", "1h", estimate([0.0], [1.0]))
            | {"sum(service:tracescore_quality:upper)": None},
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
            values={"sum(service:tracescore_quality:upper)": None},
            firing=[],
        ),
    ]


def quality_cases() -> list[Case]:
    """When the quality alert speaks, and when it keeps silent."""
    bad = scores("answer_relevancy", 0.25, 60, 120, 60)
    quiet = named("tracescore_judge_ready", TARGET | {"judge": "gpt"})
    return [
        case(
            "scores below the target: one measure, one alert",
            bad,
            scores("completeness", 0.875, 60, 120, 60),
            minute=150,
            values={"count(ALERTS{alertname='TracescoreBelowTarget', measure='answer_relevancy'})": 1},
            firing=["TracescoreBelowTarget"],
        ),
        case(
            "scores above the target: silence",
            scores("answer_relevancy", 0.75, 60, 120, 60),
            minute=150,
            values={},
            firing=[],
        ),
        case(
            "thin traffic is judged by the day",
            scores("completeness", 0.25, 60, 30, 500),
            minute=480,
            values={"sum(service:tracescore_quality:upper)": estimate([0.25] * 30, [1.0] * 30)["upper"]},
            firing=["TracescoreBelowTarget"],
        ),
        *(
            case(
                f"an incident {word} by good scores after {after} minutes",
                scores("completeness", 0.25, 60, 40, 200),
                scores("completeness", 0.875, 100, 200, 1, labels={"pod": "b"}),
                minute=100 + after,
                values={"sum(service:tracescore_quality:upper) > bool 0.5": 1},
                firing=firing,
            )
            for word, after, firing in (("is not yet ended", 35, ["TracescoreBelowTarget"]), ("is ended", 120, []))
        ),
        case(
            "the judge is down: only the measurement is said to be broken",
            bad,
            {quiet: "0x240"},
            minute=150,
            values={"count(ALERTS{cause='judge_not_ready'})": 1},
            firing=["TracescoreMeasurementBroken"],
        ),
        case(
            "one of two replicas without its judge is told and silences nothing",
            bad,
            {quiet: "0x240", named("tracescore_judge_ready", TARGET | {"judge": "gpt", "pod": "b"}): "1x240"},
            minute=150,
            values={},
            firing=["TracescoreBelowTarget", "TracescoreMeasurementBroken"],
        ),
        case(
            "another deployment whose judge is down silences nothing here",
            bad,
            {named("tracescore_judge_ready", TARGET | {"judge": "gpt", "namespace": "test"}): "0x240"},
            minute=150,
            values={},
            firing=["TracescoreBelowTarget", "TracescoreMeasurementBroken"],
        ),
    ]


def measurement_cases() -> list[Case]:
    """When nobody measures, or nobody can."""
    bad = scores("answer_relevancy", 0.25, 60, 120, 60)
    started = named("tracescore_evaluations_started_total", TARGET | {"measure": "answer_relevancy"})
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
    ]


def upkeep_cases() -> list[Case]:
    """What makes scores late, few or coarse."""
    rising, steady = counter(1, 60, 120, 60), counter(1, 60, 1, 180)
    return [
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
            ("no room", REFUSED, {"protocol": "grpc", "reason": "full"}, rising, ["TracescoreRefusing"]),
            ("bad requests", REFUSED, {"protocol": "grpc", "reason": "malformed"}, rising, []),
            ("too many series", FOLDED, {"group": "completeness"}, rising, ["TracescoreSeriesCapped"]),
            ("room for all series", FOLDED, {"group": "completeness"}, "0x180", []),
        )
    ]


def render() -> str:
    """The text of tracescore.rules.test.yaml."""
    document = {
        "rule_files": ["tracescore.rules.yaml"],
        "evaluation_interval": "5m",
        "group_eval_order": [
            "tracescore-estimates",
            "tracescore-measurement",
            "tracescore-quality",
            "tracescore-upkeep",
        ],
        "tests": [*estimate_cases(), *quality_cases(), *measurement_cases(), *upkeep_cases()],
    }
    return HEADER + yaml.safe_dump(document, sort_keys=False, width=10_000)


if __name__ == "__main__":
    FILE.write_text(render())
