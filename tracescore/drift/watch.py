"""Watches every service for changes, and tells of them as Prometheus metrics and in plain data.

An exporter that takes results in. What it knows is committed with them and goes on after a restart.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.metrics_core import Metric

from tracescore import logs
from tracescore.config import SamplingConfig
from tracescore.config.drift import DriftConfig
from tracescore.drift import words
from tracescore.drift.anchors import VERDICTS, Anchors, AnchorsState, DriftVerdict
from tracescore.drift.detector import Detector
from tracescore.drift.diagnosis import (
    ADVICE,
    LEARNING,
    PATTERNS,
    GoldCause,
    Pattern,
    diagnose,
    difference,
)
from tracescore.drift.family import Family, FamilyState, Population
from tracescore.drift.gauges import GAUGES
from tracescore.drift.observations import Against, DetectorKind, Name, measure_of
from tracescore.drift.told import ReportedDrop, gone_on
from tracescore.exporters import Continuing
from tracescore.exporters.prometheus.families import gauge
from tracescore.model import Clock, Measure, Result
from tracescore.spool.state import Persisted, StateCodec

_log = logging.getLogger("tracescore.drift")

_SERVICE = ("judge", "service_name", "deployment_environment")
LABELS = (*_SERVICE, "detector", "measure", "against")
_WEEK = 7 * 86_400.0

GoldFell = Callable[[Population], GoldCause | None]
"""Why answers of a service to the gold set have become less correct; None where they have not."""


@dataclass(frozen=True, slots=True)
class DriftState(Persisted):
    """What is kept; `told`: service, environment, detector, when its change was told and when it began."""

    family: FamilyState
    told: tuple[tuple[str, str, Name, Against, float, float], ...]
    anchors: AnchorsState | None


def _without_releases(plain: dict[str, Any]) -> dict[str, Any]:
    """Until 0.1.0 services and open conversations knew their releases, which drift/releases.py compares now."""
    family = plain["family"]
    for watched in family["watched"]:
        watched.pop("releases", None)
    family["conversations"] = [[*row[:5], *row[6:]] for row in family["conversations"]]
    return plain


class DriftWatch(Continuing):
    """See the module."""

    name = "drift"
    codec = StateCodec(DriftState, _without_releases)

    def __init__(
        self,
        registry: CollectorRegistry,
        settings: DriftConfig,
        sampling: SamplingConfig,
        measures: Sequence[Measure],
        clock: Clock,
        anchors: Anchors | None = None,
        gold_fell: GoldFell = lambda _: None,
        *,
        keeps: bool = True,
    ) -> None:
        """`keeps`: whether the next process will know what this one does."""
        self._settings, self._clock = settings, clock
        self._forgot_before = None if keeps else clock()
        self.family = Family(settings, sampling, measures)
        self.anchors, self._gold_fell = anchors, gold_fell
        self._detected: dict[tuple[Population, DetectorKind], ReportedDrop] = {}
        self._unwatched = Counter(
            "tracescore_drift_unwatched_results",
            "Results of services that are not watched, as there are too many.",
            registry=registry,
        )
        if not keeps:
            _log.info('event=changes_unknown before="this start" advice="%s"', words.FORGETS)
        registry.register(self)

    async def export(self, result: Result) -> None:
        """Shows the result to the detectors of its service, and looks what they say now."""
        family, judge, own = self.family, self.family.judge, self.family.own.state()
        told = {key: family.detector(*key) for key in self._detected}
        self._unwatched.inc(not family.take(result))
        for key in [key for key, detector in told.items() if family.detector(*key) is not detector]:
            del self._detected[key]  # it learns anew
        changed = [each for each in own if each not in family.own.state()]
        if self.anchors is not None and judge and (judge != family.judge or changed):
            self.anchors.forget()
        self._update()

    def _update(self) -> None:
        """Notes what has become a change or is none any more, and has anchors scored where anything is suspected."""
        limit, before = self.family.threshold, dict(self._detected)
        self._detected = {}
        for population, kind, detector in self.family.chosen(None, None):
            if self.family.pauses.running(population[0]):
                continue
            told = before.get((population, kind))
            if detector.evidence >= math.sqrt(limit):
                onset = detector.change.onset if detector.change else 0.0
                if self.anchors is not None:
                    self.anchors.request_pass(onset)
                if told is None and detector.evidence >= limit:
                    told = ReportedDrop(self._clock(), onset)
            if told is not None and (told := gone_on(told, detector, limit)) is not None:
                self._detected[population, kind] = told
        for new in [key for key in self._detected if key not in before]:  # of all together: the pattern needs them
            self._announce(*new)

    def _announce(self, population: Population, kind: DetectorKind) -> None:
        onset = self._detected[population, kind].onset
        drop, pattern = self._drop(population, kind), self.pattern(population, self.verdict(population))
        _log.warning("event=change_detected %s", words.report(population, kind, onset, drop, ADVICE[pattern]))

    def _drop(self, population: Population, kind: DetectorKind) -> words.SeenDrop | None:
        """The drop that is suspected or was reported, or else that of the last seven days."""
        detector, told = self.family.watched[population].detectors[kind], self._detected.get((population, kind))
        suspected = detector.evidence >= math.sqrt(self.family.threshold)
        since = told.onset if told else self._clock() - _WEEK
        return words.seen_drop(kind, detector, detector.change if suspected else None, since)

    def verdict(self, population: Population) -> DriftVerdict:
        """Who moved, over everything that is told of a service: where detectors disagree nobody knows."""
        of_service = {key: told for key, told in self._detected.items() if key[0] == population}
        apart = self.family.own.apart()  # no judge scores them, so they say nothing about one
        judged = {key: told for key, told in of_service.items() if key[1].name not in apart}
        verdicts = {self._verdict(*key, told) for key, told in (judged or of_service).items()}
        if not verdicts:
            return "none"
        if "pending" in verdicts:
            return "pending"
        return verdicts.pop() if len(verdicts) == 1 else "unattributed"

    def _verdict(self, population: Population, kind: DetectorKind, told: ReportedDrop) -> DriftVerdict:
        if self.anchors is None:
            return "unattributed"
        detector = self.family.watched[population].detectors[kind]
        found = difference(detector, told.onset)
        return self.anchors.verdict(kind, told.onset, told.at, max(0.0, -found.mean) if found else 0.0)

    def pattern(self, population: Population, verdict: DriftVerdict) -> Pattern:
        """The pattern that the changes of a service make."""
        detectors = self.family.watched[population].detectors
        baselines = {kind.name: each for kind, each in detectors.items() if kind.against == "baseline"}
        told = {kind: when for (of, kind), when in self._detected.items() if of == population}
        moved = [kind.name for kind in told if kind.against == "baseline"]
        since = min((when.onset for when in told.values()), default=self._clock() - _WEEK)
        flat = [name for name, each in baselines.items() if name not in moved and self._is_flat(each, since)]
        return diagnose(moved, flat, baselines, judge=verdict == "judge", gold=self._gold_fell(population))

    def _is_flat(self, detector: Detector, since: float) -> bool:
        found = difference(detector, since)
        return found is not None and found.within(self._settings.tolerance)

    def collect(self) -> Iterator[Metric]:
        """All families at one moment; called by the registry."""
        self._end_pauses()
        about = "Evidence from which tracescore reports a change, the same for all detectors."
        yield gauge("tracescore_drift_threshold_days", about, (), [((), self.family.threshold)])
        figures = [
            (self._labels(population, kind), self._figures(population, kind, detector))
            for population, kind, detector in self.family.chosen(None, None)
        ]
        for suffix, about in GAUGES.items():
            rows = [(labels, each[suffix]) for labels, each in figures]
            yield gauge(f"tracescore_drift_{suffix}", about, LABELS, rows)
        yield from self._states()
        services = dict.fromkeys(service for service, _ in self.family.watched)
        paused = [([service], float(self.family.pauses.running(service))) for service in services]
        about = "1 while a planned change silences the detectors of a service (tracescore baseline pause)."
        yield gauge("tracescore_drift_paused", about, ("service_name",), paused)
        moved = [(kind, self.anchors.shift(kind)) for kind in self.family.kinds] if self.anchors else []
        shifts = [([self.family.judge_of(kind.name), *kind], shift.mean) for kind, shift in moved if shift]
        about = "Mean difference of the anchors at their last scoring to what they scored before."
        yield gauge("tracescore_drift_anchor_shift_ratio", about, ("judge", "detector", "against"), shifts)

    def _labels(self, population: Population, kind: DetectorKind) -> list[str]:
        return [self.family.judge_of(kind.name), *population, kind.name, measure_of(kind.name), kind.against]

    def _found(self, population: Population, kind: DetectorKind, detector: Detector) -> dict[str, float | None]:
        """What the state of a detector follows from."""
        evidence, change = detector.evidence, detector.change
        suspected = evidence >= math.sqrt(self.family.threshold) and change is not None
        suspected = suspected and not self.family.pauses.running(population[0])
        return {
            "evidence_days": evidence,
            "detected": float((population, kind) in self._detected),
            "learning": float(detector.is_learning),
            "change_scores": change.scores if change and suspected else None,
            "change_timestamp_seconds": change.onset if change and suspected else None,
        }

    def _figures(self, population: Population, kind: DetectorKind, detector: Detector) -> dict[str, float | None]:
        return self._found(population, kind, detector) | {
            "reference_ratio": detector.reference(self._clock()),
            "baseline_ratio": detector.baseline,
            "between_days_ratio": detector.between_days if kind.against == "baseline" else None,
            "swing_ratio": detector.swing if kind.against == "baseline" else None,
            "scores": detector.scores,
        }

    def _states(self) -> Iterator[Metric]:
        verdicts, patterns = [], []
        for population in self.family.watched:
            labels, verdict = [self.family.judge_of(), *population], self.verdict(population)
            pattern = self.pattern(population, verdict)
            verdicts += [([*labels, each], float(each == verdict)) for each in VERDICTS]
            patterns += [([*labels, each], float(each == pattern)) for each in PATTERNS]
        about = "1 for who moved when something did."
        yield gauge("tracescore_drift_verdict", about, (*_SERVICE, "verdict"), verdicts)
        about = "1 for the pattern that the changes make."
        yield gauge("tracescore_drift_diagnosis", about, (*_SERVICE, "pattern"), patterns)

    def show(self, of: Sequence[Population] | None = None) -> dict[str, Any]:
        """Everything as plain data, or that `of` some services."""
        self._end_pauses()
        return {
            "forgot_before": self._forgot_before,
            "threshold_days": self.family.threshold,
            "false_alarm_every_days": self._settings.false_alarm_every / 86_400,
            "services": [self.service(each) for each in (self.family.watched if of is None else of)],
        }

    def service(self, population: Population, *, brief: bool = False) -> dict[str, Any] | None:
        """What `show` says of one service; None where it is not watched. `brief`: of its detectors the state alone."""
        self._end_pauses()
        if (watched := self.family.watched.get(population)) is None:
            return None
        verdict = self.verdict(population)
        pattern, pause = self.pattern(population, verdict), self.family.pauses.latest.get(population[0])
        return {
            "service": population[0],
            "pause": pause and pause._asdict(),
            "environment": population[1],
            "verdict": verdict,
            "pattern": pattern,
            "advice": LEARNING if pattern == "none" and watched.is_learning else ADVICE[pattern],
            "detectors": [self._detector(population, *each, brief=brief) for each in watched.detectors.items()],
        }

    def _detector(self, population: Population, kind: DetectorKind, of: Detector, *, brief: bool) -> dict[str, Any]:
        figures = self._found(population, kind, of) if brief else self._figures(population, kind, of)
        state = self._state(population, figures)
        known: dict[str, Any] = {"detector": kind.name, "against": kind.against, "state": state}
        if brief:
            return known
        found = difference(of, figures["change_timestamp_seconds"] or self._clock() - _WEEK)
        swing = kind.against == "baseline" and self._settings.reference == "flat"
        drop = self._drop(population, kind)
        return known | {
            **{name: value for name, value in figures.items() if name not in ("detected", "learning")},
            "difference": found and list(found),
            "learned_at": of.learned_at,
            "by_block_advised": swing and of.swing > 2 * self._settings.tolerance,
            "drop": drop and drop._asdict(),
            "says": words.says(state, kind, of, drop, self._settings, self._clock()),
            "gap": words.gap(of, self._settings, self._clock()),
        }

    def _state(self, population: Population, figures: Mapping[str, float | None]) -> words.DetectorStateName:
        if self.family.pauses.running(population[0]):
            return "paused"
        if figures["detected"]:
            return "changed"
        if figures["change_scores"] is not None:
            return "suspected"
        return "learning" if figures["learning"] else "steady"

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self._clock()

    def pause(self, service: str, until: float, why: str) -> int:
        """Silences the detectors of a service until a moment (Unix seconds); returns how many.

        Afterwards they learn anew. ValueError without a reason, or for a service that is not watched.
        """
        known = self.family.detectors_of(service)
        self.family.pauses.begin(service, self._clock(), until, why)
        self._update()
        _log.warning(
            'event=baseline_paused service="%s" until=%.0f why="%s"', logs.plain(service), until, logs.plain(why)
        )
        return known

    def end_pause(self, service: str) -> int:
        """Ends a pause now, as `pause` would have later. ValueError for a service that is not paused."""
        self.family.pauses.end(service, self._clock())
        self._end_pauses()
        return self.family.detectors_of(service)

    def _end_pauses(self) -> None:
        self.family.end_pauses(self._clock())

    def reset(self, service: str | None, name: str | None) -> int:
        """Learns anew; see `Family.reset`. ValueError for a detector that there is not."""
        done = self.family.reset(service, name)
        self._begin_anew(service, name)
        _log.warning("event=baseline_reset cause=asked_for detectors=%d", done)
        return done

    def pin(self, service: str | None, name: str | None, at: float | None) -> int:
        """Fixes references; see `Family.pin`. ValueError for a detector that there is not."""
        done = self.family.pin(service, name, at)
        self._begin_anew(service, name)
        _log.warning("event=baseline_pinned detectors=%d", done)
        return done

    def _begin_anew(self, service: str | None, name: str | None) -> None:
        for population, kind, _ in self.family.chosen(service, name):
            self._detected.pop((population, kind), None)
        self._update()

    def state(self) -> DriftState:
        """What all detectors and anchors know."""
        told = tuple((*population, *kind, when.at, when.onset) for (population, kind), when in self._detected.items())
        return DriftState(self.family.state(), told, self.anchors.state() if self.anchors else None)

    def resume(self, state: DriftState) -> None:
        """Goes on from the state of an earlier process."""
        if self.anchors and state.anchors:
            self.anchors.resume(state.anchors)
        self.family.resume(state.family)
        known = {(population, kind) for population, kind, _ in self.family.chosen(None, None)}
        for service, environment, name, against, at, onset in state.told:
            key = (service, environment), DetectorKind(name, against)
            if key in known:  # it may not be configured any more
                self._detected[key] = ReportedDrop(at, onset)
