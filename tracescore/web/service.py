"""One service: what is wrong, its measures over time, its releases and slices, and what became of its answers."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs

from tracescore.drift.family import Population
from tracescore.drift.report import of_process
from tracescore.model import Outcome, Reason, Result, outcome_of
from tracescore.net.asgi import Response
from tracescore.pipeline.ledger import Snapshot
from tracescore.runtime import in_slices
from tracescore.web import compare
from tracescore.web.advice import FIXES
from tracescore.web.charts import Chart, ChartMark, chart
from tracescore.web.history import DAY, HOUR, WEEK, WIDTHS
from tracescore.web.lines import Point, points
from tracescore.web.messages import only_known
from tracescore.web.recent import Scored, Sliced, scored, sliced, worst
from tracescore.web.services import MeasureStanding, Missing, Watching, current, link, lowest, standing
from tracescore.web.views import LONGEST_SERVICE
from tracescore.web.visit import SharedParts, Visit

RANGES = {"hour": HOUR, "day": DAY, "week": WEEK}
_LOWEST = 5


@dataclass(frozen=True, slots=True)
class MeasureView:
    """A measure of the service: how it stands, its chart with the points behind it, its slices and lowest scores."""

    standing: MeasureStanding
    chart: Chart | None
    points: Sequence[Point]
    sliced: Sequence[Sliced]
    lowest: Sequence[Scored]


@dataclass(frozen=True, slots=True)
class Loss:
    """Evaluations without a score for one reason, and what to do about it."""

    reason: Reason
    outcome: Outcome
    count: int
    fix: str


@dataclass(frozen=True, slots=True)
class Flow:
    """What became of the answers of a service: those read, those chosen by sampling, and evaluations by their end.

    Evaluations are of all measures together; those that wait for the judge are not among them. `losses`: the largest
    first.
    """

    read: int
    chosen: int
    evaluations: int
    scored: int
    losses: Sequence[Loss]


async def show(visit: Visit) -> Response:
    """The page; `environment` chooses among several, `range` how far back the charts reach."""
    try:
        fields = _asked(visit.request.query)
    except ValueError as error:
        return visit.message(400, "tracescore cannot show this", f"{error}.")
    return await in_slices(_page(visit, visit.parts["rest"], fields))


def _page(visit: Visit, name: str, fields: Mapping[str, str]) -> Generator[None, None, Response]:
    """The page in steps, each of which is short."""
    shared, missing, chosen = visit.shared, Missing(), fields.get("range", "day")
    recent, length = shared.recent.results(), RANGES[chosen]
    yield from missing.add(recent)
    environments = sorted({of[1] for of in (*shared.history.populations(), *missing.releases) if of[0] == name})
    environment = fields.get("environment", environments[0] if environments else "")
    if environment not in environments:
        return visit.message(404, "Nothing here", _unknown(name, environment, environments))
    of = name, environment
    results = [each for each in recent if missing.of(each) == of]
    yield
    watched = shared.changes.service(of) if shared.changes else None
    yield
    row, marks = standing(shared, of, missing, watched), sorted(_marks(shared, of, watched, length))
    views = []
    for cell in row.measures.values():
        view = yield from _view(shared, of, cell, length, marks, results)
        views.append(view)
    yield
    return visit.page(
        "service.html",
        row=row,
        watched=watched,
        views=views,
        ranges={each: link(of, range=each) for each in RANGES},
        range=chosen,
        marks=marks,
        environments={each: link((name, each)) for each in environments if each != environment},
        releases=of_process(shared.releases, of, None) if of in shared.releases.services() else None,
        compare=compare.link(of),
        lowest=lowest,
        flow=_flow(shared.ledger().services.get(name)),
        now=shared.clock(),
    )


def _asked(query: str) -> Mapping[str, str]:
    """The fields of the address; ValueError says what is allowed."""
    fields = {key: values[0] for key, values in parse_qs(query, max_num_fields=10, errors="replace").items()}
    only_known(fields, {"environment", "range"}.__contains__)
    if fields.get("range", "day") not in RANGES:
        raise ValueError(f"range is one of {', '.join(RANGES)}; got {fields['range'][:40]!r}")
    return fields


def _unknown(name: str, environment: str, environments: Sequence[str]) -> str:
    if environments:
        return f"{name[:LONGEST_SERVICE]} runs in {', '.join(environments)[:200]}, not in {environment[:40]!r}."
    return "No answer of a service of that name has been read lately. The first page lists all services."


def _view(
    shared: SharedParts,
    of: Population,
    cell: MeasureStanding,
    length: float,
    marks: Sequence[ChartMark],
    results: Sequence[Result],
) -> Generator[None, None, MeasureView]:
    series, now = shared.history.series(of, length), shared.clock()
    line = current(series, cell.measure)
    shown = [each for each in series if line and (each.measure, each.from_prompt) == (line.measure, line.from_prompt)]
    stretches = [part for each in shown for part in points(series[each], WIDTHS[length], length)]
    drawn = chart(stretches, now - length, now, cell.target, marks) if stretches else None
    yield
    found, estimating = scored(results, cell.measure), shared.estimating
    slices = sliced(found, estimating.max_weight, estimating.min_count)
    yield
    points_shown = [point for stretch in stretches for point in stretch]
    return MeasureView(cell, drawn, points_shown, slices, worst(found, _LOWEST))


def _marks(shared: SharedParts, of: Population, watched: Watching | None, length: float) -> Iterator[ChartMark]:
    """Releases that began, drops that are reported, and changes of the judge."""
    since = shared.clock() - length
    if of in shared.releases.services():
        use = shared.releases.use(of)
        for name in use.ranked():
            if use.known[name].first >= since:
                yield ChartMark(use.known[name].first, "release", name)
    for each in watched["detectors"] if watched else ():
        if each["state"] == "changed" and each["drop"] and each["drop"]["since"] >= since:
            yield ChartMark(each["drop"]["since"], "drop", each["detector"].replace("_", " "))
    judges: dict[tuple[str, int], float] = {}
    for line, buckets in shared.history.series(of, length).items():
        key = line.judge, line.epoch
        judges[key] = min(judges.get(key, buckets[0].start), buckets[0].start)
    for (judge, epoch), at in sorted(judges.items(), key=lambda pair: pair[1])[1:]:
        yield ChartMark(at, "judge", f"{judge}, epoch {epoch}" if epoch else judge)


def _flow(counts: Snapshot | None) -> Flow | None:
    if counts is None:
        return None
    ended = {measure: tally.scored + sum(tally.reasons.values()) for measure, tally in counts.evaluations.items()}
    losses: dict[Reason, int] = {}
    for tally in counts.evaluations.values():
        for reason, count in tally.reasons.items():
            losses[reason] = losses.get(reason, 0) + count
    told = [Loss(reason, outcome_of(reason), count, FIXES[reason]) for reason, count in losses.items() if count]
    return Flow(
        sum(counts.interactions.values()),
        max(ended.values(), default=0),
        sum(ended.values()),
        sum(tally.scored for tally in counts.evaluations.values()),
        sorted(told, key=lambda each: (-each.count, each.reason)),
    )
