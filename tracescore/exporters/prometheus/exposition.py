"""The metrics listener: /metrics, /-/healthy and /-/ready. Holds no user text."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from http import HTTPStatus

import anyio.lowlevel
from isal import igzip
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.metrics_core import Metric

from tracescore.config import PrometheusConfig
from tracescore.exporters.prometheus.lines import in_slices
from tracescore.model import Clock
from tracescore.net.access import AccessMetrics, TokenGate, Tokens
from tracescore.net.asgi import App, Receive, Response, Scope, Send, address_of_client, headers_of, respond
from tracescore.net.connections import CERTIFICATE

_log = logging.getLogger("tracescore.exporters")

_QUALITY = re.compile(r"[01](\.\d{0,3})?", re.ASCII)
_EOF = b"# EOF\n"
_DOCTOR = "tracescore-doctor"
"""Who asks when people ask how the service is: nobody who scrapes."""
_NO_VERSION = re.compile(r"version=(?!\d{1,3}(\.\d{1,3}){0,3}\s*([;,]|$))", re.ASCII)
"""In an Accept header, a version that is none: the library would compare it with numbers, or repeat it."""


@dataclass(slots=True)
class Health:
    """Whether the service takes traces in, and one line that says why not."""

    ready: bool = False
    reason: str = "starting"
    stuck: Callable[[], bool] = lambda: False
    """Whether what comes in cannot be kept at present."""

    def why_not(self) -> str:
        """Why it takes nothing in; empty when it does."""
        return self.reason if not self.ready else "the spool cannot be written" if self.stuck() else ""


class Scrapes:
    """When /metrics was last read, by anyone but `tracescore doctor`, which tells people whether Prometheus does."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._last = Gauge(
            "tracescore_exporters_prometheus_scrape_timestamp_seconds",
            "When /metrics was last scraped, by anyone but `tracescore doctor`; 0 before the first scrape.",
            registry=registry,
        )

    def note(self, headers: Mapping[str, str]) -> None:
        """Takes in a scrape."""
        if headers.get("user-agent") != _DOCTOR:
            self._last.set(self._clock())


@dataclass(frozen=True, slots=True)
class _One:
    """A registry that holds one family, for an encoder that wants a registry."""

    family: Metric

    def collect(self) -> Iterable[Metric]:
        return [self.family]


class MetricsGate:
    """Who may scrape. What asks for health needs nothing: a kubelet has neither tokens nor certificates."""

    def __init__(self, settings: PrometheusConfig, access: AccessMetrics) -> None:
        """UsageError when a token cannot be read."""
        self._gate = TokenGate("metrics", Tokens(settings.tokens, "exporters.prometheus.tokens"), access)
        self._certified = settings.tls is not None and settings.tls.client_ca is not None

    def refusal(self, scope: Scope) -> Response | None:
        """The answer to whoever may not; None for those who may."""
        address = address_of_client(scope)
        if self._certified and CERTIFICATE not in scope:
            self._gate.deny("no_certificate", address)
            return Response(HTTPStatus.FORBIDDEN, b"a certificate of a known authority expected\n")
        denied = self._gate.enter(headers_of(scope).get("authorization", ""), address).denied
        if denied is None:
            return None
        if denied == "too_many":
            wait = (("retry-after", "60"),)
            return Response(HTTPStatus.TOO_MANY_REQUESTS, b"too many wrong tokens; wait a minute\n", headers=wait)
        asked = (("www-authenticate", "Bearer"),)
        return Response(HTTPStatus.UNAUTHORIZED, b"Authorization: Bearer TOKEN expected\n", headers=asked)


def metrics_gate(settings: PrometheusConfig, access: AccessMetrics) -> MetricsGate:
    """Who may scrape; says so when that is everybody, on other machines as well."""
    if settings.exposed and not settings.insecure:
        advice = "set exporters.prometheus.tokens or tls.client_ca, or insecure: true to say that this is meant"
        _log.warning('event=open_listener setting=exporters.prometheus listen=%s advice="%s"', settings.listen, advice)
    return MetricsGate(settings, access)


