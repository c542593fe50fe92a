"""Files in, JSON lines out: what `tracescore inspect` and `tracescore score` do, without a service."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import orjson

from tracescore.config import Interactions
from tracescore.errors import UsageError
from tracescore.evaluators import Evaluator, evaluate_all
from tracescore.interactions import read
from tracescore.judge.operations import Judge
from tracescore.model import Evaluation, Interaction, Message, RawLog, RawSpan, RawTrace, Result, Score, State
from tracescore.receiver.decode import decode, read_file

# ---------------------------------------------------------------- inspect


def inspect(files: Sequence[Path], settings: Interactions, *, explain: bool = False) -> Iterator[dict[str, Any]]:
    """One plain mapping per interaction in OTLP request files (.pb, .json), traces and logs together.

    Raises UsageError or DecodeError for a file that is not what its name says.
    """
    spans: dict[bytes, dict[bytes, RawSpan]] = defaultdict(dict)
    logs: dict[bytes, list[RawLog]] = defaultdict(list)
    for file in files:
        file_spans, file_logs = read_file(file)
        for span in file_spans:
            spans[span.trace_id].setdefault(span.span_id, span)
        for log in file_logs:
            logs[log.trace_id].append(log)
    found: list[Interaction] = []
    for trace_id in dict.fromkeys([*spans, *logs]):
        raw = RawTrace(trace_id, tuple(spans[trace_id].values()), tuple(logs[trace_id]), "complete")
        found += read(decode(raw), settings)
    for interaction in sorted(found, key=lambda i: (i.start_unix_nano, i.trace_id, i.span_id)):
        yield _inspected(interaction, explain=explain)


_INSPECTED = [
    "trace_id",
    "span_id",
    "service",
    "release",
    "environment",
    "convention",
    "state",
    "question",
    "answer",
    "contexts",
    "context_source",
    "history",
    "conversation_id",
    "slices",
]


def _inspected(interaction: Interaction, *, explain: bool) -> dict[str, Any]:
    row = {name: getattr(interaction, name) for name in _INSPECTED}
    row["unusable"] = sorted(interaction.unusable)
    if explain:
        row["found"] = interaction.found
    return row


# ---------------------------------------------------------------- score


def interaction_of(line: str | bytes, number: int) -> tuple[dict[str, Any], Interaction]:
    """One line of a score file as given, and as an interaction; UsageError says what is wrong with it.

    Keys: question, answer, contexts (list of texts, or one), reference, history (list of {role, content}).
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"line {number}: is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise UsageError(f"line {number}: an object with question and answer expected; got {type(row).__name__}")
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


async def score(
    lines: Iterable[bytes],
    evaluators: Sequence[Evaluator],
    judge: Judge,
    refuse: Callable[[UsageError], None],
    redacted: Callable[[Interaction], Interaction],
) -> AsyncIterator[dict[str, Any]]:
    """The rows of a score file in their order, each with `scores` and `usage` added.

    What is scored is what `redacted` leaves; the rows themselves stay as they are. A broken line goes to `refuse` and
    does not stop the rest. Rows are scored side by side, a few ahead.
    """
    side_by_side = 16
    batch: list[tuple[dict[str, Any], Interaction]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row, interaction = interaction_of(line, number)
            batch.append((row, redacted(interaction)))
        except UsageError as error:
            refuse(error)
        if len(batch) == side_by_side:
            for scored in await _score_batch(batch, evaluators, judge):
                yield scored
            batch = []
    for scored in await _score_batch(batch, evaluators, judge):
        yield scored


async def _score_batch(
    batch: Sequence[tuple[dict[str, Any], Interaction]], evaluators: Sequence[Evaluator], judge: Judge
) -> list[dict[str, Any]]:
    results: dict[int, Result] = {}

    async def one(index: int, interaction: Interaction) -> None:
        results[index] = await evaluate_all(interaction, evaluators, judge, time.time)

    async with anyio.create_task_group() as tasks:
        for index, (_, interaction) in enumerate(batch):
            tasks.start_soon(one, index, interaction)
    return [
        {
            **row,
            "scores": {e.measure: shown(e) for e in results[index].evaluations},
            "judge": results[index].judge,
            "usage": dataclasses.asdict(results[index].usage),
        }
        for index, (row, _) in enumerate(batch)
    ]


def shown(evaluation: Evaluation) -> dict[str, Any]:
    """A score or the reason for none as plain JSON data; what a score is made of stands beside its value."""
    items = [dataclasses.asdict(item) for item in evaluation.items]
    if isinstance(evaluation, Score):
        head = {"value": evaluation.value, "reason": None, "label": evaluation.label, **evaluation.details}
    else:
        head = {"value": None, "reason": evaluation.reason, "detail": evaluation.detail}
        head |= {"lo": evaluation.lo, "hi": evaluation.hi}
    return {**head, "items": items}
