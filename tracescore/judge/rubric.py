"""A rubric of the user's own: instructions from a file, and the scale that the judge has to choose on.

The rules stand where those of tracescore's own prompts stand, and what is judged goes through the same boundary as
everywhere (`prompt.py`). A choice that is not on the scale is no choice: it is asked for once more and never clamped.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson

from tracescore.config import RubricMeasureConfig
from tracescore.embedder import Embedder
from tracescore.errors import JudgeError, UsageError
from tracescore.judge.operations import MAX_EVIDENCE, MAX_TEXT, RubricChoice, check_length
from tracescore.judge.prompt import TEXT, Prompt, frame, object_schema, own_rules, tokens
from tracescore.judge.windows import nearness, passages, window

MOST_EXAMPLES = 50
"""Cases in a file of examples: `check --probe` asks the judge each of them."""
NEAR = 0.25
"""Part of a range by which a choice may miss that of an example."""
_LONGEST_REASON = 1_000
_MOST_NAMED = 20
"""Whole numbers that a schema lists one by one."""
_AROUND = " \t\r\n.,:;!*`'\"()[]"

ScaleOfRubric = tuple[float, float] | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Example:
    """A case of the file: its texts, the choice that is right, and its line."""

    texts: Mapping[str, Any]
    choice: str | float
    line: int


@dataclass(frozen=True, slots=True)
class Rubric:
    """See the module. `version` is a hash of all that says what its scores mean."""

    prompt: Prompt
    scale: ScaleOfRubric
    examples: tuple[Example, ...] = ()
    version: str = ""

    def read(self, reply: Mapping[str, Any]) -> RubricChoice:
        """The choice in a reply; JudgeError(judge_unreadable) for one that is not on the scale."""
        reason = reply.get("reason", "")
        if not isinstance(reason, str):
            raise JudgeError("judge_unreadable", f"reason: a text expected; got {type(reason).__name__}")
        label, value = self.score(reply.get("choice"))
        return RubricChoice(label, value, reason.strip()[:_LONGEST_REASON])

    def score(self, choice: object) -> tuple[str, float]:
        """A choice as the scale writes it, and what it scores in [0, 1]; JudgeError when it is not on the scale."""
        if isinstance(self.scale, Mapping):
            said = _folded(choice) if isinstance(choice, str | int | float) else None
            label = next((label for label in self.scale if _folded(label) == said), None)
            if label is None:
                raise JudgeError("judge_unreadable", "choice: none of the levels of the scale")
            return label, self.scale[label]
        number, (low, high) = _number(choice), self.scale
        if number is None or not low <= number <= high:
            raise JudgeError("judge_unreadable", f"choice: no number from {low:g} to {high:g}")
        if whole(self.scale) and not number.is_integer():
            raise JudgeError("judge_unreadable", f"choice: no whole number from {low:g} to {high:g}")
        return f"{number:g}", (number - low) / (high - low)

    def agrees(self, example: Example, choice: RubricChoice) -> bool:
        """Whether a choice is that of an example; of a range, near it."""
        label, value = self.score(example.choice)
        return label == choice.label if isinstance(self.scale, Mapping) else abs(value - choice.value) <= NEAR


def load_rubric(setting: str, name: str, settings: RubricMeasureConfig) -> Rubric:
    """The rubric of a measure. UsageError, beginning with the setting, when a file cannot be used."""
    rules = own_rules(f"{setting}.prompt", settings.prompt)
    said = {"SCALE": _in_words(settings.scale), "CHOICE": _shown(settings.scale)}
    form = re.sub("|".join(said), lambda word: said[word[0]], frame("rubric"))
    instructions = f"{rules}\n\n{form}"
    text = "" if settings.examples is None else _text(f"{setting}.examples", settings.examples)
    parts = (instructions, repr(settings.scale), text, *settings.reads)
    version = hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]
    schema = object_schema(reason=TEXT, choice=_schema(settings.scale))
    prompt = Prompt(f"rubric_{name}", version, instructions, schema, source=settings.prompt)
    bare = Rubric(prompt, settings.scale, version=version)
    where = f"{setting}.examples: {settings.examples}"
    return Rubric(prompt, settings.scale, _examples(where, text, settings.reads, bare), version)


async def fitted(texts: Mapping[str, Any], room: int, embedder: Embedder | None) -> dict[str, Any]:
    """The texts with as much of their history and contexts as `room` tokens hold; JudgeError where that is none."""
    data = dict(texts)
    contexts, turns = list(data.get("contexts", ())), list(data.get("history", ()))
    rest = [str(text) for field, text in data.items() if field not in ("contexts", "history")]
    check_length(*rest, *(turn["text"] for turn in turns), most=MAX_TEXT)
    check_length(*contexts, most=MAX_EVIDENCE)
    left = room - sum(map(tokens, rest))
    while turns and sum(tokens(turn["text"]) for turn in turns) > left // 2:
        del turns[0]
    left -= sum(tokens(turn["text"]) for turn in turns)
    if sum(map(tokens, contexts)) > left:
        pieces = await anyio.to_thread.run_sync(passages, contexts)
        contexts = window(await nearness(rest or pieces[:1], pieces, embedder), pieces, max(0, left))
    if left < 0 or (data.get("contexts") and not contexts):
        raise JudgeError("judge_input_too_long", f"about {room - left} tokens; at most {room} (judge.max_input_tokens)")
    kept = {"contexts": contexts, "history": turns}
    return {field: kept.get(field, text) for field, text in data.items()}


def whole(scale: ScaleOfRubric) -> bool:
    """Whether only whole numbers are on the scale: its ends are, and others lie between them."""
    return isinstance(scale, tuple) and all(map(float.is_integer, scale)) and scale[1] - scale[0] > 1


def _in_words(scale: ScaleOfRubric) -> str:
    if isinstance(scale, Mapping):
        return f"one of {', '.join(json.dumps(label, ensure_ascii=False) for label in scale)}, and nothing else."
    low, high = scale
    kind = "a whole number" if whole(scale) else "a number, with decimals where they are needed,"
    return f"{kind} from {low:g}, the worst, to {high:g}, the best, and nothing else."


def _shown(scale: ScaleOfRubric) -> str:
    if isinstance(scale, Mapping):
        return json.dumps(next(iter(scale)), ensure_ascii=False)
    return f"{scale[1]:g}"


def _schema(scale: ScaleOfRubric) -> dict[str, Any]:
    if isinstance(scale, Mapping):
        return {"type": "string", "enum": list(scale)}
    if not whole(scale):
        return {"type": "number"}
    numbers = range(int(scale[0]), int(scale[1]) + 1)
    return {"type": "integer", **({"enum": list(numbers)} if len(numbers) <= _MOST_NAMED else {})}


def _folded(label: object) -> str:
    word = str(label).lower() if isinstance(label, bool) else f"{label:g}" if isinstance(label, float) else str(label)
    return " ".join(word.strip(_AROUND).casefold().split())


def _number(choice: object) -> float | None:
    """A number, or one in quotes."""
    if isinstance(choice, bool) or not isinstance(choice, int | float | str):
        return None
    try:
        return float(choice)
    except (ValueError, OverflowError):
        return None


def _text(setting: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{setting}: file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{setting}: file {path} is not UTF-8 text") from None


def _examples(where: str, text: str, reads: Sequence[str], rubric: Rubric) -> tuple[Example, ...]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MOST_EXAMPLES:
        raise UsageError(f"{where}: at most {MOST_EXAMPLES} lines expected; got {len(lines)}")
    return tuple(_example(f"{where}:{number}", number, line, reads, rubric) for number, line in lines)


def _example(where: str, number: int, line: str, reads: Sequence[str], rubric: Rubric) -> Example:
    try:
        row = orjson.loads(line)
    except ValueError:
        row = None
    wanted = {*reads, "choice"}
    if not isinstance(row, dict) or row.keys() != wanted or not all(_is_text(name, row[name]) for name in reads):
        names = ", ".join((*reads, "choice"))
        raise UsageError(f"{where}: a JSON object with {names} expected, contexts and history as lists")
    try:
        rubric.score(row["choice"])
    except JudgeError as error:
        raise UsageError(f"{where}: {error.detail}") from None
    return Example({name: row[name] for name in reads}, row["choice"], number)


def _is_text(field: str, value: object) -> bool:
    if field == "contexts":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if field == "history":
        turns = value if isinstance(value, list) else [None]
        return all(isinstance(turn, dict) and turn.keys() == {"role", "text"} for turn in turns)
    return isinstance(value, str)
