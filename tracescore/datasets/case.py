"""A question with its answer, as people hand it in: `Case`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracescore.errors import UsageError
from tracescore.interactions.documents import id_of, text_of
from tracescore.model import Interaction, Message, State

_ROLES = {"user": "user", "human": "user", "HumanMessage": "user"}
_ROLES |= {"assistant": "assistant", "ai": "assistant", "AIMessage": "assistant", "model": "assistant"}
"""The roles of OpenAI and of Gemini, and the types and classes of LangChain, which RAGAS uses."""
_SILENT = frozenset({"system", "developer", "tool", "function", "SystemMessage", "ToolMessage", "FunctionMessage"})
"""Roles of messages that are neither question nor answer."""
_TEXTS = frozenset({"text", "input_text", "output_text"})
"""The parts of a message's content that are text."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the answer under judgement, and what else is known of it. UsageError says what is wrong with one.

    `contexts` are the retrieved passages, the best first (a single text is one passage), or documents that hold their
    texts; `documents` are then their ids or URIs. `history` holds earlier turns as
    `{"role": "user" or "assistant", "content": text}`; `reference` is the right answer. None is what is not known: the
    measures that read it have no value then. `id` and `metadata` are carried along.
    """

    question: str | None
    answer: str | None = None
    contexts: Sequence[str] = ()
    history: Sequence[Mapping[str, str]] = ()
    reference: str | None = None
    id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("question", "answer", "reference"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(f"{name}: text expected; got {type(getattr(self, name)).__name__}")
        texts, ids = _passages(self.contexts)
        object.__setattr__(self, "contexts", texts)
        object.__setattr__(self, "documents", _documents(self.documents, texts) or (ids if any(ids) else ()))
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
            documents=tuple(self.documents),
            history=tuple(Message(turn["role"], turn["content"]) for turn in self.history),
            reference=self.reference,
        )


def _passages(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts that are not blank, and the id or URI of each ("" for one without)."""
    listed = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(listed, list | tuple):
        raise UsageError(f"contexts: a list of texts expected; got {type(given).__name__}")
    found = [(_text(passage), id_of(passage)) for passage in listed]
    kept = [(text, name) for text, name in found if text.strip()]
    return tuple(text for text, _ in kept), tuple(name for _, name in kept)


def _text(passage: Any) -> str:
    """The text of a passage, which may be a document that holds it."""
    text = text_of(passage)
    if text is None:
        raise UsageError(f"contexts: a list of texts expected; got {type(passage).__name__} in it")
    return text


def _documents(given: Any, texts: tuple[str, ...]) -> tuple[str, ...]:
    listed = tuple(given) if isinstance(given, list | tuple) else None
    if listed is None or not all(isinstance(each, str) for each in listed) or (listed and len(listed) != len(texts)):
        raise UsageError("documents: a list with the id of each of the contexts expected")
    return listed


def _turns(given: Any) -> tuple[dict[str, str], ...]:
    if not isinstance(given, list | tuple | None):
        raise UsageError(f"history: a list of turns expected; got {type(given).__name__}")
    return tuple(_turn(each) for each in given or ())


def _turn(given: Any) -> dict[str, str]:
    role, text = _message(given)
    if role not in _ROLES or text is None:
        raise UsageError("history: turns of {role: user|assistant, content: text} expected")
    return {"role": _ROLES[role], "content": text}


def _message(given: Any) -> tuple[str, str | None]:
    """Role and text of a message: OpenAI's, or LangChain's as it is dumped; "" and None for what there is not."""
    if not isinstance(given, Mapping):
        return "", None
    held = next((given[key] for key in ("kwargs", "data") if isinstance(given.get(key), Mapping)), given)
    named = given["id"][-1] if isinstance(given.get("id"), list) and given["id"] else None
    role = given.get("role") or named or given.get("type")
    content = held.get("content", held.get("text"))
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, Mapping) and each.get("type") in _TEXTS]
        content = "\n".join(str(each.get("text", "")) for each in parts) or None
    return str(role), content if isinstance(content, str) else None


def conversation(messages: Sequence[Any]) -> tuple[str | None, list[dict[str, str]], str | None]:
    """A question that is given as messages: the last of the user, the turns before it, and the answer behind it.

    UsageError for what is no message. Other roles (`system`, `tool`) and calls of tools are passed over.
    """
    if len(messages) == 1 and isinstance(messages[0], list):  # the batch of one that LangSmith records
        messages = messages[0]
    turns = [_turn(each) for each in messages if not _is_silent(*_message(each))]
    last = next((at for at in reversed(range(len(turns))) if turns[at]["role"] == "user"), None)
    if last is None:
        return None, [], None
    return turns[last]["content"], turns[:last], turns[-1]["content"] if last + 1 < len(turns) else None


def _is_silent(role: str, text: str | None) -> bool:
    return role in _SILENT or (text is None and _ROLES.get(role) == "assistant")
