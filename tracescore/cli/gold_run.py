"""What `tracescore gold run` and `gold pin` do: one run now with its checks and reports; which runs are pinned."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio
from prometheus_client import CollectorRegistry

from tracescore.assembly import Assembly
from tracescore.config import Config
from tracescore.errors import TargetFailed, UsageError
from tracescore.evaluators import Evaluator, evaluate_all
from tracescore.gold.compare import FEWEST, Comparison, compare
from tracescore.gold.report import Report, check_name, read_run, write
from tracescore.gold.results import GOLD_MEASURES, ItemOutcome, Run
from tracescore.gold.run import Evaluate
from tracescore.gold.runner import GoldRunner
from tracescore.gold.trace_ids import Marks
from tracescore.interactions import MARKERS, read
from tracescore.interactions.report import own_keys
from tracescore.judge.operations import Judge
from tracescore.model import Interaction, RawLog, RawSpan, Result, Withheld
from tracescore.net.listener import bind, serving
from tracescore.otlp.decode import decode
from tracescore.receiver.grpc import serving_grpc
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.intake import Intake
from tracescore.redaction import Redactor

_LOOK_EVERY = 0.1
"""Seconds between two looks at traces that have become complete."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What the command was asked: limits by measure, what to compare with (PINNED, LAST, a file), files to write."""

    fail_under: tuple[tuple[str, float], ...] = ()
    compare_with: str | None = None
    reports: tuple[Path, ...] = ()
    release: str | None = None

    @classmethod
    def of(
        cls, limits: Sequence[str], compare_with: str | None, reports: Sequence[Path], release: str | None
    ) -> Checks:
        """Checks what was typed; UsageError."""
        for path in reports:
            check_name(path)
        if compare_with not in (None, "PINNED", "LAST"):
            read_run(Path(compare_with))
        return cls(tuple(map(_limit, limits)), compare_with, tuple(reports), release)


def _limit(text: str) -> tuple[str, float]:
    measure, _, number = text.rpartition("=")
    measure = measure or "factual"
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if measure not in GOLD_MEASURES or not 0 <= value <= 1:
        names = ", ".join(GOLD_MEASURES)
        raise UsageError(
            f"--fail-under: MEASURE=VALUE expected, with VALUE from 0 to 1; got {text!r}; measures: {names}"
        )
    return measure, value


def runner_of(config: Config, judge: str, evaluate: Evaluate, release: str | None = None) -> GoldRunner:
    """The runner of the configured gold set. UsageError where there is none, ConfigError when it is broken."""
    if config.gold is None:
        raise UsageError("gold: no gold set in the configuration; name its file and target in the section gold")
    settings = config.gold.model_copy(update={"release": release}) if release else config.gold
    return GoldRunner(settings, config.spool.path, Marks(config.sampling.salt), judge, evaluate)


async def run(
    config: Config,
    judge: Judge,
    evaluators: Sequence[Evaluator],
    checks: Checks,
    begin: Callable[[int], Callable[[], None]],
) -> Report:
    """One run, compared and reported. `begin` is told how many items there are, and gives what is called for each.

    UsageError when another process is running the set.
    """
    redactor = Redactor(config.redaction, CollectorRegistry())

    async def evaluate(interaction: Interaction) -> Result:
        return await evaluate_all(redactor.interaction(interaction), evaluators, judge, time.time)

    runner = runner_of(config, judge.name, evaluate, checks.release)
    try:
        await judge.probe()
        advance = begin(len(runner.gold_set.items))

        def progress(_outcome: ItemOutcome) -> None:
            advance()

        runner.open()
        of_traces = runner.settings.target.kind == "trace"
        async with _Traces(config, runner).listening() if of_traces else nullcontext():
            before = runner.store.runs(runner.name, "done")[:1]
            done = await runner.run("hand", progress)
        if done is None:
            raise UsageError(f"gold: another process is running {runner.name}; wait for it, or set another gold.store")
        report = _report(runner, done, checks, before)
    finally:
        await runner.close()
    for path in checks.reports:
        write(report, path)
    return report


def _report(runner: GoldRunner, done: Run, checks: Checks, before: Sequence[Run]) -> Report:
    settings = runner.settings
    comparison = _compared(runner, done, checks.compare_with, before)
    failures, notes = list(_failures(done, checks, settings.min_scored)), list[str]()
    if checks.compare_with is not None and done.state == "done":
        if comparison is not None:
            failures += _falls(comparison, settings.tolerance)
            pairs = max((change.pairs for change in comparison.changes.values()), default=0)
            if pairs < FEWEST:
                notes.append(f"compare-with: no fall can be told of {pairs} items; at least {FEWEST} must get worse")
        elif checks.compare_with == "PINNED" and any(run.id == done.id for run in runner.references()):
            notes.append("compare-with: this run is part of the reference, which later ones are compared with")
        elif checks.compare_with == "LAST" and not before:
            notes.append("compare-with: there is no good run before this one")
        else:
            failures.append(f"compare-with: {checks.compare_with} has no item in common that this judge scored")
    return Report(done, settings.min_scored, settings.tolerance, comparison, tuple(failures), tuple(notes))


