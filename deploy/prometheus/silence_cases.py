"""When a service is said to have stopped, and when its silence is nothing unusual or nobody could hear it."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.prometheus.streams import APP, READY, TARGET, Case, Series, case, counter, evaluations, named

STOPPED = ["TracescoreServiceStopped"]


def _weights(*phases: int, service: str = "shop") -> Series:
    """Scores of a service, of which nothing but their number matters here."""
    labels = TARGET | APP | {"service_name": service}
    return {named("tracescore_completeness_weight_total", labels): counter(1, *phases)}


def _ready(values: str) -> Series:
    return {named("tracescore_judge_ready", TARGET | {"judge": "gpt"}): values}


def silence_cases() -> list[Case]:
    """All of them."""
    steady = _weights(0, 2400, 1, service="bank")
    resting = _weights(0, *[240] * 8)
    everything: Sequence[tuple[str, Sequence[Series], int, list[str]]] = (
        ("a service stopped two hours ago", (_weights(0, 1500, 300), steady, READY), 1620, STOPPED),
        ("a service that nobody knew yesterday stopped", (_weights(0, 300, 900), steady, READY), 500, []),
        ("a service that rests for four hours of every eight", (resting, READY), 1900, []),
        (
            "a service whose evaluations all fail still sends",
            (
                _weights(0, 1500, 300),
                evaluations("completeness", "unscored", "unreadable_reply", 1, 1800, 1),
                READY,
            ),
            1620,
            [],
        ),
        (
            "the judge is down, so nothing is heard of anybody",
            (_weights(0, 1500, 300), _ready("1x1499 0x300")),
            1620,
            ["TracescoreMeasurementBroken"],
        ),
    )
    return [
        case(words, *series, minute=minute, values={}, firing=firing) for words, series, minute, firing in everything
    ]
