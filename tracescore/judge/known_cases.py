"""One question with a known answer for each operation: whether a prompt of the user's own can do its work.

The probe asks it once for every prompt that comes from a file; those that come with tracescore need none.
`verify_support` is what the probe itself asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tracescore.errors import JudgeError, JudgeUnfit, JudgeUnreachable
from tracescore.judge.chat import Ask, Chat
from tracescore.judge.operations import Judge, ReverseQuestions, Vocabulary
from tracescore.judge.prompt import Prompt
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import read_claims, read_parts, read_questions, read_verdicts
from tracescore.judge.rubric import Rubric
from tracescore.judge.spending import Spending

_ROOM = 2_048
"""Tokens for the reply, with some for thinking aloud."""
_TEXT = "The code word of locker 7 is marmalade."
_QUESTION = "What is the code word of locker 3, and who changed it?"
_SENTENCES = {"t1": _TEXT, "t2": "Anything else I can do for you?"}


@dataclass(frozen=True, slots=True)
class KnownCase:
    """`wrong` says what is wrong with a reply that `read` has read; None for the right one."""

    data: Mapping[str, Any]
    key: str
    read: Callable[[Mapping[str, Any]], Any]
    wrong: Callable[[Any], str | None]


def _questions(reply: ReverseQuestions) -> str | None:
    asked = any({"locker", "marmalade"} & set(_words(question)) for question in reply.questions)
    return None if asked and not reply.noncommittal else f'no question that "{_TEXT}" answers'


def _parts(reply: Any) -> str | None:
    parts = [_words(part) for part in reply.parts]
    told = any("code" in part or "locker" in part for part in parts)
    return None if told and len(parts) <= 4 else f'not what "{_QUESTION}" asks for, in at most 4 parts'


def _claims(reply: Any) -> str | None:
    stated = any("marmalade" in _words(text) for text in reply.texts)
    return None if stated else f'no claim like "{_TEXT}"'


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


def _verifying(vocabulary: Vocabulary, good: str, bad: str) -> KnownCase:
    statements = {"s1": bad, "s2": good}
    wanted = {"s1": vocabulary.value[-1], "s2": vocabulary.value[0]}

    def wrong(reply: Any) -> str | None:
        for name, value in wanted.items():
            said = reply[0][name].value if name in reply[0] else "nothing with a quote"
            if said != value:
                return f'"{said}" instead of "{value}" on "{statements[name]}" where the text is: {_TEXT}'
        return None

    rows = [{"id": name, "text": text} for name, text in statements.items()]
    data = {"evidence": [_TEXT], "question": "", "statements": rows}
    read = partial(read_verdicts, ids=tuple(statements), evidence=Quotable([_TEXT]), vocabulary=vocabulary)
    return KnownCase(data, "verdicts", read, wrong)


def _useful(reply: Any) -> str | None:
    for name, value in (("s1", "not_useful"), ("s2", "useful")):
        said = reply[0][name].value if name in reply[0] else "nothing with a quote"
        if said != value:
            return f'"{said}" instead of "{value}" on "{_PASSAGES[name]}" where the question is: {_LOCKER}'
    return None


_LOCKER = "What is the code word of locker 7?"
_PASSAGES = {"s1": "The pool opens at nine.", "s2": _TEXT}
_OTHER = "The code word of locker 7 is turpentine."
KNOWN_CASES: Mapping[str, KnownCase] = {
    "reverse_questions": KnownCase(
        {"answer": _TEXT, "count": 1}, "questions", partial(read_questions, answer=_TEXT, n=1), _questions
    ),
    "required_parts": KnownCase(
        {"history": [], "question": _QUESTION}, "parts", partial(read_parts, question=_QUESTION, history=()), _parts
    ),
    "claims": KnownCase(
        {"question": "", "sentences": [{"id": name, "text": text} for name, text in _SENTENCES.items()]},
        "claims",
        partial(read_claims, sentences=_SENTENCES),
        _claims,
    ),
    "verify_coverage": _verifying(Vocabulary.COVERAGE, "the code word of locker 7", "the opening hours of the pool"),
    "verify_precision": _verifying(Vocabulary.PRECISION, _TEXT, _OTHER),
    "verify_recall": _verifying(Vocabulary.RECALL, _TEXT, _OTHER),
    "verify_usefulness": KnownCase(
        {
            "question": _LOCKER,
            "answer": "",
            "reference": "",
            "passages": [{"id": name, "text": text} for name, text in _PASSAGES.items()],
        },
        "verdicts",
        partial(
            read_verdicts,
            ids=tuple(_PASSAGES),
            evidence={name: Quotable([text]) for name, text in _PASSAGES.items()},
            vocabulary=Vocabulary.USEFULNESS,
        ),
        _useful,
    ),
}


async def try_prompt(prompt: Prompt, chat: Chat, spending: Spending, deadline: float) -> None:
    """Asks the known case of the prompt's operation. JudgeUnfit names the setting and what the judge said instead."""
    case = KNOWN_CASES.get(prompt.name)
    if case is None:
        return
    setting = f"judge.prompts.{prompt.name} ({prompt.source})"
    ask = Ask("probe", prompt, case.data, case.key, case.read, _ROOM, deadline)
    try:
        wrong = case.wrong(await chat.ask(ask, spending))
    except JudgeUnreachable:
        raise
    except JudgeError as error:
        wrong = error.detail
    if wrong is not None:
        raise JudgeUnfit("judge_unfit", f"{setting}: the known case of this operation failed: {wrong}; mend the file")


async def try_examples(rubric: Rubric, judge: Judge) -> str:
    """Asks the judge each example of a rubric. JudgeUnfit when it chooses otherwise, with the lines and the choices."""
    if not rubric.examples:
        return "no examples to try; name a file of them (examples)"
    wrong = []
    for example in rubric.examples:
        choice = await judge.session(f"example-{example.line}", remembered=False).choose(rubric, example.texts)
        if not rubric.agrees(example, choice):
            wrong.append(f"line {example.line}: {example.choice} expected; got {choice.label}")
    right = f"{len(rubric.examples) - len(wrong)} of {len(rubric.examples)} examples as expected"
    if wrong:
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise JudgeUnfit("judge_unfit", f"{right}: {'; '.join(wrong[:5])}{more}; mend the prompt or the examples")
    return right
