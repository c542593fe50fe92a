"""When a service is said to have stopped, and when its silence is nothing unusual or nobody could hear it."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.prometheus.streams import APP, READY, TARGET, TARGETS, Case, Series, case, counter, evaluations, named

STOPPED = ["TracescoreServiceStopped"]
GAUGES = {
    named("tracescore_evaluations_pending", TARGET | {"measure": "completeness"}): "0x1499",
    **{named("tracescore_target_ratio", TARGET | {"measure": m}): f"{target}x1499" for m, target in TARGETS.items()},
}
"""What every scrape holds."""


def _weights(*phases: int, service: str = "shop") -> Series:
    """Scores of a service, of which nothing but their number matters here."""
    labels = TARGET | APP | {"service_name": service}
    return {named("tracescore_completeness_weight_total", labels): counter(1, *phases)}


def _received(*phases: int, service: str = "shop") -> Series:
    """Interactions of a service, whatever becomes of them."""
    labels = TARGET | {"state": "complete", "service_name": service, "deployment_environment": "prod"}
    return {named("tracescore_interactions_total", labels): counter(1, *phases)}


def _ready(values: str) -> Series:
    return {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): values}


def _ending(series: Series) -> Series:
    """The series until the last scrape that there is."""
    return {name: f"{values} stale" for name, values in series.items()}


def silence_cases() -> list[Case]:
    """All of them."""
    steady = _weights(0, 2400, 1, service="bank")
    resting = _weights(0, *[240] * 8)
    everything: Sequence[tuple[str, Sequence[Series], int, list[str]]] = (
        (
            "two services stopped two hours ago, of one of which nothing was ever scored",
            (_weights(0, 1500, 300), _received(0, 1500, 300, service="docs"), steady, READY),
            1620,
            STOPPED * 2,
        ),
        ("a service that nobody knew yesterday stopped", (_weights(0, 300, 900), steady, READY), 500, []),
        ("a service that rests for four hours of every eight", (resting, READY), 1900, []),
        (
            "a service whose evaluations all fail since two hours ago still sends: its failures are told",
            (
                _weights(0, 1500, 300),
                _received(0, 1800, 1),
                evaluations("completeness", "unscored", "judge_refused", 1500, 300, 1),
                READY,
            ),
            1620,
            ["TracescoreMeasurementBroken"],
        ),
        (
            "no replica is scraped any more, so nothing is heard of anybody",
            (_ending(_received(0, 1500) | GAUGES), READY),
            1620,
            ["TracescoreMeasurementBroken"],
        ),
        (
            "the judge is down, so nothing is heard of anybody",
            (_weights(0, 1500, 300), _ready("1x1499 0x300")),
            1620,
            ["TracescoreMeasurementBroken"],
        ),
    )
    told = "count(ALERTS{alertname='TracescoreServiceStopped', alertstate='firing'})"
    return [
        case(words, *series, minute=minute, values={told: firing.count(*STOPPED) or None}, firing=sorted({*firing}))
        for words, series, minute, firing in everything
    ]
