"""Which spans make up one interaction, and the span its scores attach to.

The outermost span that a convention calls an agent or a chain is the interaction. Where retrieval and model call
stand beside each other under an ordinary span, the nearest span that covers both is. A model call by itself is
one too; indexing, a bare retrieval and HTTP traffic are none.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

from tracescore.interactions import calls, documents, messages, values
from tracescore.interactions.convention import FLOWS, Kind, Node, remembered
from tracescore.interactions.conventions import plain
from tracescore.interactions.tree import walk

_SOURCES: frozenset[Kind] = frozenset(("retriever", "reranker", "embedding"))
_SOON = 4
"""Within as many units, or by the last, what a model call replied is taken up if it is at all."""
_TELLING = 8
"""A shorter query stands in any text."""
_SERVER_KINDS = (2, 5)
"""SERVER and CONSUMER: where a request came in, which is not yet what was done about it."""


class Group:
    """One interaction in the making: the span to attach to, and the parts it is read from (each with all below)."""

    def __init__(self, root: Node, parts: list[Node]) -> None:
        self.root = root
        self.parts = parts

    @cached_property
    def nodes(self) -> list[Node]:
        """Everything below the parts, in order of (start, end, span id)."""
        found = {id(node): node for part in self.parts for node in walk(part) if node.span is not None}
        return sorted(found.values(), key=_order)

    @cached_property
    def _by_kind(self) -> dict[Kind | None, list[Node]]:
        found: dict[Kind | None, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.kind, []).append(node)
        return found

    @cached_property
    def answering(self) -> Node | None:
        """The model call that wrote the answer: the last one, unless it only called tools or rewrote the question."""
        models = [node for node in self.of_kind("llm") if calls.answers(node)]
        known = [node for node in models if not node.failed] or models
        return known[-1] if known else None

    def of_kind(self, *kinds: Kind) -> list[Node]:
        """The nodes of the given kinds in order of start."""
        lists = [nodes for kind in kinds if (nodes := self._by_kind.get(kind))]
        if len(lists) <= 1:
            return lists[0] if lists else []
        return sorted((node for nodes in lists for node in nodes), key=_order)


def groups(tops: Sequence[Node]) -> list[Group]:
    """All interactions of a trace in order of start."""
    found: list[Group] = []
    for top in tops:
        closed, loose = _collect(top)
        found.extend(closed)
        found.extend(_leftover(loose))
    return sorted(found, key=lambda group: _order(group.root))


def _collect(top: Node) -> tuple[list[Group], list[Node]]:
    """(interactions found at or below, recognised nodes that belong to none yet); no recursion, traces are deep."""
    results: dict[int, tuple[list[Group], list[Node]]] = {}
    stack = [(top, False)]
    while stack:
        node, seen = stack.pop()
        if node.kind is not None:
            results[id(node)] = _recognised(node)
        elif seen or not node.children:
            below = [results.pop(id(child)) for child in node.children]
            closed = [group for groups_below, _ in below for group in groups_below]
            loose = [unit for _, units in below for unit in units]
            results[id(node)] = _ordinary(node, closed, loose)
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in node.children)
    return results[id(top)]


def _recognised(node: Node) -> tuple[list[Group], list[Node]]:
    """A topmost recognised node: an interaction if it is a flow worth it, else a loose unit."""
    if node.kind not in FLOWS or not _worthy(node):
        return [], [node]
    return _batch(node) or [Group(node, [node])], []


def _worthy(node: Node) -> bool:
    """Whether a flow answers somebody: a model below it, an error, or question and answer around a retrieval."""
    if "llm" in node.kinds:
        return node.failed or any(calls.answers(below) for below in walk(node) if below.kind == "llm")
    question, answer = _own_question(node), _own_answer(node)
    if node.failed:
        return question is not None or "retriever" in node.kinds or not any(True for _ in node.read("input"))
    if question is None or answer is None:
        return False
    return node.kind == "agent" or ("retriever" in node.kinds and not _quotes(node, answer))


_FEW_WORDS = 2
"""Words beside the passages from which on an output says something of its own."""


def _quotes(node: Node, answer: str) -> bool:
    """Whether an output is just what the retrieval below it found, and no answer that quotes it.

    A single one of several passages was chosen from them: that is an answer, too.
    """
    found = (documents.passages(piece.value) for below in walk(node) for piece in below.read("documents"))
    texts_found = [text for passages in found if passages for text in passages.texts if text.strip()]
    if answer.lstrip().startswith(("[", "{")):  # documents as data, with whatever else they carry
        return any(text in answer for text in texts_found)
    if len(set(texts_found)) > 1 and answer.strip() in {text.strip() for text in texts_found}:
        return False
    beside = answer
    for text in texts_found:
        beside = beside.replace(text, " ")
    return beside != answer and len(re.findall(r"\w+", beside)) < _FEW_WORDS


def _own_question(node: Node) -> str | None:
    return next((found.text for _, found in calls.asked(node) if found.text is not None), None)


def _own_answer(node: Node) -> str | None:
    return next((text for _, text, _ in calls.answered(node) if text is not None), None)


def _batch(node: Node) -> list[Group]:
    """The interactions inside a flow that has no question of its own but steps that each have one and an answer."""
    if _own_question(node) is not None or node.attributes.get("langfuse.internal.is_app_root"):
        return []
    inner = [child for child in node.children if child.kind in FLOWS and "llm" in child.kinds]
    questions = [_own_question(child) for child in inner]
    whole = all(question is not None for question in questions) and all(
        _own_answer(child) is not None for child in inner
    )
    if len(inner) < 2 or not whole or len(set(questions)) < len(inner):
        return []
    return [Group(child, [child]) for child in inner]


def _ordinary(node: Node, closed: list[Group], loose: list[Node]) -> tuple[list[Group], list[Node]]:
    """An ordinary span, or a missing parent, over what was found below it."""
    if closed:
        closed, steps = _without_steps(node, closed)
        loose = [*loose, *steps]
    if len(closed) == 1:
        only = closed[0]
        outside = [unit for unit in loose if unit.kinds & _SOURCES and unit.start <= only.root.end]
        asks = _inside_app(node) and plain.question(node) is not None
        alike = only.root.kind is None and only.root.parent is node and _inside_app(node)
        if asks or alike or (outside and "retriever" not in only.root.kinds and only.root.kind in FLOWS):
            return [_around(node, [*only.parts, *loose], only.root)], []
        return closed, []
    if closed:
        return _with_sources(closed, loose), []
    if ("llm" in node.kinds and _complete(loose)) or (node.failed and any(_tried(unit) for unit in loose)):
        return _split(loose) or [_around(node, loose, None)], []
    return [], loose


def _inside_app(node: Node) -> bool:
    """Whether a span is the app's own work: it has arrived, and is not where a request came in."""
    return node.span is not None and node.span.kind not in _SERVER_KINDS


