"""Finds out what a judge understands and whether it can do the work, by asking instead of knowing model names.

A question with a known answer does it all: four statements, about code words at either end of a text. It is asked of
a short text until the endpoint is understood, and then once of one as long as windows of evidence will be. It fails for
a runtime that cuts long prompts, for a model that cannot keep to the form, and for one that finds everything supported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tracescore.config.judge import PriceConfig
from tracescore.errors import JudgeError, JudgeUnfit, JudgeUnreachable
from tracescore.judge.chat import MORE_ROOM, Ask, Chat, Dialect, Rejected
from tracescore.judge.known_cases import try_prompt
from tracescore.judge.operations import Verdict, Vocabulary
from tracescore.judge.prompt import Prompts
from tracescore.judge.quotes import Quotable
from tracescore.judge.replies import Drop, read_verdicts

SHORT, LENGTH = 300, 6_000
"""Tokens of the texts: cheap even where a processor does the work, and more than the 2,048 or 4,096 to which local
runtimes cut by default."""
_CALLS, _READ, _WRITTEN = 5, 8_000, 800
"""A typical interaction scored cold: requests, tokens in (3,000 of them passages) and tokens out."""
_ROOM = 512
"""Tokens for the reply: four verdicts need about 200. A model that thinks aloud gets more where there is time."""
_TRIES = 2
"""Failures of a form of reply before a poorer one is tried: one page of HTML says nothing about a server."""

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
_EXPECTED = {"s1": _LAST, "s2": _LAST, "s3": "nothing about locker 9", "s4": _FIRST}
"""What the text says, for people who want to see what the model failed at."""


def long_text(size: int) -> list[str]:
    """Passages of about `size` tokens in all, with a code word in the first and the last."""
    count = max(1, size * 4 // sum(len(line) for line in _FILLER))
    return [_FIRST, *(" ".join(_FILLER).format(n=number) for number in range(count)), _LAST]


@dataclass(frozen=True, slots=True)
class ProbeReading:
    """What one question took: the size of its text, seconds, and tokens in and out."""

    size: int
    seconds: float
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found out. `model` is the one that answered last, `own` the user's prompts that did their work."""

    model: str
    mode: str
    short: ProbeReading
    long: ProbeReading
    own: tuple[str, ...] = ()

    def report(self, price: PriceConfig | None) -> str:
        """In a line: how fast it is, and what an interaction takes and costs at that speed."""
        seconds = self.short.seconds * _CALLS + max(0.0, self._per_token) * max(0, _READ - _CALLS * self.short.read)
        cost = None if price is None else (_READ * price.input + _WRITTEN * price.output) / 1e6
        lowered = "" if self.mode == "json_schema" else " (json_schema does not work here)"
        own = f"; prompts of your own did their known cases: {', '.join(self.own)}" if self.own else ""
        paid = "an unknown amount, judge.price is not set" if cost is None else f"{cost:.4g}"
        return (
            f"{self.model} answers in mode {self.mode}{lowered}, {self.long.read} tokens in {self.long.seconds:.1f} s; "
            f"an interaction ({_CALLS} calls, about {_READ} tokens) takes {seconds:.0f} s, one call after the other, "
            f"and costs {paid}{own}"
        )

    @property
    def _per_token(self) -> float:
        more = self.long.read - self.short.read
        return (self.long.seconds - self.short.seconds) / more if more > 0 else 0.0


