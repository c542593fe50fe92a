"""Passages as spans list them: rerankers replace the retrievers they were fed from, several retrievers are united."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracescore.interactions import documents, values
from tracescore.interactions.convention import FLOWS, Kind, Node, Piece
from tracescore.interactions.grouping import Group
from tracescore.model import ContextSource, Found

_SOURCES: tuple[Kind, ...] = ("retriever", "reranker")
_JOINED = 3
"""With fewer passages none joins two others."""


class Contexts(NamedTuple):
    """Passages in the order the model got them. `partial`: the telemetry itself says that some are missing."""

    texts: tuple[str, ...] = ()
    source: ContextSource = "none"
    flaw: values.Flaw = ""
    partial: bool = False
    found: Found | None = None
    rankings: tuple[tuple[int, ...], ...] = ()
    """Where several retrievals listed them: the places in `texts` of what each found, the best first."""
    ids: Mapping[str, str] = {}
    """Text -> id or URI of its document, where that was recorded."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The id or URI of each text; empty where there is none at all."""
        return tuple(self.ids.get(text, "") for text in self.texts) if self.ids else ()


def listed(node: Node, piece: Piece, found: documents.Passages | None, source: ContextSource) -> Contexts:
    """Passages as a span lists them, with what the span says is wrong with them."""
    found = found or documents.Passages(())
    partial = (found.bare and bool(found.texts)) or _fewer(node, found) or _shortened(node, found)
    flaw = found.flaw or ("truncated" if _cut(node, found) else "")
    return Contexts(found.texts, source, flaw, partial, Found(node.name, piece.key), ids=found.ids)


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


def retrieved(group: Group) -> Contexts:
    """What retrievers and rerankers list."""
    nodes = [node for node in group.of_kind(*_SOURCES) if _before_answer(group, node)]
    lists: dict[int, Contexts] = {}
    for at, node in enumerate(nodes):
        ranked = _ranked(node, nodes[:at]) if node.kind == "reranker" else None
        if found := ranked or _documents(node):
            lists[id(node)] = found
    return _united([node for node in nodes if id(node) in lists and not _inside(node, lists)], lists)


def returned(group: Group) -> Contexts:
    """What ordinary steps gave back that is passages: a function that looks up, though none calls it so."""
    lists: dict[int, Contexts] = {}
    inner = (node for node in group.of_kind(*FLOWS) if node is not group.root)
    steps = [node for node in inner if _before_answer(group, node)]
    for node in steps:
        for piece in node.read("output"):
            found = documents.returned(piece.value, node.name)
            if found is not None and found.texts:
                lists[id(node)] = listed(node, piece, found, "retrieval")
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
    texts = passages if repeats else _distinct(passages)
    return Contexts(
        tuple(texts),
        "tool" if repeats else "retrieval",
        values.worst(found.flaw for found in chosen),
        any(found.partial for found in chosen),
        chosen[0].found,
        _rankings(chosen, texts) if len(chosen) > 1 and not repeats else (),
        {text: identity for found in reversed(chosen) for text, identity in found.ids.items()},
    )


def _rankings(lists: Sequence[Contexts], texts: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """What each retrieval found, by its place among the texts of all."""
    places = {values.squeezed(text): place for place, text in enumerate(texts)}
    found = ([places.get(values.squeezed(text)) for text in each.texts] for each in lists)
    return tuple(tuple(place for place in dict.fromkeys(ranking) if place is not None) for ranking in found)


def _documents(node: Node) -> Contexts | None:
    """What a retriever lists; the first reading that has texts, else the first that says anything."""
    first: Contexts | None = None
    for piece in node.read("documents"):
        found = listed(node, piece, documents.passages(piece.value), "retrieval")
        if found.texts:
            return found
        first = first or found
    return first


def _ranked(reranker: Node, before: Sequence[Node]) -> Contexts | None:
    """What a reranker kept that returns places or ids, out of what it was given or else of what was found before it."""
    for piece in reranker.read("documents"):
        ranking = documents.ranking(piece.value)
        if ranking is None:
            continue
        given = [one for each in reranker.read("rerank_input") for one in documents.entries(each.value)]
        given = given or [
            one for node in before for each in node.read("documents") for one in documents.entries(each.value)
        ]
        known: dict[int | str, str] = {identity: text for identity, text in given if identity}
        known.update(enumerate(text for _, text in given))
        kept = [known[rank] for rank in ranking if rank in known]
        if len(kept) == len(ranking):
            ids = {text: identity for identity, text in reversed(given) if identity}
            return Contexts(tuple(kept), "retrieval", found=Found(reranker.name, piece.key), ids=ids)
    return None


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
    return _without_joined(list(first.values()))


def _without_joined(passages: list[str]) -> list[str]:
    """Passages without those that only join others of them."""
    if len(passages) < _JOINED:
        return passages
    return [text for text in passages if not _joins(text, passages)]


def _joins(text: str, passages: Sequence[str]) -> bool:
    """Whether nothing but marks is left of a text when at least two of the passages are taken out of it."""
    parts = [part for part in passages if len(part) < len(text) and part in text]
    if len(parts) < 2:
        return False
    rest = text
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, " ")
    return not any(map(str.isalpha, rest))
