"""Whether a span answers somebody, and if nothing in a trace does, why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, get_args

from tracescore.interactions import calls, documents, values
from tracescore.interactions.convention import FLOWS, FieldName, Kind, Node, Piece
from tracescore.interactions.tree import walk

EmptyReason = Literal[
    "no_answering_call",  # model calls that rewrote a question or asked for tools, and none that answered
    "bare_retrieval",  # passages, and nobody who answers
    "tools_only",
    "indexing",  # embeddings and writes
    "no_question_and_answer",  # a flow that records neither, or only one of them
    "no_step",  # a marker, but no span of a kind that takes part in answering
    "evaluators",  # nothing but what evaluators did
    "spans_missing",  # log records whose spans never came
]
"""Why a trace with a GenAI marker holds no interaction."""
REASONS: tuple[EmptyReason, ...] = get_args(EmptyReason)

_FEW_WORDS = 2
"""Words beside the passages from which on an output says something of its own."""
_RECORDED: tuple[FieldName, ...] = ("input", "output", "documents", "query", "tool_result")
_COUNTS = re.compile(r"\W*(?:found |returned |retrieved )?\d+ [\w ]{0,40}\W*$", re.IGNORECASE)
"""A text that only says how many documents were found."""
_INDEXES = re.compile(
    r"ingest|index(?:ing|er|_)|upsert|embed_?(?:doc|chunk|batch)|load_?(?:doc|data)|split", re.IGNORECASE
)


class FlowRule(NamedTuple):
    """One way in which a flow answers somebody, and a capture that needs it."""

    name: str
    capture: str
    holds: Callable[[Node], bool]


def answers_somebody(flow: Node) -> bool:
    """Whether a flow is an interaction."""
    return any(rule.holds(flow) for rule in FLOW_RULES)


def by_model(flow: Node) -> bool:
    """Whether a model call below a span may have answered, rather than asked for a tool or another question."""
    return "llm" in flow.kinds and any(calls.may_answer(below) for below in walk(flow) if below.kind == "llm")


def _failed(flow: Node) -> bool:
    if not flow.failed:
        return False
    question = own_question(flow) is not None
    return question or not flow.kinds.isdisjoint(("llm", "retriever")) or not any(True for _ in flow.read("input"))


def _by_query(flow: Node) -> bool:
    """A flow without a model call whose answer is recorded, while the question is only what was searched for."""
    if "llm" in flow.kinds or own_question(flow) is not None or own_answer(flow) is None:
        return False
    return len({text for below in walk(flow) for _, text in calls.queries(below)}) == 1


def _by_itself(flow: Node) -> bool:
    above = flow.parent
    if above is not None and above.span is None and len(above.children) > 1 and "llm" not in flow.kinds:
        return False  # a step among steps of a flow that has not arrived
    return answers_itself(flow, own_question, own_answer)


def _records_nothing(flow: Node) -> bool:
    """An agent that ran, of which nothing was captured."""
    pieces = (True for below in walk(flow) for what in _RECORDED for _ in below.read(what))
    return flow.kind == "agent" and "llm" not in flow.kinds and not any(pieces)


def _by_retrieval(flow: Node) -> bool:
    return "retriever" in flow.kinds and any(generates(below) for below in walk(flow) if below.kind == "retriever")


def by_steps(flow: Node) -> list[Node]:
    """The steps of a flow of which one records the question and a later one the answer, and none both; else none.

    Of a flow that records neither itself, and below which no model call was traced.
    """
    if "llm" in flow.kinds or own_question(flow) is not None or own_answer(flow) is not None:
        return []
    steps = [child for child in flow.children if child.kind in FLOWS and not _INDEXES.search(child.name)]
    asked = [step for step in steps if own_question(step) is not None]
    told = [step for step in steps if own_answer(step) is not None]
    whole = any(step in told for step in asked)
    return steps if asked and told and not whole and told[-1].start >= asked[0].start else []


FLOW_RULES: tuple[FlowRule, ...] = (
    FlowRule("a model call below it answers", "spring-unescaped-lists", by_model),
    FlowRule("it failed while it answered", "traceloop-langchain", _failed),
    FlowRule("it records a question and an answer", "own-spans-no-retriever", _by_itself),
    FlowRule("it records an answer, one search below the question", "llamaindex-workflow-openllmetry", _by_query),
    FlowRule("it is an agent of which no text was captured", "autogen-own-spans", _records_nothing),
    FlowRule(
        "its steps record a question and an answer", "llamaindex-agent-openllmetry", lambda flow: bool(by_steps(flow))
    ),
    FlowRule("a retrieval below it came with an answer", "flow-around-retrieve-and-generate", _by_retrieval),
)


def answers_itself(
    node: Node, asked: Callable[[Node], Piece | str | None], answered: Callable[[Node], Piece | str | None]
) -> bool:
    """Whether a span holds a question and an answer of its own, in plain text.

    Not one that hands on what it was given, what a model below it replied when asked for another question, or
    what it wrote into an index.
    """
    question, answer = _text(asked(node)), _text(answered(node))
    if question is None or answer is None or values.squeezed(question) == values.squeezed(answer):
        return False
    if "llm" in node.kinds:
        said = values.squeezed(answer)
        replies = (calls.reply(below) for below in walk(node) if below.kind == "llm" and not calls.may_answer(below))
        return not any(reply is not None and values.squeezed(reply) == said for reply in replies)
    writes = node.kinds.isdisjoint(("retriever", "reranker", "tool")) and _INDEXES.search(node.name)
    return not writes and not _embeds_documents(node)


def _text(found: Piece | str | None) -> str | None:
    return found if found is None or isinstance(found, str) else str(found.value)


def _embeds_documents(node: Node) -> bool:
    """Whether nothing but embedding is done below a span, and not of a question."""
    if node.kinds.isdisjoint(("embedding", "other")) or not node.kinds <= {*FLOWS, "embedding", "other"}:
        return False
    return not any(calls.queries(below) for below in walk(node) if below.kind == "embedding")


def generates(node: Node) -> bool:
    """Whether a retrieval span holds an answer of its own beside its documents: retrieve and generate in one call."""
    if node.kind != "retriever":
        return False
    question, answer = own_question(node), own_answer(node)
    if question is None or answer is None or _COUNTS.match(answer):
        return False
    pieces = [piece for piece in node.read("documents") if piece.value != answer]
    texts = [
        text for piece in pieces if (found := documents.passages(piece.value)) for text in found.texts if text.strip()
    ]
    return bool(texts) and not _hands_on(answer, texts)


def _hands_on(answer: str, texts: list[str]) -> bool:
    """Whether an output is just the documents beside it."""
    beside = answer
    for text in texts:
        beside = beside.replace(text, " ")
    return beside != answer and len(re.findall(r"\w+", beside)) < _FEW_WORDS


def own_question(node: Node) -> str | None:
    """The question that a span records as its input."""
    return next((found.text for _, found in calls.asked(node) if found.text is not None), None)


def own_answer(node: Node) -> str | None:
    """The answer that a span records as its output."""
    return next((text for _, text, _ in calls.answered(node) if text is not None), None)


_BY_KIND: tuple[tuple[frozenset[Kind], EmptyReason], ...] = (
    (frozenset(("llm",)), "no_answering_call"),
    (frozenset(("retriever", "reranker")), "bare_retrieval"),
    (frozenset(("tool",)), "tools_only"),
    (frozenset(("embedding",)), "indexing"),
    (frozenset(FLOWS), "no_question_and_answer"),
)


def why_none(tops: Iterable[Node], *, spans: bool, set_aside: bool) -> EmptyReason:
    """Why trees hold no interaction; `spans`: whether the trace has any, `set_aside`: evaluators' among them."""
    if not spans:
        return "spans_missing"
    kinds: frozenset[Kind] = frozenset().union(*(top.kinds for top in tops))
    found = next((reason for wanted, reason in _BY_KIND if kinds & wanted), None)
    if found == "no_question_and_answer" and any(_INDEXES.search(below.name) for top in tops for below in walk(top)):
        return "indexing"
    return found or ("evaluators" if set_aside else "no_step")
