"""The judge behind any endpoint that speaks the OpenAI chat completions API."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, get_args

import anyio
from prometheus_client import CollectorRegistry, Counter

from tracescore.config import OpenAIJudgeConfig
from tracescore.embedder import Embedder
from tracescore.embedder.identity import PROBE
from tracescore.errors import EmbedderError, JudgeError
from tracescore.judge.cache import Cache
from tracescore.judge.chat import Chat, Dialect
from tracescore.judge.epoch import Epochs
from tracescore.judge.probe import Probe
from tracescore.judge.prompt import load_prompts
from tracescore.judge.replies import Drop
from tracescore.judge.session import OpenAISession, Shared
from tracescore.net.openai_endpoint import Endpoint
from tracescore.net.retry import REAL_TIME, Timing

CACHE_SIZE = 10_000
"""Questions and texts whose parts and claims are remembered: a few tens of MB at the most."""

_EMBEDDER_WAIT = 10.0
"""Seconds that a probe of the judge waits for the embedder."""

_log = logging.getLogger("tracescore.judge")


class OpenAIJudge:
    """See `operations.Judge`. Ready once a probe has succeeded and while the circuit is closed.

    Raises UsageError when the key or a prompt that the settings name is not there.
    """

    def __init__(
        self,
        settings: OpenAIJudgeConfig,
        embedder: Embedder | None,
        registry: CollectorRegistry,
        timing: Timing = REAL_TIME,
    ) -> None:
        self._settings = settings
        self._name = settings.known_as
        self._probed = False
        self._endpoint = Endpoint(settings, "/chat/completions", "judge", timing)
        self._chat = Chat(settings, self._name, self._endpoint, registry, timing.clock)
        self._cache: Cache[tuple[Any, str]] = Cache(CACHE_SIZE)
        prompts = load_prompts(settings.prompts)
        self._max_input = settings.max_input(prompts.longest)
        vectors = embedder.name if embedder else "none"
        self.epochs = Epochs(self._name, prompts.mark, vectors, settings.parameters, registry, self._cache.clear)
        self._embedder = embedder
        self._recognise_embedder()
        self._drops = Counter(
            "tracescore_judge_dropped",
            "Verdicts and claims in replies that did not count or were missing, by reason.",
            ["judge", "reason"],
            registry=registry,
        )
        for drop in get_args(Drop):
            self._drops.labels(self._name, drop)
        self._shared = Shared(
            chat=self._chat,
            prompts=prompts,
            epochs=self.epochs,
            cache=self._cache,
            count_drop=self._count_drop,
            embedder=embedder,
            deadline=settings.deadline,
            max_input=self._max_input,
            clock=timing.clock,
        )
        if settings.price is None:
            _log.info('event=no_price judge="%s" advice="set judge.price to see what it costs"', self._name)

    @property
    def name(self) -> str:
        """The configured name: a metric label."""
        return self._name

    @property
    def ready(self) -> bool:
        """Whether the last probe succeeded and the endpoint has answered since."""
        return self._probed and self._endpoint.circuit.state == "closed"

    @property
    def spent(self) -> float:
        """Money for all requests so far, the probe's among them; 0 where `judge.price` is not set."""
        return self._chat.spent

    def limit_cost(self, most: float) -> None:
        """No request begins once so much is spent; see `Chat.limit_cost`."""
        self._chat.limit_cost(most)

    async def probe(self) -> str:
        """Finds out what the endpoint understands and whether the model can judge; see `probe.py`.

        A form of reply that was given up before is tried again.
        """
        known, clock, settings = self._chat.dialect, self._shared.clock, self._settings
        self._chat.dialect = Dialect()
        try:
            deadline, prompts = clock() + settings.deadline, self._shared.prompts
            probe = Probe(self._chat, prompts, self._max_input, settings.timeout, deadline, clock)
            probed = await probe.run()
        except JudgeError:
            self._probed, self._chat.dialect = False, known
            raise
        self.epochs.note(probed.model)
        await self._ask_embedder()
        self._probed = True
        if self._chat.dialect != known:
            _log.info('event=judge_dialect judge="%s" mode=%s', self._name, self._chat.dialect.mode)
        return probed.report(settings.price)

    def session(self, key: str, *, remembered: bool = True) -> OpenAISession:
        """Operations for the interaction named `key`; its deadline begins now."""
        self._recognise_embedder()
        return OpenAISession(self._shared, key, remembered=remembered)

    async def close(self) -> None:
        """Releases connections; may be called twice."""
        await self._endpoint.close()

    async def _ask_embedder(self) -> None:
        """So that the first score is of the right epoch. One that is away fails those who need it, not the judge."""
        if self._embedder is not None:
            with suppress(EmbedderError), anyio.move_on_after(_EMBEDDER_WAIT):
                await self._embedder.embed([PROBE])
        self._recognise_embedder()

    def _recognise_embedder(self) -> None:
        self.epochs.embedded_by(self._embedder.identity if self._embedder is not None else None)

    def _count_drop(self, drop: Drop, count: int) -> None:
        self._drops.labels(self._name, drop).inc(count)
