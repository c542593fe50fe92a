"""Scores as annotations on the spans that Phoenix holds.

An annotation is known by its span, its name (the measure) and its identifier (the judge): delivered again, it is
replaced by itself. Phoenix takes annotations only of spans it knows, so scores that are quicker than the spans wait.
"""

from collections.abc import Sequence
from typing import Any, get_args

import orjson
from prometheus_client import CollectorRegistry

from tracescore.config import PhoenixExporterConfig
from tracescore.exporters.delivery import DEFAULT_LIMITS, Answer, DeliveryMetrics, DeliveryQueue, Dropped, Limits
from tracescore.exporters.kinds import Delivering
from tracescore.exporters.otlp.messages import explanation
from tracescore.exporters.posting import Poster
from tracescore.model import Result, Score
from tracescore.net.retry import is_transient

DROPPED: tuple[Dropped, ...] = tuple(reason for reason in get_args(Dropped) if reason != "rejected")


class PhoenixExporter(Delivering):
    """Sends scores to one Phoenix; what could not be scored has no value, and so no annotation."""

    name = "phoenix"

    def __init__(
        self,
        settings: PhoenixExporterConfig,
        registry: CollectorRegistry,
        limits: Limits = DEFAULT_LIMITS,
        *,
        language_model: bool,
        durable: bool = False,
    ) -> None:
        """`language_model`: whether the judge is one. UsageError when the key cannot be read."""
        super().__init__(durable=durable)
        headers = {"content-type": "application/json"}
        if settings.api_key is not None:
            headers["authorization"] = f"Bearer {settings.api_key.read('exporters.phoenix.api_key')}"
        # In the request and not behind it: only then does Phoenix say that it does not know a span.
        self._url = f"{settings.endpoint.rstrip('/')}/v1/span_annotations?sync=true"
        self._poster = Poster(headers, settings.timeout)
        self._explanations = settings.explanations
        self._kind = "LLM" if language_model else "CODE"
        metrics = DeliveryMetrics("phoenix", "Annotations", registry, DROPPED).queue("phoenix")
        self._queue: DeliveryQueue[bytes] = DeliveryQueue(metrics, self._attempt, len, limits)

    async def export(self, result: Result) -> None:
        """Queues the scores, or drops and counts them while the queue is full."""
        annotations = [orjson.dumps(self._annotation(result, score)) for score in result.scores()]
        if annotations:
            self._queue.put(annotations, lambda: self.settled(result))
        else:
            self.settled(result)

    async def close(self) -> None:
        """Sends what is waiting, for at most a few seconds, and drops and counts the rest, unless it is kept."""
        try:
            await self._queue.close(durable=self.durable)
        finally:
            await self._poster.close()

    def _annotation(self, result: Result, score: Score) -> dict[str, Any]:
        measured: dict[str, Any] = {"score": score.value}
        if score.label:
            measured["label"] = score.label
        if self._explanations and score.items:
            measured["explanation"] = explanation(score.items)
        judge, epoch, _ = result.judge_of(score.measure)
        about = {"score_id": result.score_id(score.measure), "judge": judge, "epoch": epoch}
        return {
            "span_id": result.interaction.span_id,
            "name": score.measure,
            "annotator_kind": "CODE" if score.judge else self._kind,
            "identifier": f"tracescore/{judge}",
            "result": measured,
            "metadata": {**about, **score.details},
        }

    async def _attempt(self, results: Sequence[Sequence[bytes]]) -> Answer:
        body = b'{"data":[' + b",".join(annotation for result in results for annotation in result) + b"]}"
        posted = await self._poster.post(self._url, body)
        if isinstance(posted, Answer):
            return posted
        detail = f"HTTP {posted.status}"
        if posted.status == 404:
            return Answer("unknown", detail, unknown=_unknown(results, posted.body))
        if is_transient(posted.status):
            return Answer("again", detail, after=posted.retry_after)
        return Answer("accepted" if 200 <= posted.status < 300 else "refused", detail)


def _unknown(results: Sequence[Sequence[bytes]], said: bytes) -> frozenset[int]:
    """The places of results whose spans are named as missing; all places where none is named."""
    spans = [orjson.loads(annotations[0])["span_id"].encode() for annotations in results]
    named = frozenset(at for at, span_id in enumerate(spans) if span_id in said)
    return named or frozenset(range(len(spans)))