def _falls(comparison: Comparison, tolerance: float) -> Iterator[str]:
    for measure, change in comparison.changes.items():
        if change.fell(tolerance):
            yield f"compare-with {measure}: fell from {change.before:.3f} to {change.after:.3f} (p {change.p:.4f})"


def _compared(runner: GoldRunner, done: Run, what: str | None, before: Sequence[Run]) -> Comparison | None:
    if what in (None, "PINNED"):
        return runner.compared(done)
    if what == "LAST":
        return compare(done, [runner.store.whole(run) for run in before], "the last run")
    return compare(done, [read_run(Path(str(what)))], str(what))


def _failures(done: Run, checks: Checks, min_scored: float) -> list[str]:
    if done.state != "done":
        return [f"run: {done.detail}"]
    estimates = {str(name): each for name, each in done.estimates(min_scored).items()}
    failures = []
    for measure, limit in checks.fail_under:
        found = estimates.get(measure)
        if found is None:
            failures.append(
                f"{measure}: not measured on {min_scored:.0%} of the items; at least {limit:g} was asked for"
            )
        elif found.mean < limit:
            failures.append(f"{measure}: {found.mean:.3f} is under {limit:g}")
    return failures


class _Traces:
    """Listens on the receiver's addresses while a run goes on, and hands it the traces of its requests.

    `own` and `others` are the spans of gold requests and of all else that came.
    """

    def __init__(self, config: Config, runner: GoldRunner) -> None:
        self._config, self._runner, self._marks = config, runner, Marks(config.sampling.salt)
        registry = CollectorRegistry()
        markers = MARKERS + tuple(key.encode() for key in own_keys(config.interactions))
        self._assembly = Assembly(config.assembly, markers, registry, time.time)
        self._intake = Intake(config.receiver, self, self._admits, registry)
        self.own, self.others = anyio.Event(), anyio.Event()

    def room(self) -> bool:
        """See `Sink`."""
        return self._assembly.room()

    def take(
        self,
        spans: Sequence[RawSpan],
        logs: Sequence[RawLog],
        withheld: Sequence[Withheld] = (),  # noqa: ARG002 - nothing is, where nothing is passed on
    ) -> Awaitable[None] | None:
        """See `Sink`."""
        self._assembly.take(spans, logs)
        return None

    def _admits(self, trace_id: bytes) -> bool:
        known = self._marks.known(trace_id)
        (self.own if known else self.others).set()
        return known

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """While the block runs; ListenError when an address is taken, as by a service that runs."""
        receiver = self._config.receiver
        http = bind(receiver.http.listen, "receiver.http.listen")
        async with (
            serving(HttpReceiver(self._intake), http),
            serving_grpc(self._intake, receiver.grpc.listen),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._read)
            yield
            tasks.cancel_scope.cancel()

    async def _read(self) -> None:
        while True:
            for raw in self._assembly.due():
                reading = read(decode(raw), self._config.interactions)
                self._runner.take(raw.trace_id.hex(), reading.interactions)
            await anyio.sleep(_LOOK_EVERY)


async def probe(config: Config) -> str:
    """Asks the app the first question; says what came. TargetFailed: what is wrong; UsageError, ConfigError as ever.

    An app that starts traces of its own is named: its answers to gold questions would count as live traffic.
    """
    runner = runner_of(config, "", _unscored)
    traces = _Traces(config, runner)
    try:
        async with traces.listening():
            try:
                answered = await runner.target.ask(runner.gold_set.items[0], Marks(config.sampling.salt).new())
            except TargetFailed:
                if traces.others.is_set() and not traces.own.is_set():
                    raise TargetFailed("no_trace", _OTHER_TRACE) from None
                raise
            if runner.settings.target.kind in ("http", "openai"):
                with anyio.move_on_after(_SPANS_WITHIN):
                    await traces.own.wait()
                if traces.others.is_set() and not traces.own.is_set():
                    raise TargetFailed("no_trace", _OTHER_TRACE)
    finally:
        await runner.close()
    contexts = len(answered.contexts)
    items = f"{len(runner.gold_set.items)} items; the app answers"
    said = f"{items}, with {contexts} context{'s' * (contexts != 1)}"
    return said if (answered.answer or "").strip() else f"{said}, BUT ITS ANSWER IS EMPTY"


_OTHER_TRACE = (
    "the app answered, and its spans came in a trace of their own: it does not pass the traceparent header on, so that "
    "what it answers to gold questions would count as live traffic; instrument its HTTP server"
)
_SPANS_WITHIN = 5.0
"""Seconds that exporters usually take to send."""


async def _unscored(_interaction: Interaction) -> Result:
    raise AssertionError("what is only probed or pinned is not scored")


def pin(config: Config, release: str | None) -> str:
    """Makes the latest good runs of a release the reference; says which. UsageError when there is none."""
    runner = runner_of(config, "", _unscored)
    runner.open()
    runs = runner.pinnable(release)
    if not runs:
        of = f" of release {release}" if release else ""
        raise UsageError(f"gold pin: there is no good run{of} of {runner.name} yet; tracescore gold run makes one")
    runner.store.refer(runner.name, runs, at=time.time())
    said = f"{runner.name}: the reference is release {runs[0].release}, {len(runs)} run{'s' * (len(runs) > 1)}"
    return said if len(runs) > 2 else f"{said}; three make a steadier one: run it again and pin again"
