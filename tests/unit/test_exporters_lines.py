"""What is scraped is, byte for byte, what prometheus-client writes, but for `_created`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from tests.benchmarks.scrape import OPENMETRICS, filled
from tracescore.exporters.prometheus.exposition import render

pytestmark = pytest.mark.anyio


def _of_the_library(registry: CollectorRegistry, accept: str) -> bytes:
    text = (generate_openmetrics if accept else generate_latest)(registry)
    return b"\n".join(line for line in text.split(b"\n") if b"_created" not in line)


_VALUES = st.floats(allow_nan=True, allow_infinity=True)
_LABELS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(_LABELS, _LABELS, _VALUES), max_size=8))
@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_any_label_value_and_number_is_written_as_the_library_writes_it(
    accept: str, given: list[tuple[str, str, float]]
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("of_a_test", 'Says "it"\n\\ twice.', ["b", "a"], registry=registry)
    histogram = Histogram("of_another", "About it.", ["a"], registry=registry)
    counter = Counter("of_a_third", "About it.", registry=registry)
    for a, b, value in given:
        gauge.labels(b, a).set(value)
        histogram.labels(a).observe(abs(value), {"trace_id": b[:4], "span_id": "x"})
        counter.inc(1, {"trace_id": "y"})
    assert (await render(registry, accept))[1] == _of_the_library(registry, accept)


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_so_are_all_families_of_an_exporter(accept: str) -> None:
    registry = await filled(600)
    assert (await render(registry, accept))[1] == _of_the_library(registry, accept)
