"""One question to the judge and its typed answer: the request, the reply, what it cost, and every way to fail.

A reply that was cut off is asked for once more with more room, one that cannot be read once more as it was;
a refusal is final. Each request that was not cancelled is counted under exactly one outcome.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, get_args

import anyio
from prometheus_client import CollectorRegistry

from tracescore.config import OpenAIJudgeConfig
from tracescore.errors import JudgeError, JudgeUnfit, JudgeUnreachable
from tracescore.judge.completions import text_of
from tracescore.judge.metrics import Metrics
from tracescore.judge.prompt import Operation, Prompt, tokens
from tracescore.judge.replies import parse
from tracescore.judge.spending import Spending
from tracescore.model import FailReason, Usage
from tracescore.net.openai_endpoint import TRANSIENT, CallFailed, Endpoint
from tracescore.net.provider_errors import Cause

T = TypeVar("T")
_log = logging.getLogger("tracescore.judge")

_REASONS: Mapping[Cause | Literal["ok"], FailReason] = {
    "unreachable": "judge_unreachable",
    "timeout": "judge_timeout",
    "rate_limited": "judge_rate_limited",
    "quota": "judge_quota",
    "unfit": "judge_unfit",
    "rejected": "judge_unfit",
    "too_long": "judge_input_too_long",
    "refused": "judge_refused",
}
_FORM_FAILED = "json_validate_failed"
"""What Groq calls a reply that is not in the form that was asked for."""
_LEAST_ROOM = 256
"""Tokens that a reply gets however full the context is by our estimate, which is an upper one."""
_TRY_EVERY = 3600.0
"""Seconds after which a form of reply that was given up is tried again: a server may have had a bad minute."""
ALL_SPENT = "no request more: the limit of money is reached"
"""What a request that `limit_cost` keeps back is told."""
MORE_ROOM = 4
"""By how much the output budget grows when a reply was cut off."""


Mode = Literal["json_schema", "json_object", "text"]
"""How a form of reply is asked for, the richest first."""
_MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the endpoint understands; found out by the probe, never by the model's name."""

    mode: Mode = "json_schema"
    limit: Literal["max_completion_tokens", "max_tokens"] | None = "max_completion_tokens"
    temperature: bool = True
    system: bool = True


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One question: `read` turns the reply's object into a value or raises JudgeError; `key` is its main field.

    `budget` is the room for the reply in tokens; `deadline` is by the clock of the endpoint.
    """

    operation: Operation
    prompt: Prompt
    data: Mapping[str, Any]
    key: str
    read: Callable[[Mapping[str, Any]], T]
    budget: int
    deadline: float


class Rejected(JudgeUnfit):
    """The endpoint does not take such a request; `said` holds its words, to be searched and never shown."""

    def __init__(self, failure: CallFailed) -> None:
        super().__init__("judge_unfit", failure.detail)
        self.said = failure.said.casefold()


class Chat:
    """Asks one model of one endpoint."""

    def __init__(
        self,
        settings: OpenAIJudgeConfig,
        name: str,
        endpoint: Endpoint,
        registry: CollectorRegistry,
        clock: Callable[[], float],
    ) -> None:
        self.dialect = Dialect()
        self.spent = 0.0
        """Money for all requests so far, by `judge.price`."""
        self._most_spent = math.inf
        self._slots: AbstractAsyncContextManager[Any] = nullcontext()
        self._clock = clock
        self._try_at: float | None = None
        self._settings = settings
        self._name = name
        self._endpoint = endpoint
        self._metrics = Metrics(name, registry)
        self._metrics.watch(endpoint)
        self._room = 1

    def limit_cost(self, most: float) -> None:
        """No request begins once so much is spent: JudgeError(judge_quota, ALL_SPENT).

        It is passed by what is under way at that moment, at most `judge.max_concurrency` requests, and nothing else.
        """
        self._most_spent, self._slots = most, anyio.Semaphore(self._settings.max_concurrency)

    def more_room(self) -> bool:
        """Replies get more room from now on; False where they have it already. For a model that thinks aloud."""
        had, self._room = self._room, MORE_ROOM
        return had < MORE_ROOM

    def spending(self) -> Spending:
        """An empty account; its cost stays None where no price is known."""
        return Spending(Usage(cost=None if self._settings.price is None else 0.0))

    async def ask(self, ask: Ask[T], spending: Spending) -> T:
        """The answer; JudgeError when there is none, even after asking a second time where that can help."""
        tried = await self._richer(ask, spending)
        if tried is not None:
            return tried[0]
        try:
            return await self.ask_once(ask, spending)
        except JudgeError as error:
            if error.reason == "judge_unreadable":
                return await self.ask_once(ask, spending)
            if error.reason != "judge_truncated" or self._room > 1:
                raise
        value = await self.ask_once(replace(ask, budget=ask.budget * MORE_ROOM), spending)
        self._room = MORE_ROOM  # it thinks aloud: do not pay for a reply that is cut off every time
        return value

    async def _richer(self, ask: Ask[T], spending: Spending) -> tuple[T] | None:
        """Tries the forms of reply again that were given up, one request in an hour; from then on with what works."""
        if self.dialect.mode == "json_schema":
            return None
        now, due = self._clock(), self._try_at
        if due is None or now >= due:
            self._try_at = now + _TRY_EVERY
        if due is None or now < due:
            return None
        for mode in _MODES[: _MODES.index(self.dialect.mode)]:
            dialect = replace(self.dialect, mode=mode)
            try:
                value = await self.ask_once(ask, spending, dialect)
            except JudgeError as error:
                if not isinstance(error, Rejected) and error.reason != "judge_unreadable":
                    raise
            else:
                self.dialect = dialect
                _log.info('event=judge_dialect judge="%s" mode=%s', self._name, mode)
                return (value,)
        return None

    async def ask_once(self, ask: Ask[T], spending: Spending, dialect: Dialect | None = None) -> T:
        """The answer to one request (and its repetitions where no reply came); JudgeError when there is none."""

        def observe(outcome: Cause | Literal["ok"], seconds: float) -> None:
            self._metrics.seconds.labels(self._name, ask.operation).observe(seconds)
            if outcome != "ok":
                self._metrics.requests.labels(self._name, ask.operation, _REASONS[outcome]).inc()
                spending.add(1, 0, 0, 0.0)

        async with self._slots:
            if self.spent >= self._most_spent:
                raise JudgeError("judge_quota", ALL_SPENT)
            try:
                payload = await self._endpoint.post(self._body(ask, dialect or self.dialect), ask.deadline, observe)
            except CallFailed as failure:
                raise judge_error(failure) from None
            return self._read(ask, payload, spending)

    def refused_parameters(self, said: str) -> list[str]:
        """The settings of the user that are named in the words of an error."""
        words = set(re.findall(r"\w+", said.casefold()))
        given = self._settings.parameters
        beside = given.get("extra_body")
        found = [f"judge.parameters.{name}" for name in given if name.casefold() in words]
        inner = beside if isinstance(beside, dict) else {}
        return found + [f"judge.parameters.extra_body.{name}" for name in inner if name.casefold() in words]

    def _body(self, ask: Ask[T], dialect: Dialect) -> dict[str, Any]:
        messages = ask.prompt.messages(ask.data, system=dialect.system)
        body: dict[str, Any] = {"model": self._settings.model, "messages": messages}
        if dialect.mode == "json_schema":
            schema = {"name": ask.prompt.name, "strict": True, "schema": ask.prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif dialect.mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        if dialect.temperature:
            body["temperature"] = 0
        parameters = self._settings.body
        if dialect.limit and not {"max_tokens", "max_completion_tokens"} & parameters.keys():
            body[dialect.limit] = self._budget(ask, messages)
        return body | parameters

    def _budget(self, ask: Ask[T], messages: Sequence[Mapping[str, str]]) -> int:
        """Tokens for the reply: what was asked for, or what the context leaves."""
        budget = ask.budget * self._room
        if self._settings.context is None:
            return budget
        left = self._settings.context - sum(tokens(message["content"]) for message in messages)
        return max(_LEAST_ROOM, min(budget, left))

    def _read(self, ask: Ask[T], payload: Mapping[str, Any], spending: Spending) -> T:
        """Reads a reply, and books it whatever it is worth."""
        self._book(ask, payload, spending)
        outcome: str = "judge_unreadable"
        try:
            found, repaired = parse(text_of(payload), ask.key)
            if repaired:
                self._metrics.repaired.labels(self._name).inc()
            value = ask.read(found)
            outcome = "ok"
            model = payload.get("model")
            spending.models.append(model if isinstance(model, str) and model else self._settings.model)
        except JudgeError as error:
            outcome = error.reason
            raise
        finally:
            self._metrics.requests.labels(self._name, ask.operation, outcome).inc()
        return value

    def _book(self, ask: Ask[T], payload: Mapping[str, Any], spending: Spending) -> None:
        usage = payload.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            self._metrics.estimated.labels(self._name).inc()
            sent = sum(tokens(message["content"]) for message in ask.prompt.messages(ask.data))
            counts = [sent, tokens(str(payload.get("choices", "")))]
        read, written = int(counts[0] or 0), int(counts[1] or 0)
        price = self._settings.price
        cost = None if price is None else (read * price.input + written * price.output) / 1e6
        spending.add(1, read, written, cost)
        self.spent += cost or 0.0
        for direction, count in (("input", read), ("output", written)):
            self._metrics.tokens.labels(self._name, ask.operation, direction).inc(count)
        self._metrics.cost.labels(self._name, ask.operation).inc(cost or 0.0)


def judge_error(failure: CallFailed) -> JudgeError:
    """A failed call in the words of the contract."""
    reason = _REASONS[failure.cause]
    if failure.cause in TRANSIENT or failure.cause == "quota":
        return JudgeUnreachable(reason, failure.detail)
    if failure.cause == "rejected":
        if _FORM_FAILED in failure.said:  # the server's own check of the reply, not of the request
            return JudgeError("judge_unreadable", failure.detail)
        return Rejected(failure)
    if failure.cause == "unfit":
        return JudgeUnfit(reason, failure.detail)
    return JudgeError(reason, failure.detail)
