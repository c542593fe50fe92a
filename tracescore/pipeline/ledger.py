"""The ledger: what was read, and what became of every evaluation. Nothing leaves the flow without an entry here."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from pydantic import NonNegativeInt

from tracescore.exporters.prometheus.families import counter, gauge
from tracescore.exporters.prometheus.histogram import Buckets, BucketsState
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.exporters.prometheus.table import OTHER
from tracescore.model import (
    FAIL_REASONS,
    MEASURES,
    OUTCOMES,
    SHED_REASONS,
    SKIP_REASONS,
    STATES,
    Clock,
    Interaction,
    Measure,
    Outcome,
    Reason,
    Result,
    Score,
    ShedReason,
    State,
    outcome_of,
)
from tracescore.spool.state import Persisted, StateCodec

_log = logging.getLogger("tracescore.service")

Ending = tuple[Outcome, Reason | Literal[""]]
"""An outcome and its reason; a score has none."""

ENDINGS: tuple[Ending, ...] = (
    ("scored", ""),
    *((outcome_of(reason), reason) for reason in (*SKIP_REASONS, *FAIL_REASONS, *SHED_REASONS)),
)

_App = tuple[str, str]
"""Service and deployment environment; both empty where they are not known, as in what version 0.1.0 kept."""

_UNKNOWN: _App = ("", "")
_MOST_APPS = 50
"""Apps that get series of their own, several times what `max_series` has room for; the rest are counted as `other`."""

_LAG_BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of one measure's evaluations; `reasons` counts those that gave no score."""

    scored: int
    pending: int
    reasons: Mapping[Reason, int]

    def by_reason(self, outcome: Outcome) -> list[tuple[Reason, int]]:
        """The reasons of one outcome that occurred, the most frequent first."""
        found = [(reason, n) for reason, n in self.reasons.items() if n and outcome_of(reason) == outcome]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def total(self, outcome: Outcome) -> int:
        """How many ended with this outcome."""
        return self.scored if outcome == "scored" else sum(count for _, count in self.by_reason(outcome))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What came in and what became of it, at one moment: spans received, interactions read, evaluations started.

    `services`: the same of each service, where spans and what is pending are not known.
    """

    spans: int = 0
    interactions: Mapping[State, int] = field(default_factory=dict)
    evaluations: Mapping[Measure, Tally] = field(default_factory=dict)
    services: Mapping[str, "Snapshot"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerState(Persisted):
    """What is kept: interactions read, ended evaluations by service, their lag, and each judge's highest epoch seen."""

    read: tuple[tuple[State, str, str, NonNegativeInt], ...]
    ended: tuple[tuple[Measure, Outcome, Reason | Literal[""], str, NonNegativeInt], ...]
    lag: BucketsState
    epochs: dict[str, NonNegativeInt] = field(default_factory=dict)


def _of_no_service(plain: Any) -> dict[str, Any]:
    """What version 0.1.0 kept: nobody knows of which service it was."""
    read = [[state, *_UNKNOWN, count] for state, count in plain["read"].items()]
    return {**plain, "read": read, "ended": [[*ending, "", count] for *ending, count in plain["ended"]]}


