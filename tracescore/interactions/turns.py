"""Where one turn of a conversation ends and the next begins, among steps that no span joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tracescore.interactions import calls, messages, values
from tracescore.interactions.convention import Node, remembered

_SOON = 4
"""Within as many units, or by the last, what a model call replied is taken up if it is at all."""
_TELLING = 8
"""A shorter query stands in any text."""


def segments(loose: Sequence[Node]) -> list[list[Node]]:
    """Loose units cut behind each model call that answered a question of its own; mostly there is but one segment.

    A call whose reply a later search or model call takes up (a rewritten query, a draft) ends no segment, and what
    does not start afresh belongs to what was before it: graders and planners answer questions too.
    """
    ordered = sorted(loose, key=order)
    last = models(ordered)[-1:]
    found: list[list[Node]] = [[]]
    for at, unit in enumerate(ordered):
        found[-1].append(unit)
        later = [*ordered[at + 1 : at + 1 + _SOON], *(one for one in last if one is not unit)]
        if calls.question(unit) is not None and not _taken_up(calls.reply(unit) or "", later):
            found.append([])
    rest = found.pop()
    if rest and found:
        found[-1].extend(rest)
    if not found:
        return [ordered]
    merged = [list(found[0])]
    for before, segment in pairwise(found):
        if _apart(before, segment):
            merged.append([])
        merged[-1].extend(segment)
    return merged


def _apart(before: list[Node], segment: list[Node]) -> bool:
    """Whether two segments are two turns.

    They are if the later one was told the earlier reply as history, if each searched with its own question, or if
    each was given another question together with evidence.
    """
    posed = calls.posed(answering(before)), calls.posed(answering(segment))
    return (
        _remembers(segment, before)
        or (_searched(before) and _searched(segment))
        or (None not in posed and posed[0] != posed[1])
    )


def _searched(segment: list[Node]) -> bool:
    question = calls.question(answering(segment))
    if question is None:
        return False
    return values.squeezed(question) in {values.squeezed(query) for unit in segment for _, query in calls.queries(unit)}


def _remembers(segment: list[Node], before: list[Node]) -> bool:
    said = calls.reply(answering(before))
    sent = calls.conversation(answering(segment))
    earlier = sent[: messages.last_user(sent)]
    return said is not None and any(turn.role == "assistant" and turn.text == said for turn in earlier)


def continues(before: Sequence[Node], after: Sequence[Node]) -> bool:
    """Whether steps go on with the turn of earlier ones: a model is sent what was said since the same question."""
    model = next((node for node in after if node.kind == "llm"), None)
    sent = calls.conversation(model) if model is not None else []
    last = messages.last_user(sent)
    if last is None or last == len(sent) - 1:
        return False
    asked = (calls.conversation(node) for node in before if node.kind == "llm")
    return any(
        (at := messages.last_user(earlier)) is not None and earlier[at].text == sent[last].text for earlier in asked
    )


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


def models(loose: Iterable[Node]) -> list[Node]:
    """The units that hold a model call."""
    return [unit for unit in loose if "llm" in unit.kinds]


def answering(units: Sequence[Node]) -> Node:
    """The last model call among units, else the last unit."""
    calls_first = [unit for unit in units if unit.kind == "llm"] or models(units) or list(units)
    return max(calls_first, key=order)


def order(node: Node) -> tuple[int, int, str]:
    """How nodes are sorted: by start, end and id."""
    return (node.start, node.end, node.span.span_id if node.span else "")
