"""Says when the judge has become another one.

The fingerprint is what scores depend on: the model that the endpoint says it used, the versions of the prompts,
the parameters, and the model that answers as the embedder, whatever it is called. Gateways flip between models for
single calls, so a new model counts only when it holds for several interactions in a row; then the epoch steps, and
scores get new series.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson
from prometheus_client import CollectorRegistry, Gauge
from pydantic import NonNegativeInt

from tracescore.embedder.identity import Identity
from tracescore.spool.state import Persisted, StateCodec

STEADY = 5
"""Interactions in a row after which another model counts as a change."""

_log = logging.getLogger("tracescore.judge")


def judge_info(registry: CollectorRegistry) -> Gauge:
    """The metric that says which judge gives the scores."""
    return Gauge(
        "tracescore_judge_info",
        "1 for the judge in use; scores of different epochs are not comparable.",
        ["judge", "epoch", "model", "prompts", "embedder", "fingerprint"],
        registry=registry,
    )


def fingerprint(*parts: str) -> str:
    """12 hex digits of everything that scores depend on."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class EpochState(Persisted):
    """What is kept: the epoch, the model that answers in it, and what else the fingerprint is of."""

    number: NonNegativeInt
    model: str
    prompts: str
    identity: tuple[int, ...] | None
    parameters: str


def _from_row(plain: list[object]) -> dict[str, object]:
    """Version 0.1.0 wrote values without names, and the embedder's configured name, which does not say who answers."""
    number, model, prompts, embedder, parameters = plain
    identity = embedder if isinstance(embedder, list) else None
    names = ("number", "model", "prompts", "identity", "parameters")
    return dict(zip(names, (number, model, prompts, identity, parameters), strict=True))


_CODEC = StateCodec(EpochState, _from_row)


class Epochs:
    """The current epoch of one judge, shown in tracescore_judge_info."""

    def __init__(
        self,
        judge: str,
        prompts: str,
        embedder: str,
        parameters: Mapping[str, object],
        registry: CollectorRegistry,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_step` is called with every new epoch."""
        self.number = 0
        self.model = ""
        self._on_step = on_step
        self.judge = judge
        self._embedder = embedder
        self._identity: Identity | None = None
        self._fixed = (prompts, repr(sorted(parameters.items())))
        self._candidate = ""
        self._times = 0
        self._info = judge_info(registry)
        self._show()

    @property
    def fingerprint(self) -> str:
        """See the module; 12 hex digits."""
        return fingerprint(self.model, *self._fixed, self._identity.mark if self._identity else "none")

    @property
    def settled(self) -> bool:
        """Whether the latest interaction was answered by the model of this epoch."""
        return self._times == 0

    def state(self) -> bytes | None:
        """What `resume` will want to know; None while nothing is known."""
        if not (self.model or self.number or self._identity):
            return None
        prompts, parameters = self._fixed
        numbers = self._identity.numbers if self._identity else None
        return orjson.dumps(_CODEC.plain(EpochState(self.number, self.model, prompts, numbers, parameters)))

    def resume(self, saved: bytes) -> None:
        """Goes on where an earlier process was; a step further when prompts, parameters or embedder have changed.

        ValueError, and no change, for what is no epoch.
        """
        state = _CODEC.load(orjson.loads(saved))
        known = Identity(state.identity) if state.identity else None
        self.number, self.model = state.number, state.model
        answers, self._identity = self._identity, known or self._identity
        if (state.prompts, state.parameters) != self._fixed or (answers and known and not answers.same(known)):
            self._identity = answers or known
            self._step(self.model)
        self._show()

    def begin_after(self, latest: int) -> None:
        """Begins the epoch after `latest`, for nobody knows whether the judge is still the one that gave its scores."""
        self.number = latest + 1
        self._show()

    def note(self, model: str) -> None:
        """To be told, once per interaction, which model answered it first."""
        if not self.model:
            self.model = model
            self._show()
        elif model == self.model:
            self._candidate, self._times = "", 0
        else:
            self._times = self._times + 1 if model == self._candidate else 1
            self._candidate = model
            if self._times >= STEADY:
                self._step(model)

    def embedded_by(self, identity: Identity | None) -> None:
        """To be told, before an interaction is judged, who makes its vectors; None while nobody knows."""
        known = self._identity
        if identity is None or (known is not None and identity.same(known)):
            return
        self._identity = identity
        if known is None:
            self._show()
        else:
            self._step(self.model)

    def _step(self, model: str) -> None:
        self.number += 1
        self.model, self._candidate, self._times = model, "", 0
        _log.warning(
            'event=judge_changed judge="%s" epoch=%d fingerprint=%s', self.judge, self.number, self.fingerprint
        )
        self._show()
        self._on_step()

    def _show(self) -> None:
        self._info.clear()
        shown = (self.model[:100], self._fixed[0], self._embedder, self.fingerprint)
        self._info.labels(self.judge, self.number, *shown).set(1)
