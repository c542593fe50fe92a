"""A histogram whose counts can go on after a restart, and whose buckets may each lead to a trace."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client.core import Exemplar, HistogramMetricFamily


class Buckets:
    """A histogram; every bucket keeps its own last exemplar, so that low scores stay one click away."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._exemplars: list[Exemplar | None] = [None] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, score: float, exemplar: Exemplar | None = None) -> None:
        """Counts a value in the first bucket whose bound it does not exceed."""
        place = bisect_left(self._bounds, score)
        self._counts[place] += 1
        self._exemplars[place] = exemplar
        self._sum += score

    def show(self, score: float, exemplar: Exemplar) -> None:
        """Sets the exemplar of a value that has been counted."""
        self._exemplars[bisect_left(self._bounds, score)] = exemplar

    def totals(self) -> dict[str, Any]:
        """The counts as plain data for `resume`; exemplars are of the moment and left out."""
        return {"bounds": list(self._bounds), "counts": self._counts, "sum": self._sum}

    def resume(self, totals: Mapping[str, Any]) -> None:
        """Goes on from the counts of an earlier process, unless it had other bounds.

        LookupError, TypeError or ValueError, and no change, for anything but what `totals` gives.
        """
        counts, total = [int(count) for count in totals["counts"]], float(totals["sum"])
        if totals["bounds"] == list(self._bounds):
            if len(counts) != len(self._counts):
                raise ValueError(f"{len(self._counts)} counts expected; got {len(counts)}")
            self._counts, self._sum = counts, total

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Adds the cumulative buckets, the sum and the count to a family."""
        total, buckets = 0, []
        for bound, count, exemplar in zip((*self._bounds, float("inf")), self._counts, self._exemplars, strict=True):
            total += count
            name = "+Inf" if bound == float("inf") else repr(float(bound))
            buckets.append((name, float(total), exemplar) if exemplar else (name, float(total)))
        family.add_metric(labels, buckets, self._sum)
