"""One endpoint that speaks the OpenAI API: connections, concurrency, retries, rate limits and a circuit breaker.

Judge and embedder both talk through it and translate `CallFailed` into their own errors. Of the SDK the HTTP client
over aiohttp is used, with its connections and proxies, and nothing above it: building a request and reading a reply
the SDK's way costs more CPU per call than everything else the judge does (tests/benchmarks/judge.py).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import anyio
import httpx2
import openai
import orjson

from tracescore.config.openai_endpoint import OpenAIEndpointConfig
from tracescore.config.types import is_loopback
from tracescore.errors import TracescoreError
from tracescore.net.openai_stream import streamed
from tracescore.net.provider_errors import Cause, provider_error
from tracescore.net.retry import REAL_TIME, Backoff, Timing
from tracescore.runtime import Fairness, drop_tracebacks

CircuitState = Literal["closed", "open", "half_open"]

TRANSIENT: frozenset[Cause] = frozenset({"unreachable", "timeout", "rate_limited"})
PERMANENT: frozenset[Cause] = frozenset({"quota", "unfit"})

_BACKOFF = Backoff()
_HOLD, _PERMANENT_HOLD = Backoff(5.0, 60.0, spread=0), Backoff(60.0, 900.0, spread=0)
"""Seconds that an open circuit lets nothing through: a failure that may pass, and one that somebody has to mend."""
_POLITE = 0.025
"""Seconds that an answer may wait for its turn: hundreds that come at one moment would let nobody else go on."""
_log = logging.getLogger("tracescore.openai_endpoint")


class CallFailed(TracescoreError):
    """A call gave no response that can be read.

    `detail` is safe to log. `said` is the endpoint's own message, which may repeat the request or parts of the
    key: it is only ever searched for words, never shown. `wait` is what Retry-After asked for, in seconds.
    """

    def __init__(self, cause: Cause, detail: str, said: str = "", wait: float | None = None) -> None:
        self.cause: Cause = cause
        self.detail = detail
        self.said = said
        self.wait = wait
        super().__init__(f"{cause}: {detail}")


@dataclass(slots=True)
class Circuit:
    """Stops calling an endpoint that cannot answer.

    Opens at once when money or credentials are at fault, and after `limit` failures in a row otherwise; then
    lets one call through per `hold`, which doubles until that call succeeds. `setting` says in the log whose it is.
    """

    setting: str
    clock: Callable[[], float] = time.monotonic
    limit: int = 10
    state: CircuitState = "closed"
    _cause: Cause = "unreachable"
    _failures: int = 0
    _openings: int = 0
    _until: float = 0.0

    def enter(self) -> None:
        """Called before each request; CallFailed while the circuit is open, with the time left in `wait`."""
        if self.state == "closed":
            return
        left = self._until - self.clock()
        if self.state == "half_open" or left > 0:
            raise CallFailed(self._cause, "not asked, circuit open", wait=max(left, _BACKOFF.first))
        self.state = "half_open"

    def succeeded(self) -> None:
        """The endpoint answered."""
        if self.state != "closed":
            _log.info("event=circuit_closed endpoint=%s cause=%s", self.setting, self._cause)
        self.state, self._failures, self._openings = "closed", 0, 0

    def failed(self, cause: Cause) -> None:
        """The endpoint did not answer, or answered that it will not."""
        if cause not in TRANSIENT | PERMANENT:
            self.succeeded()  # it is there, and refuses this request only
            return
        if self.state == "open" or (cause == "rate_limited" and self.state == "closed"):
            return  # a straggler, or something that Retry-After paces
        self._failures += 1
        if cause in PERMANENT or self._failures >= self.limit or self.state == "half_open":
            self._openings += 1
            hold = (_PERMANENT_HOLD if cause in PERMANENT else _HOLD).pause(self._openings)
            self._until, self._cause = self.clock() + hold, cause
            self.state = "open"
            _log.warning("event=circuit_opened endpoint=%s cause=%s hold=%.0fs", self.setting, cause, hold)

    def abandoned(self) -> None:
        """The call was cancelled: a trial that told nothing."""
        if self.state == "half_open":
            self.state = "open"


Observer = Callable[[Cause | Literal["ok"], float], None]
"""Told of every request: how it went, and the seconds it took."""


class Endpoint:
    """POSTs JSON to one URL and returns the decoded answer."""

    def __init__(self, settings: OpenAIEndpointConfig, path: str, setting: str, timing: Timing = REAL_TIME) -> None:
        """All requests go to `path` under the address of `settings`.

        `setting` names the section of the configuration in error texts and logs.
        Raises UsageError when a secret is missing.
        """
        self._url = httpx2.URL(settings.url(path))
        # By the user agent the spans of a gateway are known to be about us.
        headers = {"Content-Type": "application/json", "User-Agent": f"tracescore-{setting}/1"}
        headers |= settings.sent_headers(setting)
        max_concurrency, timeout = settings.max_concurrency, settings.timeout
        self._client = openai.DefaultAioHttpClient(
            headers=headers,
            limits=httpx2.Limits(max_connections=max_concurrency, max_keepalive_connections=max_concurrency),
            timeout=httpx2.Timeout(timeout, connect=min(timeout, 10.0)),
            follow_redirects=False,  # they would take the key elsewhere
            mounts=self._past_proxies(),
        )
        self._timeout = timeout
        self._max_retries = settings.max_retries
        self._setting = setting
        self._slots = anyio.Semaphore(max_concurrency)
        self._fairness = Fairness()
        self._not_before = 0.0
        self._timing = timing
        self.circuit = Circuit(setting, timing.clock)

    def _past_proxies(self) -> dict[str, None]:
        """For an endpoint on loopback: a proxy that the environment names would get the key, and not reach it."""
        here = is_loopback(self._url.host)
        return {f"{self._url.scheme}://{self._url.netloc.decode()}": None} if here else {}

    async def post(self, body: Mapping[str, Any], deadline: float, observe: Observer) -> dict[str, Any]:
        """The answer to `body` as JSON, after as many tries as the settings and `deadline` (by the clock) allow.

        Raises CallFailed.
        """
        try:
            content = orjson.dumps(body)
        except TypeError:  # its text quotes what could not be written
            raise CallFailed("rejected", "the request cannot be written as JSON") from None
        request = self._client.build_request("POST", self._url, content=content)
        for attempt in range(1, self._max_retries + 2):
            try:
                await self._enter(deadline)
                payload = await self._once(request, deadline, observe)
            except CallFailed as failure:
                if failure.cause not in TRANSIENT or attempt > self._max_retries:
                    raise
                if not await self._paused(_BACKOFF.pause(attempt, failure.wait), deadline):
                    raise
            else:
                await self._fairness.idle(until=time.monotonic() + _POLITE)
                return payload
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def close(self) -> None:
        """Releases the connections."""
        await self._client.aclose()

    async def _enter(self, deadline: float) -> None:
        """Waits for what Retry-After keeps all calls back; CallFailed where there is no time for it, or no circuit."""
        held_back = self._not_before - self._timing.clock()
        if not await self._paused(held_back, deadline):
            too_long = "the endpoint asks for a longer wait than the deadline allows"
            raise CallFailed("rate_limited", too_long, wait=held_back)
        self.circuit.enter()

    async def _paused(self, seconds: float, deadline: float) -> bool:
        """Waits without holding a slot; False at once when the deadline would pass meanwhile."""
        if seconds > 0:
            if self._timing.clock() + seconds >= deadline:
                return False
            await self._timing.sleep(seconds)
        return True

    async def _once(self, request: httpx2.Request, deadline: float, observe: Observer) -> dict[str, Any]:
        started: float | None = None
        outcome: Cause | Literal["ok"] | None = None
        try:
            with anyio.fail_after(max(0.0, deadline - self._timing.clock())):
                async with self._slots:
                    started = self._timing.clock()
                    payload = await self._send(request)
            outcome = "ok"
        except CallFailed as failure:
            outcome = failure.cause
            if failure.cause == "rate_limited" and failure.wait is not None:
                self._not_before = max(self._not_before, self._timing.clock() + min(failure.wait, _BACKOFF.longest))
            raise
        except TimeoutError:
            outcome = "timeout"
            raise CallFailed("timeout", "the deadline of the interaction has passed") from None
        finally:
            self._record(outcome if started is not None else None)
            if started is not None and outcome is not None:
                observe(outcome, self._timing.clock() - started)
        return payload

    def _record(self, outcome: Cause | Literal["ok"] | None) -> None:
        if outcome is None:
            self.circuit.abandoned()
        elif outcome == "ok":
            self.circuit.succeeded()
        else:
            self.circuit.failed(outcome)

    async def _send(self, request: httpx2.Request) -> dict[str, Any]:
        """One request; CallFailed says in our own words what went wrong."""
        try:
            with anyio.fail_after(self._timeout):
                response = await self._client.send(request)
        except (httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
            drop_tracebacks(error)
            # A ConnectTimeout is also what the transport says of a lost connection.
            slow = isinstance(error, TimeoutError | httpx2.TimeoutException)
            if slow and not isinstance(error, httpx2.ConnectTimeout):
                raise CallFailed("timeout", f"no answer within {self._timeout:g} s") from None
            raise CallFailed("unreachable", "cannot connect") from None
        return self._decoded(response)

    def _decoded(self, response: httpx2.Response) -> dict[str, Any]:
        """The answer; CallFailed where its status or its body is an error."""
        try:
            payload = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            payload = _loads_with_halves(response.content) or streamed(response.content)
        if not response.is_success:
            raise self._refusal(response.status_code, payload, response.headers)
        if not isinstance(payload, dict):  # a proxy's page, or a gateway's hiccup: the next one may be an answer
            raise CallFailed("unreachable", f"the answer is not a JSON object; check {self._setting}.base_url")
        error = payload.get("error")
        if error and "choices" not in payload and "data" not in payload:  # some gateways say 200 and then no
            status = error.get("code") if isinstance(error, dict) else None
            raise self._refusal(status if isinstance(status, int) else 500, payload, response.headers)
        return payload

    def _refusal(self, status: int, payload: object, headers: Mapping[str, str]) -> CallFailed:
        """An error status as a cause."""
        error = provider_error(payload, headers)
        cause, advice = error.cause(status)
        shown = " ".join(filter(None, (f"HTTP {status}", error.code)))
        wait = error.wait if cause in TRANSIENT else None
        return CallFailed(cause, f"{shown}: {advice.format(section=self._setting)}", error.said, wait)


def _loads_with_halves(content: bytes) -> Any:
    """JSON that orjson refuses for half of a character pair, as JavaScript cuts texts; None for all else."""
    try:
        return orjson.loads(json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
