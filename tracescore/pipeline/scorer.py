"""Judge, embedder and evaluators: what turns an interaction into a result, with or without a service around.

A judge that cannot be asked is waited for: interactions wait as well, and none is unscored for it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio
from prometheus_client import CollectorRegistry

from tracescore.config import Config
from tracescore.embedder import build_embedder
from tracescore.errors import JudgeError, JudgeUnfit
from tracescore.evaluators import Evaluator, OwnMeasure, build_evaluators, evaluate_all, unasked
from tracescore.evaluators.custom import custom_info
from tracescore.judge import build_judge
from tracescore.model import Clock, Interaction, Measure, Result, Unscored
from tracescore.net.retry import Backoff
from tracescore.pipeline.budget import Budget

_log = logging.getLogger("tracescore.judge")

_BACKOFF = Backoff(1.0, 30.0, spread=0)
"""Between two attempts to ask a judge that is away."""

_ON_GOLD: tuple[Measure, ...] = ("context_precision", "context_recall", "answer_correctness")
"""What a gold set measures beside the configured measures."""


class Scorer:
    """`fit` is set while the judge can be asked, as far as is known; `keep_judge` sets it."""

    def __init__(
        self, config: Config, measures: Sequence[Measure], registry: CollectorRegistry, clock: Clock = time.time
    ) -> None:
        """Raises UsageError when a part cannot be built: a secret or an optional package is missing."""
        self._clock, self._retain = clock, config.retain.spool
        self.embedder = build_embedder(config.embedder, registry) if _embeds(config, measures) else None
        self.judge = build_judge(config.judge, self.embedder, registry)
        self.evaluators = build_evaluators(measures, config.evaluators, self.embedder)
        custom_info(self._own, registry)
        further = [each for each in _ON_GOLD if each not in measures] if config.gold else []
        self.gold_evaluators = [*self.evaluators, *build_evaluators(further, config.evaluators, self.embedder)]
        self.budget = Budget(config, registry, clock)
        self.fit, self._lost = anyio.Event(), anyio.Event()

    def ready(self) -> bool:
        """Whether the judge can be asked, as far as is known."""
        return self.fit.is_set()

    async def score(self, interaction: Interaction, evaluators: Sequence[Evaluator]) -> Result:
        """The interaction's result; one that met a judge that had gone waits for it and is asked again, once."""
        await self.fit.wait()
        result = await evaluate_all(interaction, evaluators, self.judge, self._clock)
        if not any(isinstance(each, Unscored) and each.reason == "judge_unreachable" for each in result.evaluations):
            return result
        if self.fit.is_set():
            self.fit = anyio.Event()
            self._lost.set()
        await self.fit.wait()
        return await evaluate_all(interaction, evaluators, self.judge, self._clock)

    async def score_live(self, interaction: Interaction) -> Result:
        """The result of an interaction of live traffic; once today's budget is spent, what costs nothing of it.

        Without any score when the judge came too late for `retain.spool`. The budget counts the cost when the result
        is exported to it.
        """
        if not await self._in_time(interaction):
            unread = await evaluate_all(interaction, [], self.judge, self._clock)
            return replace(unread, evaluations=tuple(unasked(each, interaction, "expired") for each in self.evaluators))
        if not self.budget.is_spent:
            return await self.score(interaction, self.evaluators)
        free = [each for each in self._own if each.judge]
        result = await evaluate_all(interaction, free, self.judge, self._clock)
        scored = {each.measure: each for each in result.evaluations}
        evaluations = (scored.get(each.measure) or unasked(each, interaction, "budget") for each in self.evaluators)
        return replace(result, evaluations=tuple(evaluations))

    async def _in_time(self, interaction: Interaction) -> bool:
        """Whether the judge can be asked, or can be before the texts are older than they may become.

        An end that a sender's clock puts into the future, or none, is now.
        """
        if self._retain is None or self.fit.is_set():
            return True
        now = self._clock()
        ended = min(interaction.end_unix_nano / 1e9 or now, now)
        with anyio.move_on_after(max(0.0, ended + self._retain - now)):
            await self.fit.wait()
        return self.fit.is_set()

    async def score_gold(self, interaction: Interaction) -> Result:
        """The result of an item of the gold set, which the budget counts and does not stop."""
        return self.budget.spend(await self.score(interaction, self.gold_evaluators))

    async def rescore(self, anchor: Interaction) -> Result:
        """What an anchor scores when the judge is asked anew, with nothing remembered."""
        await self.fit.wait()
        return self.budget.spend(await evaluate_all(anchor, self.evaluators, self.judge, self._clock, remembered=False))

    async def keep_judge(self, acknowledged: Callable[[], bool]) -> None:
        """Asks the judge until it can do the work, and again whenever it was lost. Ends only when cancelled.

        One that is unfit ends the service at its start (JudgeUnfit). Later, and where spans have been `acknowledged`,
        it is waited for: what was taken in would be lost, and it may be unfit for a moment only.
        """
        judge, failures, begun = self.judge, 0, False
        while True:
            wait = _BACKOFF.pause(failures := failures + 1)
            try:
                await judge.probe()
            except JudgeUnfit as error:
                if not begun and not acknowledged():
                    raise
                _log.error('event=judge_unfit judge="%s" detail="%s" retry_in=%.0fs', judge.name, error.detail, wait)
            except JudgeError as error:
                _log.warning('event=judge_unreachable judge="%s" detail="%s" retry_in=%.0fs', judge.name, error, wait)
            else:
                _log.info('event=judge_ready judge="%s"', judge.name)
                begun, failures, self._lost = True, 0, anyio.Event()
                self.fit.set()
                await self._lost.wait()
                continue
            await anyio.sleep(wait)

    @property
    def _own(self) -> list[OwnMeasure]:
        return [each for each in self.evaluators if isinstance(each, OwnMeasure)]

    async def close(self) -> None:
        """Closes the connections to judge and embedder, and ends the processes of measures of the user's own."""
        for own in self._own:
            await own.close()
        await self.judge.close()
        if self.embedder is not None:
            await self.embedder.close()


def _embeds(config: Config, measures: Sequence[Measure]) -> bool:
    """Whether anything needs vectors, so that a judge on the network can do without a local model."""
    alike = {"claims": config.evaluators.weights[1] > 0, "verdict": False, "similarity": True}
    correctness = "answer_correctness" in measures or config.gold is not None
    similarity = correctness and alike[config.evaluators.correctness.method]
    return config.judge.kind == "embedded" or "answer_relevancy" in measures or similarity
