"""Question and answer of a group of spans, each by a fixed precedence. Nothing is guessed.

What a person configured comes first, then what stands on the outermost span, then what the steps inside it say,
and last what the model was sent and replied. Contexts have a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from tracescore.config import InteractionsConfig
from tracescore.interactions import answers, calls, messages, plausibility, prompt, questions, values, worth
from tracescore.interactions.convention import FLOWS, Node
from tracescore.interactions.conventions import plain
from tracescore.interactions.grouping import Group
from tracescore.interactions.tree import by_depth
from tracescore.model import Found, Message

_VARIABLES = (*prompt.QUESTION_NAMES, "user_message", "user_prompt")


class Field(NamedTuple):
    """A text as read (None: not recorded), where it stood, and what hid it or is wrong with it.

    `beside`: the evidence around it, in a prompt that marks neither.
    """

    text: str | None = None
    flaw: values.Flaw = ""
    found: Found | None = None
    history: tuple[Message, ...] = ()
    beside: str | None = None


class _Candidate(NamedTuple):
    node: Node
    key: str
    text: str | None
    flaw: values.Flaw = ""
    history: tuple[Message, ...] = ()
    beside: str | None = None


def question(group: Group, settings: InteractionsConfig) -> Field:
    """The user's own last message, and the turns before it."""
    return _first(_questions(group, settings))


def answer(group: Group, settings: InteractionsConfig) -> Field:
    """What the user was told."""
    return _first(_answers(group, settings))


def own(
    group: Group, settings: InteractionsConfig, what: Literal["question", "answer", "contexts", "history"]
) -> Iterator[tuple[Node, str, object]]:
    """Attributes that a person named: those of the outermost span before those inside, in order of start."""
    for mapping in settings.own:
        for key in getattr(mapping, what):
            for node in (group.root, *group.nodes):
                if node.attributes.get(key) is not None and mapping.fits(node.name):
                    yield node, key, node.attributes[key]


def told_before(group: Group, settings: InteractionsConfig) -> tuple[Message, ...]:
    """Earlier turns under keys that a person named."""
    for _, _, value in own(group, settings, "history"):
        if found := messages.turns(value):
            return messages.history(found, len(found))
    return ()


def _first(candidates: Iterable[_Candidate]) -> Field:
    """The first candidate with a text; else the worst that was met. Notes what was looked at before."""
    tried: list[str] = []
    flaw: values.Flaw = ""
    for candidate in candidates:
        if candidate.text is not None and not (flaw == "redacted" and not candidate.text):
            found = Found(candidate.node.name, candidate.key, tuple(tried))
            return Field(candidate.text, candidate.flaw, found, candidate.history, candidate.beside)
        flaw = flaw or candidate.flaw
        tried.append(f"{candidate.node.name} @ {candidate.key}")
    return Field(None, flaw, Found("", "", tuple(tried)))


# ---------------------------------------------------------------- question


def _questions(group: Group, settings: InteractionsConfig) -> Iterator[_Candidate]:
    yield from (_asked(node, key, value) for node, key, value in own(group, settings, "question"))
    for rule in QUESTIONS:
        yield from rule.read(group)


def _of_trace(group: Group) -> Iterator[_Candidate]:
    return (_asked(node, piece.key, piece.value) for node in group.nodes for piece in node.read("trace_input"))


def _of_root(group: Group) -> Iterator[_Candidate]:
    root = group.root
    if root.kind != "llm":
        yield from _inputs(root)
    if root.kind is None and (piece := plain.question(root)):
        yield _asked(root, piece.key, piece.value)


def _of_steps(group: Group) -> Iterator[_Candidate]:
    for node in by_depth(group.parts):
        if node is not group.root and node.kind in FLOWS:
            yield from _inputs(node)


def _of_templates(group: Group) -> Iterator[_Candidate]:
    for node in reversed(group.of_kind("llm", "prompt")):
        yield from _from_variables(node)


def _of_model(group: Group) -> Iterator[_Candidate]:
    if group.answering is not None:
        yield _from_messages(group, group.answering)


