"""Draws answers for people to label, keeps what they say, and tells as metrics how far the judge is from them.

An exporter that takes results in. Whether an answer is drawn depends on a keyed hash of its trace id alone, never on
its scores, so how likely that was is known. What is drawn and labelled is in a file of its own (see `label_store`);
sums over all scores of the same days are committed with the results.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from tracescore.calibration.correction import ANSWERS, GroupScores, LabelGroup, calibrate, without
from tracescore.calibration.drawing import (
    blanks_of,
    can_be_labelled,
    draw,
    ended_of,
    group_of,
    labels_in,
    labels_of,
    measures_asked,
)
from tracescore.calibration.label_file import label_line, sums_line
from tracescore.calibration.series import families
from tracescore.calibration.store import Drawn, LabelStore
from tracescore.config import Config
from tracescore.config.drift import LabelsConfig
from tracescore.drift.baseline import DAY
from tracescore.drift.family import MOST_POPULATIONS
from tracescore.drift.scale import Scale, ScaleState, next_scale
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.exporters import Continuing
from tracescore.exporters.prometheus.families import gauge
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.model import Clock, Measure, Result
from tracescore.spool.state import Persisted, StateCodec

T = TypeVar("T")
_RANGE = 2**64
STATES = ("waiting", "labelled", "cannot_tell")


@dataclass(frozen=True, slots=True)
class LabelsState(Persisted):
    """What is kept beside the file: the scale of the scores, and (the group, the day since the epoch, its sums)."""

    judge: ScaleState
    sums: tuple[tuple[Measure, str, int, str, str, str, int, float, float, float, float, float], ...]


class Labelling(Continuing):
    """See the module. `open` comes before anything else."""

    name = "labels"
    codec = StateCodec(LabelsState)

    def __init__(self, registry: CollectorRegistry, settings: LabelsConfig, salt: str, clock: Clock) -> None:
        """`salt` keeps the draw independent of samplers that hash the same trace ids."""
        self._settings, self._clock = settings, clock
        self._key = hashlib.sha256(f"{salt} labels".encode()).digest()
        self._judge: Scale | None = None
        self._sums: dict[LabelGroup, dict[int, WeightedSums]] = {}
        """Group -> day since the epoch -> sums over its scores."""
        self._decided: list[Drawn] = []
        self._waiting = 0
        self._store: LabelStore | None = None
        self._one_at_a_time = anyio.CapacityLimiter(1)
        registry.register(self)

    def open(self) -> None:
        """Opens the file; UsageError when it cannot be used."""
        self._store = LabelStore(self._settings.path)
        self._decided, self._waiting = _counted(self._store)

    async def close(self) -> None:
        """Closes the file."""
        store, self._store = self._store, None
        if store is not None:
            await to_thread.run_sync(store.close, limiter=self._one_at_a_time)

    async def export(self, result: Result) -> None:
        """Takes the result's scores into the sums, and lets it wait for a label if it is drawn."""
        if not self._on_scale(result) or not self._room(result):
            return
        scores = [each for each in result.scores() if can_be_labelled(each)]
        day = int(ended_of(result) // DAY)
        for score in scores:
            days = self._sums.setdefault(group_of(result, score), {})
            days[day] = days.get(day, WeightedSums()).plus(score.value, result.interaction.weight)
        if scores and self._drawn(result.interaction.trace_id):
            await self._let_wait(draw(result, scores, self._settings.ratio))

    async def forget_traces(self, trace_ids: frozenset[str]) -> int:
        """Forgets the answers of these traces, and what people said of them."""
        erased = await self._on_disk(LabelStore.erase, trace_ids)
        self._decided, self._waiting = await self._on_disk(_counted)
        return erased

    async def _let_wait(self, drawn: Drawn) -> None:
        await self._on_disk(LabelStore.draw, drawn, self._settings.max_waiting)
        if not measures_asked(drawn):
            await self._decide(drawn, blanks_of(drawn))
        self._waiting = await self._on_disk(LabelStore.count_waiting)

    def _on_scale(self, result: Result) -> bool:
        """False for a result of an earlier epoch; with a new judge or epoch everything begins anew."""
        scale = next_scale(self._judge, result)
        if scale is None:
            return False
        if scale != self._judge:
            self._judge, self._sums = scale, {}
        return True

    def _room(self, result: Result) -> bool:
        known = {(group.service, group.environment) for group in self._sums}
        of = label_value(result.interaction.service), label_value(result.interaction.environment)
        return of in known or len(known) < MOST_POPULATIONS

    def _drawn(self, trace_id: str) -> bool:
        keyed = hashlib.blake2b(bytes.fromhex(trace_id), digest_size=8, key=self._key)
        return int.from_bytes(keyed.digest(), "big") < self._settings.ratio * _RANGE

    async def _on_disk(self, work: Callable[..., T], *args: Any) -> T:
        """Runs a method of the store beside the event loop, one at a time."""
        if self._store is None:
            raise RuntimeError("the file of labels is not open")
        return await to_thread.run_sync(partial(work, self._store, *args), limiter=self._one_at_a_time)

    async def next(self) -> dict[str, Any] | None:
        """The answer to be labelled next, without its scores: id, what is shown, and what may be said of it."""
        drawn = await self._on_disk(LabelStore.next)
        return None if drawn is None else self._form(drawn)

    def _form(self, drawn: Drawn) -> dict[str, Any] | None:
        if drawn.shown is None:
            return None
        asked = {
            measure: {"items": drawn.shown["items"].get(measure, []), "answers": list(ANSWERS[measure])}
            for measure in measures_asked(drawn)
        }
        return {"id": drawn.id, **drawn.shown, "asked": asked}

    async def give(self, drawn_id: str, answers: Mapping[str, Sequence[str]]) -> bool:
        """Keeps what people say: measure -> an answer per item (one for relevancy), "" where they cannot tell.

        False when the answer does not wait any more; ValueError for answers that there are not.
        """
        drawn = await self._on_disk(LabelStore.waiting, drawn_id)
        if drawn is None:
            return False
        labels: dict[str, Any] = {
            m: found for m in measures_asked(drawn) if (found := labels_of(drawn, m, answers.get(m, []))) is not None
        }
        if labels:
            labels |= blanks_of(drawn)
        kept = await self._decide(drawn, labels)
        self._waiting = await self._on_disk(LabelStore.count_waiting)
        return kept

    def asked_of(self, result: Result) -> dict[str, Any] | None:
        """What may be said of an answer that somebody chose, as `next` shows it; None where there is nothing to say."""
        scores = [score for score in result.scores() if can_be_labelled(score)]
        drawn = draw(result, scores, None)
        return self._form(drawn) if measures_asked(drawn) else None

    async def choose(self, result: Result, answers: Mapping[str, Sequence[str]]) -> None:
        """Keeps what somebody says of an answer that they chose, in the place of what was said of it before.

        Such labels are handed out with the others, without a probability of having been drawn, and count in no metric.
        ValueError for answers that there are not, and where none is complete.
        """
        drawn = draw(result, [score for score in result.scores() if can_be_labelled(score)], None)
        given = {m: labels_of(drawn, m, answers.get(m, [])) for m in measures_asked(drawn)}
        labels: dict[str, Any] = {measure: label for measure, label in given.items() if label is not None}
        if not labels:
            raise ValueError("an answer to every question of at least one measure expected")
        labelled = replace(drawn, shown=None, labels=labels)
        await self._on_disk(LabelStore.keep, labelled)
        self._decided = [each for each in self._decided if each.id != drawn.id] + [labelled]

    def said_of(self, trace_id: str) -> list[tuple[Measure, float]]:
        """Measure and value of every label that people gave to an answer of a trace."""
        decided = (drawn for drawn in self._decided if drawn.facts["trace_id"] == trace_id)
        return [(group.measure, label.label) for drawn in decided for group, label in labels_in(drawn)]

    async def _decide(self, drawn: Drawn, labels: dict[str, Any]) -> bool:
        kept = await self._on_disk(LabelStore.decide, drawn.id, labels)
        if kept:
            self._decided.append(replace(drawn, shown=None, labels=labels))
        return kept

    def counts(self) -> dict[str, int]:
        """How many answers wait, are labelled, and were given up."""
        decided = [bool(each.labels) for each in self._decided if each.by_chance]
        return dict(zip(STATES, (self._waiting, sum(decided), len(decided) - sum(decided)), strict=True))

    def lines(self) -> list[dict[str, Any]]:
        """What goes into LABELS.jsonl: every label there is, and the sums of this epoch's other scores."""
        of = ("trace_id", "span_id")
        labels = [
            label_line(group, label, at=drawn.at, **{name: drawn.facts[name] for name in of})
            for drawn in self._decided
            for group, label in labels_in(drawn)
        ]
        return labels + [sums_line(group, sample.unlabelled) for group, sample in self.samples().items()]

    def samples(self) -> dict[LabelGroup, GroupScores]:
        """Labels and sums of the judge's present epoch, over the window."""
        first = int((self._clock() - self._settings.window) // DAY) + 1
        samples = {}
        for group, days in self._sums.items():
            for day in [day for day in days if day < first]:
                del days[day]
            total = WeightedSums()
            for sums in days.values():
                total = total.merged(sums)
            samples[group] = GroupScores(unlabelled=total)
        for drawn in self._decided:
            if (
                drawn.by_chance
                and drawn.at // DAY >= first
                and (drawn.judge, drawn.epoch, drawn.facts["version"]) == self._judge
            ):
                for group, label in labels_in(drawn):
                    samples.setdefault(group, GroupScores()).labels.append(label)
        for sample in samples.values():
            sample.unlabelled = without(sample.unlabelled, sample.labels)
        return samples

    def collect(self) -> Iterator[Metric]:
        """All families at one moment; called by the registry."""
        states = [([state], count) for state, count in self.counts().items()]
        yield gauge("tracescore_drift_labels", "Answers drawn for a label, by state.", ["state"], states)
        found = [(group, made) for group, sample in self.samples().items() if (made := calibrate(sample))]
        for measure in ANSWERS:
            yield from families(measure, [(group, made) for group, made in found if group.measure == measure])

    def state(self) -> LabelsState:
        """The sums, and what gave the scores."""
        rows = ((*group, day, *sums) for group, days in self._sums.items() for day, sums in days.items())
        return LabelsState((*self._judge,) if self._judge else (), tuple(rows))

    def resume(self, state: LabelsState) -> None:
        """Goes on from the sums of an earlier process."""
        self._judge = Scale(*state.judge) if state.judge else None
        for measure, judge, epoch, service, environment, source, day, *sums in state.sums:
            days = self._sums.setdefault(LabelGroup(measure, judge, epoch, service, environment, source), {})
            days[day] = WeightedSums(*sums)


def build_labelling(config: Config, registry: CollectorRegistry, clock: Clock) -> Labelling | None:
    """What asks people for labels; None where the configuration names no file for them."""
    labels = config.drift.labels
    return Labelling(registry, labels, config.sampling.salt, clock) if labels else None


def _counted(store: LabelStore) -> tuple[list[Drawn], int]:
    return store.decided(), store.count_waiting()
