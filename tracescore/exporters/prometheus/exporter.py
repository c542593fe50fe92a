"""Scores as Prometheus metrics.

Gauges say how things stand in this process; sums and histograms add up over replicas and over any window.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import Exemplar, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from pydantic import NonNegativeFloat

from tracescore.config import PrometheusConfig, SamplingConfig
from tracescore.config.drift import OTHERS, DriftConfig
from tracescore.exporters.kinds import Continuing
from tracescore.exporters.prometheus.conversations import OpenConversations, OpenConversationState
from tracescore.exporters.prometheus.families import counter, from_zero, gauge, series_name
from tracescore.exporters.prometheus.histogram import Buckets
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.exporters.prometheus.series import SUMS, Live, Make, Series
from tracescore.exporters.prometheus.table import SeriesTable, TableState
from tracescore.exporters.prometheus.window import Window, late
from tracescore.model import LIVE_MEASURES, Clock, Evaluation, Measure, Result, Score, Unscored
from tracescore.spool.state import Persisted, StateCodec

LABELS = ("judge", "service_name", "deployment_environment", "service_version")
SLICE_LABELS = ("slice_key", "slice")
MANY_WINDOWS = 3
"""From so many on, the slice `windows` does not count any more."""

_BOUNDS = [step / 10 for step in range(11)]
"""The bounds of the histograms: the same for all services, so that their buckets add up."""

_GAUGES: dict[str, tuple[str, str]] = {
    "ratio": ("mean", "Weighted mean over drift.window, of this process; absent below drift.min_count."),
    "lower_ratio": ("lower", "Lower limit of the mean's 95 % interval at this moment, of this process."),
    "upper_ratio": ("upper", "Upper limit of the mean's 95 % interval at this moment, of this process."),
    "worst_ratio": ("worst", "The mean, of this process, if everything that could not be scored were bad."),
    "best_ratio": ("best", "The mean, of this process, if everything that could not be scored were good."),
    "effective_scores": (
        "effective_count",
        "Scores in the window, of this process, counted as equally weighted ones; a conversation counts once.",
    ),
    "lag1_correlation": (
        "lag1",
        "Correlation of a score with the one before, of this process; far above 0 the interval is too narrow.",
    ),
}
"""Suffix of the metric -> (field of the estimate, help)."""


class Capacity(NamedTuple):
    """Series of one release of a service, of each value of a slice of it, and how many such releases there is room for.

    Without any slice; faithfulness to a rendered prompt, and another judge, are further series.
    """

    release: int
    slice_value: int
    releases: int


_Counts = dict[str, NonNegativeFloat]
"""What a counter of one label shows, by the value of the label."""


@dataclass(frozen=True, slots=True)
class PrometheusState(Persisted):
    """What is kept: all series, the counters of late, displaced and folded scores, and open conversations."""

    table: TableState
    counters: tuple[_Counts, _Counts, _Counts]
    conversations: tuple[OpenConversationState, ...]


def _of_scores_alone(plain: dict[str, Any]) -> dict[str, Any]:
    """Until 0.1.0 releases had no age, and the squared sums were over scores: no conversation was known."""
    releases = dict.fromkeys(tuple(each["labels"][1:4]) for each in plain["series"] if not each["folded"])
    table = {"series": plain["series"], "releases": list(releases), "gone": [], "turns": []}
    return {"table": table, "counters": plain["counters"], "conversations": []}


class PrometheusExporter(Continuing):
    """Keeps a window, a histogram and sums per measure and label set, and sums per slice.

    All that is counted of a result depends on the result and on those before it, not on the moment: a result that
    is taken again after a restart counts exactly as it did.
    """

    name = "prometheus"
    codec = StateCodec(PrometheusState, _of_scores_alone)

    def __init__(
        self,
        registry: CollectorRegistry,
        settings: PrometheusConfig,
        drift: DriftConfig,
        sampling: SamplingConfig,
        clock: Clock,
        own: Iterable[Measure] = (),
    ) -> None:
        """`own`: measures of the user's own."""
        self._drift, self._clock, self._measures = drift, clock, (*LIVE_MEASURES, *own)
        self._max_weight = sampling.largest_weight
        reserve = sum(self._cost(measure) + self._slice_cost(measure) for measure in self._measures)
        self._table = SeriesTable(settings.max_series, reserve, drift.window)
        self._named = max(0, settings.max_series - reserve)
        self._conversations = OpenConversations()
        about = "Scores of interactions older than drift.window, which no other score metric counts."
        self._late = from_zero(registry, "tracescore_drift_late_scores", about, "measure", self._measures)
        about = "Evaluations that left a window early because it was full."
        self._displaced = from_zero(registry, "tracescore_drift_displaced_scores", about, "measure", self._measures)
        about = "Scores counted under `other` because exporters.prometheus.max_series was reached, by group of metrics."
        groups = [*self._measures, *map(_by_slice, self._measures)]
        self._folded = from_zero(registry, "tracescore_exporters_folded_scores", about, "group", groups)
        held = Gauge(
            "tracescore_exporters_series",
            "Series of score metrics; exporters.prometheus.max_series limits them.",
            registry=registry,
        )
        held.set_function(lambda: len(self._table))
        target = Gauge(
            "tracescore_target_ratio",
            "Target of the measure (drift.targets); without service_name, of services without their own.",
            ["measure", "service_name"],
            registry=registry,
        )
        for measure in drift.targets:
            for service, value in drift.own_targets(measure).items():
                target.labels(measure, "" if service == OTHERS else label_value(service)).set(value)
        registry.register(self)

    async def export(self, result: Result) -> None:
        """Counts the result's live measures."""
        for evaluation in result.evaluations:
            if evaluation.measure in self._measures:
                self._take(result, evaluation)

    def state(self) -> PrometheusState:
        """What the counters and histograms show."""
        late, displaced, folded = map(_counts, self._counters())
        return PrometheusState(self._table.state(), (late, displaced, folded), self._conversations.state())

    def resume(self, state: PrometheusState) -> None:
        """Goes on from the figures of an earlier process; the windows are filled by `refill`."""
        makers: dict[str, Make] = {}
        for measure in self._measures:
            makers |= {measure: partial(self._series, measure), _by_slice(measure): partial(self._slice, measure)}
        self._table.resume(state.table, makers.get)
        self._conversations.resume(state.conversations)
        for shown, counts in zip(self._counters(), state.counters, strict=True):
            for value, count in counts.items():
                shown.labels(value).inc(count)

    def refill(self, result: Result) -> None:
        """Puts a result that the totals hold back into the windows, oldest first."""
        for each in result.evaluations:
            series = self._table.find(each.measure, _labels(result, each.measure))
            if series is not None and series.live and not _skipped(each):
                _observe(series.live.window, result, each)
                if isinstance(each, Score):
                    series.live.buckets.set_exemplar(each.value, _exemplar(result, each))

    def _counters(self) -> tuple[Counter, ...]:
        return self._late, self._displaced, self._folded

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        for measure in self._measures:
            found = self._families(measure)
            yield from found if measure in LIVE_MEASURES else _labelled(found, measure)

    def _take(self, result: Result, evaluation: Evaluation) -> None:
        """One evaluation into the window and, with a score, into the sums. What was skipped could never count."""
        measure, scored = evaluation.measure, isinstance(evaluation, Score)
        if _skipped(evaluation):
            return
        if late(result.ended, self._drift.window, result.finished):
            self._late.labels(measure).inc(scored)
            return
        labels = _labels(result, measure)
        make = partial(self._series, measure)
        series = self._table.get(measure, labels, make, result.finished)
        self._folded.labels(measure).inc(scored and series.labels != labels)
        if series.live and _observe(series.live.window, result, evaluation):
            self._displaced.labels(measure).inc()
        if _abstains(evaluation):
            series.abstained += result.interaction.weight
        if isinstance(evaluation, Score):
            self._count(series, result, evaluation)

    def _count(self, series: Series, result: Result, score: Score) -> None:
        interaction, measure = result.interaction, score.measure
        self._add(series, measure, result, score)
        if series.live:
            series.live.buckets.observe(score.value, _exemplar(result, score))
        group, make = _by_slice(measure), partial(self._slice, measure)
        for key, value in {**interaction.slices, **_windows(score)}.items():
            labels = (*series.labels, label_value(key), label_value(value))
            sums = self._table.get(group, labels, make, result.finished)
            self._add(sums, group, result, score)
            self._folded.labels(group).inc(sums.labels != labels)

    def _add(self, series: Series, group: str, result: Result, score: Score) -> None:
        told, of = result.interaction, (group, *series.labels)
        squares = self._conversations.add(of, told.conversation_id, told.weight, score.value, result.ended)
        series.add(told.weight, score.value, squares)

    def capacity(self, measures: Sequence[Measure]) -> Capacity:
        """What `max_series` holds where these measures are scored."""
        live = [measure for measure in self._measures if measure in measures]
        release, value = (sum(map(cost, live)) for cost in (self._cost, self._slice_cost))
        return Capacity(release, value, self._named // release if release else 0)

    def _series(self, measure: Measure, labels: tuple[str, ...]) -> Series:
        window = Window(self._drift.window, self._drift.min_count, self._max_weight, self._clock)
        live = Live(window, Buckets(_BOUNDS))
        return Series(labels, self._target(measure, labels), live, self._cost(measure))

    def _slice(self, measure: Measure, labels: tuple[str, ...]) -> Series:
        return Series(labels, self._target(measure, labels), None, self._slice_cost(measure))

    def _target(self, measure: Measure, labels: tuple[str, ...]) -> float | None:
        return self._drift.target(measure, labels[LABELS.index("service_name")])

    def _cost(self, measure: Measure) -> int:
        """Prometheus series of one label set: gauges, buckets with +Inf, sum and count, sums."""
        return len(_GAUGES) + len(_BOUNDS) + 3 + self._slice_cost(measure) + (measure == "answer_relevancy")

    def _slice_cost(self, measure: Measure) -> int:
        return len(SUMS) + (measure in self._drift.targets)

    def _families(self, measure: Measure) -> Iterator[Metric]:
        names = [*LABELS, "context_source"] if measure == "faithfulness" else list(LABELS)
        whole, slices = list(self._table.group(measure)), list(self._table.group(_by_slice(measure)))
        prefix = f"tracescore_{series_name(measure)}"
        yield from _gauges(prefix, names, whole)
        yield _histogram(prefix, names, whole)
        yield from self._sums(measure, prefix, names, whole)
        if measure == "answer_relevancy":
            about = "Sum of weights of answers that evade the question; over _weight_total: the share of such answers."
            rows = [(series.labels, series.abstained) for series in whole]
            yield counter(f"{prefix}_noncommittal_weight", about, names, rows)
        yield from self._sums(measure, _by_slice(prefix), [*names, *SLICE_LABELS], slices)

    def _sums(self, measure: Measure, prefix: str, names: list[str], all_series: list[Series]) -> Iterator[Metric]:
        for name, about in SUMS.items():
            rows = [(series.labels, series.sums[name]) for series in all_series]
            yield counter(f"{prefix}_{name}", about, names, rows)
        if measure in self._drift.targets:
            about = "Sum of weights of the scores below the target of their service (tracescore_target_ratio)."
            rows = [(series.labels, series.below_target) for series in all_series if series.target is not None]
            yield counter(f"{prefix}_below_target_weight", about, names, rows)


def _labels(result: Result, measure: Measure) -> tuple[str, ...]:
    interaction = result.interaction
    values = (result.judge_of(measure)[0], interaction.service, interaction.environment, interaction.release)
    more = (interaction.context_source,) if measure == "faithfulness" else ()
    return tuple(label_value(value) for value in (*values, *more))


def _windows(score: Score) -> dict[str, str]:
    """The slice that tells how many parts of the contexts the claims were judged against: each adds false support."""
    windows = score.details.get("windows")
    return {} if windows is None else {"windows": f"{windows:.0f}" if windows < MANY_WINDOWS else f"{MANY_WINDOWS}+"}


def _labelled(families: Iterable[Metric], measure: Measure) -> Iterator[Metric]:
    """The families of a measure of the user's own with its name as a label, so that one rule can read all of them."""
    for family in families:
        for sample in family.samples:
            sample.labels["measure"] = measure
        yield family


def _abstains(evaluation: Evaluation) -> bool:
    """Whether the answer evades its question, as a score of 0 or, where the user excludes those, without one."""
    if isinstance(evaluation, Score):
        return evaluation.label == "noncommittal"
    return evaluation.measure == "answer_relevancy" and evaluation.reason == "abstained"


def _by_slice(name: str) -> str:
    return f"{name}_by_slice"


def _skipped(evaluation: Evaluation) -> bool:
    return isinstance(evaluation, Unscored) and evaluation.outcome == "skipped"


def _exemplar(result: Result, score: Score) -> Exemplar:
    ids = {"trace_id": result.interaction.trace_id, "span_id": result.interaction.span_id}
    return Exemplar(ids, score.value, result.finished)


def _observe(window: Window, result: Result, evaluation: Evaluation) -> bool:
    scored, interaction, at = isinstance(evaluation, Score), result.interaction, result.ended
    lo, hi = (evaluation.value, evaluation.value) if isinstance(evaluation, Score) else (evaluation.lo, evaluation.hi)
    return window.add(at, interaction.weight, lo, hi, scored=scored, conversation=interaction.conversation_id)


def _gauges(prefix: str, names: list[str], all_series: list[Series]) -> Iterator[Metric]:
    """What the windows say; a number that a window cannot give has no series, rather than a stale one."""
    windows = [(series.labels, series.live.window) for series in all_series if series.live]
    estimates = [(labels, window.estimate()) for labels, window in windows if len(window)]
    for suffix, (field, about) in _GAUGES.items():
        yield gauge(f"{prefix}_{suffix}", about, names, [(labels, getattr(each, field)) for labels, each in estimates])


def _histogram(prefix: str, names: list[str], all_series: list[Series]) -> Metric:
    family = HistogramMetricFamily(
        f"{prefix}_score", "Scores, unweighted, with trace and span ids as exemplars.", labels=names
    )
    for series in all_series:
        if series.live:
            series.live.buckets.add_to(family, series.labels)
    return family


def _counts(counter: Counter) -> _Counts:
    (family,) = counter.collect()
    samples = (sample for sample in family.samples if sample.name.endswith("_total"))
    return {next(iter(sample.labels.values())): sample.value for sample in samples}