def _without_steps(node: Node, closed: list[Group]) -> tuple[list[Group], list[Node]]:
    """(interactions, parts that only served one): what a flow answered is a step's result if it was searched for."""
    if len(node.children) < 2 or not node.kinds & _SOURCES:
        return closed, []
    queries: dict[str, int] = {}
    for below in (below for below in walk(node) if below.kind in _SOURCES):
        for _, text in calls.queries(below):
            query = values.squeezed(text)
            queries[query] = max(below.start, queries.get(query, 0))
    steps = []
    for group in closed:
        answer = _own_answer(group.root) if group.root.kind in FLOWS else None
        if answer and queries.get(values.squeezed(answer), -1) >= group.root.end:
            steps.append(group)
    served = {id(group) for group in steps}
    return [group for group in closed if id(group) not in served], [part for group in steps for part in group.parts]


def _around(node: Node, parts: list[Node], inner: Node | None) -> Group:
    """An interaction that ordinary span `node` stands for; where it has not arrived, its most telling part does."""
    if node.span is None:
        return Group(inner or _answering(parts), parts)
    return Group(node, [node])


def _with_sources(closed: list[Group], loose: list[Node]) -> list[Group]:
    """Several interactions under one span: each takes the retrievals that ran before it and after its predecessor."""
    free = deque(sorted((unit for unit in loose if unit.kinds & _SOURCES), key=_order))
    result = []
    for group in sorted(closed, key=lambda group: _order(group.root)):
        before = []
        while free and free[0].start <= group.root.start:
            before.append(free.popleft())
        bare = "retriever" not in group.root.kinds
        result.append(Group(group.root, [*before, *group.parts]) if bare and before else group)
    return result


def _models(loose: Iterable[Node]) -> list[Node]:
    return [unit for unit in loose if "llm" in unit.kinds]


def _complete(loose: Sequence[Node]) -> bool:
    """Whether loose units hold a retrieval or tool call and a model call after it."""
    starts = [unit.start for unit in loose if unit.kinds & {"retriever", "reranker", "tool"}]
    starts += [unit.start for unit in loose if unit.kind == "embedding" and any(True for _ in unit.read("query"))]
    if not starts or not _models(loose):
        return False
    return max(below.start for unit in loose for below in walk(unit) if below.kind == "llm") >= max(starts)


