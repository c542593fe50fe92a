"""What agent frameworks write around a task, and around an answer: one row a frame, with where it was met.

A row cuts the task out of the text that its framework renders. It needs at least two marks of its frame, so that a
person who writes "Current Task:" is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

_LINES = re.IGNORECASE | re.MULTILINE
# White space at the beginning of a line is matched within the line and not given back: with `\s*` every run of empty
# lines would be read again from each of its lines.


@dataclass(frozen=True, slots=True)
class Frame:
    """The task stands between the first `opens` behind the last `after`, and the first `closes` behind that.

    `mark` is in every such text: a cheap question, in lower case. `whole`: a text without `closes` is such a text, too.
    `met`: the framework that writes it.
    """

    met: str
    mark: str
    opens: re.Pattern[str]
    closes: re.Pattern[str] | None = None
    after: str = ""
    whole: bool = False


def _frame(met: str, mark: str, opens: str, closes: str = "", *, after: str = "", whole: bool = False) -> Frame:
    return Frame(
        met, mark, re.compile(opens, _LINES), re.compile(closes, _LINES) if closes else None, after, whole or not closes
    )


TASKS: tuple[Frame, ...] = (
    _frame(
        "CrewAI",
        "current task:",
        r"\A\s*(?:#+ ?)?Current Task:[ \t]*",
        r"^[^\S\n]*+(?:this is the expected|the expected (?:criteria|output)|you must return|this is the context you|"
        r"provide your complete response|begin!)",
    ),
    _frame(
        "LangChain ReAct and chat agents, CrewAI without tool calls",
        "begin!",
        r"^(?:question|new input|input|current task|task|query|human|user input):[ \t]*",
        r"^[^\S\n]*+(?:thought|ai|assistant|action|observation|agent|agent_scratchpad)\b[^\n:]{0,40}:|"
        r"^[^\S\n]*+this is the expected|^[^\S\n]*+\(?reminder to",
        after="begin!",
        whole=True,
    ),
    _frame(
        "LangChain chat agent", "here is the user's input", r"here is the user's input \(remember[^\n]{0,200}\):\s*"
    ),
    _frame(
        "LangChain structured chat agent",
        "reminder to ",
        r"\A\s*",
        r"^[^\S\n]*+(?:this was your previous work|\(?reminder to (?:always )?(?:respond|use))",
    ),
    _frame(
        "Strands swarm",
        "other agents available",
        r"^user request:[ \t]*",
        r"^[^\S\n]*+(?:previous agents|shared knowledge|other agents available|you have access to swarm)",
    ),
    _frame(
        "smolagents", "new task:", r"\A\s*New task:[ \t]*\n", r"^[^\S\n]*+you have been provided with these", whole=True
    ),
    _frame("smolagents managed agent", "by your manager", r"^task:[ \t]*\n", r"^-{3,}\s*$"),
    _frame("smolagents, at the last step", "following user task", r"answer to the following user task:[ \t]*\n"),
    _frame(
        "smolagents, planning",
        "a world expert at",
        r"(?:here is your task|given the following task)[^\n:]{0,40}:\s*(?:task:\s*)?```[^\n]*\n",
        r"^```",
    ),
    _frame("BeeAI", "your task:", r"\A\s*your task:[ \t]*", r"^(?:context|expected output):", whole=True),
    _frame(
        "LangGraph's plan and execute",
        "original plan was this",
        r"^your objective was this:\s*",
        r"^[^\S\n]*+your original plan was this",
    ),
    _frame(
        "LangGraph's plan and execute, a step",
        "tasked with executing step",
        r"^you are tasked with executing step \d{1,3},\s*",
        r"\.\s*\Z",
        whole=True,
    ),
    _frame(
        "coding agents: the request in a tag, and more tags behind it",
        "</",
        r"\A\s*<(?:task|user_(?:query|request|message|prompt))>\s*",
        r"\s*</(?:task|user_(?:query|request|message|prompt))>\s*(?=<|\Z)",
    ),
    _frame("CAMEL", "rules of", r"^=+ task =+\s*", r"^=+ rules of"),
    _frame(
        "LlamaIndex, refining",
        "provided an existing answer",
        r"\A\s*the original query is as follows:[ \t]*",
        r"^[^\S\n]*+we have provided an existing answer",
    ),
    _frame("AutoGen's retrieval agents", "context is:", r"^user's question is:[ \t]*", r"^[^\S\n]*+context is:"),
    _frame(
        "AutoGen Magentic-One, later",
        "working ",
        r"(?:working on|working to solve) the following (?:request|task):\s*",
        r"^[^\S\n]*+(?:and we have assembled|we have completed|it's clear we aren't)",
    ),
    _frame(
        "AutoGen Magentic-One, plan",
        "following user request",
        r"address the following user request:\s*",
        r"^[^\S\n]*+(?:to answer this request|here is |based on )",
    ),
    _frame(
        "AutoGen Magentic-One, facts",
        "here is the request",
        r"^here is the request:\s*",
        r"^[^\S\n]*+here is the pre-survey",
    ),
    _frame(
        "LlamaIndex ReAct, as one text",
        "current conversation",
        r"^(?:user|human):[ \t]*",
        r"^[^\S\n]*+(?:thought|assistant|observation)\s*:",
        after="current conversation",
        whole=True,
    ),
)

_SHORTEST = 20
"""No frame has fewer characters."""
_THOUGHT = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_REASONED = re.compile(r"\A\s*(?:thought|action|observation|question)\b[^\n:]{0,40}:", re.IGNORECASE)
_FINAL = re.compile(r"^[ \t#*]*final answer[*]{0,2}[ \t]*:[*]{0,2}[ \t]*", _LINES)
_ANSWER = re.compile(r"^[ \t*]*answer[*]{0,2}[ \t]*:[*]{0,2}[ \t]*", _LINES)
_ACTION = re.compile(r"^[ \t*]*action[*]{0,2}[ \t]*:[ \t]*(?P<name>[^\n]{0,100})", _LINES)
_NEXT = re.compile(r"^[^\S\n]*+(?:observation|thought|question)\s*:", _LINES)
_CODE = re.compile(r"^[ \t]*(?:code:|<code>)", _LINES)
_BLOB = re.compile(r"\A\s*(?:```(?:json)?\s*)?(?P<json>\{.*\})\s*+(?:```\s*+)?\Z", re.DOTALL)
_DONE = re.compile(r"\bTERMINATE\b[.!]?\s*\Z")
OBSERVED = re.compile(r"\A\s*(?:Observation:\s*|(?=Transferred to \S+, adopting the role of ))", re.IGNORECASE)
"""How a tool's result begins that an agent hands to its model as if the user had said it: in ReAct, in AutoGen."""