def _of_queries(group: Group) -> Iterator[_Candidate]:
    models = group.of_kind("llm")
    if not models or models[0].start >= _first_query(group):
        yield from _from_queries(group)


def _inputs(node: Node) -> Iterator[_Candidate]:
    return (_Candidate(node, key, found.text, found.flaw, found.history) for key, found in calls.asked(node))


def _asked(node: Node, key: str, value: object) -> _Candidate:
    found = questions.asked(value)
    return _Candidate(node, key, found.text, found.flaw, found.history)


def _from_variables(node: Node) -> Iterator[_Candidate]:
    for piece in node.read("variables"):
        data = values.data(piece.value)
        for name in _VARIABLES:
            value = data.get(name) if isinstance(data, dict) else None
            if isinstance(value, str) and value.strip():
                yield _asked(node, f"{piece.key}/{name}", value)


def _from_messages(group: Group, model: Node) -> _Candidate:
    """The last user message of the answering call; of a rendered prompt only the part that is the question."""
    sent = calls.conversation(model)
    key = next((one.key for one in calls.sent(model)), "messages")
    flaw = values.worst(one.flaw for one in calls.sent(model))
    numbered = ".N" in key and model.span is not None and model.span.dropped_attributes > 0
    cut: values.Flaw = "truncated" if numbered else ""
    last = messages.last_user(sent)
    if last is None:
        return _Candidate(model, key, None, flaw)
    said = (sent[last].text or "").strip()
    if values.redacted(said):
        return _Candidate(model, key, None, "redacted")
    freed, hidden = plausibility.passed(said, "message")
    if freed is None:
        return _Candidate(model, key, None, hidden)
    asked = _part_asked(freed, group)
    text = asked.question
    if text is not None and values.cut(text):
        cut = "truncated"
    return _Candidate(model, key, text, cut, messages.history(sent, last), asked.evidence)


def _part_asked(said: str, group: Group) -> prompt.Rendered:
    """The question of a message; with the evidence only where the message does not mark it."""
    rendered = prompt.take_apart(said)
    if rendered.question is not None:
        return prompt.Rendered(rendered.question)
    queries = [(node, query) for node, _, query in _queries(group)]
    if rendered.evidence is not None:
        rest = said.replace(rendered.evidence, "")
        asked = next((query for _, query in queries if query in rest), None)
        return prompt.Rendered(asked or prompt.beside_evidence(said, rendered.evidence))
    first = min((model.start for model in group.of_kind("llm")), default=0)
    searches = {values.squeezed(query): node for node, query in queries if node.kind != "embedding"}
    if len(searches) != 1 or any(node.start > first for node in searches.values()):  # a model may have written them
        return prompt.Rendered(said)
    parted = prompt.split_at(said, next(iter(searches)))
    return parted if parted.question is not None else prompt.Rendered(said)


def _queries(group: Group) -> Iterator[tuple[Node, str, str]]:
    """What retrievers, rerankers and embeddings were asked, in order of start."""
    for node in group.of_kind("retriever", "reranker", "embedding"):
        for key, text in calls.queries(node):
            yield node, key, text


def _first_query(group: Group) -> int:
    return next((node.start for node, _, _ in _queries(group)), 0)


def _from_queries(group: Group) -> Iterator[_Candidate]:
    """A search query fills the gap where only one was made, before any model could have rewritten it."""
    found = list(_queries(group))
    if len({text for _, _, text in found}) == 1 and not group.of_kind("tool"):
        yield _asked(found[0][0], found[0][1], found[0][2])


def _unrewritten(group: Group, candidate: _Candidate) -> _Candidate:
    """Where an earlier model call replied with this very question, the one it was given."""
    if candidate.text is None:
        return candidate
    for model in group.of_kind("llm"):
        if (calls.reply(model) or "").strip() == candidate.text:
            original = _from_messages(group, model)
            return original if original.text is not None else candidate
    return candidate


# ---------------------------------------------------------------- answer


def _answers(group: Group, settings: InteractionsConfig) -> Iterator[_Candidate]:
    yield from (_answered(node, key, value) for node, key, value in own(group, settings, "answer"))
    for rule in ANSWERS:
        yield from rule.read(group)


