"""Which spans make up one interaction, and the span its scores attach to.

The outermost span that a convention calls an agent or a chain is the interaction. Where retrieval and model call
stand beside each other under an ordinary span, the nearest span that covers both is. A model call by itself is
one too; indexing, a bare retrieval and HTTP traffic are none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tracescore.interactions import calls, turns, values, worth
from tracescore.interactions.convention import FLOWS, SERVER_KINDS, Kind, Node
from tracescore.interactions.conventions import plain
from tracescore.interactions.tree import walk

_SOURCES: frozenset[Kind] = frozenset(("retriever", "reranker", "embedding"))


class Group:
    """One interaction in the making: the span to attach to, and the parts it is read from (each with all below)."""

    def __init__(self, root: Node, parts: list[Node]) -> None:
        self.root = root
        self.parts = parts
        self._known: tuple[list[Node], dict[Kind | None, list[Node]]] | None = None
        self._answers: tuple[Node | None] | None = None

    @property
    def nodes(self) -> list[Node]:
        """Everything below the parts, in order of (start, end, span id)."""
        return (self._known or self._below())[0]

    def _below(self) -> tuple[list[Node], dict[Kind | None, list[Node]]]:
        """(all nodes, those of each kind), found once."""
        if len(self.parts) == 1 and self.root is self.parts[0] and not self.root.children:
            self._known = [self.root], {self.root.kind: [self.root]}
            return self._known
        found = {id(node): node for part in self.parts for node in walk(part) if node.span is not None}
        nodes = sorted(found.values(), key=turns.order)
        kinds: dict[Kind | None, list[Node]] = {}
        for node in nodes:
            kinds.setdefault(node.kind, []).append(node)
        self._known = nodes, kinds
        return self._known

    @property
    def answering(self) -> Node | None:
        """The model call that wrote the answer: the last one, unless it only called tools or rewrote the question."""
        if self._answers is None:
            self._answers = (self._last_answering(),)
        return self._answers[0]

    def _last_answering(self) -> Node | None:
        models = [node for node in self.of_kind("llm") if calls.may_answer(node) and not _repeats(node)]
        known = [node for node in models if not node.failed] or models
        return known[-1] if known else None

    def of_kind(self, *kinds: Kind) -> list[Node]:
        """The nodes of the given kinds in order of start."""
        known = (self._known or self._below())[1]
        if len(kinds) == 1:
            return known.get(kinds[0]) or []
        if len(known) == 1:  # the most
            only = next(iter(known))
            return known[only] if only in kinds else []
        lists = [nodes for kind in kinds if (nodes := known.get(kind))]
        if len(lists) <= 1:
            return lists[0] if lists else []
        return sorted((node for nodes in lists for node in nodes), key=turns.order)


def _repeats(model: Node) -> bool:
    """Whether a call is inside another one and says nothing: the same call, seen by a second instrumentation."""
    above = model.parent
    while above is not None and above.kind != "llm":
        above = above.parent
    return above is not None and calls.reply(model) is None and not calls.conversation(model)


def groups(tops: Sequence[Node]) -> list[Group]:
    """All interactions of a trace in order of start."""
    found: list[Group] = []
    for top in tops:
        closed, loose = _collect(top)
        found.extend(closed)
        found.extend(_leftover(loose))
    return sorted(found, key=lambda group: turns.order(group.root))


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
    if node.kind not in FLOWS or not worth.answers_somebody(node):
        return [], [node]
    return _batch(node) or [Group(node, [node])], []


def _batch(node: Node) -> list[Group]:
    """The interactions inside a flow that has no question of its own but steps that each have one and an answer."""
    if worth.own_question(node) is not None or node.attributes.get("langfuse.internal.is_app_root"):
        return []
    inner = [child for child in node.children if child.kind in FLOWS and "llm" in child.kinds]
    questions = [worth.own_question(child) for child in inner]
    whole = all(question is not None for question in questions) and all(
        worth.own_answer(child) is not None for child in inner
    )
    if len(inner) < 2 or not whole or len(set(questions)) < len(inner):
        return []
    return [Group(child, [child]) for child in inner]


def _ordinary(node: Node, closed: list[Group], loose: list[Node]) -> tuple[list[Group], list[Node]]:
    """An ordinary span, or a missing parent, over what was found below it."""
    if closed:
        closed, steps = _without_steps(node, _turns(node, closed))
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
    if "llm" not in node.kinds and any(map(_tried, loose)) and worth.answers_itself(node, plain.question, plain.answer):
        return [_around(node, loose, None)], []
    if (worth.by_model(node) and _complete(loose)) or (node.failed and any(_tried(unit) for unit in loose)):
        return _split(loose) or [_around(node, loose, None)], []
    return [], loose


def _turns(node: Node, closed: list[Group]) -> list[Group]:
    """Interactions below a span, where the steps of one turn of an agent are one."""
    joined: list[Group] = []
    for group in sorted(closed, key=lambda group: turns.order(group.root)):
        if joined and _goes_on(joined[-1], group):
            joined[-1] = Group(group.root, [*joined[-1].parts, *group.parts])
        else:
            joined.append(group)
    if len(joined) == 1 and len(closed) > 1 and _inside_app(node):
        return [_around(node, joined[0].parts, None)]
    return joined


def _goes_on(before: Group, after: Group) -> bool:
    """Whether an interaction is but a step of the turn that an earlier one began."""
    asked = worth.own_question(before.root), worth.own_question(after.root)
    return (None in asked or asked[0] == asked[1]) and turns.continues(before.nodes, after.nodes)


def _inside_app(node: Node) -> bool:
    """Whether a span is the app's own work: it has arrived, and is not where a request came in."""
    return node.span is not None and node.span.kind not in SERVER_KINDS


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
        answer = worth.own_answer(group.root) if group.root.kind in FLOWS else None
        if answer and queries.get(values.squeezed(answer), -1) >= group.root.end:
            steps.append(group)
    served = {id(group) for group in steps}
    return [group for group in closed if id(group) not in served], [part for group in steps for part in group.parts]


