"""The ledger as the page reads it: a snapshot of counts taken at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tracescore.model import Measure, Outcome, Reason, State, outcome_of


class Counts(Protocol):
    """What became of one measure's evaluations."""

    @property
    def scored(self) -> int:
        """Those that gave a number."""
        ...

    @property
    def pending(self) -> int:
        """Those that have not ended."""
        ...

    @property
    def reasons(self) -> Mapping[Reason, int]:
        """Those that ended without a number, by reason."""
        ...


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything that came in and what became of it: spans received, interactions read, evaluations started."""

    spans: int = 0
    interactions: Mapping[State, int] = field(default_factory=dict)
    evaluations: Mapping[Measure, Counts] = field(default_factory=dict)


def by_reason(counts: Counts, outcome: Outcome) -> list[tuple[Reason, int]]:
    """The reasons of one outcome that occurred, the most frequent first."""
    found = [(reason, count) for reason, count in counts.reasons.items() if count and outcome_of(reason) == outcome]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def total(counts: Counts, outcome: Outcome) -> int:
    """How many ended with this outcome."""
    return counts.scored if outcome == "scored" else sum(count for _, count in by_reason(counts, outcome))
