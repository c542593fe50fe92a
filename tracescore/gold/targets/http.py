"""Asking an app over HTTP: one request per question, its answer read out of a JSON response."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import anyio
import orjson

from tracescore.config.gold import DEFAULT_BODY, HttpTargetConfig, OpenAITargetConfig, TraceTargetConfig
from tracescore.config.types import Secret
from tracescore.errors import TargetFailed
from tracescore.gold.items import GoldItem
from tracescore.gold.targets.paths import text_at, texts_at
from tracescore.gold.trace_ids import traceparent
from tracescore.model import Interaction
from tracescore.net.retry import is_transient, retry_after
from tracescore.runtime import drop_tracebacks

_LARGEST = 16 * 2**20
"""Bytes read of a response."""


class AppClient:
    """Sends requests with the trace id of the item; `timeout` seconds for each."""

    def __init__(
        self, method: str, url: str, headers: Mapping[str, Secret], body: Any, timeout: float, key: Secret | None = None
    ) -> None:
        """UsageError when a secret cannot be read."""
        self._method, self._url, self._body = method, url, body
        self._headers = {name: value.read(f"gold.target.headers.{name}") for name, value in headers.items()}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key.read('gold.target.api_key')}"
        self._timeout = timeout
        self._place = urlsplit(url).netloc.rpartition("@")[2]  # without what may be secret
        self._session: aiohttp.ClientSession | None = None

    async def send(self, item: GoldItem, trace_id: str) -> tuple[bytes, str]:
        """Body and content type of a response that is no error; TargetFailed says what came instead."""
        if self._session is None:  # belongs to the event loop that runs now
            self._session = aiohttp.ClientSession()
        headers = self._headers | {"traceparent": traceparent(trace_id)}
        content = None
        if self._body is not None:
            headers = {"Content-Type": "application/json"} | headers
            content = orjson.dumps(filled(self._body, item))
        url = self._url.replace("{question}", quote(item.question, safe="", errors="replace"))
        try:
            with anyio.fail_after(self._timeout):
                request = self._session.request(self._method, url, data=content, headers=headers, allow_redirects=False)
                async with request as response:
                    self._check(response)
                    return await self._read(response), response.content_type
        except TimeoutError:
            raise TargetFailed("timeout", f"no answer within {self._timeout:g} s (gold.timeout)", again=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            drop_tracebacks(error)
            detail = f"{self._place}: cannot connect ({type(error).__name__}); is the app up?"
            raise TargetFailed("unreachable", detail, again=True) from None

    def _check(self, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status < 300:
            return
        advice = "set gold.target.url to where it leads" if status < 400 else "see the log of the app"
        if status in {401, 403}:
            advice = "check gold.target.headers"
        if status in {404, 405}:
            advice = "check gold.target.url and method"
        detail = f"the app answered HTTP {status}; {advice}"
        raise TargetFailed("http_error", detail, again=is_transient(status), wait=retry_after(response.headers))

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > _LARGEST:
                raise TargetFailed("not_json", f"the answer is longer than {_LARGEST // 2**20} MiB")
        return bytes(body)

    async def close(self) -> None:
        """Releases the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def filled(template: Any, item: GoldItem) -> Any:
    """The body for an item. A text that is `{history}` or `{contexts}` alone becomes a list.

    Placeholders are replaced in the values, after the template was read as data: no question can change its form.
    """
    if isinstance(template, dict):
        return {key: filled(value, item) for key, value in template.items()}
    if isinstance(template, list):
        return [part for value in template for part in _spread(value, item)]
    if template == "{history}":
        return [{"role": turn.role, "content": turn.text} for turn in item.history]
    if template == "{contexts}":
        return list(item.contexts)
    return template.replace("{question}", item.question) if isinstance(template, str) else template


