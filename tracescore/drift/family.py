"""All detectors of a process, and the one threshold they share.

Their average is an e-detector as well: with K of them and a threshold of K times the days that are promised, false
alarms of all together are that many days apart, however many services there are. K never falls, so that a service
that goes away does not make the others more easily alarmed.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from tracescore.config import SamplingConfig
from tracescore.config.drift import DETECTORS, DriftConfig
from tracescore.drift.detector import Detector, DetectorState
from tracescore.drift.observations import (
    Against,
    Conversations,
    ConversationState,
    DetectorKind,
    Name,
    Observation,
    kind_scores,
    kinds,
    measure_of,
)
from tracescore.drift.pauses import Pauses, PauseState
from tracescore.drift.references import given_reference
from tracescore.drift.scale import OwnScales, OwnScalesState, Scale, ScaleState, next_scale
from tracescore.drift.stratum import threshold
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.logs import plain
from tracescore.model import Measure, Result

_log = logging.getLogger("tracescore.drift")

MOST_POPULATIONS = 20
"""Services (by environment) that are watched."""
_FORGOTTEN = 7 * 86_400.0
"""Seconds of silence after which a service that is still being learned gives way to a new one."""

_SET_BACK = 3_600.0
"""Seconds that a result may lie before the newest known moment; beyond them the clock was wrong before."""

Population = tuple[str, str]
"""Service and environment."""


@dataclass(slots=True)
class Watched:
    """The detectors of one service, and when it was last seen."""

    detectors: dict[DetectorKind, Detector]
    last: float = 0.0

    @property
    def is_learning(self) -> bool:
        """Whether no baseline is in force yet."""
        return all(each.is_learning for kind, each in self.detectors.items() if kind.against == "baseline")


@dataclass(frozen=True, slots=True)
class WatchedState:
    """What is kept of a service."""

    population: Population
    last: float
    detectors: tuple[tuple[Name, Against, DetectorState], ...]


@dataclass(frozen=True, slots=True)
class FamilyState:
    """What is kept of all services; `epoch` is the scale of the scores, `most` K of the threshold."""

    epoch: ScaleState
    most: int
    watched: tuple[WatchedState, ...]
    conversations: tuple[ConversationState, ...]
    pauses: tuple[PauseState, ...] = ()
    own: OwnScalesState = ()


class Family:
    """Takes results in, and knows what every detector says."""

    def __init__(self, settings: DriftConfig, sampling: SamplingConfig, measures: Sequence[Measure]) -> None:
        self._settings, self._max_weight = settings, sampling.largest_weight
        self.kinds = kinds(measures, settings.targets)
        self._conversations = Conversations(settings.conversation_idle)
        self.judge: Scale | None = None
        """What gave the scores: another one is another scale."""
        self.own = OwnScales()
        self._most = 0
        self.pauses = Pauses()
        self.watched: dict[Population, Watched] = {}

    @property
    def threshold(self) -> float:
        """Days of evidence from which a change is told."""
        return threshold(self._settings.false_alarm_every / 86_400.0, max(self._most, len(self.kinds)))

    def judge_of(self, name: Name = "") -> str:
        """What scores the measure of a detector; without its name, the judge that all others are of."""
        return self.own.judge_of(name, self.judge.judge if self.judge else "")

    def detector(self, population: Population, kind: DetectorKind) -> Detector | None:
        """One of the detectors of a service; None where there is none."""
        watched = self.watched.get(population)
        return watched.detectors.get(kind) if watched else None

    def take(self, result: Result) -> bool:
        """Shows a result to the detectors of its service; False when there was no room for one more service."""
        if not self._on_scale(result):
            return True
        self._follow_clock(result.finished)
        interaction = result.interaction
        population = label_value(interaction.service), label_value(interaction.environment)
        at = min(result.ended, result.finished)  # an app's clock may run fast
        self.end_pauses(at)
        if self.pauses.silent(population[0], at):
            return True
        watched = self._watched(population, at)
        if watched is None:
            return False
        watched.last = max(watched.last, at)
        told = [
            Observation(population, kind, at, _stratum(kind, result), score, interaction.weight)
            for kind, score in kind_scores(result).items()
            if kind in watched.detectors
        ]
        for each in self._conversations.take(told, _mark(interaction.conversation_id)):
            self._feed(each)
        return True

    def _feed(self, each: Observation) -> None:
        of_service = self.watched.get(each.population)
        if of_service is not None and not self.pauses.silent(each.population[0], each.at):
            detector = of_service.detectors.get(each.kind)
            if detector is None:  # of a measure that is not configured any more
                return
            weights = {"weight": each.weight, "max_weight": self._max_weight}
            detector.take(each.at, each.stratum, each.score, **weights, threshold=self.threshold)

    def _follow_clock(self, now: float) -> None:
        """Nothing may wait for moments that a wrong clock has seen: no time would pass until they come again."""
        newest = max((each.last for each in self.watched.values()), default=now)
        if now >= newest - _SET_BACK:
            return
        _log.warning("event=clock_set_back seconds=%.0f", newest - now)
        self._conversations.set_back(now)
        for watched in self.watched.values():
            watched.last = min(watched.last, now)
            for detector in watched.detectors.values():
                detector.set_back(now)

    def _on_scale(self, result: Result) -> bool:
        """False for a result of an earlier epoch; with a new judge or epoch everything is learned anew.

        An upgrade with other evaluators drops nothing: weeks of learning are worth more than what may be a small shift.
        """
        scale = next_scale(self.judge, result)
        if scale is None:
            return False
        if self.judge and scale != self.judge and scale.is_of_judge(self.judge):
            advice = "if scores mean something else now, tracescore baseline reset"
            _log.warning('event=evaluators_changed version=%d advice="%s"', scale.version, advice)
        elif self.judge and scale != self.judge:
            _log.warning('event=baseline_reset cause=judge_changed judge="%s" epoch=%d', result.judge, result.epoch)
            self.reset(but=self.own.apart())
        self.judge = scale
        for measure in self.own.note(result):
            _log.warning("event=baseline_reset cause=measure_changed measure=%s", measure)
            self.reset(name=measure)
        return True

    def _watched(self, population: Population, at: float) -> Watched | None:
        known = self.watched.get(population)
        if known is None:
            if len(self.watched) >= MOST_POPULATIONS and not self._make_room(at):
                return None
            known = self.watched[population] = Watched(self._fresh(population))
            self._most = max(self._most, sum(len(each.detectors) for each in self.watched.values()))
        return known

    def _make_room(self, at: float) -> bool:
        idle = [(each.last, key) for key, each in self.watched.items() if each.is_learning]
        if not idle or at - min(idle)[0] <= _FORGOTTEN:
            return False
        del self.watched[min(idle)[1]]
        return True

    def _fresh(self, population: Population) -> dict[DetectorKind, Detector]:
        """A detector of each kind, but for targets that the service does not have."""
        made = {kind: self._detector(kind, population[0]) for kind in self.kinds}
        return {kind: detector for kind, detector in made.items() if detector is not None}

    def _detector(self, kind: DetectorKind, service: str) -> Detector | None:
        if kind.against == "target":
            target = self._settings.target(measure_of(kind.name), service)
            return None if target is None else Detector(self._settings, target)
        return Detector(self._settings, given=given_reference(self._settings, service, kind.name))

    def end_pauses(self, now: float) -> None:
        """What planned changes that are over have made normal is learned from now on."""
        for service in self.pauses.over(now):
            _log.warning('event=baseline_reset cause=planned_change_over service="%s"', plain(service))
            self.reset(service)

    def chosen(self, service: str | None, name: str | None) -> Iterator[tuple[Population, DetectorKind, Detector]]:
        """The detectors of a service, or of a name, or all."""
        for population, watched in self.watched.items():
            for kind, detector in watched.detectors.items():
                if service in (None, population[0]) and name in (None, kind.name):
                    yield population, kind, detector

    def detectors_of(self, service: str) -> int:
        """How many there are. ValueError for a service that is not watched."""
        known = sum(1 for _ in self.chosen(service, None))
        if not known:
            watched = ", ".join(sorted({name for name, _ in self.watched})) or "none yet"
            raise ValueError(f"service: a watched one expected ({watched}); got {service[:40]!r}")
        return known

    def reset(self, service: str | None = None, name: str | None = None, but: Collection[Name] = ()) -> int:
        """Forgets baselines and evidence, of all or of those chosen; returns how many detectors learn anew.

        Of no detector in `but`. ValueError for a detector that there is not.
        """
        self._check(name)
        chosen = [each for each in self.chosen(service, name) if each[1].name not in but]
        for population, kind, _ in chosen:
            self.watched[population].detectors[kind] = self._fresh(population)[kind]
        if service is None and name is None:
            self._conversations = Conversations(self._settings.conversation_idle)
        return len(chosen)

    def pin(self, service: str | None, name: str | None, at: float | None) -> int:
        """The references in force, or learned so far, or `at`, stand from now on; evidence begins at 0.

        Targets stay what they are. Returns how many detectors that concerns; those with too little to learn from
        go on learning. ValueError for a detector that there is not.
        """
        self._check(name)
        pinned = 0
        for _, kind, detector in self.chosen(service, name):
            if kind.against == "baseline":
                try:
                    detector.pin(self._max_weight, at)
                except ValueError:
                    continue
                pinned += 1
        return pinned

    def _check(self, name: str | None) -> None:
        known = dict.fromkeys((*DETECTORS, *(kind.name for kind in self.kinds)))
        if name is not None and name not in known:
            raise ValueError(f"detector: one of {', '.join(known)} expected; got {name[:40]!r}")

    def state(self) -> FamilyState:
        """What `resume` goes on from."""
        watched = tuple(
            WatchedState(
                population,
                each.last,
                tuple((*kind, detector.state()) for kind, detector in each.detectors.items()),
            )
            for population, each in self.watched.items()
        )
        scale, conversations = (*self.judge,) if self.judge else (), self._conversations.state()
        return FamilyState(scale, self._most, watched, conversations, self.pauses.state(), self.own.state())

    def resume(self, state: FamilyState) -> None:
        """Goes on from the state of an earlier process; detectors that are not configured any more are left out."""
        self.judge, self._most = Scale(*state.epoch) if state.epoch else None, state.most
        for of_service in state.watched:
            watched = self.watched[of_service.population] = Watched(self._fresh(of_service.population), of_service.last)
            for name, against, saved in of_service.detectors:
                detector = watched.detectors.get(DetectorKind(name, against))
                if detector is not None and (saved.target, saved.given) == (detector.target, detector.given):
                    detector.resume(saved)
        self.own = OwnScales(state.own)
        self._conversations.resume(state.conversations)
        self.pauses.resume(state.pauses)


def _stratum(kind: DetectorKind, result: Result) -> str:
    """The rule that chose the interaction; faithfulness to a rendered prompt is a stratum apart."""
    interaction = result.interaction
    from_prompt = kind.name == "faithfulness" and interaction.context_source == "prompt"
    return f"{interaction.rule} (prompt)" if from_prompt else interaction.rule


def _mark(conversation: str) -> str:
    """What tells conversations apart and stays when one is erased: its id may name a person."""
    return blake2b(conversation.encode(errors="replace"), digest_size=12).hexdigest() if conversation else ""
