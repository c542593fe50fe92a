"""Runs one gold set when it is due, or when asked to, and keeps at hand what its latest runs found."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from tracescore import logs
from tracescore.config.gold import GoldConfig
from tracescore.drift.diagnosis import GoldCause
from tracescore.errors import ConfigError, UsageError
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.gold.compare import REFERENCE_RUNS, Comparison, compare
from tracescore.gold.items import load
from tracescore.gold.live import ADVICE, LiveAnswers, leaked, mark
from tracescore.gold.results import Run, Summary, Trigger, summary
from tracescore.gold.run import Evaluate, Progress, RunExecutor
from tracescore.gold.schedule import MOST_RELEASES, Schedule
from tracescore.gold.store import Store
from tracescore.gold.targets import Target, TraceTarget, build_target
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Clock, Interaction

_log = logging.getLogger("tracescore.gold")

_LOOK_EVERY = 1.0
"""Seconds between two looks at the clock and at what other processes did."""
_RESUMABLE = 86_400.0
"""Seconds after which a run that was cut is not resumed: its answers would be of different days."""

_SHOWN = 20
"""Releases with series at most: who deploys ten times a day does not look at last month's."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of a gold set: the latest good run of each release and judge, newest first.

    `comparison` is of the newest of them with the pinned runs; `recent` are all runs, without outcomes.
    """

    latest: tuple[Summary, ...] = ()
    comparison: Comparison | None = None
    recent: tuple[Run, ...] = ()


class GoldRunner:
    """`evaluate` scores an interaction with its reference; `ready` says whether it can do so now.

    Runs older than `texts` seconds lose questions and answers, but for the reference.
    """

    def __init__(
        self,
        settings: GoldConfig,
        spool: str | None,
        trace_ids: GoldTraceIds,
        judge: str,
        evaluate: Evaluate,
        clock: Clock = time.time,
        ready: Callable[[], bool] = lambda: True,
        texts: float | None = None,
    ) -> None:
        """ConfigError when the set is broken, UsageError when the target cannot be built."""
        self.settings, self.judge, self.clock = settings, judge, clock
        self.gold_set = load(Path(settings.set), settings.name)
        self.target: Target = build_target(settings.target, settings.timeout)
        self.store_path = _store_path(settings, spool)
        self.findings = Findings()
        self.running = False
        self.live = LiveAnswers()
        self._asked: frozenset[str] = frozenset()
        """Answers of the last run, until they are found among the live ones."""
        self._ready, self._texts = ready, texts
        self.trace_ids, self._evaluate = trace_ids, evaluate
        self._version: object = None
        self._trouble = ""
        """What was last said of a store that cannot be used."""
        self._seen: deque[tuple[str, str, float]] = deque(maxlen=MOST_RELEASES)
        self.schedule = Schedule(settings, None, [], clock())

    def fell(self, service: str) -> GoldCause | None:
        """Why the newest run found the answers of this service less correct than the reference; None if it did not."""
        latest, comparison = self.findings.latest, self.findings.comparison
        if comparison is None or latest[0].run.service != service:
            return None
        return comparison.cause(self.settings.tolerance)

    async def forget_traces(self, trace_ids: frozenset[str]) -> int:
        """Forgets what was asked and answered in these traces."""
        erased = await anyio.to_thread.run_sync(self.store.erase, trace_ids)
        self._refresh()
        return erased

    def open(self) -> None:
        """Opens the store and takes up what earlier runs left; UsageError when it cannot be used."""
        settings, self.store = self.settings, Store(self.store_path)
        self._executor = RunExecutor(settings, self.target, self.trace_ids, self._evaluate, self.store, self.clock)
        done = self.store.runs(self.name, "done")
        releases = self.store.releases(settings.service) if settings.service else []
        self.schedule = Schedule(settings, done[0].started if done else None, releases, self.clock())
        self._refresh()

    @property
    def name(self) -> str:
        """The label `gold_set`."""
        return self.gold_set.name

    # ---------------------------------------------------------------- what the live path tells

    def observe(self, interactions: Sequence[Interaction]) -> None:
        """Is shown live interactions: a new release is a reason to run, an answer to a question of ours one to warn."""
        for each in interactions:
            waiting = self.schedule.awaits_release_run
            if self.schedule.observe(each.service, each.release):
                self._seen.append((each.service, each.release, self.clock()))
                if self.schedule.awaits_release_run and not waiting:
                    _log.info('event=new_release gold_set="%s" release="%s"', self.name, logs.plain(each.release))
        if self._asked and any(mark(each.answer) in self._asked for each in interactions):
            self._say_if_live()

    def _say_if_live(self) -> None:
        """Warns once a run when its answers were counted as live ones."""
        live = self.live.count(self._asked)
        if live and leaked(live, len(self._asked)):
            _log.warning(
                'event=gold_counted_as_live gold_set="%s" answers=%d of=%d advice="%s"',
                *(self.name, live, len(self._asked), ADVICE),
            )
            self._asked = frozenset()

    def take(self, trace_id: str, interactions: Sequence[Interaction]) -> bool:
        """Is shown what was read of a gold trace; whether a run of this process waited for it."""
        return isinstance(self.target, TraceTarget) and self.target.take(trace_id, interactions)

    # ---------------------------------------------------------------- when

    async def keep_running(self, stop: anyio.Event) -> None:
        """Runs the set whenever it is due, until `stop`; a run that is cut by it is resumed by the next process."""
        if self.store_path is None:
            _log.warning('event=gold_in_memory advice="set gold.store or spool.path, or a restart loses the results"')
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_when_due)
            await stop.wait()
            tasks.cancel_scope.cancel()

    async def _run_when_due(self) -> None:
        """No error of one run ends it."""
        resuming = True
        while True:
            try:
                resuming = resuming and await anyio.to_thread.run_sync(self._resumable, "resumed") is not None
                trigger = "resumed" if resuming else self.schedule.due(self.clock())
                if trigger and self._ready():
                    await self.run(trigger)
                await self.refresh()
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - the next run may go better
                resuming = False
                self._could_not_run(error)
            await anyio.sleep(_LOOK_EVERY)

    def _could_not_run(self, error: Exception) -> None:
        """There was no run at all: the set has become unreadable, the store cannot be used, or we are wrong."""
        self.schedule.began(self.clock())  # it is tried again at its next time
        if isinstance(error, ConfigError):
            self._note_broken(error)
        elif isinstance(error, UsageError):
            if str(error) != self._trouble:  # it is looked at every second
                _log.error('event=gold_store_failed detail="%s"', logs.plain(str(error)))
            self._trouble = str(error)
        else:
            logs.defect(_log, error)

    async def run(self, trigger: Trigger, progress: Progress = lambda: None) -> Run | None:
        """One run now; None while another process is running a set of this store. ConfigError: the set is broken."""
        with self.store.only_runner() as alone:
            if not alone:
                return None
            self.gold_set = await anyio.to_thread.run_sync(load, Path(self.settings.set), self.settings.name)
            now = self.clock()
            self.schedule.began(now)
            run = await anyio.to_thread.run_sync(self._begin, trigger, now)
            _log.debug('event=gold_run_began gold_set="%s" trigger=%s items=%d', self.name, trigger, run.size)
            self.running = True
            try:
                run = await self._executor.run(run, self.gold_set, progress)
            finally:
                self.running = False
            await anyio.to_thread.run_sync(self._finish, run)
            return run

    def _begin(self, trigger: Trigger, now: float) -> Run:
        """The run that was cut, with what it has, or a new one. What else is unfinished is marked as cut."""
        resumable = self._resumable(trigger)
        for run in self.store.runs(self.name, "running"):
            if run != resumable:
                self.store.end(replace(run, state="cut", finished=now))
        if resumable is not None:
            return self.store.whole(resumable)
        return self.store.begin(self._fresh(trigger, now))

    def _fresh(self, trigger: Trigger, now: float) -> Run:
        return Run(
            id=0,
            gold_set=self.name,
            hash=self.gold_set.hash,
            size=len(self.gold_set.items),
            service=self.settings.service or "unknown",
            release=self.schedule.release,
            judge=self.judge,
            trigger=trigger,
            started=now,
        )

    def _resumable(self, trigger: Trigger) -> Run | None:
        """The newest unfinished run, where what is missing of it can still be added.

        A person who starts a run of an app of unknown release may just have changed the app.
        """
        if trigger == "hand" and self.schedule.release == "unknown":
            return None
        for run in self.store.runs(self.name, "running")[:1]:
            same = (run.hash, run.release, run.judge) == (self.gold_set.hash, self.schedule.release, self.judge)
            if same and self.clock() - run.started < _RESUMABLE:
                return run
        return None

    def _note_broken(self, error: ConfigError) -> None:
        """A set that has become unreadable since the start is a failed run."""
        first, count, now = error.problems[0], len(error.problems), self.clock()
        _log.error('event=gold_set_broken gold_set="%s" problems=%d first="%s"', self.name, count, logs.plain(first))
        with suppress(UsageError):
            failed = self.store.begin(self._fresh("schedule", now))
            self.store.end(replace(failed, state="failed", detail=first, finished=now))

    # ---------------------------------------------------------------- what came of it

    def _finish(self, run: Run) -> None:
        self._asked = frozenset(filter(None, (mark(each.answer) for each in run.outcomes)))
        self._say_if_live()
        if run.state == "done":
            self.schedule.succeeded(run.started)
            self._refer(run)
        elif run.count("unanswered") == len(run.outcomes):
            self.schedule.unanswered(self.clock())
        self.store.forget(self.name, self.clock() - self.settings.keep, MOST_RELEASES)
        if self._texts is not None:
            self.store.forget_texts(self.name, self.clock() - self._texts)
        self._refresh()
        _log.log(logging.INFO if run.state == "done" else logging.ERROR, "%s", summary_line(run, self.settings))
        if run.state == "done" and (cause := self.fell(run.service)):
            release, advice = logs.plain(run.release), "the page lists the items; tracescore gold pin accepts it"
            _log.warning(
                'event=gold_fell gold_set="%s" release="%s" cause=%s advice="%s"', self.name, release, cause, advice
            )

    def _refer(self, run: Run) -> None:
        """Until a person pins others, the first runs of the first release are the reference."""
        if self.store.pinned_by_hand(self.name):
            return
        known = [each for each in self.references() if each.judge == run.judge]
        if known and compare(run, known, "") is None:  # the set has become another one
            known = []
        if len(known) < REFERENCE_RUNS and all(each.release == run.release for each in known):
            self.store.refer(self.name, [run, *known])

    def pinnable(self, release: str | None) -> list[Run]:
        """The latest good runs of a release (None: of the latest), by one judge, that can become the reference."""
        done = [run for run in self.store.runs(self.name, "done") if release in (None, run.release)]
        same = [run for run in done if (run.release, run.judge) == (done[0].release, done[0].judge)]
        return same[:REFERENCE_RUNS]

    def references(self) -> list[Run]:
        """The pinned runs with their outcomes, newest first."""
        return [self.store.whole(run) for run in self.store.runs(self.name, "done") if run.reference]

    async def refresh(self) -> None:
        """Takes notice of what other processes did."""
        await anyio.to_thread.run_sync(self._refresh)

    def _refresh(self) -> None:
        self._note_seen()
        version = self.store.version()
        if version == self._version:
            return
        recent = self.store.runs(self.name)
        since = self.clock() - self.settings.keep
        latest: dict[tuple[str, ...], Run] = {}
        for run in recent:
            if run.state == "done" and run.started >= since:
                latest.setdefault(tuple(map(label_value, (run.service, run.release, run.judge))), run)
        shown = list(latest.values())[:_SHOWN]
        summaries = tuple(summary(self.store.whole(run), self.settings.min_scored) for run in shown)
        comparison = self.compared(self.store.whole(shown[0])) if shown else None
        self.findings = Findings(summaries, comparison, tuple(recent))
        good = next((run for run in recent if run.state == "done"), None)
        if good is not None:
            self.schedule.succeeded(min(good.started, self.clock()))  # later only by a clock that was ahead
        self._version = version

    def _note_seen(self) -> None:
        """What comes meanwhile, in the event loop, stays for the next time; what cannot be written waits again."""
        seen = [self._seen.popleft() for _ in range(len(self._seen))]
        if not seen:
            return
        try:
            self.store.add_releases(seen)
        except UsageError:
            over = max(0, len(seen) + len(self._seen) - MOST_RELEASES)  # the oldest give way
            self._seen.extendleft(reversed(seen[over:]))
            raise

    def compared(self, run: Run) -> Comparison | None:
        """A run (with outcomes) against the pinned ones; None where it is one of them, or there are none."""
        references = self.references()
        if any(each.id == run.id for each in references):
            return None
        return compare(run, references, "the pinned reference")

    async def close(self) -> None:
        """Releases the connections to the app."""
        await self.target.close()


def _store_path(settings: GoldConfig, spool: str | None) -> Path | None:
    if settings.store is not None:
        return Path(settings.store)
    return Path(f"{spool}.gold") if spool else None


def summary_line(run: Run, settings: GoldConfig) -> str:
    """One run as one line of the log: no text of items or answers."""
    means = " ".join(f"{name}={each.mean:.3f}" for name, each in run.estimates(settings.min_scored).items())
    counts = f"items={run.size} scored={run.count('scored')} unscored={run.count('unscored')}"
    release = logs.plain(run.release)
    line = (
        f'event=gold_run_{run.state} gold_set="{run.gold_set}" trigger={run.trigger} release="{release}" '
        f"{counts} unanswered={run.count('unanswered')} seconds={run.finished - run.started:.1f}"
    )
    line += f" {means}" if means else ""
    return line + (f' detail="{logs.plain(run.detail)}"' if run.detail else "")
