"""`tracescore score`: a file of questions and answers, a JSON line each, and the same with its scores."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from tracescore import logs
from tracescore.cli.options import ConfigPath, configured, lines_of, print_json
from tracescore.cli.running import run_async
from tracescore.errors import UsageError
from tracescore.model import MEASURES, Evaluation, Interaction, Message, Score, State
from tracescore.runtime import gather

if TYPE_CHECKING:
    from tracescore.config import Config
    from tracescore.evaluators import Evaluator
    from tracescore.judge.operations import Judge

_HELP = "A line each: question, answer, contexts?, reference?, history?"
_KEYS = ("question", "answer", "contexts", "reference", "history")
"""What is read of a line; other keys are passed through."""
_GROUP = 32
"""Rows scored side by side; the judge bounds its own concurrency."""


def score(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help=_HELP)],
    config: ConfigPath = None,
) -> None:
    """Scores a file of questions and answers: one JSON line in, the same with its scores out."""
    logs.to_stderr(logging.WARNING)
    settings = configured(config)
    lines = lines_of(file)
    refused: list[UsageError] = []
    run_async(partial(_score, lines, settings, refused.append))
    for refusal in refused:
        sys.stderr.write(f"{file}: {refusal}\n")
    if refused:
        raise typer.Exit(2)


async def _score(lines: list[bytes], config: Config, refuse: Callable[[UsageError], None]) -> None:
    from prometheus_client import CollectorRegistry
    from rich.console import Console
    from rich.progress import Progress

    from tracescore.pipeline.scorer import Scorer
    from tracescore.redaction import Redactor

    registry = CollectorRegistry()
    scorer, redactor = Scorer(config, MEASURES, registry), Redactor(config.redaction, registry)
    try:
        await scorer.judge.probe()
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("scoring", total=len(lines))
            async for row in _scored(lines, scorer.evaluators, scorer.judge, refuse, redactor.interaction):
                print_json(row)
                progress.advance(task)
    finally:
        await scorer.close()


def _interaction_of(line: str | bytes, number: int) -> tuple[dict[str, Any], Interaction]:
    """One line of a score file as given, and as an interaction; UsageError says what is wrong with it.

    Keys: question, answer, contexts (list of texts, or one), reference, history (list of {role, content}).
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"line {number}: is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise UsageError(f"line {number}: an object with question and answer expected; got {type(row).__name__}")
    _check_spelling(row, number)
    question, answer, reference = (_text(row, key, number) for key in ("question", "answer", "reference"))
    contexts = row.get("contexts") or []
    contexts = [contexts] if isinstance(contexts, str) else contexts
    if not isinstance(contexts, list) or not all(isinstance(context, str) for context in contexts):
        raise UsageError(f"line {number}: contexts: a list of texts expected; got {type(row['contexts']).__name__}")
    contexts = tuple(context for context in contexts if context.strip())
    state: State = "complete"
    if question is None or not question.strip():
        question, state = None, "no_question"
    elif answer is None:
        state = "no_answer"
    elif not contexts:
        state = "no_contexts"
    return row, Interaction(
        trace_id="",
        span_id=f"line-{number}",
        state=state,
        question=question,
        answer=answer,
        contexts=contexts,
        context_source="retrieval" if contexts else "none",
        history=_history(row, number),
        reference=reference,
    )


def _check_spelling(row: Mapping[str, Any], number: int) -> None:
    """Raises UsageError for a key that is nearly one that the line lacks; a name such as question_id is another's."""
    lacking = [key for key in _KEYS if key not in row]
    for key in row:
        near = difflib.get_close_matches(key.lower(), lacking, n=1, cutoff=0.8) if key.isalpha() else ()
        if key not in _KEYS and near:
            raise UsageError(f"line {number}: {key}: unknown key; did you mean '{near[0]}'?")


def _text(row: Mapping[str, Any], key: str, number: int) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"line {number}: {key}: text expected; got {type(value).__name__}")
    return value


def _history(row: Mapping[str, Any], number: int) -> tuple[Message, ...]:
    turns = row.get("history") or []
    if not isinstance(turns, list):
        raise UsageError(f"line {number}: history: a list of turns expected; got {type(turns).__name__}")
    messages = []
    for turn in turns:
        role = turn.get("role") if isinstance(turn, dict) else None
        text = turn.get("content", turn.get("text")) if isinstance(turn, dict) else None
        if role not in {"user", "assistant"} or not isinstance(text, str):
            raise UsageError(f"line {number}: history: turns of {{role: user|assistant, content: text}} expected")
        messages.append(Message(role, text))
    return tuple(messages)


async def _scored(
    lines: Iterable[bytes],
    evaluators: Sequence[Evaluator],
    judge: Judge,
    refuse: Callable[[UsageError], None],
    redacted: Callable[[Interaction], Interaction],
) -> AsyncIterator[dict[str, Any]]:
    """The rows of a score file in their order, each with `scores` and `usage` added.

    What is scored is what `redacted` leaves; the rows themselves stay as they are. A broken line goes to `refuse` and
    does not stop the rest. Rows are scored in groups, those of a group side by side.
    """
    from tracescore.evaluators import evaluate_all

    rows = _rows(lines, refuse)
    while group := list(itertools.islice(rows, _GROUP)):
        jobs = [partial(evaluate_all, redacted(interaction), evaluators, judge, time.time) for _, interaction in group]
        for (row, _), result in zip(group, await gather(jobs), strict=True):
            scores = {evaluation.measure: _shown(evaluation) for evaluation in result.evaluations}
            yield {**row, "scores": scores, "judge": result.judge, "usage": dataclasses.asdict(result.usage)}


def _rows(lines: Iterable[bytes], refuse: Callable[[UsageError], None]) -> Iterator[tuple[dict[str, Any], Interaction]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _interaction_of(line, number)
            except UsageError as error:
                refuse(error)


def _shown(evaluation: Evaluation) -> dict[str, Any]:
    """A score or the reason for none as plain JSON data; what a score is made of stands beside its value."""
    items = [dataclasses.asdict(item) for item in evaluation.items]
    if isinstance(evaluation, Score):
        head = {"value": evaluation.value, "reason": None, "label": evaluation.label, **evaluation.details}
    else:
        head = {"value": None, "reason": evaluation.reason, "detail": evaluation.detail}
        head |= {"lo": evaluation.lo, "hi": evaluation.hi}
    return {**head, "items": items}
