"""One model call: what it was sent, what it replied, and whether that can have been an answer."""

from __future__ import annotations

from tracescore.interactions import documents, messages, prompt, texts, values
from tracescore.interactions.convention import Node


def reply(node: Node) -> str | None:
    """The text a model call ended with; None when it called tools, failed or was not recorded."""
    if "reply" not in node.memo:
        found = (texts.answered(piece.value, plain=True)[0] for piece in node.read("received"))
        node.memo["reply"] = next((text for text in found if text is not None), None)
    text: str | None = node.memo["reply"]
    return text


def conversation(node: Node) -> list[messages.Turn]:
    """The messages a model was sent; a bare prompt is one message of the user."""
    if "sent" not in node.memo:
        found = (sent_messages(piece.value) for piece in node.read("sent"))
        sent = next((turns for turns in found if turns), [])
        node.memo["sent"] = with_instructions(node, sent) if sent else sent
    turns: list[messages.Turn] = node.memo["sent"]
    return turns


def with_instructions(node: Node, sent: list[messages.Turn]) -> list[messages.Turn]:
    """Messages led by the system instructions that some emitters record beside them."""
    if any(turn.role == "system" for turn in sent):
        return sent
    parts = values.data(node.attributes.get("gen_ai.system_instructions"))
    found = (documents.text_of(part) for part in parts) if isinstance(parts, list) else ()
    text = "\n".join(text for text in found if text)
    return [messages.Turn("system", text), *sent] if text else sent


def sent_messages(value: object) -> list[messages.Turn]:
    """One recording of what a model was sent, as messages."""
    found = messages.turns(value)
    if found or not isinstance(value, str):
        return found
    data = values.data(value)
    if isinstance(data, dict):
        data = next(
            (data[key] for key in ("prompt", "input", "inputs", "text") if isinstance(data.get(key), str)), None
        )
    return [messages.Turn("user", data)] if isinstance(data, str) and data.strip() else []


def answers(node: Node) -> bool:
    """Whether a model call may have produced an answer: not one that only rewrote the question or called tools."""
    if "answers" not in node.memo:
        received = [messages.turns(piece.value) for piece in node.read("received")]
        called = any(turns and turns[-1].calls and messages.last_answer(turns) is None for turns in received)
        node.memo["answers"] = not called and not prompt.rewrites(conversation(node))
    return bool(node.memo["answers"])
