"""What `tracescore doctor` finds in the metrics of a service, and that each finding that is not well names a fix."""

from __future__ import annotations

import pytest

from tracescore.cli.doctor_checks import Exposition, Finding, findings

NOW = 1_800_000_000.0
WELL = {
    "tracescore_receiver_spans_total": 100,
    "tracescore_receiver_admitted_spans_total": 100,
    "tracescore_interactions_genai_spans_total": 75,
    'tracescore_interactions_total{state="complete"}': 25,
    'tracescore_judge_info{judge="gpt"}': 1,
    'tracescore_judge_ready{judge="gpt"}': 1,
    'tracescore_evaluations_total{outcome="scored",reason=""}': 70,
    'tracescore_evaluations_lag_seconds_bucket{le="1.0"}': 0,
    "tracescore_evaluations_lag_seconds_count": 25,
    "tracescore_spool_writable": 1,
    "tracescore_exporters_prometheus_scrape_timestamp_seconds": NOW - 15,
}


def found(changes: dict[str, float | None], skew: float = 0.0) -> dict[str, Finding]:
    samples = {name: value for name, value in (WELL | changes).items() if value is not None}
    text = "".join(f"{name} {value}\n" for name, value in samples.items())
    told = list(findings(Exposition(text), NOW, NOW + skew, "http://127.0.0.1:4318"))
    return {one.name: one for one in told}


def test_of_a_service_that_is_well_nothing_needs_a_fix() -> None:
    told = found({})
    assert {one.state for one in told.values()} == {"ok"}
    assert [one.fix for one in told.values() if one.fix] == []
    assert list(told) == ["spans", "content", "judge", "scoring", "spool", "prometheus", "clock"]


COMPLETE = 'tracescore_interactions_total{state="complete"}'
UNSCORED = 'tracescore_evaluations_total{outcome="unscored",reason="judge_timeout"}'
REFUSED = 'tracescore_receiver_refused_requests_total{reason="busy"}'


@pytest.mark.parametrize(
    ("changes", "name", "state", "said", "fix"),
    [
        ({"tracescore_receiver_spans_total": 0}, "spans", "fail", "none received", "http://127.0.0.1:4318"),
        ({"tracescore_receiver_spans_total": 0, REFUSED: 3}, "spans", "fail", "3 busy", "point the OTLP exporter"),
        ({"tracescore_receiver_admitted_spans_total": 0}, "spans", "fail", "none chosen by sampling", "sampling.ratio"),
        ({"tracescore_interactions_genai_spans_total": 0}, "spans", "fail", "none of a GenAI", "docs/instrument.md"),
        ({REFUSED: 3}, "spans", "warn", "3 busy", "the log"),
        ({COMPLETE: 0}, "content", "warn", "no interaction read yet", "ask your app"),
        (
            {COMPLETE: 0, 'tracescore_interactions_none_total{reason="bare_retrieval"}': 4},
            "content",
            "fail",
            "4 bare_retrieval",
            "instrument the model client",
        ),
        (
            {COMPLETE: 1, 'tracescore_interactions_total{state="content_not_captured"}': 9},
            "content",
            "fail",
            "1 of 10 interactions complete; the others: 9 content_not_captured",
            "turn on the recording",
        ),
        ({COMPLETE: 1, 'tracescore_interactions_total{state="no_answer"}': 9}, "content", "warn", "9 no", "--explain"),
        ({'tracescore_judge_ready{judge="gpt"}': 0}, "judge", "fail", "gpt is not ready", "check --probe"),
        ({UNSCORED: 30}, "judge", "fail", "30 of 100 evaluations failed: 30 judge_timeout", "docs/judges.md"),
        ({"tracescore_evaluations_oldest_pending_seconds": 900}, "scoring", "warn", "for 900 s", "max_concurrency"),
        ({'tracescore_service_errors_total{stage="web"}': 1}, "scoring", "fail", "1 web", "event=defect"),
        ({"tracescore_spool_writable": None}, "spool", "warn", "none", "set spool.path"),
        ({"tracescore_spool_writable": 0}, "spool", "fail", "cannot be written", "free the disk"),
        ({"tracescore_exporters_otlp_sent_total": 5}, "otlp", "ok", "5 delivered", ""),
        (
            {"tracescore_exporters_otlp_sent_total": 0, "tracescore_exporters_otlp_waiting": 9},
            "otlp",
            "fail",
            "0 delivered",
            "exporters.otlp.endpoint",
        ),
        (
            {"tracescore_exporters_prometheus_scrape_timestamp_seconds": 0},
            "prometheus",
            "fail",
            "nobody has scraped",
            "deploy/prometheus/scrape.yaml",
        ),
        (
            {"tracescore_exporters_prometheus_scrape_timestamp_seconds": NOW - 600},
            "prometheus",
            "fail",
            "10 minutes ago",
            "scrape.yaml",
        ),
        ({'tracescore_evaluations_lag_seconds_bucket{le="1.0"}': 20}, "clock", "fail", "ahead of", "NTP"),
        ({"tracescore_drift_late_scores_total": 60}, "clock", "warn", "60 scores came too late", "NTP"),
    ],
)
def test_what_is_not_well_is_told_with_its_fix(
    changes: dict[str, float | None], name: str, state: str, said: str, fix: str
) -> None:
    told = found(changes)[name]
    assert told.state == state
    assert said in told.said
    assert fix in told.fix


@pytest.mark.parametrize(("skew", "said"), [(60.0, "60 s ahead of"), (-60.0, "60 s behind"), (3.0, "agrees with")])
def test_a_clock_that_is_wrong_is_told(skew: float, said: str) -> None:
    assert said in found({}, skew)["clock"].said
