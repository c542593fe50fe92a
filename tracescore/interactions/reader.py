"""A trace -> its interactions: grouping, fields and dimensions put together, and the state that sums them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tracescore import model
from tracescore.config import InteractionsConfig
from tracescore.interactions import calls, contexts, fields, grouping, messages, misspelt, slices, tree, worth
from tracescore.interactions.convention import Node
from tracescore.interactions.exclusions import MadeBy
from tracescore.interactions.fields import Field
from tracescore.interactions.grouping import Group
from tracescore.interactions.retrieved import Contexts
from tracescore.interactions.worth import EmptyReason
from tracescore.model import Interaction, State, Trace


@dataclass(frozen=True, slots=True)
class Reading:
    """What a trace holds: its interactions in order of start, and how many of its spans were understood.

    `genai_spans` are those that some convention, or a key of the user's own, recognises; not those of evaluators, which
    `set_aside` counts by who made them, together with evaluation events.
    """

    interactions: tuple[Interaction, ...]
    genai_spans: int
    set_aside: Mapping[MadeBy, int]
    reason: EmptyReason | None = None
    """Why there are no interactions, where there are none."""
    misspelt: str = ""
    """What to set where a span says wrongly what it does, and something is missing."""


def read(trace: Trace, settings: InteractionsConfig, keep: Iterable[str] = ()) -> Reading:
    """Reads a trace.

    Pure, and linear in the number of spans (at worst, times their depth); their order and repetition change nothing.
    `settings` names attributes of the user's own that come before the conventions'. `keep` names attributes of the
    outermost span, or else of its resource, that the interactions are to carry.
    """
    forest = tree.build(trace, settings)
    groups = grouping.groups(forest.tops)
    found = _without_retried(groups, [_interaction(trace, group, settings, keep) for group in groups])
    aside = bool(forest.set_aside)
    reason = None if found else worth.why_none(forest.tops, spans=bool(trace.spans), set_aside=aside)
    nodes = [node for top in forest.tops for node in tree.walk(top)]
    wrong = "" if found and all(one.contexts for one in found) else misspelt.advice(nodes)
    understood = sum(node.kind is not None for node in nodes)
    tree.fell(forest.tops)
    return Reading(tuple(found), understood, forest.set_aside, reason, wrong)


def _interaction(trace: Trace, group: Group, settings: InteractionsConfig, keep: Iterable[str]) -> Interaction:
    question, answer = fields.question(group, settings), fields.answer(group, settings)
    evidence = contexts.read(group, settings, question)
    history = fields.told_before(group, settings) or question.history or _history(group)
    failed = _failed(group, answer)
    root, dimensions = group.root, slices.Dimensions(group, settings)
    return Interaction(
        trace_id=trace.trace_id,
        span_id=root.span.span_id if root.span else "",
        state=_state(group, failed, question, answer, evidence),
        question=question.text,
        answer=answer.text,
        contexts=evidence.texts,
        context_source=evidence.source if evidence.texts else "none",
        history=history,
        service=dimensions.service,
        release=dimensions.release,
        environment=dimensions.environment,
        convention=_convention(group),
        instrumentation=_instrumentation(group),
        conversation_id=dimensions.conversation_id,
        start_unix_nano=root.start - root.offset,
        end_unix_nano=root.end - root.offset,
        slices=dimensions.slices(later=bool(history)),
        unusable=frozenset(_unusable(question, answer, evidence)),
        found=dict(_places(question, answer, evidence)),
        attributes=_kept(root, keep),
        rankings=evidence.rankings,
        documents=evidence.documents,
    )


def _kept(root: Node, keep: Iterable[str]) -> model.Attributes:
    known = {**(root.span.resource if root.span else {}), **root.attributes} if keep else {}
    return {key: known[key] for key in keep if key in known}


def _history(group: Group) -> tuple[model.Message, ...]:
    """Earlier turns as the answering model call was sent them."""
    node = group.answering
    if node is None:
        return ()
    sent = calls.conversation(node)
    last = messages.last_user(sent)
    return messages.history(sent, last) if last else ()


def _convention(group: Group) -> str:
    for node in (group.root, *group.nodes):
        if node.conventions:
            return node.conventions[0].name
    return "unknown"


def _instrumentation(group: Group) -> str:
    """What recorded the answering model call, or else the interaction: its settings decide what is recorded."""
    nodes = (*group.of_kind("llm"), group.root, *group.nodes)
    span = next((node.span for node in nodes if node.span and node.conventions), None)
    return f"{span.scope_name} {span.scope_version}".rstrip() if span else ""


def _failed(group: Group, answer: Field) -> bool:
    """Whether the app failed: its outermost span says so, or a part did and no answer came after it."""
    if group.root.failed:
        return True
    return answer.text is None and any(node.failed for node in group.nodes)


def _state(group: Group, failed: bool, question: Field, answer: Field, evidence: Contexts) -> State:
    if failed:
        return "app_error"
    if "redacted" in (question.flaw, answer.flaw) and (question.text is None or answer.text is None):
        return "redacted"
    if "truncated" in (question.flaw, answer.flaw):
        return "truncated"
    if "implausible" in (question.flaw if question.text is None else "", answer.flaw if answer.text is None else ""):
        return "implausible"
    if question.text is None or answer.text is None:
        if not _captured(group, question, answer):
            return "content_not_captured"
        return "no_question" if question.text is None else "no_answer"
    if evidence.flaw == "redacted":
        return "redacted"
    if evidence.flaw == "truncated":
        return "truncated"
    if not evidence.texts:
        return "no_contexts"
    return "partial_contexts" if evidence.partial else "complete"


def _captured(group: Group, question: Field, answer: Field) -> bool:
    """Whether the parts that saw the missing text recorded any text at all."""
    models = group.of_kind("llm")
    if models:
        sent = any(turn.text for node in models for turn in calls.conversation(node))
        received = any(calls.reply(node) is not None for node in models)
        return (question.text is not None or sent) and (answer.text is not None or received)
    return any(True for node in group.nodes for what in ("input", "output") for _ in node.read(what))


def _unusable(question: Field, answer: Field, evidence: Contexts) -> Iterator[str]:
    if question.flaw:
        yield "question"
    if answer.flaw:
        yield "answer"
    if evidence.flaw or evidence.partial:
        yield "contexts"


def _places(question: Field, answer: Field, evidence: Contexts) -> Iterator[tuple[str, model.Found]]:
    for name, field in (("question", question), ("answer", answer), ("contexts", evidence)):
        if field.found is not None:
            yield name, field.found


def _without_retried(groups: list[Group], found: list[Interaction]) -> list[Interaction]:
    """Without failed attempts that another one beside them, by the same function at the same question, made good."""
    good: dict[tuple[int, str, str | None], int] = {}
    for group, one in zip(groups, found, strict=True):
        if one.state != "app_error" and one.question is not None:
            good[_attempt(group, one)] = one.start_unix_nano
    attempts = zip(groups, found, strict=True)
    return [
        i for group, i in attempts if i.state != "app_error" or good.get(_attempt(group, i), -1) <= i.start_unix_nano
    ]


def _attempt(group: Group, interaction: Interaction) -> tuple[int, str, str | None]:
    """What two attempts at one thing have in common; spans without a parent have nothing in common."""
    parent = group.root.parent
    return (id(parent or group.root), group.root.name, interaction.question)
