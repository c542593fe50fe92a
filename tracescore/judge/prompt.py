"""Prompts: instructions from text files, and data that cannot leave its place.

Instructions are a fixed system message, so that a provider's prompt cache can hit. Everything under judgement is
one line of JSON between two markers that carry a code drawn anew for each call: a text cannot close the
marker, because it does not know the code and because JSON escapes its line breaks.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, get_args

import orjson

from tracescore.judge.operations import Vocabulary

Operation = Literal["reverse_questions", "required_parts", "claims", "verify", "probe"]
"""What a request is made for."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

MARK = "tracescore-"
"""How the codes begin, so that a prompt is recognised as the judge's where a gateway records it."""
_VERSION = re.compile(r"version: (\d+)\n+")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions with their version, and the JSON Schema of the reply."""

    name: str
    version: int
    instructions: str
    schema: Mapping[str, Any]

    def messages(self, data: Mapping[str, Any], *, system: bool = True) -> list[dict[str, str]]:
        """The chat messages that put `data` (texts that are not trusted) under these instructions.

        Without a `system` role, which some chat templates refuse, the instructions begin the user's message.
        """
        code = f"{MARK}{secrets.token_hex(8)}"
        block = f"DATA {code}\n{encode(data)}\nEND {code}"
        if not system:
            return [{"role": "user", "content": f"{self.instructions}\n\n{block}"}]
        return [{"role": "system", "content": self.instructions}, {"role": "user", "content": block}]


def encode(data: Mapping[str, Any]) -> str:
    r"""`data` as one line of JSON in which no text can look like a marker of a chat template (<|im_end|>, </s>)."""
    return re.sub(r"<(?=[|/])", r"\\u003c", orjson.dumps(data).decode())


def tokens(text: str) -> int:
    """An upper estimate of the tokens of `text`: one per three bytes of UTF-8.

    English takes about four bytes a token, Chinese and Hindi about three.
    """
    return len(text.encode()) // 3 + 1


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _verdicts(vocabulary: Vocabulary) -> dict[str, Any]:
    verdict = {"type": "string", "enum": list(vocabulary.value)}
    return _object(verdicts={"type": "array", "items": _object(id=_TEXT, quote=_TEXT, verdict=verdict)})


def _load(name: str, schema: Mapping[str, Any]) -> Prompt:
    text = resources.files("tracescore.judge").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    match = _VERSION.match(text)
    if match is None:
        raise ValueError(f"judge/prompts/{name}.md: the first line must be `version: N`")
    return Prompt(name, int(match[1]), text[match.end() :].strip(), schema)


REVERSE_QUESTIONS = _load("reverse_questions", _object(words=_TEXT, noncommittal={"type": "boolean"}, questions=_TEXTS))
REQUIRED_PARTS = _load("required_parts", _object(standalone=_TEXT, parts=_TEXTS))
_CLAIM = _object(**{"from": _TEXT, "text": _TEXT})
CLAIMS = _load("claims", _object(claims={"type": "array", "items": _CLAIM}, without=_TEXTS))
VERIFY: Mapping[Vocabulary, Prompt] = {
    vocabulary: _load(f"verify_{vocabulary.name.lower()}", _verdicts(vocabulary)) for vocabulary in Vocabulary
}
"""The prompts whose verdicts are the words of a vocabulary."""

PROMPTS: Mapping[str, Prompt] = {
    prompt.name: prompt for prompt in (REVERSE_QUESTIONS, REQUIRED_PARTS, CLAIMS, *VERIFY.values())
}
"""All prompts by name. A change of wording is a new version: scores of different versions are not compared."""
