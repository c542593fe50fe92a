"""A judge against a scripted server, and what tests of it share."""

from __future__ import annotations

from typing import Self

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.openai_server import OpenAIServer
from tests.scripted import TableEmbedder
from tests.timing import Hours
from tracescore.config import OpenAIJudgeConfig
from tracescore.embedder.identity import Identity
from tracescore.errors import JudgeError
from tracescore.judge import build_judge
from tracescore.judge.client import OpenAIJudge
from tracescore.judge.operations import Vocabulary

SUPPORT = Vocabulary.SUPPORT
EVIDENCE = ["Items can be returned within 30 days. Opened items are taken back when faulty."]
STATEMENTS = [f"Items can be returned within {days} days." for days in (30, 60, 90)]


class AnyEmbedder(TableEmbedder):
    """One vector for every text."""

    identity = Identity.of(np.ones(2))

    async def embed(self, texts):
        return await TableEmbedder({text: [1.0, 1.0] for text in texts}).embed(texts)


class Built:
    """A judge with what tests look at."""

    def __init__(self, server: OpenAIServer, embedder=None, hours: Hours | None = None, **settings) -> None:
        """With `hours`, time passes only there; without, the judge is the one that the service builds."""
        given = {"kind": "openai", "model": "m", "base_url": server.url, "max_retries": 1} | settings
        self.registry = CollectorRegistry()
        chosen = OpenAIJudgeConfig(**given)
        if hours is None:
            self.judge = build_judge(chosen, embedder, self.registry)
        else:
            self.judge = OpenAIJudge(chosen, embedder, self.registry, hours.timing)

    def value(self, name: str, **labels: str) -> float:
        """A sample of the registry; labels that are not given are summed over."""
        samples = (sample for metric in self.registry.collect() for sample in metric.samples if sample.name == name)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.judge.close()
        await self.judge.close()


async def failure(call) -> JudgeError:
    with pytest.raises(JudgeError) as error:
        await call
    return error.value
