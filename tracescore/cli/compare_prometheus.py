"""Releases compared over all replicas, from the hours that the recording rules of deploy/prometheus keep."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracescore.cli.prometheus_api import series
from tracescore.drift.comparing import ReleaseComparison, compare
from tracescore.drift.releases import Stream
from tracescore.drift.report import HOUR, measure_rows
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.errors import UsageError

_PAIR = "service:tracescore_release:pair"
_DEPLOYMENT = ("namespace", "job")
_RULES = "are the recording rules of deploy/prometheus loaded, and has an hour passed since?"


class _Scored(NamedTuple):
    """What scores can be compared within."""

    deployment: tuple[str, ...]
    environment: str
    judge: str
    fingerprint: str
    stream: Stream


_Hours = dict[int, WeightedSums]


def compared(
    url: str, *, service: str, environment: str | None, before: str | None, release: str | None, hours: int
) -> dict[str, Any]:
    """What `tracescore compare` prints, from the Prometheus at `url`. UsageError when it does not answer or know."""
    where = {"service_name": service} | ({"deployment_environment": environment} if environment else {})
    if before is None or release is None:
        labels = _one(series(url, "query", query=f"last_over_time({_selector(_PAIR, where)}[10m])"), service)
        before, release = labels["before"], labels["service_version"]
    found = [_by_scored(url, where | {"service_version": each}, hours) for each in (release, before)]
    pairs = {scored: compare(found[0].get(scored, {}), found[1].get(scored, {})) for scored in found[0] | found[1]}
    chosen = _latest(pairs, service)
    head = next(iter(chosen), None)
    return {
        "service": service,
        "environment": head.environment if head else environment or "",
        "of": "all replicas",
        "judge": head.judge if head else "",
        "hours": hours,
        "release": release,
        "before": before,
        "measures": measure_rows((scored.stream, each) for scored, each in chosen.items()),
    }


def _latest(pairs: Mapping[_Scored, ReleaseComparison | None], service: str) -> dict[_Scored, ReleaseComparison | None]:
    """Each measure compared by the judge that scored last; UsageError where several apps have the name."""
    places = sorted({(*scored.deployment, scored.environment) for scored in pairs})
    if len(places) > 1:
        there_are = "; ".join(" ".join(filter(None, place)) for place in places)
        raise UsageError(f"{service}: several apps are called that ({there_are}): name the environment")
    order = sorted(pairs, key=lambda scored: (scored.stream, _until(pairs[scored])))
    return {scored: pairs[scored] for scored in {scored.stream: scored for scored in order}.values()}


def _until(comparison: ReleaseComparison | None) -> int:
    return comparison.last_hour if comparison else -1


def _by_scored(url: str, where: Mapping[str, str], hours: int) -> dict[_Scored, _Hours]:
    """The sums of every hour of one release, the running one included, by what they can be compared within."""
    end = int(time.time() // HOUR) * HOUR
    window = {"start": str(end - (hours - 2) * HOUR), "end": str(end), "step": str(HOUR)}
    past = _selector("release:tracescore_scored:hour", where)
    running = _selector("release:tracescore_scored:running_hour", where)
    sums: dict[_Scored, dict[int, dict[str, float]]] = {}

    def take(labels: Mapping[str, str], hour: int, value: str) -> None:
        sums.setdefault(_scored(labels), {}).setdefault(hour, {})[labels["sum"]] = float(value)

    for each in series(url, "query_range", query=past, **window) if hours > 1 else ():
        for at, value in each["values"]:
            take(each["metric"], int(at) // HOUR - 1, value)
    for each in series(url, "query", query=running):
        take(each["metric"], end // HOUR, each["value"][1])
    return {
        scored: {at: WeightedSums(**row) for at, row in rows.items() if len(row) == len(WeightedSums._fields)}
        for scored, rows in sums.items()
    }


def _scored(labels: Mapping[str, str]) -> _Scored:
    deployment = tuple(labels.get(name, "") for name in _DEPLOYMENT)
    stream = Stream(labels["measure"], labels.get("context_source", ""))
    return _Scored(deployment, labels["deployment_environment"], labels["judge"], labels["fingerprint"], stream)


def _one(found: Iterable[Mapping[str, Any]], service: str) -> Mapping[str, str]:
    pairs = [each["metric"] for each in found]
    if not pairs:
        raise UsageError(f"{service}: no two releases are known there; {_RULES}")
    if len({(each["deployment_environment"], each.get("namespace"), each.get("job")) for each in pairs}) > 1:
        there_are = ", ".join(sorted({each["deployment_environment"] for each in pairs}))
        raise UsageError(f"{service}: runs in {there_are}: name the environment")
    chosen: Mapping[str, str] = pairs[0]
    return chosen


def _selector(metric: str, labels: Mapping[str, str]) -> str:
    return f"{metric}{{{', '.join(f'{name}={json.dumps(value)}' for name, value in labels.items())}}}"
