"""What each page shows, worked out from the results and the ledger; the templates only lay it out."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qs

from tracescore.model import (
    MEASURES,
    Evaluation,
    Item,
    Measure,
    Result,
    Score,
)

WORST_SHOWN, WORST_SHOWN_ALONE, LATEST_SHOWN = 5, 50, 15
LONGEST_SERVICE = 255


@dataclass(frozen=True, slots=True)
class Filter:
    """What the reader asked to see; None: everything."""

    measure: Measure | None = None
    service: str | None = None


def read_filter(query: str, measures: Collection[Measure] = MEASURES) -> Filter:
    """The filter of a query string; ValueError says what is allowed. An empty value is no choice."""
    try:
        values = parse_qs(query, max_num_fields=10, errors="replace")
    except ValueError:
        raise ValueError("the address has too many parameters") from None
    if unknown := sorted(values.keys() - {"measure", "service"}):
        raise ValueError(f"the page filters by measure and service; got {unknown[0][:40]!r}")
    if any(len(given) > 1 for given in values.values()):
        raise ValueError("give one measure and one service at a time")
    name, service = values.get("measure", [None])[0], values.get("service", [None])[0]
    if name is not None and name not in measures:
        raise ValueError(f"measure is one of {', '.join(measures)}; got {name[:40]!r}")
    if service is not None and len(service) > LONGEST_SERVICE:
        raise ValueError(f"service is a name of at most {LONGEST_SERVICE} characters")
    return Filter(name, service)


@dataclass(frozen=True, slots=True)
class Estimating:
    """The bound of the weights that the sampling gives, and the effective scores that a slice needs to be shown."""

    max_weight: float = 1.0
    min_count: float = 20


TargetOf = Callable[[Measure, str], float | None]
"""What the mean of a measure of a service should stay above; `*`: of services without a target of their own."""


def silent(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Convention and instrumentation of interactions that came without their texts, in order of the alphabet."""
    told = (result.interaction for result in results)
    return sorted({(one.convention, one.instrumentation) for one in told if one.state == "content_not_captured"})


def evaluation_of(result: Result, measure: Measure) -> Evaluation | None:
    """What became of one measure of a result; None when it was not tried."""
    return next((evaluation for evaluation in result.evaluations if evaluation.measure == measure), None)


def telling(evaluation: Evaluation) -> Item | None:
    """The item that shows best why a score is low: the one of the least credit, or else the first without support."""
    credited = [item for item in evaluation.items if item.credit is not None]
    return min(credited, key=lambda item: item.credit or 0.0) if credited else next(iter(evaluation.items), None)


def is_score(evaluation: Evaluation) -> bool:
    """Whether there is a number."""
    return isinstance(evaluation, Score)


def bounds(evaluation: Evaluation) -> str:
    """Between what the value must lie although it is not known; empty when it could be anything."""
    if isinstance(evaluation, Score) or (evaluation.lo, evaluation.hi) == (0.0, 1.0):
        return ""
    return f"{evaluation.lo:.2f} to {evaluation.hi:.2f}"


def moment(seconds: float) -> str:
    """Unix seconds as a date and time of UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339 writes them, to the millisecond; empty for what no clock shows."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def moment_of_nanoseconds(nanoseconds: int) -> str:
    """Unix nanoseconds as a date and time of UTC; `not known` for what no clock shows."""
    try:
        return moment(nanoseconds / 1e9) if nanoseconds else "time not known"
    except (ValueError, OverflowError, OSError):
        return "time not known"
