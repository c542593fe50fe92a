"""One question to the judge and its typed answer: the request, the reply, what it cost, and every way to fail.

A reply that was cut off is asked for once more with more room, one that cannot be read once more as it was;
a refusal is final. Each request that was not cancelled is counted under exactly one outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tracescore.config import OpenAIJudgeConfig
from tracescore.errors import JudgeError, JudgeUnfit, JudgeUnreachable
from tracescore.judge.prompt import OPERATIONS, Operation, Prompt, tokens
from tracescore.judge.replies import parse
from tracescore.model import FailReason, Usage
from tracescore.net.openai_endpoint import TRANSIENT, CallFailed, CircuitState, Endpoint
from tracescore.net.provider_errors import Cause

T = TypeVar("T")

CallOutcome = Literal[
    "ok",
    "judge_unreachable",
    "judge_timeout",
    "judge_rate_limited",
    "judge_quota",
    "judge_unfit",
    "judge_input_too_long",
    "judge_refused",
    "judge_truncated",
    "judge_unreadable",
]
CALL_OUTCOMES: tuple[CallOutcome, ...] = get_args(CallOutcome)
"""How one request can end."""

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
_LEAST_ROOM = 256
"""Tokens that a reply gets however full the context is by our estimate, which is an upper one."""
MORE_ROOM = 4
"""By how much the output budget grows when a reply was cut off."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the endpoint understands; found out by the probe, never by the model's name."""

    mode: Literal["json_schema", "json_object", "text"] = "json_schema"
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


