"""The model that evaluators ask. `operations.py` is the contract, `JUDGES` the table of what exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from tracescore.config import EmbeddedJudgeConfig, JudgeConfig, OpenAIJudgeConfig
from tracescore.embedder import Embedder
from tracescore.errors import MissingExtra
from tracescore.judge.operations import Judge


def _openai(settings: OpenAIJudgeConfig, embedder: Embedder | None, registry: CollectorRegistry) -> Judge:
    from tracescore.judge.client import OpenAIJudge  # noqa: PLC0415 - each judge brings its own libraries

    return OpenAIJudge(settings, embedder, registry)


def _embedded(settings: EmbeddedJudgeConfig, embedder: Embedder | None, registry: CollectorRegistry) -> Judge:
    if embedder is None:
        raise MissingExtra(
            "judge: the embedded judge needs an embedder; install the extra `local`, or set judge.kind: openai"
        )
    from tracescore.judge.embedded import EmbeddedJudge  # noqa: PLC0415

    return EmbeddedJudge(settings, embedder, registry)


JUDGES: Mapping[str, Callable[[Any, Embedder | None, CollectorRegistry], Judge]] = {
    "embedded": _embedded,
    "openai": _openai,
}
"""Judges by `judge.kind`."""


def build_judge(settings: JudgeConfig, embedder: Embedder | None, registry: CollectorRegistry) -> Judge:
    """The judge that `settings` describe, not yet probed.

    Raises MissingExtra when it needs a package that is not installed, UsageError when its key is not there.
    """
    judge = JUDGES[settings.kind](settings, embedder, registry)
    ready = Gauge("tracescore_judge_ready", "1 while the judge is ready.", ["judge"], registry=registry)
    ready.labels(judge.name).set_function(lambda: float(judge.ready))
    return judge