def build_metrics(
    settings: PrometheusConfig, registry: CollectorRegistry, health: Health, access: AccessMetrics, clock: Clock
) -> App:
    """The app for the listener that the settings describe. UsageError when a token cannot be read."""
    return metrics_app(registry, health, Scrapes(registry, clock), metrics_gate(settings, access))


def metrics_app(registry: CollectorRegistry, health: Health, scrapes: Scrapes, gate: MetricsGate | None = None) -> App:
    """ASGI app for the listener of metrics and health; without a gate everybody may scrape."""

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/metrics":
            scrapes.note(headers_of(scope))
        await respond(send, await _answer(registry, health, gate, scope), with_body=scope["method"] != "HEAD")

    return app


async def _answer(registry: CollectorRegistry, health: Health, gate: MetricsGate | None, scope: Scope) -> Response:
    path = scope["path"]
    if path not in {"/metrics", "/-/healthy", "/-/ready"}:
        return Response(HTTPStatus.NOT_FOUND, b"not found; there are /metrics, /-/healthy and /-/ready\n")
    if scope["method"] not in {"GET", "HEAD"}:
        return Response(HTTPStatus.METHOD_NOT_ALLOWED, b"use GET\n", headers=(("allow", "GET, HEAD"),))
    if path == "/metrics":
        refusal = gate.refusal(scope) if gate else None
        if refusal is not None:
            return refusal
        return await _metrics(registry, scope)
    why_not = "" if path == "/-/healthy" else health.why_not()
    if not why_not:
        return Response(HTTPStatus.OK, b"ok\n")
    return Response(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {why_not}\n".encode())


async def _metrics(registry: CollectorRegistry, scope: Scope) -> Response:
    headers = headers_of(scope)
    content_type, body = await render(registry, headers.get("accept", ""))
    vary = ("vary", "accept, accept-encoding")
    if not gzip_accepted(headers.get("accept-encoding", "")):
        return Response(HTTPStatus.OK, body, content_type, (vary,))
    packed = igzip.compress(body, compresslevel=1)
    return Response(HTTPStatus.OK, packed, content_type, (vary, ("content-encoding", "gzip")))


async def render(registry: CollectorRegistry, accept: str) -> tuple[str, bytes]:
    """(content type, text) in the best format that `accept` names.

    All numbers are of one moment: what a score moves is moved in all families or in none. Then they are written a
    slice at a time, with a chance for everything else in between: that takes longer, and the receiver must answer.
    """
    encode, content_type = choose_encoder("" if _NO_VERSION.search(accept) else _wanted(accept))
    openmetrics = content_type.startswith("application/openmetrics-text")
    parts = []
    for family in list(registry.collect()):
        head = copy(family)
        head.samples = []
        parts.append(encode(_One(head)).removesuffix(_EOF))
        for lines in in_slices(family, openmetrics=openmetrics):
            parts.append(lines)
            await anyio.lowlevel.checkpoint()
    if openmetrics:
        parts.append(_EOF)
    return content_type, b"".join(parts)


def _wanted(accept: str) -> str:
    """An Accept header for the library, which knows neither case nor weights: in small letters, the dearest first."""
    kinds = [kind.strip().lower() for kind in accept.split(",")]
    weights = {kind: _weight(kind) for kind in kinds}
    return ",".join(sorted((kind for kind in kinds if weights[kind] > 0), key=lambda kind: -weights[kind]))


def _weight(kind: str) -> float:
    """The `q` of one media type (RFC 9110, section 12.4.2); 0 also where it is no number."""
    given = next((each.strip()[2:] for each in kind.split(";")[1:] if each.strip().startswith("q=")), "1")
    return float(given) if _QUALITY.fullmatch(given) else 0.0
