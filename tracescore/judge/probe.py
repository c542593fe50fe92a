"""Finds out what a judge understands and whether it can do the work, by asking instead of knowing model names.

One question with a known answer does it all: four statements, about code words at either end of a long text.
It fails for a runtime that cuts long prompts, for a model that cannot keep to the form, and for one that finds
everything supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tracescore.errors import JudgeError, JudgeUnfit, JudgeUnreachable
from tracescore.judge.chat import Ask, Chat, Dialect, Rejected, Spending
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.prompt import VERIFY
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import Drop, read_verdicts

LENGTH = 6_000
"""Tokens of the long text: more than the 2,048 or 4,096 to which local runtimes cut by default."""

_FILLER = (
    "The reading room on floor {n} opens at nine and closes at six on working days.",
    "Lockers on that floor are cleaned every week, and lost keys are kept at the front desk.",
    "Visitors sign the book when they come in and once more when they leave.",
)
_FIRST = "The code word of locker 3 is cinnamon."
_LAST = "The code word of locker 7 is marmalade."
_STATEMENTS = {
    "s1": "The code word of locker 7 is turpentine.",
    "s2": "The code word of locker 7 is marmalade.",
    "s3": "The code word of locker 9 was changed in March.",
    "s4": "The code word of locker 3 is cinnamon.",
}


def long_text(size: int) -> list[str]:
    """Passages of about `size` tokens in all, with a code word in the first and the last."""
    count = max(1, size * 4 // sum(len(line) for line in _FILLER))
    return [_FIRST, *(" ".join(_FILLER).format(n=number) for number in range(count)), _LAST]


async def find_dialect(chat: Chat, max_input: int, deadline: float) -> Spending:
    """Leaves `chat` in the richest dialect, from its present one down, that works; returns what that has cost.

    `deadline` is by the clock of the endpoint.
    Raises JudgeUnreachable when nothing answers, JudgeUnfit when no dialect works.
    """
    spending = chat.spending()
    evidence = long_text(min(LENGTH, max_input // 2))
    while True:
        try:
            verdicts, _ = await chat.ask_once(_question(evidence, deadline), spending)
            _check(verdicts)
        except JudgeUnreachable:
            raise
        except JudgeError as error:
            poorer = _poorer(chat.dialect, error)
            if poorer is None:
                raise _unfit(error) from None
            chat.dialect = poorer
        else:
            return spending


def _question(evidence: list[str], deadline: float) -> Ask[tuple[dict[str, Verdict], dict[str, Drop]]]:
    rows = [{"id": name, "text": text} for name, text in _STATEMENTS.items()]
    data: Mapping[str, Any] = {"evidence": evidence, "question": "", "statements": rows}
    read = partial(read_verdicts, ids=tuple(_STATEMENTS), evidence=Quotable(evidence), vocabulary=Vocabulary.SUPPORT)
    return Ask("probe", VERIFY[Vocabulary.SUPPORT], data, "verdicts", read, 4_096, deadline)


def _poorer(dialect: Dialect, error: JudgeError) -> Dialect | None:
    """The next dialect to try after `error`; None when there is none or another would not help."""
    said = error.said if isinstance(error, Rejected) else ""
    if dialect.temperature and "temperature" in said:
        return replace(dialect, temperature=False)
    if dialect.limit == "max_completion_tokens" and "max_completion_tokens" in said:
        return replace(dialect, limit="max_tokens")
    # A key, an address or a model that is wrong is wrong in every dialect.
    if dialect.mode != "text" and (isinstance(error, Rejected | _Wrong) or error.reason == "judge_unreadable"):
        return replace(dialect, mode="json_object" if dialect.mode == "json_schema" else "text")
    return None


class _Wrong(JudgeUnfit):
    """A readable reply that is not the known answer."""

    def __init__(self, detail: str) -> None:
        super().__init__("judge_unfit", detail)


def _check(verdicts: Mapping[str, Verdict]) -> None:
    """Raises `_Wrong` unless the verdicts are the known ones."""
    values = {name: verdict.value for name, verdict in verdicts.items()}
    if values.get("s2") != "supported" or values.get("s4") != "supported":
        end = "first" if values.get("s2") == "supported" else "last"
        raise _Wrong(
            f"did not find what the {end} lines of a text of about {LENGTH} tokens say; "
            "give the model a larger context window or use another model"
        )
    if not {values.get("s1"), values.get("s3")} <= {"contradicted", "not_found"}:
        raise _Wrong("found support for statements that are not in the text; use another model")


_ADVICE: Mapping[str, str] = {
    "judge_unreadable": "no reply in the form that was asked for; use a model that can write JSON",
    "judge_truncated": "the reply was cut off; give the model a larger context window or less room to think",
    "judge_refused": "refused a harmless question; use another model",
    "judge_input_too_long": "reads too little; use a model with a larger context window",
}


def _unfit(error: JudgeError) -> JudgeError:
    """The error that ends the probe: unfit, with what to change."""
    advice = _ADVICE.get(error.reason)
    return JudgeUnfit("judge_unfit", f"{advice} ({error.detail})" if advice else error.detail)
