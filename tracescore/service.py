"""READ FIRST: builds every part from the configuration, opens the channel between them and runs the stages.

    receiver ─▶ assembly ─▶ interactions ─▶ sampling ─▶ evaluators ─▶ exporters
                                                    (judge, embedder)

What must not be lost goes through the keeper, which commits it to the spool before it takes effect.
Listeners on the inside of the flow start before those outside it and stop after them: nobody sends into a void.
What was received is exported or counted, also when the process is told to stop.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from socket import socket

import anyio
from anyio.abc import TaskStatus
from prometheus_client import CollectorRegistry, Counter

from tracescore import logs
from tracescore.assembly import Assembly
from tracescore.calibration.labelling import build_labelling
from tracescore.config import Config
from tracescore.drift import build_watch
from tracescore.exporters import Exporter, build_exporters, build_forwarder, build_hold
from tracescore.exporters.prometheus.exposition import Health, metrics_app
from tracescore.gold.runner import GoldRunner
from tracescore.gold.series import GoldSeries
from tracescore.gold.trace_ids import Marks
from tracescore.gold.traffic import GoldTraffic
from tracescore.gold.view import view
from tracescore.interactions import MARKERS, content_switch, read
from tracescore.interactions.deduplication import Once
from tracescore.interactions.report import Report, own_keys
from tracescore.model import OUTCOMES, Clock, Interaction, RawTrace, Result
from tracescore.net.listener import address_of, bind, serving
from tracescore.otlp.decode import decode
from tracescore.pipeline.journal import Closed, Keeper, Read
from tracescore.pipeline.ledger import Ledger, Snapshot
from tracescore.pipeline.queue import Pending
from tracescore.pipeline.scorer import Scorer
from tracescore.receiver.grpc import serving_grpc
from tracescore.receiver.http import HttpReceiver
from tracescore.receiver.intake import Intake
from tracescore.redaction import Redactor
from tracescore.runtime import Fairness, keep_freed_memory, keep_pauses_short
from tracescore.sampling import Sampler
from tracescore.spool import build_spool
from tracescore.web.pages import Pages

_log = logging.getLogger("tracescore.service")

_SILENCE = 60.0
"""Seconds without a single span after which the log says where to send to."""
_LOOK_EVERY = 0.1
"""Seconds between two looks at what has become complete."""
_POLITE = 0.5
"""Seconds for which reading lets everybody else go first: when more traces come than are read meanwhile, no longer."""
_PUBLISH = 5.0
"""Seconds after the grace in which a result that is there can still be committed and published."""


class Service:
    """All parts of one process. `run` serves until told to stop."""

    def __init__(self, config: Config, clock: Clock = time.time, watchers: Sequence[Exporter] = ()) -> None:
        """`watchers` are further exporters, beside those of the configuration.

        Raises UsageError when a part cannot be built.
        """
        self.config, self.clock = config, clock
        self.registry = CollectorRegistry()
        self.health = Health(ready=False, reason="starting")
        self.ledger = Ledger(self.registry, clock)
        self.scorer = Scorer(config, config.measures, self.registry, clock)
        self.redactor = Redactor(config.redaction, self.registry)
        self._again = Redactor(config.redaction, CollectorRegistry())  # for what was counted before
        self.sampler = Sampler(config.sampling, self.registry, clock)
        markers = MARKERS + tuple(key.encode() for key in own_keys(config.interactions))
        self.assembly = Assembly(config.assembly, markers, self.registry, clock)
        self.forwarder = build_forwarder(config, self.registry)
        self.endpoints = {"grpc": "", "http/protobuf": ""}
        self.once = Once(self.registry)
        self.drift = build_watch(config, self.registry, clock, self._rescore)
        self.labelling = build_labelling(config, self.registry, clock)
        self.report = Report(config.interactions, self.registry, clock, content_switch)
        self.pages = Pages(
            config.web,
            self._counts,
            clock,
            self.registry,
            endpoints=self.endpoints,
            targets=config.drift.targets,
            switch=content_switch,
            changes=self.drift,
            asked=self.labelling,
        )
        self.hold = build_hold(config, self.forwarder, self.assembly.marked, self.registry, clock)
        inside: list[Exporter] = [each for each in (self.hold, self.drift, self.labelling) if each]
        self.exporters = [*build_exporters(config, self.registry, clock), *inside, self.pages, *watchers]
        self.spool = build_spool(config.spool, self.registry)
        self.pending = Pending(config.evaluators, self.registry)
        taking = (self.assembly, self.once, self.ledger, self.exporters)
        self.keeper = Keeper(self.spool, config, *taking, clock, self.hold)
        self.gold = GoldTraffic(config.sampling.salt, self._gold_runner, self.registry)
        admits = self.gold.besides(self.sampler.admits)
        self.intake = Intake(config.receiver, self.keeper, admits, self.registry, self.forwarder, self.hold)
        self.errors = Counter("tracescore_service_errors", "Items lost to a defect.", ["stage"], registry=self.registry)
        for stage in ("interactions", "evaluators", "exporters"):
            self.errors.labels(stage)
        self._fairness = Fairness()
        self._publishing: set[anyio.CancelScope] = set()
        self._last_moment = math.inf
        """Until when results are published: while the disk is full they wait, and only the end cuts that short."""

    def _gold_runner(self, marks: Marks) -> GoldRunner | None:
        settings, path = self.config.gold, self.config.spool.path
        if settings is None:
            return None
        judge, ready = self.scorer.judge, self.scorer.ready
        runner = GoldRunner(settings, path, marks, judge.name, self._evaluate_gold, self.clock, ready)
        GoldSeries(runner, self.registry)
        self.pages.gold = partial(view, runner)
        if self.drift is not None:
            self.drift.gold_fell = lambda population: runner.fell(population[0])
        return runner

    async def run(self, stop: anyio.Event, task_status: TaskStatus[dict[str, str]] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until `stop` is set, then finishes what was received within `shutdown_grace`.

        Reports as started, with the address of every listener, once all of them accept connections.
        """
        config = self.config
        scrape = bind(config.exporters.prometheus.listen, "exporters.prometheus.listen")
        page = bind(config.web.listen, "web.listen")
        http = bind(config.receiver.http.listen, "receiver.http.listen")
        if self.labelling:
            self.labelling.open()
        await self.keeper.resume(self.scorer.judge.epochs, self._reread, self.pending.put)
        async with AsyncExitStack() as outlasting:
            await outlasting.enter_async_context(serving(metrics_app(self.registry, self.health), scrape))
            await outlasting.enter_async_context(serving(self.pages, page))
            outlasting.push_async_callback(self._close)
            prober = await outlasting.enter_async_context(anyio.create_task_group())
            prober.start_soon(self.scorer.keep_judge)
            prober.start_soon(self._remind)
            prober.start_soon(keep_pauses_short)
            if self.gold.runner is not None:
                self.gold.runner.open()
                prober.start_soon(self.gold.runner.keep_running, stop)
            if self.drift and self.drift.anchors:
                prober.start_soon(self.drift.anchors.serve)
            with anyio.CancelScope() as drain:
                async with anyio.create_task_group() as stages:
                    for _ in range(config.evaluators.max_concurrency):
                        stages.start_soon(self._evaluate)
                    received_all = anyio.Event()
                    stages.start_soon(self._assemble, received_all)
                    async with (
                        serving(HttpReceiver(self.intake), http),
                        serving_grpc(self.intake, config.receiver.grpc.listen) as grpc,
                    ):
                        task_status.started(self._started(grpc, http, scrape, page))
                        await stop.wait()
                        self._stopping(drain)
                    received_all.set()
            if not self.spool.durable:
                self._shed()
            prober.cancel_scope.cancel()
        self._say_what_became_of_it()

    # ---------------------------------------------------------------- stages

    async def _assemble(self, received_all: anyio.Event) -> None:
        """Complete traces -> interactions that wait for the judge.

        At the end also the traces that still wait, unless they can go on waiting in the spool.
        """
        with contextlib.closing(self.pending):
            while not received_all.is_set():
                await self._read_all(self.keeper.closed())
                self.report.tick()
                self.keeper.tick()
                with anyio.move_on_after(_LOOK_EVERY):
                    await received_all.wait()
            await self._read_all(self.keeper.closed(flush=not self.spool.durable))

    async def _read_all(self, closed: Closed) -> None:
        """Traces -> their new interactions, counted; those that sampling keeps go on to the judge."""
        polite = time.monotonic() + _POLITE
        for part in [closed] if self.spool.durable else closed.one_by_one():
            read = []
            for raw in part.traces:
                await self._fairness.idle(until=polite)
                read.append(self._read(raw))
            try:
                await self.keeper.read(part, read, self.pending.room(), self.pending.put)
            except Exception as error:  # noqa: BLE001 - some bad traces must not end the stage
                self._defect("interactions", error)

    def _read(self, raw: RawTrace) -> Read:
        try:
            trace = decode(raw)
            reading = read(trace, self.config.interactions, self.sampler.attributes)
            if self.gold.took(raw.trace_id, reading.interactions):
                return Read()
            fresh = self.once.new(trace, reading.interactions)
            self.report.trace(reading, fresh)
            new = {interaction.span_id for interaction in fresh}
            known = [interaction for interaction in reading.interactions if interaction.span_id not in new]
            return Read([(each, self._sampled(each)) for each in fresh], known)
        except Exception as error:  # noqa: BLE001 - one bad trace must not end the stage
            self._defect("interactions", error)
            return Read()

    def _sampled(self, interaction: Interaction) -> Interaction | None:
        """The interaction as the judge may see it, or None when sampling leaves it out."""
        sampled = self.sampler.decide(interaction)
        return self.redactor.interaction(sampled) if sampled else None

    def _reread(self, raw: RawTrace) -> list[Interaction]:
        """The interactions of a trace that an earlier process has read, redacted and counted."""
        reading = read(decode(raw), self.config.interactions, self.sampler.attributes)
        return [self._again.interaction(interaction) for interaction in reading.interactions]

    async def _evaluate(self) -> None:
        """Interactions -> results, handed to every exporter."""
        while (interaction := await self.pending.take()) is not None:
            try:
                result = await self.scorer.score(interaction, self.scorer.evaluators)
            except anyio.get_cancelled_exc_class():
                if not self.spool.durable:
                    self.ledger.shed(interaction, self.config.measures, "shutdown")
                raise
            with anyio.CancelScope(shield=True, deadline=self._last_moment) as publishing:
                self._publishing.add(publishing)
                try:
                    await self._finish(result)
                finally:
                    self._publishing.discard(publishing)

    async def _finish(self, result: Result) -> None:
        try:
            await self.keeper.finished(result, partial(self._publish, result))
        except Exception as error:  # noqa: BLE001 - one bad result must not end the stage
            self._defect("evaluators", error)

    async def _publish(self, result: Result) -> None:
        for exporter in self.exporters:
            try:
                await exporter.export(result)
            except Exception as error:  # noqa: BLE001 - one bad result or exporter must not end the stage
                self._defect("exporters", error)

    async def _evaluate_gold(self, interaction: Interaction) -> Result:
        return await self.scorer.score(self.redactor.interaction(interaction), self.scorer.gold_evaluators)

    async def _rescore(self, anchor: Interaction) -> Result:
        return await self.scorer.rescore(self._again.interaction(anchor))

    # ---------------------------------------------------------------- beginning and end

    def _started(self, grpc: str, http: socket, scrape: socket, page: socket) -> dict[str, str]:
        bound = {"http": http, "metrics": scrape, "page": page}
        addresses = {"grpc": grpc, **{name: address_of(each) for name, each in bound.items()}}
        self.endpoints |= {"grpc": f"http://{grpc}", "http/protobuf": f"http://{addresses['http']}"}
        self.health.ready, self.health.reason = True, ""
        keep_freed_memory()
        _log.info("event=listening %s", " ".join(f"{name}={address}" for name, address in addresses.items()))
        return addresses

    async def _remind(self) -> None:
        """The commonest first mistake is an app that sends elsewhere: silence is said once.

        It may be meant where a gold set is asked for its answers and not for its traces: then nothing is wrong.
        """
        await anyio.sleep(_SILENCE)
        if not self.intake.spans_received:
            where = "; ".join(f"OTEL_EXPORTER_OTLP_PROTOCOL={name} -> {url}" for name, url in self.endpoints.items())
            gold = self.config.gold
            level = logging.INFO if gold is not None and gold.target.kind != "trace" else logging.WARNING
            _log.log(level, 'event=nothing_received seconds=%.0f advice="%s"', _SILENCE, where)

    def _counts(self) -> Snapshot:
        return self.ledger.snapshot(self.intake.spans_received)

    def _stopping(self, drain: anyio.CancelScope) -> None:
        self.health.ready, self.health.reason = False, "stopping"
        drain.deadline = anyio.current_time() + self.config.shutdown_grace
        self._last_moment = drain.deadline + _PUBLISH
        for publishing in self._publishing:
            publishing.deadline = self._last_moment
        _log.info("event=draining grace=%.0fs", self.config.shutdown_grace)

    def _shed(self) -> None:
        """Counts what nobody came to evaluate."""
        while (interaction := self.pending.take_now()) is not None:
            self.ledger.shed(interaction, self.config.measures, "shutdown")

    async def _close(self) -> None:
        self.report.say()
        passing_on = [each.close for each in (self.forwarder, self.gold.runner) if each]
        exporting = [exporter.close for exporter in self.exporters]
        for close in (*exporting, *passing_on, self.scorer.close, self.keeper.close):
            with anyio.move_on_after(10):
                await close()

    def _say_what_became_of_it(self) -> None:
        """The last line: what was started is what was scored, unscored, skipped or shed, or the line shows it."""
        for measure, tally in self.ledger.evaluations().items():
            ends = " ".join(f"{outcome}={tally.total(outcome)}" for outcome in OUTCOMES)
            _log.info("event=stopped measure=%s %s pending=%d", measure, ends, tally.pending)

    def _defect(self, stage: str, error: Exception) -> None:
        """One item is lost and counted; the traceback says where, without the item's text."""
        self.errors.labels(stage).inc()
        logs.defect(logging.getLogger(f"tracescore.{stage}"), error)
