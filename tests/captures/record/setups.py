"""What a recipe says of its set-ups: packages, how they run, what a user would call question, answer and contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import scene


@dataclass(frozen=True)
class Turn:
    """One interaction that the recording must hold.

    `root` is the name (or how it begins) of the span that scores belong on, in order of start where several have it;
    without it the first span of the next trace. None as question, answer or contexts: it stands nowhere in the
    export. `passages` are the parts of a joined context, `in_pieces` says that the answer
    is recorded chunk by chunk, `in_prompt` are passages that only the prompt holds, `or_*`
    further right readings, `why` the reason where two are defensible.
    """

    key: str = "ask"
    root: str = ""
    question: str | None = scene.QUESTION
    answer: str | None = scene.ANSWERS[scene.QUESTION]
    contexts: tuple[str, ...] | None = (scene.FOUND,)
    passages: tuple[str, ...] = ()
    in_pieces: bool = False
    in_prompt: tuple[str, ...] = ()
    state: str = "complete"
    or_question: tuple[str | None, ...] = ()
    or_answer: tuple[str | None, ...] = ()
    or_contexts: tuple[tuple[str, ...] | None, ...] = ()
    or_state: tuple[str, ...] = ()
    or_root: tuple[str, ...] = ()
    why: str = ""


TOOL = Turn(passages=scene.PASSAGES)
"""The model searched by a tool, whose text joins the passages."""

LISTED = Turn(contexts=scene.PASSAGES)
"""A retriever's span lists the passages."""

PROMPT = Turn(
    contexts=None,
    in_prompt=scene.PASSAGES,
    or_state=("no_contexts",),
    why="the prompt calls the passages notes, which a reader need not take for a mark of the context",
)
"""No span lists the passages: the prompt holds them."""

LATER = Turn(
    key="follow-up",
    question=scene.FOLLOW_UP,
    answer=scene.ANSWERS[scene.FOLLOW_UP],
    contexts=None,
    in_prompt=(scene.FOUND,),
    state="no_contexts",
    or_state=("complete",),
    why="answered out of the history: the earlier tool text is right too",
)
"""A second turn that the model answers out of the history."""

FAILED = Turn("failing", question=scene.FAILING, answer=None, contexts=None, state="app_error")
"""The model refused."""

SILENT = Turn("ask", question=None, answer=None, contexts=None, state="content_not_captured")
"""No content was recorded."""


@dataclass(frozen=True)
class Setup:
    """A set-up that can be recorded: `python -m tests.captures.record NAME`.

    `packages` are pinned, of PyPI or, for a recipe in JavaScript, of npm. `mode` is handed to the recipe, `env` is
    set besides. `switches` are the settings on which it depends whether content is recorded, as this set-up has them;
    `special` says what is worth knowing of the shape.
    """

    name: str
    packages: tuple[str, ...]
    turns: tuple[Turn, ...]
    mode: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    switches: str = "none needed"
    special: str = ""
    script: str = ""
    """The recipe's file where it is not the one that names the set-up."""
