"""What the releases of each service scored, hour by hour, of the last seven days: for people, no detector looks at it.

An exporter that takes results in. A comparison is always of one judge in one epoch: with another one all hours begin
anew. It is bounded in time, so that a release that was mended is not held to what it once was.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from pydantic import NonNegativeFloat, NonNegativeInt

from tracescore.drift.comparing import Hours, ReleaseComparison, compare
from tracescore.drift.family import Population
from tracescore.drift.release_use import ReleasePair, ReleaseUse, UseState
from tracescore.drift.scale import OwnScales, OwnScalesState, Scale, ScaleState, next_scale
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.exporters import Continuing
from tracescore.exporters.prometheus.conversations import OpenConversations, OpenConversationState
from tracescore.exporters.prometheus.families import gauge
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import Clock, Measure, Result, Score
from tracescore.spool.state import Persisted, StateCodec

WEEK = 7 * 24
"""Hours that are kept and compared."""
_HOUR = 3_600.0
_MOST_SERVICES = 50
_MOST_ROWS = 50_000
"""Sums of an hour, a release and a measure that are kept; beyond them the oldest hours go."""
_SHOWN = 5
"""Releases of a service that are metrics: those in use and the last used."""


class Stream(NamedTuple):
    """What scores are compared within: a measure and, for faithfulness, where the contexts were read."""

    measure: Measure
    context_source: str


HourState = tuple[
    NonNegativeInt, NonNegativeFloat, NonNegativeFloat, NonNegativeFloat, NonNegativeFloat, NonNegativeFloat
]
"""What is kept of an hour: which it is, and the `WeightedSums`."""
StreamState = tuple[str, str, str, Measure, str, tuple[HourState, ...]]
"""What is kept of the scores of a release: service, environment, release, measure and source, and its hours."""


@dataclass(frozen=True, slots=True)
class ReleasesState(Persisted):
    """What is kept: the scale of the scores, the use of releases by service, the hours, and open conversations."""

    scale: ScaleState
    use: tuple[tuple[str, str, tuple[NonNegativeInt, tuple[UseState, ...]]], ...]
    hours: tuple[StreamState, ...]
    conversations: tuple[OpenConversationState, ...]
    own: OwnScalesState = ()


class Releases(Continuing):
    """See the module."""

    name = "releases"
    codec = StateCodec(ReleasesState)

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._scale: Scale | None = None
        self._own = OwnScales()
        self._use: dict[Population, ReleaseUse] = {}
        self._hours: dict[int, dict[tuple[Population, str], dict[Stream, WeightedSums]]] = {}
        self._held = 0
        self._conversations = OpenConversations()
        registry.register(self)

    async def export(self, result: Result) -> None:
        """Adds the scores of a result to the hour in which its interaction ended."""
        if not self._on_scale(result):
            return
        interaction = result.interaction
        population = label_value(interaction.service), label_value(interaction.environment)
        at = min(result.ended, result.finished)  # an app's clock may run fast
        release, use = label_value(interaction.release), self._use_of(population)
        if use is None or (gone := use.note(release, at)) == release:
            return
        if gone is not None:
            for of_hour in self._hours.values():
                self._held -= len(of_hour.pop((population, gone), ()))
        for score in result.scores():
            self._add((population, release), result, score, at)
        self._prune(result.finished)

    def _add(self, of: tuple[Population, str], result: Result, score: Score, at: float) -> None:
        told, measure = result.interaction, score.measure
        stream = Stream(measure, told.context_source if measure == "faithfulness" else "")
        known = self._hours.setdefault(int(at // _HOUR), {}).setdefault(of, {})
        key = (*of[0], of[1], *stream)
        squares = self._conversations.add(key, told.conversation_id, told.weight, score.value, at)
        more = told.weight, told.weight * score.value, *squares
        self._held += stream not in known
        known[stream] = known.get(stream, WeightedSums()).merged(more)

    def _on_scale(self, result: Result) -> bool:
        """False for a result of an earlier epoch; what another judge or epoch scored is not compared with it."""
        scale = next_scale(self._scale, result)
        if scale is None:
            return False
        changed = self._own.note(result)
        if scale != self._scale:
            self._scale, apart = scale, self._own.apart()
            self._begin_anew(lambda measure: measure not in apart)
        if changed:
            self._begin_anew(changed.__contains__)
        return True

    def _begin_anew(self, of: Callable[[Measure], bool]) -> None:
        """Forgets the hours of the measures for which `of` says so."""
        for rows in self._hours.values():
            for release, known in rows.items():
                rows[release] = {stream: sums for stream, sums in known.items() if not of(stream.measure)}
        self._held = sum(len(known) for rows in self._hours.values() for known in rows.values())
        self._conversations = OpenConversations()

    def _use_of(self, population: Population) -> ReleaseUse | None:
        """None where there are too many services."""
        if population not in self._use and len(self._use) >= _MOST_SERVICES:
            scored = {of for rows in self._hours.values() for of, _ in rows}
            silent = next((each for each in self._use if each not in scored), None)
            if silent is None:
                return None
            del self._use[silent]
        return self._use.setdefault(population, ReleaseUse())

    def _prune(self, now: float) -> None:
        """Forgets hours that are over a week old, or of a clock that was wrong, or too many."""
        newest = int(now // _HOUR)
        for hour in [hour for hour in self._hours if not newest - WEEK < hour <= newest]:
            self._forget(hour)
            for use in self._use.values():
                use.set_back(now)
        while len(self._hours) > 1 and self._held > _MOST_ROWS:
            self._forget(min(self._hours))

    def _forget(self, hour: int) -> None:
        self._held -= sum(map(len, self._hours.pop(hour).values()))

    # ---------------------------------------------------------------- what is known

    @property
    def judge(self) -> str:
        """The name of the judge that all scores are of."""
        return self._scale.judge if self._scale else ""

    def services(self) -> list[Population]:
        """All services, in order of the alphabet."""
        return sorted(self._use)

    def use(self, population: Population) -> ReleaseUse:
        """The releases of one of the services."""
        return self._use[population]

    def compared(
        self, population: Population, pair: ReleasePair, hours: int = WEEK
    ) -> dict[Stream, ReleaseComparison | None]:
        """The running release of a pair less the other, by what was scored of either, in the last `hours`."""
        running, before = (self._of(population, release, hours) for release in pair)
        return {
            stream: compare(running.get(stream, {}), before.get(stream, {}))
            for stream in sorted(running.keys() | before.keys())
        }

    def _of(self, population: Population, release: str | None, hours: int) -> Mapping[Stream, Hours]:
        found: dict[Stream, dict[int, WeightedSums]] = {}
        newest = int(self._clock() // _HOUR)
        for hour, rows in self._hours.items():
            if newest - hours < hour <= newest and release is not None:
                for stream, sums in rows.get((population, release), {}).items():
                    found.setdefault(stream, {})[hour] = sums
        return found

    def _rows_now(self) -> Iterator[tuple[tuple[str, ...], ReleaseComparison]]:
        for population, use in self._use.items():
            pair = use.pair
            if pair is None or pair.before is None:
                continue
            for stream, found in self.compared(population, pair).items():
                if found is not None:
                    judge = self._own.judge_of(stream.measure, self.judge)
                    yield (judge, *population, *pair, *stream, found.traffic), found  # type: ignore[misc]

    def collect(self) -> Iterator[Metric]:
        """All families at one moment; called by the registry."""
        service = ("service_name", "deployment_environment", "service_version")
        uses = [((*of, name), use, name) for of, use in self._use.items() for name in use.ranked()[:_SHOWN]]
        about = "When the release was first seen, by this process."
        rows = [(labels, use.known[name].first) for labels, use, name in uses]
        yield gauge("tracescore_drift_release_first_seen_timestamp_seconds", about, service, rows)
        about = "When the release was last seen, by this process."
        rows = [(labels, use.known[name].last) for labels, use, name in uses]
        yield gauge("tracescore_drift_release_used_timestamp_seconds", about, service, rows)
        about = "1 for a release in use, 0 for one that the service has gone on without; by this process."
        rows = [(labels, float(use.in_use(name))) for labels, use, name in uses]
        yield gauge("tracescore_drift_release_in_use", about, service, rows)
        changes, names = list(self._rows_now()), ("judge", *service, "before", "measure", "context_source", "traffic")
        for suffix, limit, field in (
            ("", "Mean", "difference"),
            ("_lower", "Lower 95 % limit of the mean", "lower"),
            ("_upper", "Upper 95 % limit of the mean", "upper"),
        ):
            about = f"{limit} of the running release less that of the one before, at this moment, of this process."
            yield gauge(
                f"tracescore_drift_release_change{suffix}_ratio",
                about,
                names,
                [(labels, getattr(found, field)) for labels, found in changes],
            )

    # ---------------------------------------------------------------- over a restart

    def state(self) -> ReleasesState:
        """What `resume` goes on from."""
        return ReleasesState(
            (*self._scale,) if self._scale else (),
            tuple((*population, use.state()) for population, use in self._use.items()),
            self._hours_state(),
            self._conversations.state(),
            self._own.state(),
        )

    def _hours_state(self) -> tuple[StreamState, ...]:
        found: dict[tuple[str, str, str, Measure, str], list[HourState]] = {}
        for hour, rows in self._hours.items():
            for (population, release), streams in rows.items():
                for stream, sums in streams.items():
                    found.setdefault((*population, release, *stream), []).append((hour, *sums))
        return tuple((*of, tuple(hours)) for of, hours in found.items())

    def resume(self, state: ReleasesState) -> None:
        """Goes on from the state of an earlier process."""
        self._scale = Scale(*state.scale) if state.scale else None
        for service, environment, use in state.use:
            self._use[service, environment] = ReleaseUse()
            self._use[service, environment].resume(use)
        for service, environment, release, measure, source, hours in state.hours:
            for hour, *sums in hours:
                of_release = self._hours.setdefault(hour, {}).setdefault(((service, environment), release), {})
                of_release[Stream(measure, source)] = WeightedSums(*sums)
            self._held += len(hours)
        self._own = OwnScales(state.own)
        self._conversations.resume(state.conversations)
