"""What scoring itself leaves in traces. None of it is ever read as an app's work, or scoring would feed on itself.

- Spans of evaluators, ours and others': told by their kind, whose attribute a collector keeps when it drops the
  names of scopes.
- Calls to our judge that an LLM gateway records: told by how the recorded prompt begins, as no app's would. The
  marks stand first, because recorded prompts are cut at their end, and must stand first: a question, a passage or
  an answer that only contains them hides nothing. Where the gateway records no prompts, by our User-Agent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, get_args

from tracescore.interactions import calls
from tracescore.interactions.convention import Kind, Node, Piece
from tracescore.model import LogRecord

MadeBy = Literal["tracescore", "other_evaluator", "judge_call"]
MADE_BY: tuple[MadeBy, ...] = get_args(MadeBy)

RESULT_EVENT = "gen_ai.evaluation.result"
_SCOPES = ("tracescore", "pydantic-evals")
_OWN_KEYS = ("tracescore.judge", "tracescore.score_id")
_TRULENS = "ai.observability.span_type"
_USER_AGENT = "tracescore-judge/"
_USER_AGENT_KEYS = ("user_agent.original", "http.user_agent")
_LINE = "DATA tracescore-"
_RULE = "The user message is one line of JSON between the line DATA and the line END"
_JUDGE_PROMPT = re.compile(rf"\s*(?:{_LINE}[0-9a-f]{{16}}\s|You [^\n]{{1,200}}\s{{1,4}}{_RULE}\b)")
"""The beginnings of the two messages of every judge prompt; the system message comes first where both are joined."""
_ASKED: tuple[Kind, ...] = ("llm", "agent", "chain")


def is_evaluator(node: Node) -> bool:
    """Whether an evaluator made the span, beyond what its convention's own kinds say."""
    scope = node.span.scope_name if node.span else ""
    if scope.startswith(_SCOPES) or str(node.attributes.get(_TRULENS, "")).startswith("eval"):
        return True
    keys = node.attributes
    return "gen_ai.evaluation.name" in keys and "gen_ai.operation.name" not in keys


def made_by(node: Node) -> MadeBy:
    """Who made a span that is set aside."""
    if "judge_call" in node.memo:
        return "judge_call"
    scope = node.span.scope_name if node.span else ""
    own = scope.startswith("tracescore") or any(key in node.attributes for key in _OWN_KEYS)
    return "tracescore" if own else "other_evaluator"


def event_made_by(record: LogRecord) -> MadeBy | None:
    """Who made a log record, if it is an evaluation event."""
    if record.event_name != RESULT_EVENT:
        return None
    return "tracescore" if any(key in record.attributes for key in _OWN_KEYS) else "other_evaluator"


def set_judge_calls_aside(nodes: Collection[Node]) -> None:
    """Makes evaluators of the spans that record a call to our judge; of all spans where a trace holds nothing else.

    A gateway's trace has more in it than the call: its own steps, the same call seen by two instrumentations.
    """
    found = [node for node in nodes if node.kind in _ASKED and _records_judge_call(node)]
    for node in found:
        _set_aside(node)
    if not found and not any(_asked_by_us(node) for node in nodes):
        return
    if not any(node.kind in _ASKED and any(True for _ in _sent(node, node.read("input"))) for node in nodes):
        for node in nodes:
            if node.kind is not None and node.kind != "evaluator":
                _set_aside(node)


def _set_aside(node: Node) -> None:
    node.kind = "evaluator"
    node.memo["judge_call"] = True


def _records_judge_call(node: Node) -> bool:
    inputs = (piece for piece in node.read("input") if _may_hold_prompt(piece.value))
    return any(_JUDGE_PROMPT.match(text) for text in _sent(node, inputs))


def _may_hold_prompt(value: object) -> bool:
    """Whether it is worth while to read what a step was given; no form of JSON escapes letters and blanks."""
    return not isinstance(value, str) or _LINE in value or _RULE in value


def _sent(node: Node, inputs: Iterable[Piece]) -> Iterator[str]:
    """The texts that a span records as sent to a model, and those in `inputs`."""
    recordings = [calls.with_instructions(node, one.turns) for one in calls.sent(node)]
    recordings += [calls.sent_by(piece).turns for piece in inputs]
    for turns in recordings:
        yield from (turn.text for turn in turns if turn.text and turn.role != "assistant")


def _asked_by_us(node: Node) -> bool:
    keys = node.attributes
    return any(key in keys and str(keys[key]).startswith(_USER_AGENT) for key in _USER_AGENT_KEYS)
