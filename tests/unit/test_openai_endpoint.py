"""The circuit breaker as a table of states, and what calls leave behind."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from tests.app_server import app_server
from tests.freeing import TEXT, is_freed_at_once
from tests.servers import free_port
from tests.timing import Hours
from tracescore.config import OpenAIEmbedderConfig
from tracescore.config.types import Secret
from tracescore.net.openai_endpoint import PERMANENT, TRANSIENT, CallFailed, Circuit, Endpoint
from tracescore.net.provider_errors import Cause
from tracescore.runtime import gather, gather_pair


def _settings(url: str, **given: object) -> OpenAIEmbedderConfig:
    return OpenAIEmbedderConfig(**{"kind": "openai", "model": "m", "base_url": url, "max_concurrency": 1, **given})


class Time:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


def refuses(circuit: Circuit) -> float | None:
    """Seconds that an open circuit asks to wait; None where it lets a call through."""
    try:
        circuit.enter()
    except CallFailed as failure:
        return failure.wait
    return None


@pytest.mark.parametrize("cause", sorted(PERMANENT))
def test_no_money_or_no_access_opens_at_once_for_a_minute_then_longer(clock: Time, cause: Cause) -> None:
    circuit = Circuit("judge", clock)
    holds = []
    for _ in range(6):
        assert refuses(circuit) is None
        circuit.failed(cause)
        holds.append(refuses(circuit))
        clock.now += holds[-1] or 0
    assert holds == [60, 120, 240, 480, 900, 900]


@pytest.mark.parametrize("cause", ["unreachable", "timeout"])
def test_failures_open_it_only_when_many_come_in_a_row(clock: Time, cause: Cause) -> None:
    circuit = Circuit("judge", clock, limit=3)
    for outcome in (cause, cause, None, cause, cause, cause):
        assert circuit.state == "closed"
        circuit.succeeded() if outcome is None else circuit.failed(outcome)
    assert (circuit.state, refuses(circuit)) == ("open", 5)


def test_rate_limits_and_refused_requests_do_not_open_it(clock: Time) -> None:
    circuit = Circuit("judge", clock, limit=1)
    for cause in ("rate_limited", "rejected", "too_long", "refused"):
        circuit.failed(cause)
        assert circuit.state == "closed"
    assert "rate_limited" in TRANSIENT


def test_after_the_hold_one_call_is_the_trial(clock: Time) -> None:
    circuit = Circuit("judge", clock)
    circuit.failed("quota")
    clock.now += 60
    assert refuses(circuit) is None
    assert (circuit.state, refuses(circuit)) == ("half_open", 0.5)
    circuit.succeeded()
    assert (circuit.state, refuses(circuit)) == ("closed", None)


def test_a_trial_that_was_cancelled_leaves_the_next_one_to_try(clock: Time) -> None:
    circuit = Circuit("judge", clock)
    circuit.failed("quota")
    clock.now += 60
    circuit.enter()
    circuit.abandoned()
    assert refuses(circuit) is None


def test_stragglers_do_not_lengthen_the_hold(clock: Time) -> None:
    circuit = Circuit("judge", clock, limit=2)
    for _ in range(20):
        circuit.failed("unreachable")
    assert refuses(circuit) == 5


@pytest.mark.anyio
async def test_a_body_that_is_no_json_is_a_failed_call_that_does_not_repeat_it() -> None:
    endpoint = Endpoint(_settings("http://127.0.0.1:1/v1/embeddings", timeout="1s", max_retries=0), "", "embedder")
    with pytest.raises(CallFailed) as raised:
        await endpoint.post({"input": "secret \ud83d"}, float("inf"), lambda _outcome, _seconds: None)
    assert str(raised.value) == "rejected: the request cannot be written as JSON"
    await endpoint.close()


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_what_is_asked_on_loopback_and_its_key_go_past_every_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    with app_server() as proxy, app_server() as asked:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("JUDGE_KEY", "key")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "")
        endpoint = Endpoint(
            _settings(asked.url.replace("127.0.0.1", host), max_retries=0, api_key=Secret(env="JUDGE_KEY")), "", "judge"
        )
        await endpoint.post({}, float("inf"), lambda _outcome, _seconds: None)
        await endpoint.close()
    assert (len(asked.asked), proxy.asked) == (1, [])


@pytest.mark.anyio
async def test_a_request_that_reached_nobody_is_freed_at_once() -> None:
    hours = Hours()
    endpoint = Endpoint(
        _settings(f"http://127.0.0.1:{free_port()}", timeout="1s", max_retries=1), "", "judge", hours.timing
    )

    async def call() -> None:
        with suppress(CallFailed):
            await endpoint.post({"input": TEXT}, float("inf"), lambda _outcome, _seconds: None)
        endpoint.circuit.succeeded()

    assert await is_freed_at_once(call)
    await endpoint.close()


@pytest.mark.anyio
async def test_a_request_that_may_not_be_repeated_in_time_is_freed_at_once() -> None:
    hours = Hours()
    endpoint = Endpoint(_settings("http://127.0.0.1:1", timeout="1s", max_retries=1), "", "judge", hours.timing)
    endpoint.circuit.state, endpoint.circuit._until = "open", float("inf")

    async def call() -> None:
        with suppress(CallFailed):
            await endpoint.post({"input": TEXT}, hours.now, lambda _outcome, _seconds: None)

    assert await is_freed_at_once(call)
    await endpoint.close()


@pytest.mark.anyio
async def test_the_first_error_cancels_the_rest_and_is_raised_by_itself() -> None:
    finished = []

    async def slow() -> None:
        await anyio.sleep(30)
        finished.append("slow")

    async def fails() -> None:
        raise ValueError("plain")

    with anyio.fail_after(5), pytest.raises(ValueError, match="plain"):
        await gather_pair(slow, fails)
    assert finished == []
    assert await gather([]) == []