class Ledger:
    """Counts interactions by state and app, and evaluations by outcome and service.

    At every scrape, per measure: started = the sum of the outcomes + pending. That holds by construction: an
    evaluation that ends without having been announced counts as started when it ends, and pending is the
    number of those that were announced and have not ended.
    """

    codec = StateCodec(LedgerState, _of_no_service)

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Clock = time.time,
        settled: Callable[[], bool] = lambda: True,
        own: Iterable[Measure] = (),
    ) -> None:
        """`own`: measures of the user's own. Lag is measured while `settled` says that no clock was set lately."""
        self._clock, self._settled = clock, settled
        self._apps: dict[_App, None] = {_UNKNOWN: None}
        self._read: Counter[tuple[State, _App]] = Counter()
        self._started: Counter[Measure] = Counter()
        self._ended: Counter[tuple[Measure, Ending, str]] = Counter()
        self._pending: dict[Measure, dict[str, float]] = {measure: {} for measure in (*MEASURES, *own)}
        self._lag = Buckets(_LAG_BUCKETS)
        self._epochs: dict[str, int] = {}
        registry.register(self)

    def read(self, interaction: Interaction) -> None:
        """An interaction was read from a trace."""
        self._read[interaction.state, self._app(interaction)] += 1

    def started(self, interaction: Interaction, measures: Iterable[Measure], since: float | None = None) -> None:
        """The interaction waits for the evaluation of `measures`, `since` an earlier time or now."""
        for measure in measures:
            if interaction.key not in self._pending[measure]:
                self._pending[measure][interaction.key] = self._clock() if since is None else since
                self._started[measure] += 1

    def finished(self, result: Result) -> None:
        """Every evaluation in `result` has ended, with a score or without."""
        interaction = result.interaction
        self._epochs[result.judge] = max(result.epoch, self._epochs.get(result.judge, 0))
        for each in result.evaluations:
            ending: Ending = ("scored", "") if isinstance(each, Score) else (each.outcome, each.reason)
            self._end(interaction, each.measure, ending)
        if interaction.end_unix_nano and result.evaluations and self._settled():
            self._lag.observe(max(0.0, (result.finished or self._clock()) - interaction.end_unix_nano / 1e9))

    def shed(self, interaction: Interaction, measures: Iterable[Measure], reason: ShedReason) -> None:
        """The evaluation of `measures` will never be tried."""
        for measure in measures:
            self._end(interaction, measure, ("shed", reason))

    def latest_epoch(self, judge: str) -> int | None:
        """The highest epoch of this judge that a result was of; None without a result of it."""
        return self._epochs.get(judge)

    def snapshot(self, spans: int = 0) -> Snapshot:
        """The counts at this moment; `spans` is how many were received."""
        states, services = dict.fromkeys(STATES, 0), dict[str, dict[State, int]]()
        for (state, (service, _)), count in self._read.items():
            states[state] += count
            services.setdefault(service, dict.fromkeys(STATES, 0))[state] += count
        ended = self._ended_of_services()
        found = {name: Snapshot(0, read, ended.get(name, {})) for name, read in services.items() if name}
        return Snapshot(spans, states, self.evaluations(), found)

    def _ended_of_services(self) -> Mapping[str, Mapping[Measure, Tally]]:
        counts: dict[str, dict[Measure, dict[Reason | Literal[""], int]]] = {}
        for (measure, (_, reason), service), count in self._ended.items():
            counts.setdefault(service, {}).setdefault(measure, {})[reason] = count
        return {
            service: {
                measure: Tally(of[measure].pop("", 0), 0, of[measure])  # type: ignore[arg-type]
                for measure in MEASURES
                if measure in of
            }
            for service, of in counts.items()
        }

    def evaluations(self) -> Mapping[Measure, Tally]:
        """What became of the evaluations so far, by measure; those never started are left out."""
        ended: Counter[tuple[Measure, Ending]] = Counter()
        for (measure, ending, _), count in self._ended.items():
            ended[measure, ending] += count
        return {
            measure: Tally(
                scored=ended[measure, ENDINGS[0]],
                pending=len(self._pending[measure]),
                reasons={reason: ended[measure, (outcome, reason)] for outcome, reason in ENDINGS if reason},
            )
            for measure in self._pending
            if self._started[measure]
        }

    def log_totals(self) -> None:
        """Logs the last line: what was started is what was scored, unscored, skipped or shed, or the line shows it."""
        for measure, tally in self.evaluations().items():
            ends = " ".join(f"{outcome}={tally.total(outcome)}" for outcome in OUTCOMES)
            _log.info("event=stopped measure=%s %s pending=%d", measure, ends, tally.pending)

    def collect(self) -> list[Metric]:
        """All families at one moment; called by the registry."""
        lag = HistogramMetricFamily(
            "tracescore_evaluations_lag_seconds", "Time from the end of an interaction to the end of its evaluation."
        )
        self._lag.add_to(lag, [])
        return [
            counter(
                "tracescore_interactions",
                "Interactions received and read from traces, whether or not they are scored, by state and app.",
                ["state", "service_name", "deployment_environment"],
                [([state, *app], self._read[state, app]) for app in self._apps for state in STATES],
            ),
            counter(
                "tracescore_evaluations",
                "Evaluations that ended, by service, outcome and the reason why there is no score.",
                ["measure", "outcome", "reason", "service_name"],
                [([each, *ending, service], count) for (each, ending, service), count in self._endings().items()],
            ),
            *self._open(),
            lag,
        ]

    def state(self) -> LedgerState:
        """What the counters show."""
        read = tuple((state, *app, count) for (state, app), count in self._read.items())
        ended = tuple((measure, *ending, service, count) for (measure, ending, service), count in self._ended.items())
        return LedgerState(read, ended, self._lag.state(), dict(self._epochs))

    def resume(self, state: LedgerState) -> None:
        """Goes on from the counts of an earlier process; what was pending there has to be announced again."""
        self._lag.resume(state.lag)
        self._epochs.update(state.epochs)
        for read_as, service, environment, count in state.read:
            app = service, environment
            self._apps[app] = None
            self._read[read_as, app] += count
        for measure, outcome, reason, service, count in state.ended:
            self._pending.setdefault(measure, {})  # one of the user's own that is not configured any more
            self._ended[measure, (outcome, reason), service] += count
            self._started[measure] += count

    def _end(self, interaction: Interaction, measure: Measure, ending: Ending) -> None:
        if self._pending[measure].pop(interaction.key, None) is None:
            self._started[measure] += 1
        self._ended[measure, ending, self._app(interaction)[0]] += 1

    def _app(self, interaction: Interaction) -> _App:
        """As what the interaction is counted. Apps keep their names for good: no counter ever jumps or starts again."""
        if not interaction.service:
            return _UNKNOWN
        app = label_value(interaction.service), label_value(interaction.environment)
        if app not in self._apps and len(self._apps) > _MOST_APPS:
            app = OTHER, OTHER
        self._apps[app] = None
        return app

    def _endings(self) -> Mapping[tuple[Measure, Ending, str], int]:
        """All, those that never happened at 0, so that a rate knows where they begin; per service, of what runs."""
        running = [measure for measure in self._pending if self._started[measure]]
        shown: dict[tuple[Measure, Ending, str], int] = {}
        for service, measures in {"": list(self._pending), **{of: running for of, _ in self._apps if of}}.items():
            shown |= {(measure, ending, service): 0 for measure in measures for ending in ENDINGS}
        return shown | dict(self._ended)

    def _open(self) -> Iterator[Metric]:
        now, pending, of = self._clock(), self._pending, ["measure"]
        started = [([each], self._started[each]) for each in pending]
        about = "Evaluations started: ended ones and pending ones."
        yield counter("tracescore_evaluations_started", about, of, started)
        waiting = [([each], len(pending[each])) for each in pending]
        yield gauge("tracescore_evaluations_pending", "Evaluations that wait or run.", of, waiting)
        oldest = [([each], max(0.0, now - next(iter(pending[each].values()), now))) for each in pending]
        about = "Age of the oldest pending evaluation; 0 without one."
        yield gauge("tracescore_evaluations_oldest_pending_seconds", about, of, oldest)
