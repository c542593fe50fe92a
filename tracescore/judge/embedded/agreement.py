"""Whether one text states the numbers of another.

Embeddings put 4 percent beside 5.5 percent; so numbers are compared as numbers, whichever way they are written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

from tracescore.judge.embedded.quantities import FACTORS, FREE, MONEY, Quantity, quantities

HEDGED_TOLERANCE = 0.05
"""`about 400` may stand for 418: rounding to two digits moves a number by at most this share."""
EXACT_TOLERANCE = 1e-6
"""Share by which the floating-point results of two conversions of units may differ."""


def same(a: Quantity, b: Quantity) -> bool:
    """Whether two numbers say the same; a missing unit agrees with any."""
    if a.dimension and b.dimension and not _comparable(a.dimension, b.dimension):
        return False
    tolerance = HEDGED_TOLERANCE if a.rounded or b.rounded else EXACT_TOLERANCE
    bare = not (a.dimension and b.dimension)
    for x in _readings(a, bare):
        for y in _readings(b, bare):
            if abs(x - y) <= tolerance * max(abs(x), abs(y)):
                return True
    return False


def equal(a: str, b: str) -> list[tuple[Sequence[Quantity], Sequence[Quantity]]]:
    """Numbers of `a`, each kind with the numbers of `b` that say the same."""
    theirs = _numbers(b)
    found = ((ours, theirs.like(ours[0])) for ours in _numbers(a).alike)
    return [(ours, same_as) for ours, same_as in found if same_as]


def missing(claim: str, evidence: str) -> tuple[Quantity, ...]:
    """The firm numbers of `claim` that `evidence` does not state."""
    stated = _numbers(evidence)
    return tuple(q for q in quantities(claim) if q.firm and not stated.like(q))


def rivals(claim: str, evidence: str) -> bool:
    """Whether `evidence` has, for a number of `claim` that it does not state, another of the same kind."""
    kinds = {q.dimension for q in quantities(evidence) if q.firm}
    return any(any(_comparable(q.dimension, kind) for kind in kinds) for q in missing(claim, evidence))


class _Numbers:
    """The numbers of one text: `alike` in lists of those that differ in their places alone, and sorted by value.

    So two texts full of numbers are compared without a look at every pair.
    """

    def __init__(self, found: Sequence[Quantity]) -> None:
        kinds: dict[tuple[object, ...], list[Quantity]] = {}
        for q in found:
            kinds.setdefault((q.values, q.dimension, q.firm, q.rounded), []).append(q)
        self.alike = list(kinds.values())
        readings = [(value, place) for place, (q, *_) in enumerate(self.alike) for value in _readings(q, bare=True)]
        self._sorted = sorted(readings)
        self._rounded = any(q.rounded for q in found)

    def like(self, q: Quantity) -> list[Quantity]:
        """Those that say the same as `q`."""
        near = 1 - (HEDGED_TOLERANCE if q.rounded or self._rounded else 2 * EXACT_TOLERANCE)
        places: set[int] = set()
        for value in _readings(q, bare=True):
            first = bisect_left(self._sorted, (value * near, -1))
            last = bisect_right(self._sorted, (value / near, len(self.alike)))
            places.update(place for _, place in self._sorted[first:last])
        return [other for place in sorted(places) if same(q, self.alike[place][0]) for other in self.alike[place]]


@lru_cache(maxsize=1024)
def _numbers(text: str) -> _Numbers:
    return _Numbers(quantities(text))


def _comparable(a: str, b: str) -> bool:
    paid = FREE in (a, b) and {a, b} <= MONEY
    return a == b or paid or {a, b} in ({"pound", "mass"}, {"pound", "money/gbp"})


def _readings(q: Quantity, bare: bool) -> frozenset[float]:
    """The values to compare: as written when only one of two numbers has a unit."""
    return q.values if not bare or not q.dimension else q.values | _as_written(q)


def _as_written(q: Quantity) -> frozenset[float]:
    return frozenset(value / factor for value in q.values for factor in FACTORS.get(q.dimension, ()))
