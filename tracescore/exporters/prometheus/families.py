"""Families of metrics that are made when they are scraped, from rows of label values and a number."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Rows = Iterable[tuple[Sequence[str], float | None]]
"""Label values and the number under them; without one there is no series, rather than a wrong one."""


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