def task(text: str) -> str:
    """The task in an agent's scaffold; the text itself where it is none."""
    if len(text) < _SHORTEST:
        return text
    lowered = text.lower()
    for frame in TASKS:
        if frame.mark in lowered and (found := _inside(frame, text, lowered)):
            return found
    return text


def _inside(frame: Frame, text: str, lowered: str) -> str:
    start = lowered.rfind(frame.after) + len(frame.after) if frame.after else 0
    opened = frame.opens.search(text, start)
    if opened is None:
        return ""
    closed = frame.closes.search(text, opened.end()) if frame.closes else None
    if closed is None and not frame.whole:
        return ""
    return text[opened.end() : closed.start() if closed else len(text)].strip()


def spoken(text: str) -> str | None:
    """What a model says to the user in a reply that also thinks aloud; None when it only asks for a tool."""
    if "<" in text:
        text = _THOUGHT.sub("", text)
    if '"action_input"' in text and (blob := _BLOB.match(text)):
        return _acted(blob["json"], text)
    if _REASONED.match(text):
        final = _last(_FINAL, text) or _last(_ANSWER, text)
        if final is not None:
            closed = _NEXT.search(text, final.end())
            return text[final.end() : closed.start() if closed else len(text)].strip()
        if _ACTION.search(text) or _CODE.search(text):
            return None
    elif begun := _FINAL.match(text):
        return text[begun.end() :].strip()
    done = _DONE.search(text)
    return text[: done.start()].rstrip() if done else text


def _acted(blob: str, text: str) -> str | None:
    """The answer in the JSON with which a chat agent acts; None where it acts otherwise than by answering."""
    try:
        act = orjson.loads(blob)
    except ValueError:
        return text
    if not isinstance(act, dict) or act.keys() != {"action", "action_input"}:
        return text
    answers = str(act["action"]).lower().replace("_", " ") == "final answer"
    return str(act["action_input"]) if answers and isinstance(act["action_input"], str) else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def called(text: str) -> str:
    """The tool that a reply asks for in words; empty where it asks for none."""
    action = _last(_ACTION, text) if "ction" in text else None
    return action["name"].strip() if action else ""
