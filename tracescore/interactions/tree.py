"""The spans of a trace as trees, each with its log records, its conventions and its kind.

Any set, order or repetition of the same spans gives the same trees. A parent that did not arrive is a node without
a span, so that its children stay together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracescore.config import InteractionsConfig
from tracescore.interactions import exclusions, table
from tracescore.interactions.convention import Node
from tracescore.interactions.exclusions import MadeBy
from tracescore.model import Trace


@dataclass(frozen=True, slots=True)
class Forest:
    """The trees of a trace in order of start, and how many spans and events of evaluators were set aside."""

    tops: list[Node]
    set_aside: Counter[MadeBy]


def build(trace: Trace, settings: InteractionsConfig) -> Forest:
    """The trees of a trace, without what evaluators added and without calls to our own judge."""
    nodes = {
        span.span_id: Node(span)
        for span in sorted(trace.spans, key=lambda s: (s.start_unix_nano, s.end_unix_nano, s.span_id))
    }
    for record in sorted(trace.logs, key=lambda record: record.time_unix_nano):
        if record.span_id in nodes:
            nodes[record.span_id].logs.append(record)
    missing: dict[str, Node] = {}
    own = table.configured(settings)
    for node in nodes.values():
        table.recognise(node, own)
        parent_id = node.span.parent_span_id if node.span else ""
        if parent_id:
            node.parent = nodes.get(parent_id) or missing.setdefault(parent_id, Node(None))
    exclusions.set_judge_calls_aside(nodes.values())
    _untie(nodes.values())
    _set_clocks(nodes.values())
    moved = any(node.offset for node in nodes.values())
    for node in sorted(nodes.values(), key=lambda node: node.start) if moved else nodes.values():
        if node.parent is not None and node.kind != "evaluator":
            node.parent.children.append(node)
    tops = [node for node in nodes.values() if node.parent is None and node.kind != "evaluator"]
    trees = sorted([*tops, *(node for node in missing.values() if node.children)], key=first_start)
    for top in trees:
        for node in reversed(list(walk(top))):
            node.kinds = frozenset((node.kind,) if node.kind else ()).union(*(child.kinds for child in node.children))
    set_aside = Counter(exclusions.made_by(node) for node in nodes.values() if node.kind == "evaluator")
    set_aside.update(who for record in trace.logs if (who := exclusions.event_made_by(record)))
    return Forest(trees, set_aside)


def first_start(node: Node) -> int:
    """Start of a node; of its first child where it has not arrived."""
    return node.start if node.span else min((child.start for child in node.children), default=0)


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, parents before children, siblings in order of start."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current.children:
            stack.extend(reversed(current.children))


def fell(tops: Iterable[Node]) -> None:
    """Takes trees apart that nobody needs any more.

    A node and its children know each other: together they would wait, with all texts, for the garbage collector.
    """
    for top in tops:
        for node in list(walk(top)):
            node.children.clear()


def by_depth(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and all below them, level by level."""
    level = list(nodes)
    while level:
        yield from level
        level = [child for node in level for child in node.children]


def _set_clocks(nodes: Iterable[Node]) -> None:
    """Moves what another service recorded to where it was called, if its clock says that it was before or after that.

    When in the call it was cannot be known; the beginning is where a retrieval stands.
    """
    if len({id(node.span.resource) for node in nodes if node.span}) < 2 or not any(map(_strays, nodes)):
        return
    settled: set[int] = set()
    for node in nodes:
        path = []
        for passed in node.upwards():
            if id(passed) in settled:
                break
            path.append(passed)
        for each in reversed(path):
            settled.add(id(each))
            above = each.parent
            if above is None or above.span is None or each.span is None:
                continue
            each.offset = above.offset
            if (
                _strays(each)
                and each.span.resource is not above.span.resource
                and each.span.resource != above.span.resource
            ):
                each.offset += above.start - each.start


def _strays(node: Node) -> bool:
    """Whether a span is all before or all after the one around it."""
    above = node.parent
    if above is None or above.span is None or node.span is None:
        return False
    return node.start > above.end or node.end < above.start


def _untie(nodes: Iterable[Node]) -> None:
    """Cuts parent links that run in a circle, which only a broken exporter writes."""
    settled: set[int] = set()
    for node in nodes:
        if node.parent is None or id(node.parent) in settled:  # the most: parents start first
            settled.add(id(node))
            continue
        path: list[Node] = []
        seen: set[int] = set()
        current: Node | None = node
        while current is not None and id(current) not in settled:
            if id(current) in seen:
                path[-1].parent = None
                break
            seen.add(id(current))
            path.append(current)
            current = current.parent
        settled |= seen
