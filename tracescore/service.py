"""READ FIRST: builds every part from the configuration and runs the stages.

    receiver ─▶ assembly ─▶ interactions ─▶ sampling, redaction ─▶ evaluators ─▶ exporters
                           └──────── pipeline/reading ────────┘ └ pipeline/evaluating ──┘

What must not be lost goes through the journal, which commits it to the spool before it takes effect.
Listeners on the inside of the flow start before those outside it and stop after them: nobody sends into a void.
What was received is exported or counted, also when the process stops.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from socket import socket

import anyio
from anyio.abc import TaskGroup, TaskStatus
from prometheus_client import CollectorRegistry

from tracescore.calibration.labelling import build_labelling
from tracescore.config import Config
from tracescore.drift import Releases, build_watch
from tracescore.exporters import Exporter, build_exporters, build_hold
from tracescore.exporters.prometheus.exposition import Health, build_metrics
from tracescore.exporters.relay.forward import Forwarder
from tracescore.gold.traffic import build_gold
from tracescore.interactions import content_switch
from tracescore.interactions.deduplication import Deduplication
from tracescore.interactions.report import Report
from tracescore.model import Clock, Interaction, Result
from tracescore.net.access import AccessMetrics
from tracescore.net.connections import ConnectionMetrics, Connections
from tracescore.net.listener import address_of, bind, serving
from tracescore.net.tls import inner_tls
from tracescore.pipeline.defects import Defects
from tracescore.pipeline.evaluating import EvaluatingStage
from tracescore.pipeline.journal import Journal
from tracescore.pipeline.kept import Kept, admitting
from tracescore.pipeline.ledger import Ledger
from tracescore.pipeline.queue import Queue
from tracescore.pipeline.reading import ReadingStage
from tracescore.pipeline.recovery import Parts
from tracescore.pipeline.scorer import Scorer
from tracescore.pipeline.silence import remind
from tracescore.pipeline.steady import SteadyClock
from tracescore.pipeline.trace_reader import TraceReader, build_assembly
from tracescore.receiver.intake import Intake
from tracescore.receiver.listening import Receiver
from tracescore.redaction import Redactor
from tracescore.runtime import keep_freed_memory, keep_pauses_short
from tracescore.sampling import Sampler
from tracescore.spool import build_spool
from tracescore.web.pages import Pages
from tracescore.web.saving import Saving

_log = logging.getLogger("tracescore.service")


class Service:
    """All parts of one process. `run` serves until told to stop."""

    def __init__(self, config: Config, clock: Clock = time.time, watchers: Sequence[Exporter] = ()) -> None:
        """`watchers` are further exporters. Raises UsageError when a part cannot be built."""
        self.config, self.clock = config, clock
        steady = SteadyClock(clock, time.monotonic if clock is time.time else clock)
        registry = self.registry = CollectorRegistry()
        self.endpoints = {"grpc": "", "http/protobuf": ""}
        self.net, self.access = ConnectionMetrics(registry), AccessMetrics(registry)
        self.redactor = Redactor(config.redaction, registry)
        self._uncounted = Redactor(config.redaction, CollectorRegistry())  # for what was counted before
        defects, self.scorer = Defects(registry), Scorer(config, config.measures, registry, clock)
        sampler = Sampler(config.sampling, registry, steady, self.scorer.budget.allowed)
        self.report = Report(config.interactions, registry, clock, content_switch, lambda: self.assembly.unmarked)
        own, self.queue = config.evaluators.custom, Queue(config.evaluators, registry)
        self.ledger = Ledger(registry, steady, steady.settled, own)
        self.gold = build_gold(config, self.scorer.judge.name, self._evaluate_gold, self.scorer.ready, registry, clock)
        self.assembly, deduplication = build_assembly(config, registry, steady), Deduplication(registry)
        self.forwarder = Forwarder(config.exporters.forward, registry) if config.exporters.forward else None
        self.hold = build_hold(config, self.forwarder, self.assembly.marked, registry, steady)
        self.drift = build_watch(config, registry, clock, self._rescore, self.gold.fell)
        self.releases, self.labelling = Releases(registry, clock), build_labelling(config, registry, clock)
        self.pages = self._pages(saving := Saving(config.interactions, self._uncounted.text, config.retain.page, clock))
        inside: list[Exporter] = [each for each in (self.hold, self.drift, self.releases, self.labelling) if each]
        inside += [self.scorer.budget, self.pages.history, self.pages]
        self.exporters = [*build_exporters(config, registry, clock), *inside, *watchers]
        self.spool, epochs = build_spool(config.spool, registry), self.scorer.judge.epochs
        self.health = Health(stuck=self.spool.stuck)
        parts = Parts(self.assembly, deduplication, self.ledger, self.queue, self.exporters, self.hold, epochs)
        self.journal = Journal(self.spool, config, parts, defects, steady)
        self.reader = TraceReader(config.interactions, sampler.attributes | {config.retain.user}, self._uncounted)
        keepers = {"page": self.pages, "labels": self.labelling, "gold store": self.gold.runner}
        self.kept = Kept(config, self.journal, parts, self.reader, keepers)
        admits = admitting(self.gold.or_gold(sampler.admits), parts.erased)
        self.intake = Intake(config.receiver, self.journal, admits, registry, self.forwarder, self.hold)
        self.receiver = Receiver(config.receiver, self.intake, self.net, self.access)
        self.metrics = build_metrics(config.exporters.prometheus, registry, self.health, self.access, clock)
        self._tls = inner_tls(config)
        choosing = (self.gold, deduplication, parts.known_turns, self.report, sampler, self.redactor, saving.keep)
        self.reading = ReadingStage(self.journal, self.queue, self.reader, *choosing, defects)
        self.evaluating = EvaluatingStage(self.queue, self.scorer, self.journal, parts, config.measures, defects)

    async def run(self, stop: anyio.Event, task_status: TaskStatus[dict[str, str]] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until `stop` is set, as the first SIGTERM or SIGINT does (cli/running.py).

        Then it is not ready any more, the listeners close, what was received is read and scored until
        `shutdown_grace` is over, and the exporters close. Reports as started, with the address of every listener,
        once all of them accept connections.
        """
        scrape = bind(self.config.exporters.prometheus.listen, "exporters.prometheus.listen")
        page = bind(self.config.web.listen, "web.listen")
        http = bind(self.config.receiver.http.listen, "receiver.http.listen")
        if self.labelling:
            self.labelling.open()
        await self.journal.resume(self.reader)
        async with AsyncExitStack() as outlasting:
            enter, net, (scrape_tls, page_tls) = outlasting.enter_async_context, self.net, self._tls
            await enter(serving(self.metrics, scrape, Connections("metrics", net), scrape_tls))
            await enter(serving(self.pages, page, Connections("page", net), page_tls))
            outlasting.push_async_callback(self._close)
            beside = await enter(anyio.create_task_group())
            self._start_beside(beside, stop)
            with anyio.CancelScope() as drain:
                async with anyio.create_task_group() as stages:
                    for _ in range(self.config.evaluators.max_concurrency):
                        stages.start_soon(self.evaluating.run)
                    received_all = anyio.Event()
                    stages.start_soon(self.reading.run, received_all)
                    async with self.receiver.serving(http) as grpc:
                        task_status.started(self._started(grpc, http, scrape, page))
                        await stop.wait()
                        self._stopping(drain)
                    received_all.set()
            self.evaluating.shed()
            beside.cancel_scope.cancel()
        self.ledger.log_totals()

    # ---------------------------------------------------------------- parts that need others

    def _pages(self, saving: Saving) -> Pages:
        return Pages(
            self.config.web,
            lambda: self.ledger.snapshot(self.intake.spans_received),
            *(self.clock, self.registry, self.access),
            releases=self.releases,
            endpoints=self.endpoints,
            target=self.config.drift.target,
            switch=content_switch,
            changes=self.drift,
            labelling=self.labelling,
            gold=self.gold.runner,
            age=self.config.retain.page,
            kept=lambda: self.kept,
            live=self.gold.live.count,
            saving=saving,
            estimating=(self.config.sampling.largest_weight, self.config.drift.min_count),
        )

    async def _evaluate_gold(self, interaction: Interaction) -> Result:
        return await self.scorer.score_gold(self.redactor.interaction(interaction))

    async def _rescore(self, anchor: Interaction) -> Result:
        return await self.scorer.rescore(self._uncounted.interaction(anchor))

    # ---------------------------------------------------------------- beginning and end

    def _start_beside(self, beside: TaskGroup, stop: anyio.Event) -> None:
        beside.start_soon(self.scorer.keep_judge, lambda: bool(self.intake.spans_received or self.spool.applied))
        beside.start_soon(remind, lambda: self.intake.spans_received, self.endpoints, self.config.gold)
        beside.start_soon(keep_pauses_short)
        if self.gold.runner is not None:
            self.gold.runner.open()
            beside.start_soon(self.gold.runner.keep_running, stop)
        if self.drift and self.drift.anchors:
            beside.start_soon(self.drift.anchors.serve)

    def _started(self, grpc: str, http: socket, scrape: socket, page: socket) -> dict[str, str]:
        bound = {"http": http, "metrics": scrape, "page": page}
        addresses = {"grpc": grpc, **{name: address_of(each) for name, each in bound.items()}}
        self.endpoints |= {"grpc": f"http://{grpc}", "http/protobuf": f"http://{addresses['http']}"}
        self.health.ready, self.health.reason = True, ""
        keep_freed_memory()
        _log.info("event=listening %s", " ".join(f"{name}={address}" for name, address in addresses.items()))
        return addresses

    def _stopping(self, drain: anyio.CancelScope) -> None:
        self.health.ready, self.health.reason = False, "stopping"
        drain.deadline = anyio.current_time() + self.config.shutdown_grace
        self.evaluating.end_by(drain.deadline)
        _log.info("event=draining grace=%.0fs", self.config.shutdown_grace)

    async def _close(self) -> None:
        self.report.say()
        passing_on = [each.close for each in (self.forwarder, self.gold.runner) if each]
        exporting = [exporter.close for exporter in self.exporters]
        for close in (*exporting, *passing_on, self.scorer.close, self.journal.close):
            with anyio.move_on_after(10):
                await close()
