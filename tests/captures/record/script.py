"""What the scripted model says next, whatever API it is asked through."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import scene


@dataclass(frozen=True)
class Message:
    """One message of the conversation that the model is sent."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call."""

    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """The model calls a tool."""

    name: str
    arguments: Mapping[str, Any]


class Refused(Exception):
    """The model answers with an error."""


def decide(messages: Sequence[Message], tools: Sequence[Tool], schema: Mapping[str, Any] | None = None) -> Call | str:
    """The next step: a search once for each user turn, then the answer in the form that is asked for.

    Hands off first where the only tools are hand-offs. Raises Refused for the question that fails.
    """
    users = [place for place, message in enumerate(messages) if message.role == "user" and not _is_result(message)]
    last = users[-1] if users else 0
    asked = next((q for m in reversed(messages[: last + 1]) if m.role == "user" and (q := _question(m.text))), None)
    if asked == scene.FAILING:
        raise Refused
    answer = scene.ANSWERS.get(asked or "", scene.ANSWERS[scene.QUESTION])
    system = "\n".join(message.text for message in messages if message.role == "system")
    searched = any(_is_result(message) and scene.PASSAGES[0] in message.text for message in messages[last:])
    if "[[ ## " in system:
        return _fields(system, messages[last].text, answer)
    search = next((tool for tool in tools if "search" in tool.name.lower()), None)
    handoff = next((tool for tool in tools if re.search("transfer|handoff|delegate", tool.name.lower())), None)
    if search and not searched and asked != scene.FOLLOW_UP:
        return Call(search.name, dict.fromkeys(search.properties or {"query": {}}, scene.QUERY))
    if handoff and not search and not any(map(_is_result, messages[last:])):
        named = re.compile("agent|member")
        return Call(handoff.name, {key: "clerk" if named.search(key) else asked for key in handoff.properties})
    structured = next((tool for tool in tools if "answer" in tool.properties), None)
    if structured:
        return Call(structured.name, {"answer": answer})
    if not tools and "<code>" in system:
        return _code(answer, searched=searched)
    if schema and "answer" in schema.get("properties", {}):
        return '{"answer": "' + answer + '"}'
    return answer


def _question(text: str) -> str | None:
    """The question of the scene that stands last in a text."""
    known = [question for question in (*scene.ANSWERS, scene.FAILING) if question in text]
    return max(known, key=text.rfind) if known else None


def _is_result(message: Message) -> bool:
    return message.role == "tool" or (message.role == "user" and message.text.lstrip().startswith("Observation"))


def _code(answer: str, *, searched: bool) -> str:
    line = f"final_answer({answer!r})" if searched else f"print(search_guide(query={scene.QUERY!r}))"
    return f"Thought: {'I know.' if searched else 'I look it up.'}\n<code>\n{line}\n</code>"


def _fields(system: str, said: str, answer: str) -> str:
    """The answer in the fields that DSPy's prompt names as outputs."""
    given = re.findall(r"^\[\[ ## (\w+) ## \]\]", said, re.MULTILINE)
    named = list(dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", system)))
    search = scene.FOUND not in said and scene.PASSAGES[0] not in said
    known = {
        "answer": answer,
        "response": answer,
        "reasoning": "The guide says so.",
        "next_thought": "I look it up." if search else "I know enough.",
        "next_tool_name": "search_guide" if search else "finish",
        "next_tool_args": f'{{"query": "{scene.QUERY}"}}' if search else "{}",
        "completed": "",
    }
    wanted = [name for name in named if name in known and name not in given]
    return "\n\n".join(f"[[ ## {name} ## ]]\n{known[name]}" for name in wanted)