def _told_of_trace(group: Group) -> Iterator[_Candidate]:
    return (_answered(node, piece.key, piece.value) for node in group.nodes for piece in node.read("trace_output"))


def _told_by_root(group: Group) -> Iterator[_Candidate]:
    root = group.root
    if root.kind != "llm":
        yield from _outputs(root)
    if root.kind is None and (piece := plain.answer(root)):
        yield _answered(root, piece.key, piece.value)


def _told_by_steps(group: Group) -> Iterator[_Candidate]:
    model = group.answering
    if model is not None and not _broken_off(group, model):
        for node in _path(group.root, model):
            yield from _outputs(node)


def _told_by_model(group: Group) -> Iterator[_Candidate]:
    model = group.answering
    if model is None or _broken_off(group, model):
        return
    models = group.of_kind("llm")
    around = {id(node) for node in model.upwards()} if len(models) > 1 else {id(model)}
    for node in reversed([node for node in models if node.start >= model.start or id(node) in around]):
        yield from (_Candidate(node, one.key, one.text, one.flaw) for one in calls.received(node))


def _told_with_passages(group: Group) -> Iterator[_Candidate]:
    for node in group.of_kind("retriever"):
        if worth.generates(node):
            yield from _outputs(node)


def _told_by_last_step(group: Group) -> Iterator[_Candidate]:
    for node in reversed(worth.by_steps(group.root)):
        yield from _outputs(node)


def _broken_off(group: Group, model: Node) -> bool:
    """Whether a later model call failed, so that what an earlier one said was not the answer."""
    return model.failed or any(node.failed and node.start > model.end for node in group.of_kind("llm"))


def _path(root: Node, model: Node) -> list[Node]:
    """The flows between root and model, outermost first."""
    line = list(model.upwards())
    inside = line[: line.index(root)] if root in line else line
    return [node for node in reversed(inside) if node.kind in FLOWS]


def _outputs(node: Node) -> Iterator[_Candidate]:
    return (_Candidate(node, key, text, flaw) for key, text, flaw in calls.answered(node))


def _answered(node: Node, key: str, value: object) -> _Candidate:
    text, flaw = answers.answered(value)
    return _Candidate(node, key, text, flaw)


class TextRule(NamedTuple):
    """One place in which a text is looked for, and a capture that needs it."""

    name: str
    capture: str
    read: Callable[[Group], Iterable[_Candidate]]


def _each_unrewritten(read: Callable[[Group], Iterable[_Candidate]]) -> Callable[[Group], Iterable[_Candidate]]:
    """A place that stands inside the interaction: what is found there a model may have rewritten."""
    return lambda group: (_unrewritten(group, candidate) for candidate in read(group))


QUESTIONS: tuple[TextRule, ...] = (
    TextRule("the trace's own input", "langfuse-js", _of_trace),
    TextRule("the input of the outermost span", "dspy-openinference", _of_root),
    TextRule("the inputs of the steps inside, outer ones first", "traceloop-langgraph", _each_unrewritten(_of_steps)),
    TextRule("what was filled into a template", "template-variables", _each_unrewritten(_of_templates)),
    TextRule(
        "the last message of the user that the answering call was sent", "openai-v2-span", _each_unrewritten(_of_model)
    ),
    TextRule("what was searched for, if that is but one thing", "genai-langchain", _each_unrewritten(_of_queries)),
)
"""In order of precedence, behind the keys of the user's own."""
ANSWERS: tuple[TextRule, ...] = (
    TextRule("the trace's own output", "langfuse-js", _told_of_trace),
    TextRule("the output of the outermost span", "own-spans-greeting", _told_by_root),
    TextRule("the outputs of the steps around the answering call, outer ones first", "dify-chatflow", _told_by_steps),
    TextRule("the reply of the answering call", "openai-v2-span", _told_by_model),
    TextRule("the last step, where no model call was traced", "llamaindex-agent-openllmetry", _told_by_last_step),
    TextRule("what a retrieval came with", "flow-around-retrieve-and-generate", _told_with_passages),
)
"""In order of precedence, behind the keys of the user's own."""
