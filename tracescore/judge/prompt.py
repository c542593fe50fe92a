"""Prompts: instructions from text files, and data that cannot leave its place.

Instructions are a fixed system message, so that a provider's prompt cache can hit. Everything under judgement is
one line of JSON between two markers that carry a code drawn anew for each call: a text cannot close the
marker, because it does not know the code and because JSON escapes its line breaks.

Version 1 stands in `prompts/v1` as version 0.1.0 sent it, to the byte, but for the form of the reply to `claims`. Of
version 2, and of a prompt in a user's own file, only the rules are written there; the paragraph on data and the form of
the reply, in which a reason comes before a verdict, are the same for both and stand in `prompts/frame`.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import orjson

from tracescore.config.judge import PromptFiles, PromptVersion
from tracescore.errors import UsageError
from tracescore.judge.operations import Vocabulary
from tracescore.judge.quotes import fold

Operation = Literal["reverse_questions", "required_parts", "claims", "verify", "rubric", "probe"]
"""What a request is made for."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

MARK = "tracescore-"
"""How the codes begin, so that a prompt is recognised as the judge's where a gateway records it."""
MAX_RULES = 6_000
"""Bytes of a prompt in a user's own file: it is sent with every request, and takes the place of evidence."""
_VERSION = re.compile(r"version: (\d+)\n+")
_EXAMPLE = re.compile(r"^Reply: (\{.*\})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions, the JSON Schema of the reply, and what tells them from others of the same name.

    `mark` is the version, or a hash where the rules come from the user's file `source`. `examples` are the folded texts
    of the replies that the instructions show.
    """

    name: str
    mark: str
    instructions: str
    schema: Mapping[str, Any]
    examples: frozenset[str] = frozenset()
    source: str = ""

    def messages(self, data: Mapping[str, Any], *, system: bool = True) -> list[dict[str, str]]:
        """The chat messages that put `data` (texts that are not trusted) under these instructions.

        Without a `system` role, which some chat templates refuse, the instructions begin the user's message.
        """
        code = f"{MARK}{secrets.token_hex(8)}"
        block = f"DATA {code}\n{encode(data)}\nEND {code}"
        if not system:
            return [{"role": "user", "content": f"{self.instructions}\n\n{block}"}]
        return [{"role": "system", "content": self.instructions}, {"role": "user", "content": block}]


_ADDED = {("verify_usefulness", "1")}
"""Prompts that 0.1.0 did not have, in their first version: nothing was scored with them, so they begin no epoch."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """A prompt for every operation, by its name; those of a vocabulary are named after it."""

    by_name: Mapping[str, Prompt]

    def verify(self, vocabulary: Vocabulary) -> Prompt:
        """The prompt whose verdicts are the words of the vocabulary."""
        return self.by_name[f"verify_{vocabulary.name.lower()}"]

    @property
    def mark(self) -> str:
        """The part of the judge's fingerprint that is about wording: scores of different marks are not compared."""
        marks = ((name, prompt.mark) for name, prompt in self.by_name.items())
        return ".".join(mark for name, mark in marks if (name, mark) not in _ADDED)

    @property
    def longest(self) -> int:
        """Tokens of the longest instructions."""
        return max(tokens(prompt.instructions) for prompt in self.by_name.values())

    @property
    def own(self) -> list[Prompt]:
        """Those that come from files of the user."""
        return [prompt for prompt in self.by_name.values() if prompt.source]


def encode(data: Mapping[str, Any]) -> str:
    r"""`data` as one line of JSON in which no text can look like a marker of a chat template (<|im_end|>, </s>)."""
    return re.sub(r"<(?=[|/])", r"\\u003c", orjson.dumps(data).decode())


def tokens(text: str) -> int:
    """An upper estimate of the tokens of `text`: one per three bytes of UTF-8.

    English takes about four bytes a token, Chinese and Hindi about three.
    """
    return len(text.encode()) // 3 + 1


def object_schema(**properties: Any) -> dict[str, Any]:
    """The JSON Schema of an object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": TEXT}


def _verdicts(vocabulary: Vocabulary, *, reasons: bool) -> dict[str, Any]:
    fields = {"id": TEXT, **({"reason": TEXT} if reasons else {}), "quote": TEXT}
    row = object_schema(**fields, verdict={"type": "string", "enum": list(vocabulary.value)})
    return object_schema(verdicts={"type": "array", "items": row})


def _schemas(*, reasons: bool) -> dict[str, dict[str, Any]]:
    """The form of each reply, by the name of the prompt; `reasons` come before verdicts from version 2 on."""
    claim = object_schema(**{"from": TEXT, "text": TEXT})
    return {
        "reverse_questions": object_schema(words=TEXT, noncommittal={"type": "boolean"}, questions=_TEXTS),
        "required_parts": object_schema(standalone=TEXT, parts=_TEXTS),
        "claims": object_schema(claims={"type": "array", "items": claim}, without=_TEXTS),
    } | {f"verify_{each.name.lower()}": _verdicts(each, reasons=reasons) for each in Vocabulary}


def _file(*steps: str) -> str:
    return resources.files("tracescore.judge").joinpath("prompts", *steps).read_text(encoding="utf-8").strip()


def frame(name: str) -> str:
    """What follows the rules of a prompt from version 2 on: the paragraph on data and the form of the reply."""
    return f"{_file('frame', 'data.md')}\n\n{_file('frame', f'{name}.md')}"


def _framed(name: str, rules: str) -> str:
    return f"{rules}\n\n{frame(name)}"


@cache
def prompts_of(version: PromptVersion) -> Prompts:
    """The prompts of a version that comes with tracescore."""
    prompts = {}
    for name, schema in _schemas(reasons=version != "v1").items():
        text = _file(version, f"{name}.md")
        match = _VERSION.match(text)
        if match is None:
            raise ValueError(f"judge/prompts/{version}/{name}.md: the first line must be `version: N`")
        rules = text[match.end() :]
        instructions = rules if version == "v1" else _framed(name, rules)
        prompts[name] = Prompt(name, match[1], instructions, schema, examples_in(rules))
    return Prompts(prompts)


def load_prompts(chosen: PromptVersion | PromptFiles) -> Prompts:
    """The prompts that `judge.prompts` names: of a version, or those of version 1 with the user's own beside them.

    UsageError when a file cannot be read, is empty or too long.
    """
    if isinstance(chosen, str):
        return prompts_of(chosen)
    prompts, schemas = dict(prompts_of("v1").by_name), _schemas(reasons=True)
    for name, path in chosen.paths.items():
        rules = own_rules(f"judge.prompts.{name}", path)
        instructions = _framed(name, rules)
        mark = hashlib.sha256(instructions.encode()).hexdigest()[:12]
        prompts[name] = Prompt(name, mark, instructions, schemas[name], examples_in(rules), path)
    return Prompts(prompts)


def own_rules(setting: str, path: str) -> str:
    """The rules in a file that a setting names. UsageError when it cannot be read, is empty or too long."""
    where = f"{setting}: file {path}"
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}") from None
    try:
        rules = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{where} is not UTF-8 text") from None
    if not rules or len(content) > MAX_RULES:
        raise UsageError(f"{where}: rules of 1 to {MAX_RULES} bytes expected; got {len(content)}")
    return rules


def examples_in(rules: str) -> frozenset[str]:
    """The folded texts of the items in the lines `Reply: {...}`: what a weak model repeats instead of reading."""
    return frozenset(fold(text) for line in _EXAMPLE.findall(rules) for text in _items_of_line(line)) - {""}


def _items_of_line(line: str) -> Iterator[str]:
    try:
        reply = json.loads(line)
    except ValueError:
        return
    for values in reply.values():
        yield from map(text_of_item, values if isinstance(values, list) else ())


def text_of_item(item: object) -> str:
    """What an item of a reply says: a question or part, the text of a claim, the quote of a verdict."""
    if isinstance(item, dict):
        item = item.get("text", item.get("quote"))
    return item if isinstance(item, str) else ""
