"""What is measured: one file per measure, which share nothing but the session, and `EVALUATORS`, the table of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Protocol

from tracescore import logs
from tracescore.config import EvaluatorsConfig
from tracescore.embedder import Embedder
from tracescore.errors import EmbedderError, JudgeError
from tracescore.evaluators.against_reference import ReferenceSimilarity, ReferenceVerdict
from tracescore.evaluators.answer_correctness import AnswerCorrectness
from tracescore.evaluators.answer_relevancy import AnswerRelevancy
from tracescore.evaluators.completeness import Completeness
from tracescore.evaluators.context_precision import ContextPrecision
from tracescore.evaluators.context_recall import ContextRecall
from tracescore.evaluators.custom import OwnMeasure, build_custom
from tracescore.evaluators.eligibility import lacks_history, skip_reason
from tracescore.evaluators.faithfulness import Faithfulness
from tracescore.judge.operations import Judge, Session
from tracescore.model import Clock, Evaluation, Interaction, Measure, Result, Score, Unscored
from tracescore.runtime import gather

__all__ = ["EVALUATORS", "Evaluator", "OwnMeasure", "build_evaluators", "evaluate_all", "skip_reason", "unasked"]

_log = logging.getLogger("tracescore.evaluators")


class Evaluator(Protocol):
    """Computes one measure of an interaction that holds what the measure reads (see `skip_reason`)."""

    @property
    def measure(self) -> Measure:
        """The measure's name."""
        ...

    async def evaluate(self, interaction: Interaction, session: Session) -> Evaluation:
        """A Score, or Unscored with the reason. JudgeError and EmbedderError go through to the caller."""
        ...


def _answer_relevancy(settings: EvaluatorsConfig, embedder: Embedder | None) -> Evaluator:
    if embedder is None:
        raise ValueError(
            "answer_relevancy: needs an embedder; configure an embedder, or leave answer_relevancy out of measures"
        )
    return AnswerRelevancy(embedder, settings.questions, settings.count_abstentions_as)


def _answer_correctness(settings: EvaluatorsConfig, embedder: Embedder | None) -> Evaluator:
    if settings.correctness.method == "verdict":
        return ReferenceVerdict()
    if settings.correctness.method == "similarity":
        return ReferenceSimilarity(embedder, settings.correctness.threshold)
    return AnswerCorrectness(embedder, settings.weights, settings.beta)


EVALUATORS: Mapping[Measure, Callable[[EvaluatorsConfig, Embedder | None], Evaluator]] = {
    "answer_relevancy": _answer_relevancy,
    "completeness": lambda _settings, _embedder: Completeness(),
    "faithfulness": lambda settings, _embedder: Faithfulness(settings.questions),
    "context_precision": lambda _settings, _embedder: ContextPrecision(),
    "context_recall": lambda _settings, _embedder: ContextRecall(),
    "answer_correctness": _answer_correctness,
}
"""Evaluators by measure."""


def build_evaluators(
    measures: Sequence[Measure], settings: EvaluatorsConfig, embedder: Embedder | None
) -> list[Evaluator]:
    """Evaluators of `measures`, in that order. ValueError when one needs an embedder and there is none.

    UsageError when a measure of the user's own cannot be built: a file or a function is not there.
    """
    return [
        build_custom(measure, settings.custom[measure])
        if measure in settings.custom
        else EVALUATORS[measure](settings, embedder)
        for measure in dict.fromkeys(measures)
    ]


async def evaluate_all(
    interaction: Interaction, evaluators: Sequence[Evaluator], judge: Judge, clock: Clock, *, remembered: bool = True
) -> Result:
    """All measures of one interaction, side by side; each fails by itself. See `Judge.session` for `remembered`.

    Answers by two models within the interaction make all measures Unscored(`judge_mixed`): which of them came
    from which model can no longer be said.
    """
    session = judge.session(interaction.key, remembered=remembered)
    evaluations = await gather([partial(_evaluate, evaluator, interaction, session) for evaluator in evaluators])
    if any(isinstance(evaluation, Unscored) and evaluation.reason == "judge_mixed" for evaluation in evaluations):
        evaluations = [_mixed(evaluation) for evaluation in evaluations]
    return Result(interaction, tuple(evaluations), judge.name, session.epoch, session.usage, clock())


def unasked(evaluator: Evaluator, interaction: Interaction, why: Literal["budget", "expired"]) -> Unscored:
    """What becomes of a measure whose judge must not be paid any more today, or came too late."""
    own = evaluator if isinstance(evaluator, OwnMeasure) else None
    reason = skip_reason(interaction, evaluator.measure, own.reads if own else None)
    return Unscored(evaluator.measure, reason or why, version=own.version if own else "")


async def _evaluate(evaluator: Evaluator, interaction: Interaction, session: Session) -> Evaluation:
    if not isinstance(evaluator, OwnMeasure):
        return await _tried(evaluator, interaction, session, None)
    found = await _tried(evaluator, interaction, session, evaluator.reads)
    return replace(found, judge=evaluator.judge, version=evaluator.version)


async def _tried(
    evaluator: Evaluator, interaction: Interaction, session: Session, reads: Sequence[str] | None
) -> Evaluation:
    skip = skip_reason(interaction, evaluator.measure, reads)
    if skip is not None:
        return Unscored(evaluator.measure, skip)
    if lacks_history(interaction, evaluator.measure, reads):
        return Unscored(evaluator.measure, "needs_history", "the earlier turns of its conversation are not known")
    try:
        return _labelled(await evaluator.evaluate(interaction, session), interaction, session)
    except JudgeError as error:
        return Unscored(evaluator.measure, error.reason, error.detail)
    except EmbedderError as error:
        return Unscored(evaluator.measure, "embedder_failed", str(error))
    except Exception as error:  # noqa: BLE001 - one interaction must not stop the stage
        logs.defect(_log, error, measure=evaluator.measure, trace_id=interaction.trace_id)
        return Unscored(evaluator.measure, "internal_error", type(error).__name__)


def _labelled(evaluation: Evaluation, interaction: Interaction, session: Session) -> Evaluation:
    if not isinstance(evaluation, Score) or evaluation.label:
        return evaluation
    texts = (interaction.question or "", interaction.answer or "", *interaction.contexts)
    return replace(evaluation, label=session.caveat(*texts))


def _mixed(evaluation: Evaluation) -> Evaluation:
    if evaluation.judge or (isinstance(evaluation, Unscored) and evaluation.outcome == "skipped"):
        return evaluation
    detail = "different models answered for one interaction"
    return Unscored(evaluation.measure, "judge_mixed", detail, version=evaluation.version)