def _spread(value: Any, item: GoldItem) -> list[Any]:
    """Inside a list, earlier turns stand beside the others: `["{history}", {role: user, ...}]`."""
    return filled(value, item) if value == "{history}" else [filled(value, item)]


def json_of(body: bytes, content_type: str) -> Any:
    """The decoded response; TargetFailed says what it is when it is no JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        start = body.lstrip()[:1]
        what = "HTML" if content_type == "text/html" or start == b"<" else "an empty body" if not start else "no JSON"
        hint = "does gold.target.url lead to a web page or a login?" if what == "HTML" else "JSON expected"
        kind = re.sub(r"[^\w/.+-]", "?", content_type[:80])
        raise TargetFailed("not_json", f"the app answered {what} ({kind}); {hint}") from None


class ContextsReader:
    """Reads the passages out of responses. A path must match once; later, where it does not, there were none."""

    def __init__(self, path: str | None) -> None:
        self._path, self._matched = path, False

    def of(self, payload: Any) -> tuple[str, ...] | None:
        """The passages; None without a path. TargetFailed where it leads nowhere and never has led anywhere."""
        if self._path is None:
            return None
        try:
            found = texts_at(payload, self._path, "gold.target.contexts")
        except TargetFailed:
            if self._matched:
                return ()
            raise
        self._matched = True
        return found


class HttpTarget:
    """`kind: http` and `kind: openai`: an app whose response is JSON, with the answer at a path."""

    def __init__(
        self, client: AppClient, answer: tuple[str, str], contexts: str | None, release: str | None = None
    ) -> None:
        """`answer`: its path, and the setting that errors are about. `contexts` and `release` are paths."""
        self._client, self._answer, self._release = client, answer, release
        self._contexts = ContextsReader(contexts)

    async def ask(self, item: GoldItem, trace_id: str) -> Interaction:
        """See `Target`."""
        payload = json_of(*await self._client.send(item, trace_id))
        answer = text_at(payload, *self._answer)
        contexts = self._contexts.of(payload)
        release = text_at(payload, self._release, "gold.target.release") if self._release else ""
        return interaction_of(item, trace_id, answer, contexts, release)

    async def close(self) -> None:
        """See `Target`."""
        await self._client.close()


def http_target(settings: HttpTargetConfig, timeout: float) -> HttpTarget:
    """The target of `kind: http`. UsageError when a secret cannot be read."""
    client = AppClient(settings.method, settings.url, settings.headers, body_of(settings), timeout)
    return HttpTarget(client, (settings.answer, "gold.target.answer"), settings.contexts, settings.release)


def openai_target(settings: OpenAITargetConfig, timeout: float) -> HttpTarget:
    """The target of `kind: openai`. UsageError when a secret cannot be read."""
    instructions = [{"role": "system", "content": settings.instructions}] if settings.instructions else []
    messages = [*instructions, "{history}", {"role": "user", "content": "{question}"}]
    url = settings.base_url.rstrip("/") + "/chat/completions"
    body = {"model": settings.model, "messages": messages}
    client = AppClient("POST", url, settings.headers, body, timeout, settings.api_key)
    return HttpTarget(client, ("choices.0.message.content", "gold.target"), settings.contexts)


def body_of(settings: HttpTargetConfig | TraceTargetConfig) -> Any:
    """The template of a request's body; None for no body."""
    if settings.body is not None:
        return settings.body
    return None if settings.method == "GET" else DEFAULT_BODY


def interaction_of(
    item: GoldItem, trace_id: str, answer: str, contexts: tuple[str, ...] | None, release: str = ""
) -> Interaction:
    """What came back, as an interaction. Where the target brings no contexts (None), those of the item count."""
    passages = item.contexts if contexts is None else contexts
    return Interaction(
        trace_id=trace_id,
        span_id="",
        state="complete" if passages else "no_contexts",
        question=item.question,
        answer=answer,
        contexts=passages,
        context_source="retrieval" if passages else "none",
        release=release or "unknown",
    )
