"""The passages the answer rests on, and where they were read.

Listed by spans first (rerankers replace the retrievers they were fed from, several retrievers are united), then
what was handed to steps or filled into a template, then results of search tools, then the rendered prompt itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracescore.config import InteractionsConfig
from tracescore.interactions import calls, documents, fields, messages, prompt, values
from tracescore.interactions.convention import FLOWS, Kind, Node, Piece
from tracescore.interactions.grouping import Group
from tracescore.model import ContextSource, Found

_SEARCHES = re.compile(
    r"search|retriev|look_?-?up|knowledge|query|quer(?:y|ies)|find|fetch|docs|document|handbook|rag|passage|faq|wiki|"
    r"vector|index|browse|read_",
    re.IGNORECASE,
)
_SOURCES: tuple[Kind, ...] = ("retriever", "reranker")
_STEPS: tuple[Kind, ...] = ("agent", "chain", "prompt", "llm")


@dataclass(frozen=True, slots=True)
class Contexts:
    """Passages in the order the model got them. `partial`: the telemetry itself says that some are missing."""

    texts: tuple[str, ...] = ()
    source: ContextSource = "none"
    flaw: values.Flaw = ""
    partial: bool = False
    found: Found | None = None


def read(group: Group, settings: InteractionsConfig, question: fields.Field) -> Contexts:
    """The contexts of a group; `flaw` and `partial` of the best source that says anything at all."""
    tried: list[str] = []
    flaw: values.Flaw = ""
    for found in _sources(group, settings, question):
        if found.texts:
            place = found.found or Found("", "")
            return Contexts(
                found.texts, found.source, found.flaw, found.partial, Found(place.span, place.key, tuple(tried))
            )
        flaw = flaw or found.flaw
        if found.found:
            tried.append(f"{found.found.span} @ {found.found.key}")
    return Contexts(flaw=flaw, found=Found("", "", tuple(tried)))


def _sources(group: Group, settings: InteractionsConfig, question: fields.Field) -> Iterator[Contexts]:
    for node, key, value in fields.own(group, settings.contexts):
        yield _listed(node, Piece(key, value), documents.passages(value), "retrieval")
    yield _retrieved(group)
    yield _returned(group)
    yield from _handed_over(group, question.text)
    yield _from_tools(group)
    yield from _from_prompt(group)
    if question.beside:
        yield Contexts((question.beside,), "prompt", found=question.found)


def _listed(node: Node, piece: Piece, found: documents.Passages | None, source: ContextSource) -> Contexts:
    found = found or documents.Passages(())
    partial = (found.bare and bool(found.texts)) or _fewer(node, found) or _shortened(node, found)
    flaw = found.flaw or ("truncated" if _cut(node, found) else "")
    return Contexts(found.texts, source, flaw, partial, Found(node.name, piece.key))


def _cut(node: Node, found: documents.Passages) -> bool:
    """Whether a limit cut the texts: some other attribute has the very same length (else it is how they were split)."""
    lengths = {len(text) for text in found.texts if values.cut(text)}
    if not lengths:
        return False
    others = (value for value in node.attributes.values() if isinstance(value, str) and len(value) in lengths)
    return any(value not in found.texts for value in others)


def _fewer(node: Node, found: documents.Passages) -> bool:
    """Whether the span says that it had more documents than it kept (limits of the SDK or of the emitter)."""
    count = node.attributes.get("gen_ai.retrieval.document_count")
    dropped = node.span is not None and node.span.dropped_attributes > 0
    return bool(found.texts) and (dropped or (isinstance(count, int) and count > len(found.texts)))


def _shortened(node: Node, found: documents.Passages) -> bool:
    """OpenLIT ends a text it has cut with dots."""
    ours = node.span is not None and node.span.scope_name.startswith("openlit")
    return ours and any(text.endswith("...") for text in found.texts)


# ---------------------------------------------------------------- retrievers and rerankers


def _retrieved(group: Group) -> Contexts:
    """What retrievers and rerankers list."""
    nodes = [node for node in group.of_kind(*_SOURCES) if _before_answer(group, node)]
    lists = {id(node): found for node in nodes if (found := _documents(node))}
    return _united([node for node in nodes if id(node) in lists and not _inside(node, lists)], lists)


def _returned(group: Group) -> Contexts:
    """What ordinary steps gave back that is passages: a function that looks up, though none calls it so."""
    lists: dict[int, Contexts] = {}
    inner = (node for node in group.of_kind(*FLOWS) if node is not group.root)
    steps = [node for node in inner if _before_answer(group, node)]
    for node in steps:
        for piece in node.read("output"):
            found = documents.returned(piece.value, node.name)
            if found is not None and found.texts:
                lists[id(node)] = _listed(node, piece, found, "retrieval")
                break
    return _united([node for node in steps if id(node) in lists and not _inside(node, lists)], lists)


def _before_answer(group: Group, node: Node) -> bool:
    answered = group.answering
    return answered is None or node.start <= answered.end


def _united(outer: Sequence[Node], lists: dict[int, Contexts]) -> Contexts:
    """Several lists as one, without those that a later one was made from."""
    kept = _unreplaced(outer, lists)
    if not kept:
        first = next(iter(lists.values()), None)
        return Contexts(flaw=first.flaw, source="retrieval", found=first.found) if first else Contexts()
    chosen = [lists[id(node)] for node in kept]
    repeats = all(_in_tool(node) for node in kept)
    passages = [text for found in chosen for text in found.texts]
    return Contexts(
        tuple(passages if repeats else _distinct(passages)),
        "tool" if repeats else "retrieval",
        values.worst(found.flaw for found in chosen),
        any(found.partial for found in chosen),
        chosen[0].found,
    )


def _documents(node: Node) -> Contexts | None:
    """What a retriever lists; the first reading that has texts, else the first that says anything."""
    first: Contexts | None = None
    for piece in node.read("documents"):
        found = _listed(node, piece, documents.passages(piece.value), "retrieval")
        if found.texts:
            return found
        first = first or found
    return first


def _inside(node: Node, lists: dict[int, Contexts]) -> bool:
    """Whether a retriever around this one lists passages itself."""
    return any(id(above) in lists and lists[id(above)].texts for above in node.upwards() if above is not node)


def _unreplaced(nodes: Sequence[Node], lists: dict[int, Contexts]) -> list[Node]:
    """Without the retrievers (and earlier rerankers) whose passages a later reranker was given."""
    holders: dict[str, list[int]] = {}
    unread: list[int] = []
    """Whose texts are not among the holders yet: mostly nobody asks, and comparing texts is dear."""
    replaced: set[int] = set()
    kept: list[int] = []
    for at, node in enumerate(nodes):
        texts = lists[id(node)].texts
        if texts and node.kind in ("reranker", *FLOWS):
            given = _given(node) if node.kind == "reranker" else {values.squeezed(text) for text in texts}
            while given and unread:
                holder = unread.pop()
                for text in lists[id(nodes[holder])].texts:
                    holders.setdefault(values.squeezed(text), []).append(holder)
            if not given:
                replaced.update(kept)
                kept.clear()
            elif node.kind == "reranker" or given <= holders.keys():
                replaced.update(before for text in given for before in holders.pop(text, ()))
        kept.append(at)
        unread.append(at)
    return [node for at, node in enumerate(nodes) if at not in replaced and lists[id(node)].texts]


def _given(reranker: Node) -> set[str]:
    found = (documents.passages(piece.value) for piece in reranker.read("rerank_input"))
    return {values.squeezed(text) for passages in found if passages for text in passages.texts}


def _in_tool(node: Node) -> bool:
    return any(above.kind == "tool" for above in node.upwards())


def _distinct(passages: Sequence[str]) -> list[str]:
    first: dict[str, str] = {}
    for text in passages:
        first.setdefault(values.squeezed(text), text)
    return list(first.values())


# ---------------------------------------------------------------- steps, templates, tools, the prompt


def _handed_over(group: Group, question: str | None) -> Iterator[Contexts]:
    """Documents among the arguments of a step, then texts under telling names: lists before joined ones."""
    joined: list[Contexts] = []
    for node in group.of_kind(*_STEPS):
        for piece in _arguments(node):
            if isinstance(piece.value, str) and len(piece.value) < 30:
                continue
            found = documents.documents(piece.value) or _named_list(piece.value)
            if found and found.texts:
                yield _listed(node, piece, found, "variables")
            elif text := _named_text(piece.value, question):
                joined.append(Contexts((text,), "variables", found=Found(node.name, piece.key)))
    yield from joined


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
    results = (_tool_result(node) for node in group.of_kind("tool") if not node.failed)
    found = [result for result in results if result is not None] or _from_tool_messages(group)
    texts = tuple(text for one in found for text in one.texts)
    flaw = values.worst(one.flaw for one in found)
    return Contexts(texts, "tool", flaw, found=found[0].found) if found else Contexts()


def _tool_result(node: Node) -> Contexts | None:
    name = next((str(piece.value) for piece in node.read("tool_name")), node.name)
    for piece in node.read("tool_result"):
        found = _search_results(_results(name, piece.value))
        if found.texts or found.flaw:
            return Contexts(found.texts, "tool", found.flaw, found=Found(node.name, piece.key))
    return None


def _from_tool_messages(group: Group) -> list[Contexts]:
    model = group.answering
    sent = calls.conversation(model) if model else []
    found = _search_results(messages.results_after(sent, messages.last_user(sent) or 0))
    if model is None or not (found.texts or found.flaw):
        return []
    return [Contexts(found.texts, "tool", found.flaw, found=Found(model.name, "tool messages"))]


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
    return documents.Passages(texts, values.worst(one.flaw for one in found))


def _from_prompt(group: Group) -> Iterator[Contexts]:
    """Evidence that the prompt of the answering call marks as such; of the last failed call where none answered."""
    model = group.answering
    if model is None:
        return
    for sent in (*calls.sent(model), *map(calls.sent_by, model.read("input"))):
        evidence = prompt.evidence_in(calls.with_instructions(model, sent.turns))
        yield Contexts((evidence,) if evidence else (), "prompt", found=Found(model.name, sent.key))
