"""The passages the answer rests on, and where they were read.

Listed by spans first (rerankers replace the retrievers they were fed from, several retrievers are united), then
what was handed to steps or filled into a template, then results of search tools, then the rendered prompt itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tracescore.config import InteractionsConfig
from tracescore.interactions import answers, calls, documents, fields, messages, prompt, values
from tracescore.interactions.convention import FLOWS, Kind, Node, Piece
from tracescore.interactions.grouping import Group
from tracescore.interactions.retrieved import Contexts, listed, retrieved, returned
from tracescore.model import Found

_SEARCHES = re.compile(
    r"search|retriev|look_?-?up|knowledge|query|quer(?:y|ies)|find|fetch|docs|document|handbook|rag|passage|faq|wiki|"
    r"vector|index|browse|read_",
    re.IGNORECASE,
)
_LISTS = "set retrieval.documents.N.document.content, or output.value to a JSON list of texts or documents"
"""What to do about a retriever or a reranker whose documents cannot be read, for `inspect --explain`."""
_STEPS: tuple[Kind, ...] = ("agent", "chain", "prompt", "llm")


def read(group: Group, settings: InteractionsConfig, question: fields.Field) -> Contexts:
    """The contexts of a group; `flaw` and `partial` of the best source that says anything at all."""
    tried: list[str] = []
    flaw: values.Flaw = ""
    for found in _sources(group, settings, question):
        if found.texts:
            place = found.found or Found("", "")
            return found._replace(found=Found(place.span, place.key, tuple(tried)))
        flaw = flaw or found.flaw
        if found.found:
            tried.append(f"{found.found.span} @ {found.found.key}")
    unread = [f"{node.name} lists no documents: {_LISTS}" for node in group.of_kind("retriever", "reranker")]
    return Contexts(flaw=flaw, found=Found("", "", tuple(dict.fromkeys((*tried, *unread)))))


def _sources(group: Group, settings: InteractionsConfig, question: fields.Field) -> Iterator[Contexts]:
    for node, key, value in fields.own(group, settings, "contexts"):
        yield listed(node, Piece(key, value), documents.passages(value), "retrieval")
    for rule in SOURCES:
        yield from rule.read(group, question)


# ---------------------------------------------------------------- steps, templates, tools, the prompt


def _handed_over(group: Group, question: fields.Field) -> Iterator[Contexts]:
    """Documents among the arguments of a step, then texts under telling names: lists before joined ones."""
    joined: list[Contexts] = []
    for node in group.of_kind(*_STEPS):
        for piece in _arguments(node):
            data = None if isinstance(piece.value, str) and len(piece.value) < 30 else values.data(piece.value)
            if not isinstance(data, (dict, list)):
                continue
            found = documents.documents(data) or _named_list(data)
            if found and found.texts:
                yield listed(node, piece, found, "variables")
            elif text := _named_text(data, question.text):
                joined.append(Contexts((text,), "variables", found=Found(node.name, piece.key)))
    said = _said(group) if joined else set()
    yield from (one for one in joined if values.squeezed(one.texts[0]) not in said)


def _said(group: Group) -> set[str]:
    """What steps answered: handed on to a later one it is no evidence."""
    nodes = group.of_kind("agent", "chain", "llm")
    texts = [text for node in nodes for _, text, _ in calls.answered(node)]
    texts += [calls.reply(node) for node in nodes if node.kind == "llm"]
    return {values.squeezed(text) for text in texts if text}


def _arguments(node: Node) -> Iterator[Piece]:
    if node.kind != "llm":
        yield from node.read("input")
    yield from node.read("variables")


def _named(value: object) -> dict[str, object]:
    """An argument dict without its wrappers."""
    data = values.data(value)
    for wrapper in ("inputs", "kwargs"):
        inner = data.get(wrapper) if isinstance(data, dict) else None
        data = inner if isinstance(inner, dict) and inner else data
    return data if isinstance(data, dict) else {}


def _named_list(value: object) -> documents.Passages | None:
    data = _named(value)
    for name in prompt.CONTEXT_NAMES:
        item = values.data(data.get(name))
        if isinstance(item, list) and item and not messages.turns(item):
            return documents.passages(item)
    return None


def _named_text(value: object, question: str | None) -> str | None:
    data = _named(value)
    for name in prompt.CONTEXT_NAMES:
        item = data.get(name)
        if isinstance(item, str) and item.strip() and item != question and not values.redacted(item):
            return item
    return None


def _from_tools(group: Group) -> Contexts:
    """Results of search-like tools, as many as there were, in order of start."""
    # a function around the answering call gives back the answer
    tools = group.of_kind("tool")
    around = {id(node) for node in group.answering.upwards()} if tools and group.answering else set()
    results = [_tool_result(node) for node in tools if not node.failed and id(node) not in around]
    found = [result for result in results if result is not None] or _from_tool_messages(group) or _from_state(group)
    passages = tuple(text for one in found for text in one.texts)
    flaw = values.worst(one.flaw for one in found)
    ids = {text: identity for one in reversed(found) for text, identity in one.ids.items()}
    return Contexts(passages, "tool", flaw, found=found[0].found, ids=ids) if found else Contexts()


def _tool_result(node: Node) -> Contexts | None:
    name = next((str(piece.value) for piece in node.read("tool_name")), node.name)
    for piece in node.read("tool_result"):
        found = _search_results(_results(name, piece.value))
        if found.texts or found.flaw:
            return Contexts(found.texts, "tool", found.flaw, found=Found(node.name, piece.key), ids=found.ids)
    return None


def _from_tool_messages(group: Group) -> list[Contexts]:
    model = group.answering
    sent = calls.conversation(model) if model else []
    found = _search_results(messages.results_after(sent, messages.last_user(sent) or 0))
    if model is None or not (found.texts or found.flaw):
        return []
    return [Contexts(found.texts, "tool", found.flaw, found=Found(model.name, "tool messages"), ids=found.ids)]


def _from_state(group: Group) -> list[Contexts]:
    """Results of search tools among the messages in the state that a flow gave back."""
    for node in (group.root, *group.of_kind(*FLOWS)):
        for piece in node.read("output"):
            turns = answers.conversation(piece.value)
            if not turns:
                continue
            found = _search_results(messages.results_after(turns, messages.last_user(turns) or 0))
            if found.texts or found.flaw:
                return [Contexts(found.texts, "tool", found.flaw, found=Found(node.name, piece.key), ids=found.ids)]
    return []


def _results(name: str, value: object) -> list[messages.ToolResult]:
    """A recorded result as tool results; some record the message that carries it to the model."""
    data = values.data(value)
    if isinstance(data, dict):
        inner = next((data[key] for key in ("output", "tool_messages", "messages") if data.get(key)), data)
        carried = [result for turn in messages.turns(inner) for result in turn.results]
        if carried:
            return [messages.ToolResult(result.call_id, result.name or name, result.result) for result in carried]
    return [messages.ToolResult("", name, data)]


def _search_results(results: Sequence[messages.ToolResult]) -> documents.Passages:
    """The passages in results of tools that search, by their name or because the result is a list of documents."""
    found = []
    for result in results:
        read_list = documents.passages if _SEARCHES.search(result.name) else documents.documents
        found.append(read_list(result.result) or documents.Passages(()))
    texts = tuple(text for one in found for text in one.texts)
    ids = {text: identity for one in reversed(found) for text, identity in one.ids.items()}
    return documents.Passages(texts, values.worst(one.flaw for one in found), ids=ids)


def _from_prompt(group: Group) -> Iterator[Contexts]:
    """Evidence that the prompt of the answering call marks as such; of the last failed call where none answered."""
    model = group.answering
    if model is None:
        return
    for sent in (*calls.sent(model), *map(calls.sent_by, model.read("input"))):
        evidence = prompt.evidence_in(calls.with_instructions(model, sent.turns))
        listed = documents.documents(evidence[0]) if len(evidence) == 1 else None
        found = listed.texts if listed else ("\n\n".join(evidence),) if evidence else ()
        yield Contexts(found, "prompt", found=Found(model.name, sent.key), ids=listed.ids if listed else {})


def _beside_question(_group: Group, question: fields.Field) -> Iterator[Contexts]:
    if question.beside:
        yield Contexts((question.beside,), "prompt", found=question.found)


class ContextRule(NamedTuple):
    """One place in which passages are looked for, and a capture that needs it."""

    name: str
    capture: str
    read: Callable[[Group, fields.Field], Iterable[Contexts]]


SOURCES: tuple[ContextRule, ...] = (
    ContextRule("retrievers and rerankers list them", "llamaindex-openinference", lambda group, _: [retrieved(group)]),
    ContextRule("a function gave them back", "crewai-flow-openinference", lambda group, _: [returned(group)]),
    ContextRule("they were handed to a step, or filled into a template", "dspy-openinference", _handed_over),
    ContextRule("a tool that searches found them", "traceloop-langgraph", lambda group, _: [_from_tools(group)]),
    ContextRule("the prompt of the answering call marks them", "openlit", lambda group, _: _from_prompt(group)),
    ContextRule("they stand beside the question, in an unmarked prompt", "evidence-beside-question", _beside_question),
)
"""In order of precedence, behind the keys of the user's own."""