class Probe:
    """One probe of one chat.

    `max_input` are the tokens of text that requests will hold, `timeout` the seconds of one request, and `deadline` is
    by `clock`, the clock of the endpoint.
    """

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        max_input: int,
        timeout: float,
        deadline: float,
        clock: Callable[[], float],
    ) -> None:
        self._chat = chat
        self._prompts = prompts
        self._max_input = max_input
        self._timeout = timeout
        self._deadline = deadline
        self._clock = clock
        self._spending = chat.spending()

    async def run(self) -> Probed:
        """Leaves the chat in the richest dialect that works.

        Raises JudgeUnreachable when nothing answers, JudgeUnfit when no dialect works, long texts are too much, or a
        prompt of the user's own fails at its known case.
        """
        short = await self._find(min(SHORT, self._max_input))
        long = await self._long(short) if self._max_input > SHORT else short
        own = self._prompts.own
        for prompt in own:
            await try_prompt(prompt, self._chat, self._spending, self._deadline)
        names = tuple(prompt.name for prompt in own)
        return Probed(self._spending.models[-1], self._chat.dialect.mode, short, long, names)

    async def _find(self, size: int) -> ProbeReading:
        failures: Counter[str] = Counter()
        wrong: JudgeError | None = None
        while True:
            started = self._clock()
            try:
                return await self._read(size)
            except JudgeUnreachable:
                raise
            except JudgeError as error:
                if error.reason == "judge_truncated" and self._more_room(self._clock() - started):
                    continue
                failures[self._chat.dialect.mode] += 1
                if wrong is None and isinstance(error, _Wrong):
                    wrong = error  # says more than that a poorer form of reply does not work either
                if error.reason == "judge_unreadable" and failures[self._chat.dialect.mode] < _TRIES:
                    continue
                poorer = _poorer(self._chat.dialect, error)
                if poorer is None:
                    raise self._unfit(wrong or error) from None
                self._chat.dialect = poorer

    async def _long(self, short: ProbeReading) -> ProbeReading:
        """The one long reading. What the short one took says little: most of it may be the way there and back."""
        size = min(LENGTH, self._max_input)
        slow = (
            f"{short.read} tokens took {short.seconds:.1f} s, {size} more than judge.timeout ({self._timeout:g} s): "
            f"too slow for windows of {self._max_input}; set judge.context to the window of the model, or a smaller "
            "one, or raise judge.timeout"
        )
        try:
            return await self._read(size)
        except JudgeUnreachable as error:
            if error.reason != "judge_timeout":
                raise
            raise JudgeUnfit("judge_unfit", slow) from None
        except JudgeError as error:
            if error.reason == "judge_truncated" and self._more_room(short.seconds):
                return await self._long(short)
            raise self._unfit(error) from None

    def _more_room(self, took: float) -> bool:
        """Gives replies more room, unless writing that much would take too long."""
        return took * MORE_ROOM <= self._timeout and self._chat.more_room()

    async def _read(self, size: int) -> ProbeReading:
        """One reading; a call that times out is not repeated, for it would be as slow again."""
        usage, started = self._spending.usage, self._clock()
        deadline = min(self._deadline, started + self._timeout)
        verdicts, _ = await self._chat.ask_once(self._question(long_text(size), deadline), self._spending)
        _check(verdicts, size)
        now = self._spending.usage
        # Some servers and proxies report fewer tokens than they read, or none: then the text's own size stands.
        read, written = max(size, now.input_tokens - usage.input_tokens), now.output_tokens - usage.output_tokens
        return ProbeReading(size, self._clock() - started, read, written)

    def _question(self, evidence: list[str], deadline: float) -> Ask[tuple[dict[str, Verdict], dict[str, Drop]]]:
        rows = [{"id": name, "text": text} for name, text in _STATEMENTS.items()]
        data: Mapping[str, Any] = {"evidence": evidence, "question": "", "statements": rows}
        vocabulary = Vocabulary.SUPPORT
        read = partial(read_verdicts, ids=tuple(_STATEMENTS), evidence=Quotable(evidence), vocabulary=vocabulary)
        return Ask("probe", self._prompts.verify(vocabulary), data, "verdicts", read, _ROOM, deadline)

    def _unfit(self, error: JudgeError) -> JudgeError:
        """The error that ends the probe: unfit, with what to change."""
        advice = _ADVICE.get(error.reason)
        refused = self._chat.refused_parameters(error.said) if isinstance(error, Rejected) else ()
        if refused:
            advice = f"the endpoint names {', '.join(refused)}; remove what it refuses"
        return JudgeUnfit("judge_unfit", f"{advice} ({error.detail})" if advice else error.detail)


def _poorer(dialect: Dialect, error: JudgeError) -> Dialect | None:
    """The next dialect to try after `error`; None when there is none or another would not help."""
    said = error.said if isinstance(error, Rejected) else ""
    if dialect.temperature and "temperature" in said:
        return replace(dialect, temperature=False)
    if dialect.limit is not None and dialect.limit in said:
        return replace(dialect, limit="max_tokens" if dialect.limit == "max_completion_tokens" else None)
    if dialect.system and ("system role" in said or "roles must alternate" in said or "developer instruction" in said):
        return replace(dialect, system=False)
    # A key, an address or a model that is wrong is wrong in every dialect.
    if dialect.mode != "text" and (isinstance(error, Rejected | _Wrong) or error.reason == "judge_unreadable"):
        return replace(dialect, mode="json_object" if dialect.mode == "json_schema" else "text")
    return None


class _Wrong(JudgeUnfit):
    """A readable reply that is not the known answer."""

    def __init__(self, detail: str) -> None:
        super().__init__("judge_unfit", detail)


def _check(verdicts: Mapping[str, Verdict], size: int) -> None:
    """Raises `_Wrong`, with the example, unless the verdicts are the known ones."""
    values = {name: verdict.value for name, verdict in verdicts.items()}
    for name, supported in (("s2", True), ("s4", True), ("s1", False), ("s3", False)):
        said = values.get(name, "")
        if supported == (said == "supported") and said:
            continue
        shown = f'said "{said}"' if said else "gave no verdict with a quote"
        example = f'{shown} on "{_STATEMENTS[name]}" where the text has: {_EXPECTED[name]}'
        if supported and size > SHORT:
            end = "last" if name == "s2" else "first"
            raise _Wrong(
                f"did not find what the {end} lines of a text of about {size} tokens say; set judge.context to the "
                f"window of the model (it {example})"
            )
        raise _Wrong(f"the model is too weak for the work: it {example}; use another model")


_ADVICE: Mapping[str, str] = {
    "judge_unreadable": "no reply in the form that was asked for; use a model that can write JSON",
    "judge_truncated": "the reply was cut off; set judge.context to the window of the model, or let it think less",
    "judge_refused": "refused a harmless question; use another model",
    "judge_input_too_long": "reads too little; set judge.context to the window of the model, or use a larger one",
}
