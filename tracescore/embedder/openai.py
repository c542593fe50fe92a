"""Vectors from any endpoint that speaks the OpenAI embeddings API."""

import base64
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from prometheus_client import CollectorRegistry, Counter

from tracescore.config import OpenAIEmbedderConfig
from tracescore.embedder.identity import PROBE, Identity
from tracescore.errors import EmbedderError
from tracescore.formulas import Vector
from tracescore.net.openai_endpoint import CallFailed, Endpoint
from tracescore.net.provider_errors import Cause
from tracescore.net.retry import REAL_TIME, Timing
from tracescore.runtime import gather

_BATCH = 127
"""Texts per request beside PROBE; endpoints take between 32 and 2,048, and say so."""
_ABOUT_BATCHES = re.compile(r"batch|inputs?\b|array|list|items|requests")
_WHOLE = re.compile(r"(?<![\d.])\d{1,5}(?![\d.]*\d)")
_STEADY = 5
"""Replies in a row after which another model counts as a change, as gateways flip between models for single calls."""


class OpenAIEmbedder:
    """See `Embedder`. Every request asks for the vector of PROBE too, a dozen tokens: so every reply says who gave it.

    Raises UsageError when the key that the settings name is not there.
    """

    def __init__(self, settings: OpenAIEmbedderConfig, registry: CollectorRegistry, timing: Timing = REAL_TIME) -> None:
        self._model = settings.model
        self._patience = settings.timeout * (settings.max_retries + 1)
        self._endpoint = Endpoint(settings, "/embeddings", "embedder", timing)
        self._parameters = settings.body
        self._most = _BATCH
        self._clock = timing.clock
        self._requests = Counter(
            "tracescore_embedder_requests",
            "Requests to the embedder, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._identity: Identity | None = None
        self._candidate: Identity | None = None
        self._times = 0
        for outcome in ("ok", *get_args(Cause)):
            self._requests.labels(outcome)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def identity(self) -> Identity | None:
        """Who has answered so far; None before the first reply."""
        return self._identity

    async def embed(self, texts: Sequence[str]) -> Vector:
        """Array of shape (len(texts), d); a text that occurs twice is sent once. EmbedderError when it cannot.

        Nor can it use what another model than before answers; `identity` is that one's when it has stayed.
        """
        if any(not text.strip() for text in texts):
            raise EmbedderError("a blank text has no vector")
        distinct = list(dict.fromkeys(texts))
        try:
            rows = await self._batches(distinct)
        except CallFailed as failure:
            raise EmbedderError(f"embedder {failure}") from None
        index = {text: row for row, text in enumerate(distinct)}
        vectors: Vector = np.concatenate(rows) if rows else np.empty((0, 0))
        return vectors[[index[text] for text in texts]]

    async def _batches(self, texts: Sequence[str]) -> list[Vector]:
        """The rows of the texts; a limit that the endpoint names is kept from then on."""
        most = self._most
        batches = [texts[start : start + most] for start in range(0, len(texts), most)]
        try:
            return await gather([partial(self._batch, batch) for batch in batches])
        except CallFailed as failure:
            limit = _limit(failure.said, most + 1)
            if failure.cause not in {"rejected", "too_long"} or limit is None:
                raise
        self._most = min(self._most, limit - 1)  # PROBE takes a place
        return await self._batches(texts)

    async def close(self) -> None:
        """Releases connections; may be called twice."""
        await self._endpoint.close()

    async def _batch(self, texts: Sequence[str]) -> Vector:
        body = {"model": self._model, "input": [*texts, PROBE], "encoding_format": "float"} | self._parameters
        payload = await self._endpoint.post(body, self._clock() + self._patience, self._observe)
        vectors = _vectors(payload, len(texts) + 1)
        self._recognise(Identity.of(vectors[-1]))
        return vectors[:-1]

    def _recognise(self, found: Identity) -> None:
        """EmbedderError for any but the model that is known: what it says belongs to no epoch of the judge yet."""
        known = self._identity
        if known is None:
            self._identity = found
        elif found.same(known):
            self._times = 0
        else:
            self._times = self._times + 1 if self._candidate and found.same(self._candidate) else 1
            self._candidate = found
            if self._times >= _STEADY:
                self._identity, self._times = found, 0
            raise EmbedderError(f"another model answers: {found.mark}, not {known.mark}; used once it stays")

    def _observe(self, outcome: Cause | Literal["ok"], _seconds: float) -> None:
        self._requests.labels(outcome).inc()


def _limit(said: str, sent: int) -> int | None:
    """The number of texts per request that a refusal names, if it is less than were sent; at least 2."""
    if not _ABOUT_BATCHES.search(said):
        return None
    named = [int(number) for number in _WHOLE.findall(said)]
    return max((number for number in named if 2 <= number < sent), default=None)


def _floats(embedding: Any) -> Any:
    """An embedding as numbers; some servers send little-endian float32 in base64, whatever was asked for."""
    if not isinstance(embedding, str):
        return embedding
    return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")


def _vectors(payload: Mapping[str, Any], count: int) -> Vector:
    """The rows of a reply in the order of their indexes; EmbedderError unless there are `count` proper ones."""
    data = payload.get("data")
    rows = data if isinstance(data, list) else []
    try:
        ordered = sorted(rows, key=lambda row: int(row["index"]))
        vectors = np.array([_floats(row["embedding"]) for row in ordered], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        raise EmbedderError("the reply does not hold vectors of one length") from None
    if [row["index"] for row in ordered] != list(range(count)) or vectors.ndim != 2 or vectors.shape[1] == 0:
        raise EmbedderError(f"{count} vectors expected; got {len(rows)}")
    if not np.isfinite(vectors).all():
        raise EmbedderError("the vectors hold values that are not finite")
    return vectors
