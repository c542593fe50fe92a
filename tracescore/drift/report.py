"""What is said of two releases, as plain data: the same for the page, for `compare`, and from a Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracescore.drift.comparing import MeanLimits, ReleaseComparison
from tracescore.drift.family import Population
from tracescore.drift.release_use import ReleasePair
from tracescore.drift.releases import WEEK, Releases, Stream

HOUR = 3_600


def measure_rows(compared: Iterable[tuple[Stream, ReleaseComparison | None]]) -> list[dict[str, Any]]:
    """One row a measure; without figures where one of the releases has too few scores. Moments in Unix seconds."""
    return [_row(stream, found) for stream, found in compared]


def _row(stream: Stream, found: ReleaseComparison | None) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": stream.measure, "context_source": stream.context_source or None}
    if found is None:
        return row | {"verdict": "too few scores", "difference": None}
    return row | {
        "verdict": found.verdict,
        "difference": found.difference,
        "lower": found.lower,
        "upper": found.upper,
        "traffic": found.traffic,
        "since": found.first_hour * HOUR,
        "until": (found.last_hour + 1) * HOUR,
        "of_release": _mean(found.release),
        "of_before": _mean(found.before),
    }


def _mean(limits: MeanLimits) -> dict[str, float]:
    return {"mean": limits.mean, "lower": limits.lower, "upper": limits.upper, "scores": limits.effective_count}


def of_process(
    releases: Releases, population: Population, chosen: tuple[str, str] | None, hours: int = WEEK
) -> dict[str, Any]:
    """What this process knows of two releases of a service; those `chosen` (before, release), else the latest two.

    ValueError for a service or a release that is not known.
    """
    use = releases.use(population)
    if unknown := [each for each in chosen or () if each not in use.known]:
        there_are = ", ".join(use.ranked())[:200]
        raise ValueError(f"release {unknown[0][:40]!r} of {population[0][:40]!r}: not known; there are {there_are}")
    pair = ReleasePair(chosen[1], chosen[0]) if chosen else use.pair
    known = [
        {"release": name, "first_seen": use.known[name].first, "last_seen": use.known[name].last}
        | {"in_use": use.in_use(name)}
        for name in use.ranked()
    ]
    return {
        "service": population[0],
        "environment": population[1],
        "of": "this process",
        "judge": releases.judge,
        "hours": hours,
        "release": pair.running if pair else None,
        "before": pair.before if pair else None,
        "releases": known,
        "measures": measure_rows(releases.compared(population, pair, hours).items()) if pair and pair.before else [],
    }


def population_of(releases: Releases, service: str, environment: str | None) -> Population:
    """The service of that name; ValueError where there is none, or several environments and none was named."""
    known = releases.services()
    found = [each for each in known if each[0] == service and environment in (None, each[1])]
    if len(found) > 1:
        raise ValueError(f"{service[:40]!r} runs in {', '.join(e for _, e in found)[:200]}: name the environment")
    if not found:
        there_are = ", ".join(f"{name} in {where}" for name, where in known)[:200] or "none yet"
        where = f" in {environment[:40]!r}" if environment else ""
        raise ValueError(f"service {service[:40]!r}{where}: not known; there are {there_are}")
    return found[0]
