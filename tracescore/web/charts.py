"""Where everything of a chart lies, in units of its viewBox; templates/chart.html draws it.

Means lie between 0 and 1. A chart begins at 0, or at 0.5 where all that it shows is above, and says so on its axis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from tracescore.web.history import DAY, HOUR
from tracescore.web.lines import Point

_HALF = 0.5


class Box(NamedTuple):
    """Size of the drawing, and the part of it inside the axes."""

    width: float
    height: float
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0


CHART = Box(360, 190, 30, 20, 8, 22)
SPARK = Box(120, 34, 0, 3, 3, 3)

MarkKind = Literal["release", "judge", "drop"]


class ChartMark(NamedTuple):
    """Something that happened at a moment (Unix seconds), and its name."""

    at: float
    kind: MarkKind
    name: str


class DrawnMark(NamedTuple):
    """A mark and its place; `named` where there is room for its name, which ends at x where `before`."""

    mark: ChartMark
    x: float
    named: bool
    before: bool


class Spot(NamedTuple):
    """A point that is drawn by itself; `sure` where it has an interval."""

    x: float
    y: float
    sure: bool


class Tick(NamedTuple):
    """A label of an axis and its place."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart draws: closed paths of interval bands, paths of means, single points, target, marks and axes."""

    box: Box
    bands: Sequence[str]
    lines: Sequence[str]
    spots: Sequence[Spot]
    target: float | None
    marks: Sequence[DrawnMark]
    rows: Sequence[Tick]
    columns: Sequence[Tick]


class _Scale:
    def __init__(self, box: Box, since: float, until: float, bottom: float) -> None:
        self._box, self._since, self._length, self.bottom = box, since, until - since, bottom
        self._inside = box.width - box.left - box.right, box.height - box.top - box.bottom

    def x(self, at: float) -> float:
        part = min(1.0, max(0.0, (at - self._since) / self._length))
        return round(self._box.left + part * self._inside[0], 1)

    def y(self, value: float) -> float:
        part = (1 - max(self.bottom, value)) / (1 - self.bottom)
        return round(self._box.top + part * self._inside[1], 1)


def chart(
    stretches: Sequence[Sequence[Point]], since: float, until: float, target: float | None, marks: Iterable[ChartMark]
) -> Chart:
    """A chart of what was scored between two moments, Unix seconds."""
    means = [[point.mean for point in stretch] for stretch in stretches]
    shown = [limit for each in means for mean in each for limit in (mean.lower, mean.value) if limit is not None]
    scale = _scale(CHART, since, until, shown, target)
    bands, lines, spots = [], [], []
    for stretch, of in zip(stretches, means, strict=True):
        around = [(scale.x(p.middle), m.lower, m.upper) for p, m in zip(stretch, of, strict=True)]
        known = [(x, low, high) for x, low, high in around if low is not None and high is not None]
        spots += [
            Spot(scale.x(p.middle), scale.y(p.value), m.lower is not None) for p, m in zip(stretch, of, strict=True)
        ]
        if len(known) == 1:
            x, low, high = known[0]
            known = [(x - 3, low, high), (x + 3, low, high)]
        if known:
            there = [(x, scale.y(high)) for x, _, high in known]
            bands.append(_path(there + [(x, scale.y(low)) for x, low, _ in reversed(known)]) + "Z")
        lines.append(_path([(scale.x(p.middle), scale.y(p.value)) for p in stretch]))
    rows = [Tick(scale.y(value), f"{value:g}") for value in (scale.bottom, (1 + scale.bottom) / 2, 1.0)]
    aim = None if target is None else scale.y(target)
    return Chart(
        CHART, bands, lines, spots, aim, list(_placed(marks, scale, since, until)), rows, _columns(scale, since, until)
    )


def spark(stretches: Sequence[Sequence[Point]], since: float, until: float, target: float | None) -> Chart:
    """A line of the means without axes, for a row of a table."""
    scale = _scale(SPARK, since, until, [point.value for each in stretches for point in each], target)
    placed = [[(scale.x(at), scale.y(value)) for at, value in _course(stretch)] for stretch in stretches]
    last = [Spot(*placed[-1][-1], sure=True)] if placed else []
    aim = None if target is None else scale.y(target)
    return Chart(SPARK, (), [_path(each) for each in placed], last, aim, (), (), ())


def _course(stretch: Sequence[Point]) -> Iterable[tuple[float, float]]:
    """Moments and values of a line that reaches from the first score to the last."""
    yield stretch[0].start, stretch[0].value
    yield from ((point.middle, point.value) for point in stretch)
    yield stretch[-1].end, stretch[-1].value


def _scale(box: Box, since: float, until: float, shown: Iterable[float], target: float | None) -> _Scale:
    least = min((*shown, 1.0 if target is None else target), default=0.0)
    return _Scale(box, since, until, _HALF if least >= _HALF else 0.0)


def _path(places: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def _placed(marks: Iterable[ChartMark], scale: _Scale, since: float, until: float) -> Iterable[DrawnMark]:
    """Names stand right of their lines, or left of them near the right edge; those that would meet are left out."""
    free = 0.0
    for mark in sorted(mark for mark in marks if since <= mark.at <= until):
        x = scale.x(mark.at)
        before = x > CHART.width - 80
        named = (x - 70 if before else x) >= free
        free = (x if before else x + 70) if named else free
        yield DrawnMark(mark, x, named, before)


def _columns(scale: _Scale, since: float, until: float) -> list[Tick]:
    """Labels at full quarters of an hour, quarters of a day, or days; none so near an edge that it would be cut."""
    form = "%H:%M" if until - since <= DAY else "%a %d"
    step = {HOUR: 900.0, DAY: 21_600.0}.get(until - since, 2 * DAY)
    first = since + (-since) % step
    moments = [first + n * step for n in range(int((until - first) // step) + 1)]
    ticks = [Tick(scale.x(at), datetime.fromtimestamp(at, UTC).strftime(form)) for at in moments]
    return [tick for tick in ticks if CHART.left + 8 <= tick.at <= CHART.width - 20]
