"""What the API tells of what the page shows: each call is given a visit and returns data of the shapes it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from tracescore.gold.view import view
from tracescore.model import MEASURES, Measure
from tracescore.web import compare, listing, shapes, shaping
from tracescore.web import gold as gold_room
from tracescore.web.api import CallRefused, watching
from tracescore.web.finding import Repeated
from tracescore.web.recent import Mean, means, scored
from tracescore.web.visit import Visit


async def services(visit: Visit) -> shapes.ServicesShape:
    """The means of every service, of the interactions that the page keeps."""
    shared = visit.shared
    results = shared.recent.results()
    rows: dict[str, list[shapes.MeanShape]] = {name: [] for name in shared.recent.services()}
    for measure in MEASURES:
        for mean in means(scored(results, measure), shared.estimating.max_weight):
            rows[mean.of.service].append(_mean(measure, mean, shared.target(measure, mean.of.service)))
    return {"kept": len(results), "services": [{"service": name, "measures": rows[name]} for name in rows]}


def _mean(measure: Measure, of: Mean, target: float | None) -> shapes.MeanShape:
    return {
        "measure": measure,
        "judge": of.of.judge,
        "epoch": of.of.epoch,
        "context_source": "prompt" if of.of.from_prompt else None,
        "mean": of.value,
        "lower": of.lower,
        "upper": of.upper,
        "scores": of.count,
        "target": target,
    }


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