@dataclass(slots=True)
class Spending:
    """What one interaction has cost so far, and which models have answered it, in order."""

    usage: Usage
    models: list[str] = field(default_factory=list)

    def add(self, calls: int, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Adds requests; the sum of the costs stays unknown where it was unknown or one of them is."""
        was = self.usage
        total = None if cost is None or was.cost is None else was.cost + cost
        self.usage = Usage(was.calls + calls, was.input_tokens + input_tokens, was.output_tokens + output_tokens, total)


class Metrics:
    """What the calls of one judge move."""

    def __init__(self, judge: str, registry: CollectorRegistry) -> None:
        self._judge = judge
        label, by = ["judge"], ["judge", "operation"]
        about = "Requests to the judge, by operation and outcome."
        self.requests = Counter("tracescore_judge_requests", about, [*by, "outcome"], registry=registry)
        self.tokens = Counter(
            "tracescore_judge_tokens", "Tokens that the judge read and wrote.", [*by, "direction"], registry=registry
        )
        self.cost = Counter(
            "tracescore_judge_cost", "Cost of the judge, in the currency of judge.price.", by, registry=registry
        )
        self.seconds = Histogram(
            "tracescore_judge_request_duration_seconds",
            "Duration of a request to the judge, without waiting for a free slot.",
            by,
            buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        about = "Replies that held more than the JSON and were repaired."
        self.repaired = Counter("tracescore_judge_repaired", about, label, registry=registry)
        about = "Replies without token counts, whose tokens are estimated."
        self.estimated = Counter("tracescore_judge_usage_estimated", about, label, registry=registry)
        self.circuit = Gauge(
            "tracescore_judge_circuit_state",
            "1 for the state of the judge's circuit breaker.",
            ["judge", "state"],
            registry=registry,
        )
        for operation in OPERATIONS:
            self.cost.labels(judge, operation)
            self.seconds.labels(judge, operation)
            for outcome in CALL_OUTCOMES:
                self.requests.labels(judge, operation, outcome)
            for direction in ("input", "output"):
                self.tokens.labels(judge, operation, direction)
        self.repaired.labels(judge)
        self.estimated.labels(judge)

    def watch(self, endpoint: Endpoint) -> None:
        """Shows the state of the endpoint's circuit at every scrape."""
        for state in get_args(CircuitState):
            gauge = self.circuit.labels(self._judge, state)
            gauge.set_function(partial(_is, endpoint, state))


def _is(endpoint: Endpoint, state: CircuitState) -> float:
    return float(endpoint.circuit.state == state)


class Rejected(JudgeUnfit):
    """The endpoint does not take such a request; `said` holds its words, to be searched and never shown."""

    def __init__(self, failure: CallFailed) -> None:
        super().__init__("judge_unfit", failure.detail)
        self.said = failure.said.casefold()


class Chat:
    """Asks one model of one endpoint."""

    def __init__(self, settings: OpenAIJudgeConfig, name: str, endpoint: Endpoint, registry: CollectorRegistry) -> None:
        self.dialect = Dialect()
        self._settings = settings
        self._name = name
        self._endpoint = endpoint
        self._metrics = Metrics(name, registry)
        self._metrics.watch(endpoint)
        self._room = 1

    def more_room(self) -> bool:
        """Replies get more room from now on; False where they have it already. For a model that thinks aloud."""
        had, self._room = self._room, MORE_ROOM
        return had < MORE_ROOM

    def spending(self) -> Spending:
        """An empty account; its cost stays None where no price is known."""
        return Spending(Usage(cost=None if self._settings.price is None else 0.0))

    async def ask(self, ask: Ask[T], spending: Spending) -> T:
        """The answer; JudgeError when there is none, even after asking a second time where that can help."""
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

    async def ask_once(self, ask: Ask[T], spending: Spending) -> T:
        """The answer to one request (and its repetitions where no reply came); JudgeError when there is none."""

        def observe(outcome: Cause | Literal["ok"], seconds: float) -> None:
            self._metrics.seconds.labels(self._name, ask.operation).observe(seconds)
            if outcome != "ok":
                self._metrics.requests.labels(self._name, ask.operation, _REASONS[outcome]).inc()
                spending.add(1, 0, 0, 0.0)

        try:
            payload = await self._endpoint.post(self._body(ask), ask.deadline, observe)
        except CallFailed as failure:
            raise judge_error(failure) from None
        return self._read(ask, payload, spending)

    def _body(self, ask: Ask[T]) -> dict[str, Any]:
        messages = ask.prompt.messages(ask.data, system=self.dialect.system)
        body: dict[str, Any] = {"model": self._settings.model, "messages": messages}
        if self.dialect.mode == "json_schema":
            schema = {"name": ask.prompt.name, "strict": True, "schema": ask.prompt.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.dialect.mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.dialect.temperature:
            body["temperature"] = 0
        parameters = self._settings.body
        if self.dialect.limit and not {"max_tokens", "max_completion_tokens"} & parameters.keys():
            body[self.dialect.limit] = self._budget(ask, messages)
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
            found, repaired = parse(_text_of(payload), ask.key)
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
        for direction, count in (("input", read), ("output", written)):
            self._metrics.tokens.labels(self._name, ask.operation, direction).inc(count)
        self._metrics.cost.labels(self._name, ask.operation).inc(cost or 0.0)


def _text_of(payload: Mapping[str, Any]) -> str:
    """The text of a chat completion that came to its end; JudgeError when it was refused, cut off or is empty."""
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish = choice.get("finish_reason")
    if message.get("refusal") or finish == "content_filter":
        raise JudgeError("judge_refused", "the judge refused to answer")
    if finish == "length":
        raise JudgeError("judge_truncated", "the reply was cut off")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if not isinstance(content, str) or not content.strip():
        raise JudgeError("judge_unreadable", "the reply is empty")
    return content


def judge_error(failure: CallFailed) -> JudgeError:
    """A failed call in the words of the contract."""
    reason = _REASONS[failure.cause]
    if failure.cause in TRANSIENT or failure.cause == "quota":
        return JudgeUnreachable(reason, failure.detail)
    if failure.cause == "rejected":
        return Rejected(failure)
    if failure.cause == "unfit":
        return JudgeUnfit(reason, failure.detail)
    return JudgeError(reason, failure.detail)
