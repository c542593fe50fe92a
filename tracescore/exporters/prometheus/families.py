"""Families of metrics: made when they are scraped, from rows of label values and a number, or counted up from 0."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from tracescore.model import MEASURES, Measure

Rows = Iterable[tuple[Sequence[str], float | None]]
"""Label values and the number under them; without one there is no series, rather than a wrong one."""


def series_name(measure: Measure) -> str:
    """A measure in the names of metrics: those of the user's own stand apart from all others."""
    return measure if measure in MEASURES else f"custom_{measure}"


def gauge(name: str, about: str, labels: Sequence[str], rows: Rows) -> GaugeMetricFamily:
    """A family of gauges."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for values, number in rows:
        if number is not None:
            family.add_metric(values, number)
    return family


def counter(name: str, about: str, labels: Sequence[str], rows: Rows) -> CounterMetricFamily:
    """A family of counters; `name` without its `_total`."""
    family = CounterMetricFamily(name, about, labels=labels)
    for values, number in rows:
        if number is not None:
            family.add_metric(values, number)
    return family


def from_zero(registry: CollectorRegistry, name: str, about: str, label: str, values: Iterable[str]) -> Counter:
    """A counter by one label, of which every value is there at 0: what never happened is seen to be none."""
    family = Counter(name, about, [label], registry=registry)
    for value in values:
        family.labels(value)
    return family
