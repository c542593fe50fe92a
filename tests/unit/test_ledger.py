"""The ledger adds up, whatever happens in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.results import NOW, SettableClock, interaction, relevancy, result
from tests.states import reread
from tracescore.model import (
    LIVE_MEASURES,
    MEASURES,
    SHED_REASONS,
    STATES,
    Score,
    Unscored,
)
from tracescore.pipeline.ledger import ENDINGS, Ledger, Tally


class Scraped:
    """The samples of a registry as Prometheus reads them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        text = generate_latest(registry).decode()
        self.samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def sum(self, name: str, **labels: str) -> float:
        found = [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]
        assert found, f"no series {name}{labels}"
        return sum(found)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_every_series_is_there_at_zero_before_anything_happened(registry: CollectorRegistry) -> None:
    Ledger(registry, SettableClock())
    scraped = Scraped(registry)
    for state in STATES:
        assert scraped.sum("tracescore_interactions_total", state=state) == 0
    for measure in MEASURES:
        assert scraped.sum("tracescore_evaluations_pending", measure=measure) == 0
        assert scraped.sum("tracescore_evaluations_oldest_pending_seconds", measure=measure) == 0
        for outcome, reason in ENDINGS:
            labels = {"measure": measure, "outcome": outcome, "reason": reason}
            assert scraped.sum("tracescore_evaluations_total", **labels) == 0


def test_each_ending_is_counted_under_its_outcome_and_reason(registry: CollectorRegistry) -> None:
    ledger = Ledger(registry, SettableClock())
    waiting = interaction()
    ledger.read(waiting)
    ledger.started(waiting, LIVE_MEASURES)
    ledger.finished(
        result(relevancy(0.5), Unscored("completeness", "judge_timeout"), Unscored("faithfulness", "no_contexts"))
    )
    ledger.shed(interaction(2), ["completeness"], "queue_full")
    scraped = Scraped(registry)
    total = "tracescore_evaluations_total"
    assert scraped.sum("tracescore_interactions_total", state="complete") == 1
    assert scraped.sum(total, measure="answer_relevancy", outcome="scored", reason="") == 1
    assert scraped.sum(total, measure="completeness", outcome="unscored", reason="judge_timeout") == 1
    assert scraped.sum(total, measure="completeness", outcome="shed", reason="queue_full") == 1
    assert scraped.sum(total, measure="faithfulness", outcome="skipped", reason="no_contexts") == 1
    assert scraped.sum(total) == 4


def test_interactions_are_counted_by_app_and_evaluations_by_service(registry: CollectorRegistry) -> None:
    ledger = Ledger(registry, SettableClock())
    for number, (service, environment) in enumerate((("docs", "prod"), ("docs", "test"), ("docs", ""), ("", "prod"))):
        of = interaction(number, service=service, environment=environment)
        ledger.read(of)
        ledger.shed(of, ["completeness"], "queue_full")
    scraped = Scraped(registry)
    read, ended = "tracescore_interactions_total", "tracescore_evaluations_total"
    for environment in ("prod", "test", "unknown"):
        of_app = {"service_name": "docs", "deployment_environment": environment}
        assert scraped.sum(read, state="complete", **of_app) == 1
        assert scraped.sum(read, state="no_answer", **of_app) == 0, "what never happened is seen to be none"
    assert scraped.sum(read, service_name="", deployment_environment="") == 1
    assert scraped.sum(ended, outcome="shed", service_name="docs") == 3
    assert scraped.sum(ended, reason="judge_timeout", measure="completeness", service_name="docs") == 0
    assert scraped.sum(ended, outcome="shed", service_name="") == 1


def test_apps_beyond_the_bound_are_counted_together_and_the_first_keep_their_names(registry: CollectorRegistry) -> None:
    ledger = Ledger(registry, SettableClock())
    for number in (*range(150), 0):
        ledger.read(interaction(number, service=f"app-{number}", environment="prod"))
        ledger.shed(interaction(number, service=f"app-{number}", environment="prod"), ["completeness"], "queue_full")
    scraped = Scraped(registry)
    assert scraped.sum("tracescore_interactions_total", service_name="app-0") == 2
    assert scraped.sum("tracescore_interactions_total", service_name="other", deployment_environment="other") == 100
    assert scraped.sum("tracescore_interactions_total") == scraped.sum("tracescore_evaluations_total") == 151
    assert len({s.labels.get("service_name") for s in scraped.samples if s.name.endswith("interactions_total")}) == 52


