"""Results in the shapes of the API."""

from __future__ import annotations

from tracescore.model import Evaluation, Item, Result, Score
from tracescore.web.finding import Repeated
from tracescore.web.shapes import EvaluationShape, InteractionShape, ItemShape, OutcomeShape, QuestionShape, RowShape


def row(result: Result) -> RowShape:
    """What a list shows of a result."""
    told = result.interaction
    return {
        "trace_id": told.trace_id,
        "span_id": told.span_id,
        "service": told.service,
        "environment": told.environment,
        "release": told.release,
        "slices": dict(told.slices),
        "state": told.state,
        "ended": result.ended,
        "question": told.question,
        "answer": told.answer,
        "weight": told.weight,
        "judge": result.judge,
        "epoch": result.epoch,
        "scores": {each.measure: _outcome(each) for each in result.evaluations},
    }


def _outcome(of: Evaluation) -> OutcomeShape:
    if isinstance(of, Score):
        return {"outcome": "scored", "value": of.value, "reason": None, "label": of.label}
    return {"outcome": of.outcome, "value": None, "reason": of.reason, "label": ""}


def interaction(result: Result) -> InteractionShape:
    """Everything that is kept of a result."""
    told, usage = result.interaction, result.usage
    return {
        **row(result),
        "convention": told.convention,
        "conversation_id": told.conversation_id,
        "started": told.start_unix_nano / 1e9,
        "reference": told.reference,
        "contexts": list(told.contexts),
        "context_source": told.context_source,
        "history": [{"role": turn.role, "content": turn.text} for turn in told.history],
        "found": {
            field: {"span": where.span, "key": where.key, "tried": list(where.tried)}
            for field, where in told.found.items()
        },
        "finished": result.finished,
        "evaluations": [_evaluation(each) for each in result.evaluations],
        "usage": {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
            "cached": usage.cached,
        },
    }


def _evaluation(of: Evaluation) -> EvaluationShape:
    return {
        "measure": of.measure,
        **_outcome(of),
        "detail": "" if isinstance(of, Score) else of.detail,
        "lo": None if isinstance(of, Score) else of.lo,
        "hi": None if isinstance(of, Score) else of.hi,
        "items": [_item(item) for item in of.items],
        "details": dict(of.details) if isinstance(of, Score) else {},
    }


def _item(of: Item) -> ItemShape:
    return {
        "kind": of.kind,
        "text": of.text,
        "verdict": of.verdict,
        "quote": of.quote,
        "credit": of.credit,
        "passage": of.passage,
        "document": of.document,
    }


def question(group: Repeated) -> QuestionShape:
    """A question with mean and spread of each measure."""
    return {
        "question": group.newest.interaction.question,
        "service": group.of.service,
        "judge": group.of.judge,
        "epoch": group.of.epoch,
        "asked": len(group.results),
        "last_asked": group.newest.ended,
        "scores": {
            measure: {
                "mean": spread.mean,
                "lowest": spread.lowest,
                "highest": spread.highest,
                "deviation": spread.deviation,
                "count": spread.count,
            }
            for measure, spread in group.spreads.items()
        },
        "trace_ids": [result.interaction.trace_id for result in group.results],
    }