def _segments(loose: Sequence[Node]) -> list[list[Node]]:
    """Loose units cut behind each model call that answered a question of its own; mostly there is but one segment.

    A call whose reply a later search or model call takes up (a rewritten query, a draft) ends no segment, and what
    does not start afresh belongs to what was before it: graders and planners answer questions too.
    """
    ordered = sorted(loose, key=_order)
    last = _models(ordered)[-1:]
    segments: list[list[Node]] = [[]]
    for at, unit in enumerate(ordered):
        segments[-1].append(unit)
        later = [*ordered[at + 1 : at + 1 + _SOON], *(one for one in last if one is not unit)]
        if calls.question(unit) is not None and not _taken_up(calls.reply(unit) or "", later):
            segments.append([])
    rest = segments.pop()
    if rest and segments:
        segments[-1].extend(rest)
    if not segments:
        return [ordered]
    merged = [list(segments[0])]
    for before, segment in pairwise(segments):
        if _apart(before, segment):
            merged.append([])
        merged[-1].extend(segment)
    return merged


def _apart(before: list[Node], segment: list[Node]) -> bool:
    """Whether two segments are two turns.

    They are if the later one was told the earlier reply as history, if each searched with its own question, or if
    each was given another question together with evidence.
    """
    posed = calls.posed(_answering(before)), calls.posed(_answering(segment))
    return (
        _remembers(segment, before)
        or (_searched(before) and _searched(segment))
        or (None not in posed and posed[0] != posed[1])
    )


def _searched(segment: list[Node]) -> bool:
    question = calls.question(_answering(segment))
    if question is None:
        return False
    return values.squeezed(question) in {values.squeezed(query) for unit in segment for _, query in calls.queries(unit)}


def _remembers(segment: list[Node], before: list[Node]) -> bool:
    said = calls.reply(_answering(before))
    sent = calls.conversation(_answering(segment))
    return said is not None and any(turn.role == "assistant" and turn.text == said for turn in sent)


def _taken_up(text: str, later: Iterable[Node]) -> bool:
    wanted = values.squeezed(text)
    if not wanted:
        return False
    for unit in later:
        queries, said = _heard(unit)
        if wanted in said or any(query == wanted or (len(query) >= _TELLING and query in wanted) for query in queries):
            return True
    return False


@remembered
def _heard(unit: Node) -> tuple[list[str], str]:
    """What a unit was asked to find, and what the user said last in a model call."""
    sent = calls.conversation(unit) if unit.kind == "llm" else []
    last = messages.last_user(sent)
    said = sent[last].text or "" if last is not None else ""
    return [values.squeezed(query) for _, query in calls.queries(unit)], values.squeezed(said)


def _split(loose: list[Node]) -> list[Group]:
    """Loose units as several interactions, each attached to its model call; empty where they are but one."""
    segments = _segments(loose) if len(loose) > 1 else []
    if len(segments) < 2:
        return []
    return [Group(_answering(segment), segment) for segment in segments if _models(segment)]


def _leftover(loose: list[Node]) -> list[Group]:
    """Model calls that no span joins with a retrieval: one interaction, or one each for different questions."""
    models = [unit for unit in _models(loose) if unit.kind != "llm" or calls.answers(unit)]
    if not models:
        return []
    cover = _cover(loose)
    lone = len(loose) == 1 and cover is not None and cover.span is not None and cover.span.kind in _SERVER_KINDS
    if cover is None or lone:
        return _split(loose) or [Group(_answering(models), loose)]
    return _split(loose) or [_around(cover, loose, None)]


def _cover(units: Sequence[Node]) -> Node | None:
    """The nearest span above all units."""
    line = list(units[0].upwards())[1:]
    joins = {id(above): at for at, above in enumerate(line)}
    """Where on the line the way up from a span ends."""
    nearest = 0
    for unit in units[1:]:
        way: list[int] = []
        for above in unit.upwards():
            if id(above) in joins:
                joins.update(dict.fromkeys(way, joins[id(above)]))
                nearest = max(nearest, joins[id(above)])
                break
            way.append(id(above))
    return line[nearest] if line else None


def _tried(unit: Node) -> bool:
    """Whether a unit is part of answering somebody rather than of indexing."""
    return bool(unit.kinds & {"llm", "retriever", "tool"}) or any(True for _ in unit.read("query"))


def _answering(units: Sequence[Node]) -> Node:
    """The last model call among units, else the last unit."""
    models = [unit for unit in units if unit.kind == "llm"] or _models(units) or list(units)
    return max(models, key=_order)


def _order(node: Node) -> tuple[int, int, str]:
    return (node.start, node.end, node.span.span_id if node.span else "")