def test_what_0_1_0_kept_goes_on_without_a_service() -> None:
    kept = {
        "version": 1,
        "read": {"complete": 5, "no_answer": 1},
        "ended": [["completeness", "scored", "", 3], ["completeness", "unscored", "judge_timeout", 2]],
        "lag": {"bounds": [1.0], "counts": [0, 0], "sum": 0.0},
        "epochs": {"m": 2},
    }
    registry = CollectorRegistry()
    ledger = Ledger(registry, SettableClock())
    ledger.resume(Ledger.codec.load(kept))
    ledger.read(interaction())
    ledger.finished(result(Unscored("completeness", "judge_timeout")))
    scraped = Scraped(registry)
    for labels, count in (({"service_name": ""}, 5), ({"service_name": "shop"}, 1)):
        assert scraped.sum("tracescore_interactions_total", state="complete", **labels) == count
    for labels, count in (({"service_name": ""}, 2), ({"service_name": "shop"}, 1)):
        assert scraped.sum("tracescore_evaluations_total", reason="judge_timeout", **labels) == count
    assert ledger.snapshot().interactions["complete"] == 6
    assert ledger.evaluations()["completeness"].total("unscored") == 3
    assert ledger.latest_epoch("m") == 2


def test_the_oldest_pending_age_grows_with_the_clock_and_ends_with_the_evaluation(registry: CollectorRegistry) -> None:
    clock = SettableClock()
    ledger = Ledger(registry, clock)
    ledger.started(interaction(1), ["faithfulness"])
    clock.now += 30
    ledger.started(interaction(2), ["faithfulness"])
    clock.now += 12
    oldest = "tracescore_evaluations_oldest_pending_seconds"
    assert Scraped(registry).sum(oldest, measure="faithfulness") == 42
    ledger.finished(result(Score("faithfulness", 1.0), number=1))
    assert Scraped(registry).sum(oldest, measure="faithfulness") == 12
    assert Scraped(registry).sum(oldest, measure="completeness") == 0


def test_the_lag_runs_from_the_end_of_the_interaction_to_its_scores(registry: CollectorRegistry) -> None:
    Ledger(registry, SettableClock()).finished(result(relevancy(0.5), ended=NOW - 45))
    assert Scraped(registry).sum("tracescore_evaluations_lag_seconds_sum") == pytest.approx(45)
    assert Scraped(registry).sum("tracescore_evaluations_lag_seconds_bucket", le="30.0") == 0
    assert Scraped(registry).sum("tracescore_evaluations_lag_seconds_bucket", le="60.0") == 1


def test_the_counts_can_be_read_without_a_scrape(registry: CollectorRegistry) -> None:
    ledger = Ledger(registry, SettableClock())
    ledger.read(interaction())
    ledger.started(interaction(), ["completeness"])
    ledger.finished(result(Unscored("answer_relevancy", "judge_quota")))
    assert ledger.snapshot().interactions["complete"] == 1
    assert ledger.evaluations().keys() == {"answer_relevancy", "completeness"}
    assert ledger.evaluations()["answer_relevancy"].reasons["judge_quota"] == 1
    assert ledger.evaluations()["completeness"] == Tally(scored=0, pending=1, reasons=dict.fromkeys(_reasons(), 0))


def _reasons() -> list[str]:
    return [reason for _, reason in ENDINGS if reason]


MEASURE = st.sampled_from(LIVE_MEASURES)
NUMBER = st.integers(1, 4)
EVALUATION = st.one_of(
    st.builds(Score, MEASURE, st.floats(0, 1)), st.builds(Unscored, MEASURE, st.sampled_from(_reasons()))
)
STEP = st.one_of(
    st.tuples(st.just("started"), NUMBER, st.lists(MEASURE, max_size=3)),
    st.tuples(st.just("finished"), NUMBER, st.lists(EVALUATION, max_size=3)),
    st.tuples(st.just("shed"), NUMBER, st.lists(MEASURE, max_size=3)),
)


@given(st.lists(STEP, max_size=30), st.sampled_from(SHED_REASONS))
def test_started_equals_outcomes_plus_pending_after_every_step(steps, reason) -> None:
    registry = CollectorRegistry()
    ledger = Ledger(registry, SettableClock())
    for kind, number, things in steps:
        if kind == "started":
            ledger.started(interaction(number), things)
        elif kind == "shed":
            ledger.shed(interaction(number), things, reason)
        else:
            ledger.finished(result(*things, number=number))
        families = {family.name: family for family in ledger.collect()}
        for measure in LIVE_MEASURES:
            started, ended, pending = (
                sum(s.value for s in families[name].samples if s.labels["measure"] == measure)
                for name in (
                    "tracescore_evaluations_started",
                    "tracescore_evaluations",
                    "tracescore_evaluations_pending",
                )
            )
            assert started == ended + pending
            assert pending >= 0


def test_another_process_goes_on_from_the_totals_of_one_before() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    ledger = Ledger(first, SettableClock())
    ledger.read(interaction(1))
    ledger.started(interaction(1), ["completeness"])
    ledger.finished(result(relevancy(0.5), Unscored("completeness", "judge_timeout"), number=2))
    again = Ledger(second, SettableClock())
    again.resume(reread(ledger.state()))
    again.started(interaction(1), ["completeness"], since=NOW - 50)
    shown, before = Scraped(second), Scraped(first)
    oldest = [s for s in shown.samples if "oldest" not in s.name]
    assert oldest == [s for s in before.samples if "oldest" not in s.name]
    assert shown.sum("tracescore_evaluations_oldest_pending_seconds", measure="completeness") == 50
