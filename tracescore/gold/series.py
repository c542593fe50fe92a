"""What gold runs found, as Prometheus series of their own beside the live ones."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tracescore.exporters.prometheus.label_values import label_value
from tracescore.gold.compare import Comparison
from tracescore.gold.results import COUNTS, GOLD_MEASURES, GOLD_OUTCOMES, Run, Summary
from tracescore.gold.runner import GoldRunner

LABELS = ("gold_set", "service_name", "service_version", "judge")


class GoldSeries:
    """Collector of one gold set. Releases show their latest good run until it is older than `gold.keep`."""

    def __init__(self, runner: GoldRunner, registry: CollectorRegistry) -> None:
        self._runner = runner
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        findings = self._runner.findings
        yield from self._means(findings.latest)
        yield from _counts(findings.latest)
        yield from _changes(findings.latest, findings.comparison)
        yield from self._state(findings.recent)

    def _means(self, latest: tuple[Summary, ...]) -> Iterator[Metric]:
        found = [(_labels(each.run), each.estimates) for each in latest]
        tagged = {
            (*_labels(each.run), "tag", label_value(tag)): estimates
            for each in latest
            for tag, estimates in each.by_tag.items()
        }
        for measure in GOLD_MEASURES:
            name = f"tracescore_gold_{measure}"
            mean = GaugeMetricFamily(f"{name}_ratio", "Mean over the gold set, of the latest good run.", labels=LABELS)
            lower = GaugeMetricFamily(f"{name}_lower_ratio", "Lower 95 % limit of that mean.", labels=LABELS)
            upper = GaugeMetricFamily(f"{name}_upper_ratio", "Upper 95 % limit of that mean.", labels=LABELS)
            for labels, estimates in found:
                if measure in estimates:
                    estimate = estimates[measure]
                    mean.add_metric(labels, estimate.mean)
                    lower.add_metric(labels, estimate.lower)
                    upper.add_metric(labels, estimate.upper)
            slices = GaugeMetricFamily(
                f"{name}_by_slice_ratio", "The mean over items with a tag.", labels=(*LABELS, "slice_key", "slice")
            )
            for labels, estimates in tagged.items():
                if measure in estimates:
                    slices.add_metric(labels, estimates[measure].mean)
            yield from (mean, lower, upper, slices)

    def _state(self, recent: tuple[Run, ...]) -> Iterator[Metric]:
        """Of the set as a whole, whatever the release."""
        runner = self._runner
        ended = next((run for run in recent if run.state in ("done", "failed")), None)
        good = next((run for run in recent if run.state == "done"), None)
        expected = runner.schedule.expected
        for name, meaning, value in (
            ("running", "1 while a run goes on in this process.", float(runner.running)),
            (
                "last_run_ok",
                "1 where the last run that ended was good.",
                float(ended.state == "done") if ended else None,
            ),
            ("last_success_timestamp_seconds", "When the last good run ended.", good.finished if good else None),
            (
                "run_duration_seconds",
                "How long the last good run took.",
                good.finished - good.started if good else None,
            ),
            ("next_run_timestamp_seconds", "When a good run should begin next; in the past: overdue.", expected),
            ("tolerance_ratio", "A fall that is no news, as set in gold.tolerance.", runner.settings.tolerance),
        ):
            family = GaugeMetricFamily(f"tracescore_gold_{name}", meaning, labels=("gold_set",))
            if value is not None:
                family.add_metric((label_value(runner.name),), value)
            yield family
        info = GaugeMetricFamily("tracescore_gold_info", "Which questions are asked.", labels=("gold_set", "hash"))
        info.add_metric((label_value(runner.name), runner.gold_set.hash), 1)
        yield info


def _labels(run: Run) -> tuple[str, ...]:
    return label_value(run.gold_set), label_value(run.service), label_value(run.release), label_value(run.judge)


def _counts(latest: tuple[Summary, ...]) -> Iterator[Metric]:
    items = GaugeMetricFamily("tracescore_gold_items", "Items by outcome.", labels=(*LABELS, "outcome"))
    claims = GaugeMetricFamily(
        "tracescore_gold_claims",
        "Claims of the answers (tp: in the reference, fp: not) and of the references (fn: missed).",
        labels=(*LABELS, "verdict"),
    )
    for each in latest:
        for outcome in GOLD_OUTCOMES:
            items.add_metric((*_labels(each.run), outcome), each.items[outcome])
        for verdict in COUNTS:
            claims.add_metric((*_labels(each.run), verdict), each.claims[verdict])
    yield from (items, claims)


def _changes(latest: tuple[Summary, ...], comparison: Comparison | None) -> Iterator[Metric]:
    """Of the newest run alone: what an older release did wrong is no news any more."""
    labels = (*LABELS, "measure")
    change = GaugeMetricFamily(
        "tracescore_gold_change_ratio", "Newest run less the pinned reference, over the same items.", labels=labels
    )
    p = GaugeMetricFamily(
        "tracescore_gold_change_p_value", "How likely chance makes such a fall (sign-flip test).", labels=labels
    )
    flips = GaugeMetricFamily(
        "tracescore_gold_flips",
        "Items that changed sides between right and wrong, against the pinned reference.",
        labels=(*LABELS, "direction"),
    )
    if comparison is not None:
        of = _labels(latest[0].run)
        for measure, found in comparison.changes.items():
            change.add_metric((*of, measure), found.difference)
            p.add_metric((*of, measure), found.p)
        worse = sum(flip.worse for flip in comparison.flips)
        flips.add_metric((*of, "worse"), worse)
        flips.add_metric((*of, "better"), len(comparison.flips) - worse)
    yield from (change, p, flips)