def _around(node: Node, parts: list[Node], inner: Node | None) -> Group:
    """An interaction that ordinary span `node` stands for; where it has not arrived, its most telling part does."""
    if node.span is None:
        return Group(inner or turns.answering(parts), parts)
    return Group(node, [node])


def _with_sources(closed: list[Group], loose: list[Node]) -> list[Group]:
    """Several interactions under one span: each takes the retrievals that ran before it and after its predecessor."""
    free = deque(sorted((unit for unit in loose if unit.kinds & _SOURCES), key=turns.order))
    result = []
    for group in sorted(closed, key=lambda group: turns.order(group.root)):
        before = []
        while free and free[0].start <= group.root.start:
            before.append(free.popleft())
        bare = "retriever" not in group.root.kinds
        result.append(Group(group.root, [*before, *group.parts]) if bare and before else group)
    return result


def _complete(loose: Sequence[Node]) -> bool:
    """Whether loose units hold a retrieval or tool call and a model call after it."""
    starts = [unit.start for unit in loose if unit.kinds & {"retriever", "reranker", "tool"}]
    starts += [unit.start for unit in loose if unit.kind == "embedding" and any(True for _ in unit.read("query"))]
    if not starts or not turns.models(loose):
        return False
    return max(below.start for unit in loose for below in walk(unit) if below.kind == "llm") >= max(starts)


def _split(loose: list[Node]) -> list[Group]:
    """Loose units as several interactions, each attached to its model call; empty where they are but one."""
    segments = turns.segments(loose) if len(loose) > 1 else []
    if len(segments) < 2:
        return []
    return [Group(turns.answering(segment), segment) for segment in segments if turns.models(segment)]


def _leftover(loose: list[Node]) -> list[Group]:
    """Model calls that no span joins with a retrieval: one interaction, or one each for different questions.

    Where none was made, a retrieval that came with an answer is one.
    """
    models = list(filter(worth.by_model, loose))
    if not models:
        return [Group(unit, [unit]) for unit in loose if worth.generates(unit)]
    cover = _cover(loose)
    lone = len(loose) == 1 and cover is not None and cover.span is not None and cover.span.kind in SERVER_KINDS
    if cover is None or lone:
        return _split(loose) or [Group(turns.answering(models), loose)]
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
