"""What labels say, as Prometheus series beside those of the judge's own scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tracescore.calibration.correction import ANSWERS, JUDGED, Calibration, LabelGroup
from tracescore.model import LiveMeasure

_LABELS = ("judge", "service_name", "deployment_environment")


def families(measure: LiveMeasure, found: Iterable[tuple[LabelGroup, Calibration]]) -> Iterator[Metric]:
    """All families of a measure, with the rows of its groups."""
    names = [*_LABELS, "context_source"] if measure == "faithfulness" else list(_LABELS)
    rows = [([g.judge, g.service, g.environment, g.context_source][: len(names)], made) for g, made in found]
    kinds = {"corrected": "Mean that people would give, over the window of labels"}
    if measure in JUDGED:
        kinds["agreement"] = "Share of verdicts in which judge and people agree"
    for kind, about in kinds.items():
        for middle, field in (("", "mean"), ("_lower", "lower"), ("_upper", "upper")):
            limit = f"; {field} 95 % limit." if middle else "."
            family = GaugeMetricFamily(f"tracescore_{measure}_{kind}{middle}_ratio", about + limit, labels=names)
            for labels, made in rows:
                if (known := getattr(made, kind)) is not None:
                    family.add_metric(labels, getattr(known, field))
            yield family
    effective = GaugeMetricFamily(
        f"tracescore_{measure}_effective_labels",
        "Labels of this judge's epoch, as equally weighted ones.",
        labels=names,
    )
    for labels, made in rows:
        effective.add_metric(labels, made.difference.effective_count)
    yield effective
    if measure in JUDGED:
        yield _verdicts(measure, names, rows)


def _verdicts(measure: LiveMeasure, names: list[str], rows: Iterable[tuple[list[str], Calibration]]) -> Metric:
    about = "Verdicts, by what the judge and what people say."
    family = GaugeMetricFamily(f"tracescore_{measure}_labelled_verdicts", about, labels=[*names, "judged", "labelled"])
    for labels, made in rows:
        for judged in JUDGED[measure]:
            for said in ANSWERS[measure]:
                family.add_metric([*labels, judged, said], made.confusion.get((judged, said), 0))
    return family
