"""What one call says by itself: what a model was sent and replied, what a search was asked."""

from __future__ import annotations

from typing import NamedTuple

from tracescore.interactions import answers, documents, messages, prompt, questions, values
from tracescore.interactions.convention import Node, Piece, remembered

_PROMPTS = ("prompt", "input", "inputs", "text")


class Sent(NamedTuple):
    """One recording of what a model was sent; a bare prompt is one message of the user."""

    key: str
    turns: list[messages.Turn]
    flaw: values.Flaw


class Received(NamedTuple):
    """One recording of what a model replied; `called`: it asked for tools and said nothing."""

    key: str
    text: str | None
    flaw: values.Flaw
    called: bool


@remembered
def asked(node: Node) -> list[tuple[str, questions.Question]]:
    """(key, question) of all recorded inputs of a step, the leading convention's first."""
    return [(piece.key, questions.asked(piece.value)) for piece in node.read("input")]


@remembered
def answered(node: Node) -> list[tuple[str, str | None, values.Flaw]]:
    """(key, answer, flaw) of all recorded outputs of a step, the leading convention's first."""
    return [(piece.key, *answers.answered(piece.value)) for piece in node.read("output")]


@remembered
def sent(node: Node) -> list[Sent]:
    """All recordings of what a model was sent, the leading convention's first."""
    return [sent_by(piece) for piece in node.read("sent")]


def sent_by(piece: Piece) -> Sent:
    """One recorded value as what a model was sent."""
    parsed = values.parse(piece.value)
    found = [] if isinstance(parsed.data, str) else messages.turns(parsed.data)
    if not found and isinstance(piece.value, str):
        found = [messages.Turn(role, text) for role, text in _prompts(parsed.data)]
    return Sent(piece.key, found, parsed.flaw)


def _prompts(data: object) -> list[tuple[str, str]]:
    """(role, text) of prompts that were recorded without roles: of several the last is the user's."""
    if isinstance(data, dict):
        data = next((data[key] for key in _PROMPTS if isinstance(data.get(key), (str, list))), None)
    texts_sent = data if isinstance(data, list) else [data]
    known = [text for text in texts_sent if isinstance(text, str) and text.strip()]
    if len(known) < len(texts_sent):
        return []
    return [*(("system", text) for text in known[:-1]), *(("user", text) for text in known[-1:])]


@remembered
def conversation(node: Node) -> list[messages.Turn]:
    """The messages a model was sent, by the first recording that holds any."""
    return next((with_instructions(node, one.turns) for one in sent(node) if one.turns), [])


def with_instructions(node: Node, turns: list[messages.Turn]) -> list[messages.Turn]:
    """Messages led by the system instructions that some emitters record beside them."""
    if any(turn.role == "system" for turn in turns):
        return turns
    parts = values.data(node.attributes.get("gen_ai.system_instructions"))
    found = (documents.text_of(part) for part in parts) if isinstance(parts, list) else ()
    text = "\n".join(text for text in found if text)
    return [messages.Turn("system", text), *turns] if text else turns


@remembered
def received(node: Node) -> list[Received]:
    """All recordings of what a model replied, the leading convention's first."""
    found = []
    for piece in node.read("received"):
        text, flaw, called = answers.replied(piece.value)
        found.append(Received(piece.key, text, flaw, called))
    return found


def reply(node: Node) -> str | None:
    """The text a model call ended with; None when it called tools, failed or was not recorded."""
    return next((one.text for one in received(node) if one.text is not None), None)


@remembered
def may_answer(node: Node) -> bool:
    """Whether a model call may have produced an answer: not one that only rewrote the question or called tools."""
    return not any(one.called for one in received(node)) and not prompt.rewrites(conversation(node))


@remembered
def queries(node: Node) -> list[tuple[str, str]]:
    """(key, text) of what a retriever, a reranker or an embedding was asked."""
    found = ((piece.key, questions.asked(piece.value).text) for piece in node.read("query"))
    return [(key, text) for key, text in found if text is not None]


@remembered
def question(node: Node) -> str | None:
    """The question that a model call answered; None for one that answered none, and for any other step."""
    if node.kind != "llm" or not may_answer(node) or not (reply(node) or "").strip():
        return None
    turns = conversation(node)
    last = messages.last_user(turns)
    return questions.said(turns[last].text or "")[0] if last is not None else None


@remembered
def posed(node: Node) -> str | None:
    """The question that a model call answered, if it was given together with evidence."""
    return question(node) if prompt.evidence_in(conversation(node)) else None
