"""A replica that exposes its metrics, moved by hand through the classes that move them in the service."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from prometheus_client import CollectorRegistry

from tests.openai_server import OpenAIServer, openai_server
from tracescore.config import Config, OpenAIEmbedderConfig, OpenAIJudgeConfig
from tracescore.exporters.prometheus.exposition import Health, Scrapes, metrics_app
from tracescore.model import LIVE_MEASURES, Clock, Interaction, Measure, Result, Score, Unscored
from tracescore.net.listener import address_of, bind, serving
from tracescore.service import Service

JUDGE = "gpt"


class Replica:
    """The parts of a service without its traffic; `address` is where its /metrics is."""

    def __init__(self, portal: BlockingPortal, models: str, clock: Clock = time.time, **settings: Any) -> None:
        judge = OpenAIJudgeConfig(kind="openai", model="m", name=JUDGE, base_url=models, max_retries=0)
        embedder = OpenAIEmbedderConfig(kind="openai", model="m", base_url=models)
        self.service = Service(Config(judge=judge, embedder=embedder, **settings), clock)
        self.portal = portal
        self.registry = self.service.registry
        self.address = ""

    def score(self, scores: Mapping[Measure, float], service: str = "shop") -> str:
        """One interaction gets these scores; measures without one are unscored. Returns its trace id."""
        now = time.time()
        interaction = Interaction(
            trace_id=secrets.token_hex(16),
            span_id=secrets.token_hex(8),
            state="complete",
            question="q",
            answer="a",
            contexts=("c",),
            context_source="retrieval",
            service=service,
            release="1.0",
            environment="prod",
            slices={"route": "/ask"},
            end_unix_nano=int(now * 1e9),
        )
        evaluations = tuple(
            Score(measure, scores[measure]) if measure in scores else Unscored(measure, "judge_timeout")
            for measure in LIVE_MEASURES
        )
        self.take(Result(interaction, evaluations, JUDGE, finished=now))
        return interaction.trace_id

    def take(self, *results: Result) -> None:
        """Interactions were read and evaluated with these results."""
        self.portal.call(self._take, results)

    async def _take(self, results: Sequence[Result]) -> None:
        ledger = self.service.ledger
        for result in results:
            ledger.read(result.interaction)
            ledger.started(result.interaction, [each.measure for each in result.evaluations])
            ledger.finished(result)
            for exporter in self.service.exporters:
                await exporter.export(result)

    def ask_judge(self) -> None:
        """Calls that cost tokens; from then on the judge is ready."""
        self.portal.call(self.service.scorer.judge.probe)

    async def close(self) -> None:
        """Releases the connections to the models."""
        for exporter in self.service.exporters:
            await exporter.close()
        await self.service.scorer.close()


@contextmanager
def replicas(count: int, models: OpenAIServer | None = None, **settings: Any) -> Iterator[list[Replica]]:
    """That many replicas, each with its own /metrics on loopback, and one judge for them that nobody has asked yet."""
    with ExitStack() as stack:
        models = models or stack.enter_context(openai_server())
        portal = stack.enter_context(start_blocking_portal())
        yield [stack.enter_context(replica_at("127.0.0.1:0", portal, models.url, **settings)) for _ in range(count)]


@contextmanager
def replica_at(address: str, portal: BlockingPortal, models: str, **settings: Any) -> Iterator[Replica]:
    """One replica whose /metrics is at `address`."""
    replica = Replica(portal, models, **settings)
    with ExitStack() as stack:
        stack.callback(portal.call, replica.close)
        bound = bind(address, "test")
        replica.address = address_of(bound)
        app = metrics_app(replica.registry, Health(ready=True), Scrapes(CollectorRegistry(), time.time))
        stack.enter_context(portal.wrap_async_context_manager(serving(app, bound)))
        yield replica
