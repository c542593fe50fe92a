"""The lines of a score file: read, told apart, and found again in an earlier output."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracescore.errors import UsageError
from tracescore.model import Interaction, Message, State

_KEYS = ("question", "answer", "contexts", "reference", "history")
"""What is read of a line; other keys are passed through."""
_ADDED = ("scores", "judge", "usage")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A line as given, and as an interaction; equal `key`s are equal lines, but for what a run adds to them."""

    given: dict[str, Any]
    interaction: Interaction
    key: bytes


def read_rows(lines: Iterable[bytes], refuse: Callable[[UsageError], None]) -> Iterator[ScoreRow]:
    """The rows of a file in their order; a broken line goes to `refuse` and does not stop the rest."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                given, interaction = interaction_of(line, number)
            except UsageError as error:
                refuse(error)
            else:
                yield ScoreRow(given, interaction, _key(given))


def already_scored(out: Path, judge: str) -> Counter[bytes]:
    """How often each row stands in an earlier output; a last line that was cut off is taken away.

    UsageError when it cannot be read, or when another judge has scored it.
    """
    try:
        content = out.read_bytes() if out.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            out.write_bytes(whole)
    except OSError as error:
        raise UsageError(f"{out}: cannot be read and written: {error.strerror}") from None
    done: Counter[bytes] = Counter()
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = orjson.loads(line)
            other = row["judge"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise UsageError(f"{out}: line {number}: no row that `score` has written; choose another file") from None
        if other != judge:
            raise UsageError(f"{out}: line {number}: scored by judge {other}, not by {judge}; choose another file")
        done[_key(row)] += 1
    return done


def _key(row: Mapping[str, Any]) -> bytes:
    given = {name: value for name, value in row.items() if name not in _ADDED}
    return hashlib.sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).digest()


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
