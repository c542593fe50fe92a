"""What gold runs found, as Prometheus series of their own beside the live ones."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from tracescore.exporters.prometheus.families import gauge
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
        tagged = [
            ((*_labels(each.run), "tag", label_value(tag)), estimates)
            for each in latest
            for tag, estimates in each.by_tag.items()
        ]
        for measure in GOLD_MEASURES:
            name = f"tracescore_gold_{measure}"
            found = [(_labels(each.run), each.estimates[measure]) for each in latest if measure in each.estimates]
            slices = {labels: estimates[measure].mean for labels, estimates in tagged if measure in estimates}
            means = [(labels, each.mean) for labels, each in found]
            yield gauge(f"{name}_ratio", "Mean over the gold set, of the latest good run.", LABELS, means)
            lower = [(labels, each.lower) for labels, each in found]
            yield gauge(f"{name}_lower_ratio", "Lower 95 % limit of that mean.", LABELS, lower)
            upper = [(labels, each.upper) for labels, each in found]
            yield gauge(f"{name}_upper_ratio", "Upper 95 % limit of that mean.", LABELS, upper)
            about, labels = "The mean over items with a tag.", (*LABELS, "slice_key", "slice")
            yield gauge(f"{name}_by_slice_ratio", about, labels, slices.items())

    def _state(self, recent: tuple[Run, ...]) -> Iterator[Metric]:
        """Of the set as a whole, whatever the release."""
        runner = self._runner
        ended = next((run for run in recent if run.state in ("done", "failed")), None)
        good = next((run for run in recent if run.state == "done"), None)
        last_ok, expected = (float(ended.state == "done") if ended else None), runner.schedule.expected
        took = good.finished - good.started if good else None
        for name, meaning, value in (
            ("running", "1 while a run goes on in this process.", float(runner.running)),
            ("last_run_ok", "1 where the last run that ended was good.", last_ok),
            ("last_success_timestamp_seconds", "When the last good run ended.", good.finished if good else None),
            ("run_duration_seconds", "How long the last good run took.", took),
            ("next_run_timestamp_seconds", "When a good run should begin next; in the past: overdue.", expected),
            ("tolerance_ratio", "A fall that is no news, as set in gold.tolerance.", runner.settings.tolerance),
        ):
            yield gauge(f"tracescore_gold_{name}", meaning, ["gold_set"], [([label_value(runner.name)], value)])
        info = [([label_value(runner.name), runner.gold_set.hash], 1)]
        yield gauge("tracescore_gold_info", "Which questions are asked.", ["gold_set", "hash"], info)


def _labels(run: Run) -> tuple[str, ...]:
    return label_value(run.gold_set), label_value(run.service), label_value(run.release), label_value(run.judge)


def _counts(latest: tuple[Summary, ...]) -> Iterator[Metric]:
    yield gauge(
        "tracescore_gold_items",
        "Items by outcome.",
        (*LABELS, "outcome"),
        [((*_labels(each.run), outcome), each.items[outcome]) for each in latest for outcome in GOLD_OUTCOMES],
    )
    yield gauge(
        "tracescore_gold_claims",
        "Claims of the answers (tp: in the reference, fp: not) and of the references (fn: missed).",
        (*LABELS, "verdict"),
        [((*_labels(each.run), verdict), each.claims[verdict]) for each in latest for verdict in COUNTS],
    )


def _changes(latest: tuple[Summary, ...], comparison: Comparison | None) -> Iterator[Metric]:
    """Of the newest run alone: what an older release did wrong is no news any more."""
    of = _labels(latest[0].run) if comparison else ()
    changes = [((*of, measure), found) for measure, found in comparison.changes.items()] if comparison else []
    worse = [flip.worse for flip in comparison.flips] if comparison else []
    sides = {(*of, "worse"): sum(worse), (*of, "better"): len(worse) - sum(worse)} if comparison else {}
    names, differences = (*LABELS, "measure"), [(labels, found.difference) for labels, found in changes]
    about = "Newest run less the pinned reference, over the same items."
    yield gauge("tracescore_gold_change_ratio", about, names, differences)
    about = "How likely chance makes such a fall (sign-flip test)."
    yield gauge("tracescore_gold_change_p_value", about, names, [(labels, found.p) for labels, found in changes])
    yield gauge(
        "tracescore_gold_flips",
        "Items that changed sides between right and wrong, against the pinned reference.",
        (*LABELS, "direction"),
        sides.items(),
    )
