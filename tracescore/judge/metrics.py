"""The metrics of the calls to a judge on the network."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tracescore.judge.prompt import OPERATIONS
from tracescore.net.openai_endpoint import CircuitState, Endpoint

CallOutcome = Literal[
    "ok",
    "judge_unreachable",
    "judge_timeout",
    "judge_rate_limited",
    "judge_quota",
    "judge_unfit",
    "judge_input_too_long",
    "judge_refused",
    "judge_truncated",
    "judge_unreadable",
]
CALL_OUTCOMES: tuple[CallOutcome, ...] = get_args(CallOutcome)
"""How one request can end."""


class Metrics:
    """What the calls of one judge move."""

    def __init__(self, judge: str, registry: CollectorRegistry) -> None:
        self._judge = judge
        label, by = ["judge"], ["judge", "operation"]
        self.requests = Counter(
            "tracescore_judge_requests",
            "Requests to the judge, by operation and outcome.",
            [*by, "outcome"],
            registry=registry,
        )
        self.tokens = Counter(
            "tracescore_judge_tokens", "Tokens that the judge read and wrote.", [*by, "direction"], registry=registry
        )
        self.cost = Counter(
            "tracescore_judge_cost", "Cost of the judge, in the currency of judge.price.", by, registry=registry
        )
        self.seconds = Histogram(
            "tracescore_judge_request_duration_seconds",
            "Duration of a request to the judge, without waiting for a free slot.",
            by,
            buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self.repaired = Counter(
            "tracescore_judge_repaired",
            "Replies that held more than the JSON and were repaired.",
            label,
            registry=registry,
        )
        self.estimated = Counter(
            "tracescore_judge_usage_estimated",
            "Replies without token counts, whose tokens are estimated.",
            label,
            registry=registry,
        )
        self.circuit = Gauge(
            "tracescore_judge_circuit_state",
            "1 for the state that the circuit breaker is in.",
            ["judge", "state"],
            registry=registry,
        )
        self._from_zero(judge)

    def _from_zero(self, judge: str) -> None:
        """Every series is there before its first call."""
        for operation in OPERATIONS:
            self.cost.labels(judge, operation)
            self.seconds.labels(judge, operation)
            for outcome in CALL_OUTCOMES:
                self.requests.labels(judge, operation, outcome)
            for direction in ("input", "output"):
                self.tokens.labels(judge, operation, direction)
        self.repaired.labels(judge)
        self.estimated.labels(judge)

    def watch(self, endpoint: Endpoint) -> None:
        """Shows the state of the endpoint's circuit at every scrape."""
        for state in get_args(CircuitState):
            gauge = self.circuit.labels(self._judge, state)
            gauge.set_function(partial(_is, endpoint, state))


def _is(endpoint: Endpoint, state: CircuitState) -> float:
    return float(endpoint.circuit.state == state)
