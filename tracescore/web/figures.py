"""What the API tells of what the page shows: each call is given a visit and returns data of the shapes it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from pydantic_core import to_jsonable_python

from tracescore.gold.view import view
from tracescore.runtime import in_slices
from tracescore.web import compare, listing, shapes, shaping
from tracescore.web import gold as gold_room
from tracescore.web.api import CallRefused, watching
from tracescore.web.finding import Repeated
from tracescore.web.history import WIDTHS, ScoreSeries
from tracescore.web.lines import Point, ScoreMean, points
from tracescore.web.messages import only_known
from tracescore.web.service import RANGES
from tracescore.web.services import MeasureStanding, ServiceStanding, standings
from tracescore.web.visit import Visit


async def services(visit: Visit) -> shapes.ServicesShape:
    """How every service stands over the last day, the most urgent first."""
    rows = await in_slices(standings(visit.shared))
    return {"services": [_service(row) for row in rows]}


def _service(of: ServiceStanding) -> shapes.ServiceShape:
    return {
        "service": of.service,
        "environment": of.environment,
        "release": of.release,
        "state": of.verdict.word,
        "says": of.says,
        "advice": of.advice,
        "change": of.change,
        "measures": [_standing(cell) for cell in of.measures.values()],
    }


def _standing(cell: MeasureStanding) -> shapes.StandingShape:
    return {
        "measure": cell.measure,
        "state": cell.verdict.word,
        "why": cell.verdict.why,
        "fix": cell.verdict.fix,
        "target": cell.target,
        "of": None if cell.of is None else _series(cell.of),
        "mean": None if cell.mean is None else _mean(cell.mean),
    }


def _series(of: ScoreSeries) -> shapes.SeriesShape:
    source = "prompt" if of.from_prompt else None
    return {"measure": of.measure, "judge": of.judge, "epoch": of.epoch, "context_source": source}


def _mean(of: ScoreMean) -> shapes.MeanShape:
    return {"value": of.value, "lower": of.lower, "upper": of.upper, "scores": of.scores, "effective": of.effective}


async def history(visit: Visit) -> shapes.HistoryShape:
    """The means of a service over the last hour, day or week."""
    shared = visit.shared
    name, environment, chosen = _history_asked(visit.request.query)
    found = [of for of in shared.history.populations() if of[0] == name and environment in (None, of[1])]
    if len(found) > 1:
        raise ValueError(f"environment: one of {', '.join(of[1] for of in found)[:200]} expected")
    if not found:
        raise CallRefused(404, f"no score of {name[:40]!r} is known; /api/v1/services lists all services")
    length = RANGES[chosen]
    series: list[shapes.LineShape] = []
    for of, buckets in shared.history.series(found[0], length).items():
        drawn = [_point(each) for line in points(buckets, WIDTHS[length], length) for each in line]
        series.append({"of": _series(of), "points": drawn})
    return {"service": found[0][0], "environment": found[0][1], "range": chosen, "series": series}


def _history_asked(query: str) -> tuple[str, str | None, str]:
    fields = {name: values[0] for name, values in parse_qs(query, max_num_fields=10, errors="replace").items()}
    only_known(fields, {"service", "environment", "range"}.__contains__)
    if "service" not in fields:
        raise ValueError("service: the name of one expected")
    chosen = fields.get("range", "day")
    if chosen not in RANGES:
        raise ValueError(f"range: one of {', '.join(RANGES)} expected; got {chosen[:40]!r}")
    return fields["service"], fields.get("environment"), chosen


def _point(of: Point) -> shapes.PointShape:
    return {"start": of.start, "end": of.end, "mean": _mean(of.mean)}


async def ledger(visit: Visit) -> shapes.LedgerShape:
    """What came in, and what became of it, since the counters began."""
    counts = visit.shared.ledger()
    return {
        "spans": counts.spans,
        "interactions": {state: count for state, count in counts.interactions.items() if count},
        "evaluations": {
            measure: {
                "scored": tally.total("scored"),
                "unscored": tally.total("unscored"),
                "skipped": tally.total("skipped"),
                "shed": tally.total("shed"),
                "pending": tally.pending,
                "reasons": {str(reason): count for reason, count in tally.reasons.items() if count},
            }
            for measure, tally in counts.evaluations.items()
        },
    }


async def interactions(visit: Visit) -> shapes.InteractionsShape:
    """One page of the list: interactions, or questions where they are grouped."""
    found = await listing.find(visit)
    rows: list[shapes.RowShape] = []
    questions: list[shapes.QuestionShape] = []
    for each in found.page:
        if isinstance(each, Repeated):
            questions.append(shaping.question(each))
        else:
            rows.append(shaping.row(each))
    return {
        "kept": len(visit.shared.recent),
        "found": len(found.results),
        "page": found.choice.page,
        "pages": found.pages,
        "interactions": rows,
        "questions": questions,
    }


async def interaction(visit: Visit) -> list[shapes.InteractionShape]:
    """Everything that is kept of one trace: an interaction for each question, and for each judge of it."""
    kept = visit.shared.recent.of_trace(visit.parts["trace"].lower())
    if not kept:
        most = visit.shared.settings.keep
        raise CallRefused(404, f"the page keeps the last {most:,} interactions; none of them is of this trace")
    return [shaping.interaction(each.result) for each in kept]


async def releases(visit: Visit) -> dict[str, Any]:
    """Two releases of a service against each other."""
    return compare.chosen(visit.shared.releases, visit.request.query)


async def gold(visit: Visit) -> Mapping[str, Any]:
    """The gold set, its latest runs, and every item of one of them against another."""
    if visit.shared.gold is None:
        raise CallRefused(409, "this process runs no gold set: gold.set is not set")
    found = await view(visit.shared.gold, gold_room.chosen(visit.request.query))
    return to_jsonable_python(found)  # type: ignore[no-any-return]


async def drift(visit: Visit) -> dict[str, Any]:
    """What the detectors see in every service."""
    return watching(visit.shared).show()


async def labels(visit: Visit) -> list[dict[str, Any]]:
    """All labels, and the sums of the scores that nobody labelled."""
    if visit.shared.labelling is None:
        raise CallRefused(409, "labels are off; set drift.labels.path to a file")
    return visit.shared.labelling.lines()
