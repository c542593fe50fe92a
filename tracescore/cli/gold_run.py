"""What `tracescore gold run` and `gold pin` do: one run now, and which runs are pinned."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

import anyio
from prometheus_client import CollectorRegistry

from tracescore.cli.gold_beside import counted_as_live, note_of
from tracescore.cli.gold_checks import Checks, reported
from tracescore.config import Config
from tracescore.errors import ListenError, TargetFailed, UsageError
from tracescore.evaluators import Evaluator, evaluate_all
from tracescore.gold.live import ADVICE
from tracescore.gold.report import GoldReport, write
from tracescore.gold.run import Evaluate
from tracescore.gold.runner import GoldRunner
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.judge.operations import Judge
from tracescore.model import Interaction, RawLog, RawSpan, Result
from tracescore.net.access import AccessMetrics
from tracescore.net.connections import ConnectionMetrics
from tracescore.net.listener import bind
from tracescore.net.wire import Withheld
from tracescore.pipeline.trace_reader import TraceReader, build_assembly
from tracescore.receiver.intake import Intake
from tracescore.receiver.listening import Receiver
from tracescore.redaction import Redactor

_LOOK_EVERY = 0.1
"""Seconds between two looks at traces that have become complete."""


def runner_of(config: Config, judge: str, evaluate: Evaluate, release: str | None = None) -> GoldRunner:
    """The runner of the configured gold set. UsageError where there is none, ConfigError when it is broken."""
    if config.gold is None:
        raise UsageError("gold: no gold set in the configuration; name its file and target in the section gold")
    settings = config.gold.model_copy(update={"release": release}) if release else config.gold
    return GoldRunner(settings, config.spool.path, GoldTraceIds(config.sampling.salt), judge, evaluate)


async def run(
    config: Config,
    judge: Judge,
    evaluators: Sequence[Evaluator],
    checks: Checks,
    begin: Callable[[int], Callable[[], None]],
) -> GoldReport:
    """One run, compared and reported. `begin` gets the number of items and returns what to call for each.

    UsageError when another process is running the set.
    """
    redactor = Redactor(config.redaction, CollectorRegistry())

    async def evaluate(interaction: Interaction) -> Result:
        return await evaluate_all(redactor.interaction(interaction), evaluators, judge, time.time)

    runner = runner_of(config, judge.name, evaluate, checks.release)
    try:
        await judge.probe()
        progress = begin(len(runner.gold_set.items))
        runner.open()
        of_traces = runner.settings.target.kind == "trace"
        async with _Traces(config, runner).listening() if of_traces else nullcontext():
            before = runner.store.runs(runner.name, "done")[:1]
            done = await runner.run("hand", progress)
        if done is None:
            raise UsageError(f"gold: another process is running {runner.name}; wait for it, or set another gold.store")
        report = reported(runner, done, checks, before)
        report = replace(report, notes=(*report.notes, *await note_of(config, done)))
    finally:
        await runner.close()
    for path in checks.reports:
        write(report, path)
    return report


class _Traces:
    """Listens on the receiver's addresses while a run goes on, and hands it the traces of its requests.

    `own` and `others` are the spans of gold requests and of all else that came.
    """

    def __init__(self, config: Config, runner: GoldRunner) -> None:
        self._config, self._runner, self._trace_ids = config, runner, GoldTraceIds(config.sampling.salt)
        registry = CollectorRegistry()
        self._reader = TraceReader(config.interactions)
        self._assembly = build_assembly(config, registry, time.time)
        intake = Intake(config.receiver, self, self._admits, registry)
        self._receiver = Receiver(config.receiver, intake, ConnectionMetrics(registry), AccessMetrics(registry))
        self.own, self.others = anyio.Event(), anyio.Event()

    def room(self) -> bool:
        """See `Sink`."""
        return self._assembly.room()

    def fair(self, sender: str) -> bool:
        """See `Sink`."""
        return self._assembly.fair(sender)

    async def take(
        self,
        spans: Sequence[RawSpan],
        logs: Sequence[RawLog],
        withheld: Sequence[Withheld] = (),  # noqa: ARG002 - nothing is, where nothing is passed on
        sender: str = "",
    ) -> None:
        """See `Sink`."""
        self._assembly.take(spans, logs, sender)

    def _admits(self, trace_id: bytes) -> bool:
        known = self._trace_ids.is_gold(trace_id)
        (self.own if known else self.others).set()
        return known

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """While the block runs; ListenError when an address is taken, as by a service that runs."""
        http = bind(self._config.receiver.http.listen, "receiver.http.listen")
        async with self._receiver.serving(http), anyio.create_task_group() as tasks:
            tasks.start_soon(self._read)
            yield
            tasks.cancel_scope.cancel()

    async def _read(self) -> None:
        while True:
            for raw in self._assembly.due():
                self._runner.take(raw.trace_id.hex(), self._reader.interactions(raw))
            await anyio.sleep(_LOOK_EVERY)


async def probe(config: Config) -> str:
    """Asks the app the first question; says what came. TargetFailed: what is wrong; UsageError, ConfigError as ever.

    An app that starts traces of its own is named: its answers to gold questions would count as live traffic. Where a
    service runs and has the receiver's addresses, it is asked whether the answer came as a live one.
    """
    runner = runner_of(config, "", _unscored)
    traces = _Traces(config, runner)
    try:
        try:
            async with traces.listening():
                answered = await _asked(runner, traces)
        except ListenError:
            if runner.settings.target.kind == "trace":  # its spans go to the service, and the answer is in them
                return f"{len(runner.gold_set.items)} items; {_NOT_ASKED}"
            answered = await _asked(runner, None)
            wrong = await counted_as_live(config, [answered.answer], time.time())
            if wrong:
                raise TargetFailed("no_trace", wrong) from None
    finally:
        await runner.close()
    contexts = len(answered.contexts)
    items = f"{len(runner.gold_set.items)} items; the app answers"
    said = f"{items}, with {contexts} context{'s' * (contexts != 1)}"
    return said if (answered.answer or "").strip() else f"{said}, but its answer is empty"


async def _asked(runner: GoldRunner, traces: _Traces | None) -> Interaction:
    """The answer to the first question; TargetFailed also where its spans came in a trace of their own."""
    item, trace_id = runner.gold_set.items[0], runner.trace_ids.new()
    try:
        answered = await runner.target.ask(item, trace_id)
    except TargetFailed:
        if traces is not None and traces.others.is_set() and not traces.own.is_set():
            raise TargetFailed("no_trace", _OTHER_TRACE) from None
        raise
    if traces is not None and runner.settings.target.kind in ("http", "openai"):
        with anyio.move_on_after(_SPANS_WITHIN):
            await traces.own.wait()
        if traces.others.is_set() and not traces.own.is_set():
            raise TargetFailed("no_trace", _OTHER_TRACE)
    return answered


_NOT_ASKED = (
    "tracescore did not ask the app: its answers come as traces, and a running service holds the receiver's address"
)
_OTHER_TRACE = f"the app answered, but its spans arrived in another trace: {ADVICE}"
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
        raise UsageError(f"gold pin: {runner.name} has no good run{of} yet; make one with tracescore gold run")
    runner.store.refer(runner.name, runs, at=time.time())
    said = f"{runner.name}: the reference is release {runs[0].release}, {len(runs)} run{'s' * (len(runs) > 1)}"
    return said if len(runs) > 2 else f"{said}; three runs make a steadier one: run the set again, then pin again"
