"""What labels say, as Prometheus series beside those of the judge's own scores."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric

from tracescore.calibration.correction import ANSWERS, JUDGED, Calibration, LabelGroup
from tracescore.exporters.prometheus.families import gauge
from tracescore.model import Measure

_LABELS = ("judge", "service_name", "deployment_environment")


def families(measure: Measure, found: Iterable[tuple[LabelGroup, Calibration]]) -> Iterator[Metric]:
    """All families of a measure, with the rows of its groups."""
    names = [*_LABELS, "context_source"] if measure == "faithfulness" else list(_LABELS)
    rows = [([g.judge, g.service, g.environment, g.context_source][: len(names)], made) for g, made in found]
    kinds = {"corrected": "Mean that people would give, over drift.labels.window"}
    if measure in JUDGED:
        kinds["agreement"] = "Share of verdicts on which judge and people agree"
    for kind, about in kinds.items():
        for middle, field in (("", "mean"), ("_lower", "lower"), ("_upper", "upper")):
            limit = f"; {field} 95 % limit." if middle else "."
            known = [(labels, getattr(getattr(made, kind), field, None)) for labels, made in rows]
            yield gauge(f"tracescore_{measure}_{kind}{middle}_ratio", about + limit, names, known)
    about = "Labels of the judge's epoch, counted as equally weighted ones."
    effective = [(labels, made.difference.effective_count) for labels, made in rows]
    yield gauge(f"tracescore_{measure}_effective_labels", about, names, effective)
    if measure in JUDGED:
        yield gauge(
            f"tracescore_{measure}_labelled_verdicts",
            "Verdicts by what the judge says and what people say.",
            [*names, "judged", "labelled"],
            [
                ([*labels, judged, labelled], made.confusion.get((judged, labelled), 0))
                for labels, made in rows
                for judged in JUDGED[measure]
                for labelled in ANSWERS[measure]
            ],
        )
