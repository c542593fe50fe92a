"""What gold runs found, as Prometheus series of their own beside the live ones."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from tracescore.exporters.prometheus.families import gauge, series_name
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.exporters.prometheus.slices import SliceMean
from tracescore.gold.compare import Comparison
from tracescore.gold.results import COUNTS, GOLD_MEASURES, GOLD_OUTCOMES, Estimate, Run, Summary
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
        shown = dict.fromkeys((*GOLD_MEASURES, *(measure for each in latest for measure in each.estimates)))
        for measure in shown:
            name = f"tracescore_gold_{measure if measure in GOLD_MEASURES else series_name(measure)}"
            found = [(_labels(each.run), each.estimates[measure]) for each in latest if measure in each.estimates]
            slices = {labels: each[measure] for labels, each in tagged if measure in each}  # tags may be cut alike
            yield from _with_limits(name, "Mean over the gold set in the latest good run of a release.", LABELS, found)
            about, labels = "Mean over the items with a tag.", (*LABELS, "slice_key", "slice")
            yield from _with_limits(f"{name}_by_slice", about, labels, slices.items())
            lowest = [
                ((*_labels(each.run), "tag", label_value(low.of.slice)), low.of)
                for each in latest
                for low in (each.lowest.get(measure),)
                if low is not None
            ]
            about = "Mean of the lowest tag; its limits hold for all tags together."
            yield from _with_limits(f"{name}_lowest_slice", about, labels, lowest)

    def _state(self, recent: tuple[Run, ...]) -> Iterator[Metric]:
        """The series about the whole set, whatever the release."""
        runner = self._runner
        ended = next((run for run in recent if run.state in ("done", "failed")), None)
        good = next((run for run in recent if run.state == "done"), None)
        last_ok, expected = (float(ended.state == "done") if ended else None), runner.schedule.expected
        took = good.finished - good.started if good else None
        for name, meaning, value in (
            ("running", "1 while this process runs the gold set.", float(runner.running)),
            ("last_run_ok", "1 if the last run succeeded.", last_ok),
            ("last_success_timestamp_seconds", "End of the last good run.", good.finished if good else None),
            ("run_duration_seconds", "Duration of the last good run.", took),
            ("next_run_timestamp_seconds", "When the next run is due; in the past while it is overdue.", expected),
            (
                "tolerance_ratio",
                "Drop below which tracescore reports nothing (gold.tolerance).",
                runner.settings.tolerance,
            ),
        ):
            yield gauge(f"tracescore_gold_{name}", meaning, ["gold_set"], [([label_value(runner.name)], value)])
        info = [([label_value(runner.name), runner.gold_set.hash], 1)]
        yield gauge("tracescore_gold_info", "1; `hash` changes with the gold set.", ["gold_set", "hash"], info)


def _with_limits(
    name: str, about: str, labels: Sequence[str], found: Iterable[tuple[Sequence[str], Estimate | SliceMean]]
) -> Iterator[Metric]:
    """A mean and its 95 % interval."""
    known = list(found)
    yield gauge(f"{name}_ratio", about, labels, [(of, each.mean) for of, each in known])
    about = "limit of the mean's 95 % interval."
    yield gauge(f"{name}_lower_ratio", f"Lower {about}", labels, [(of, each.lower) for of, each in known])
    yield gauge(f"{name}_upper_ratio", f"Upper {about}", labels, [(of, each.upper) for of, each in known])


def _labels(run: Run) -> tuple[str, ...]:
    return label_value(run.gold_set), label_value(run.service), label_value(run.release), label_value(run.judge)


def _counts(latest: tuple[Summary, ...]) -> Iterator[Metric]:
    yield gauge(
        "tracescore_gold_items",
        "Items of the gold set, by outcome.",
        (*LABELS, "outcome"),
        [((*_labels(each.run), outcome), each.items[outcome]) for each in latest for outcome in GOLD_OUTCOMES],
    )
    yield gauge(
        "tracescore_gold_claims",
        "Claims by verdict: tp are in the reference, fp are not, fn are missing from the answer.",
        (*LABELS, "verdict"),
        [((*_labels(each.run), verdict), each.claims[verdict]) for each in latest for verdict in COUNTS],
    )


def _changes(latest: tuple[Summary, ...], comparison: Comparison | None) -> Iterator[Metric]:
    """The series about the newest run alone: what an older release did wrong is old news."""
    of = _labels(latest[0].run) if comparison else ()
    changes = [((*of, measure), found) for measure, found in comparison.changes.items()] if comparison else []
    worse = [flip.worse for flip in comparison.flips] if comparison else []
    sides = {(*of, "worse"): sum(worse), (*of, "better"): len(worse) - sum(worse)} if comparison else {}
    names, differences = (*LABELS, "measure"), [(labels, found.difference) for labels, found in changes]
    about = "Mean of the newest run minus that of the pinned runs, over the same items."
    yield gauge("tracescore_gold_change_ratio", about, names, differences)
    about = "Probability that chance alone makes such a drop (one-sided sign-flip test)."
    yield gauge("tracescore_gold_change_p_value", about, names, [(labels, found.p) for labels, found in changes])
    yield gauge(
        "tracescore_gold_flips",
        "Items that changed between right and wrong since the pinned runs.",
        (*LABELS, "direction"),
        sides.items(),
    )
