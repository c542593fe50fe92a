"""A question with its answer, as people hand it in: `Case`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracescore.errors import UsageError
from tracescore.model import Interaction, Message, State

_PASSAGE = ("page_content", "content", "text")
"""Where a document holds its text, when a passage is one."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
"""The roles of OpenAI and the types of LangChain, which RAGAS uses."""
_SILENT = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages that are neither question nor answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the answer under judgement, and what else is known of it. UsageError says what is wrong with one.

    `contexts` are the retrieved passages, the best first (a single text is one passage); `history` holds earlier turns
    as `{"role": "user" or "assistant", "content": text}`; `reference` is the right answer. None is what is not known:
    the measures that read it have no value then. `id` and `metadata` are carried along.
    """

    question: str | None
    answer: str | None = None
    contexts: Sequence[str] = ()
    history: Sequence[Mapping[str, str]] = ()
    reference: str | None = None
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("question", "answer", "reference"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(f"{name}: text expected; got {type(getattr(self, name)).__name__}")
        object.__setattr__(self, "contexts", _passages(self.contexts))
        object.__setattr__(self, "history", _turns(self.history))

    def interaction(self, number: int) -> Interaction:
        """The case as a measure reads it; `number` tells it from the others of its set."""
        question, contexts = self.question, tuple(self.contexts)
        state: State = "complete"
        if question is None or not question.strip():
            question, state = None, "no_question"
        elif self.answer is None:
            state = "no_answer"
        elif not contexts:
            state = "no_contexts"
        return Interaction(
            trace_id="",
            span_id=f"line-{number}",
            state=state,
            question=question,
            answer=self.answer,
            contexts=contexts,
            context_source="retrieval" if contexts else "none",
            history=tuple(Message(turn["role"], turn["content"]) for turn in self.history),
            reference=self.reference,
        )


def _passages(given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(listed, list | tuple):
        raise UsageError(f"contexts: a list of texts expected; got {type(given).__name__}")
    return tuple(text for text in map(_text_of, listed) if text.strip())


def _text_of(passage: Any) -> str:
    """The text of a passage, which may be a document that holds it."""
    text = next((passage[key] for key in _PASSAGE if key in passage), None) if isinstance(passage, Mapping) else passage
    if not isinstance(text, str):
        raise UsageError(f"contexts: a list of texts expected; got {type(passage).__name__} in it")
    return text


def _turns(given: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(given, list | tuple | None):
        raise UsageError(f"history: a list of turns expected; got {type(given).__name__}")
    return tuple(_turn(each) for each in given or ())


def _turn(given: Any) -> dict[str, str]:
    role = _ROLES.get(str(given.get("role"))) if isinstance(given, Mapping) else None
    text = given.get("content", given.get("text")) if isinstance(given, Mapping) else None
    if role is None or not isinstance(text, str):
        raise UsageError("history: turns of {role: user|assistant, content: text} expected")
    return {"role": role, "content": text}


def conversation(messages: Iterable[Any]) -> tuple[str | None, list[dict[str, str]], str | None]:
    """A question that is given as messages: the last of the user, the turns before it, and the answer behind it.

    UsageError for what is no message. Roles other than user and assistant (`system`, `tool`) are passed over.
    """
    turns: list[dict[str, str]] = []
    for message in messages:
        role = message.get("role", message.get("type")) if isinstance(message, Mapping) else None
        if role not in _SILENT:
            turns.append(_turn({**message, "role": role} if isinstance(message, Mapping) else message))
    last = next((at for at in reversed(range(len(turns))) if turns[at]["role"] == "user"), None)
    if last is None:
        return None, [], None
    return turns[last]["content"], turns[:last], turns[-1]["content"] if last + 1 < len(turns) else None
