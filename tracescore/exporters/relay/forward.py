"""Passes OTLP requests on as they came, and tells the sender what the destination said: tracescore inside a pipeline.

A relay and no queue: the sender keeps its data until the destination has answered, so that nothing can be lost here.
One request in is one request out, in the same protocol and encoding and with the same headers; the batches of two
tenants can never meet. Unlike other exporters this one carries spans, not scores.
"""

import io
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import aiohttp
import grpc
from prometheus_client import CollectorRegistry, Counter, Histogram
from yarl import URL

from tracescore.config import ForwardConfig
from tracescore.exporters.delivery import Answer
from tracescore.exporters.otlp.transports import open_channel, rejected
from tracescore.net.otlp_answers import OtlpOutcome, grpc_answer, http_answer, retry_info
from tracescore.net.retry import retry_after
from tracescore.net.wire import Envelope, compress
from tracescore.runtime import drop_tracebacks

Headers = list[tuple[bytes, bytes]]
Metadata = tuple[tuple[str, str | bytes], ...]
Relayed = Literal[OtlpOutcome, "unreachable"]
"""The destination's own words, or no answer."""

MAX_IN_FLIGHT = 128 * 2**20
"""Bytes of requests under way; beyond them tracescore asks senders to come back, as when nobody answers."""

LARGEST_ANSWER, _PIECE = 2**20, 2**16
"""Bytes of an answer that are passed back, and that are read at a time."""

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer trailers transfer-encoding upgrade "
    b"proxy-connection host content-length expect date server".split()
)
"""Headers that speak of one connection and not of the message (RFC 9110, 7.6.1), and those each server writes."""
_CREDENTIAL = re.compile(rb"auth|cookie|credential|key|password|secret|token|^x-honeycomb-team$")
"""In the names of headers that somebody is let in by: they are never on the disk."""
_RESERVED_METADATA = ("grpc-", ":")
_OWN_METADATA = frozenset({"user-agent", "content-type", "te"})


@dataclass(slots=True)
class _Request:
    """One request under way. A sender that gives up first leaves it `unreachable`."""

    refused: bool
    outcome: Relayed = "unreachable"


class Forwarder:
    """Relays to one destination. `over_http` and `over_grpc` say which protocols it takes."""

    def __init__(self, settings: ForwardConfig, registry: CollectorRegistry) -> None:
        """UsageError when the secret of a header cannot be read."""
        setting = "exporters.forward.headers"
        self._headers = {name.lower(): value.read(f"{setting}.{name}") for name, value in settings.headers.items()}
        self._http = settings.http and settings.http.rstrip("/").removesuffix("/v1/traces")
        self._grpc = settings.grpc
        self._timeout = settings.timeout
        self._in_flight = 0
        self._session: aiohttp.ClientSession | None = None
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[str, Any] = {}
        self._requests = Counter(
            "tracescore_exporters_forward_requests",
            "Requests forwarded, by outcome at the destination.",
            ["protocol", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "tracescore_exporters_forward_seconds",
            "Time until the destination answered.",
            ["protocol"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        for protocol in ("http", "grpc"):
            self._seconds.labels(protocol)
            for outcome in get_args(Relayed):
                self._requests.labels(protocol, outcome)

    @property
    def over_http(self) -> bool:
        """Whether requests over HTTP can be passed on."""
        return self._http is not None

    @property
    def over_grpc(self) -> bool:
        """Whether requests over gRPC can be passed on."""
        return self._grpc is not None

    async def send_http(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, Headers, bytes] | None:
        """The destination's status, headers and body; None when it gave no answer in time."""
        if self._session is None:  # belongs to the event loop that runs now
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            )
        url = URL(f"{self._http}{path}", encoded=True)
        theirs = ((_text(name), _text(value)) for name, value in _end_to_end(headers))
        passed = [*(each for each in theirs if each[0] not in self._headers), *self._headers.items()]
        with self._request("http", body) as request:
            if request.refused:
                return None
            content = io.BytesIO(body)  # is written piece by piece, where bytes would be all at once
            try:
                async with self._session.post(url, data=content, headers=passed, allow_redirects=False) as response:
                    answer = response.status, *await _limited(response)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                drop_tracebacks(error)
                return None
            request.outcome = http_answer(response.status)
            return answer

    async def send_grpc(
        self,
        method: str,
        metadata: Iterable[tuple[str, str | bytes]],
        body: bytes,
        *,
        gzip: bool,
        remaining: float | None,
    ) -> tuple[grpc.StatusCode, str, Metadata, bytes]:
        """The destination's code, message, trailers and reply; UNAVAILABLE and the like when it gave none.

        `gzip`: whether the sender had compressed the message. `remaining`: seconds until the sender gives up.
        """
        timeout = self._timeout if remaining is None else min(self._timeout, remaining)
        compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
        with self._request("grpc", body) as request:
            if request.refused:
                return grpc.StatusCode.UNAVAILABLE, "too many requests at once", (), b""
            try:
                call = self._call(method)
                theirs = (each for each in _passed(metadata) if each[0] not in self._headers)
                passed = (*theirs, *self._headers.items())
                reply: bytes = await call(body, timeout=timeout, metadata=passed, compression=compression)
            except grpc.aio.AioRpcError as error:
                given: Any = error.trailing_metadata() or ()
                trailers = _passed(given, but=("grpc-status-details-bin",))
                request.outcome = _grpc_outcome(error.code(), trailers)
                return error.code(), error.details() or "", trailers, b""
            request.outcome = "accepted"
            return grpc.StatusCode.OK, "", (), reply

    async def deliver(self, envelope: Envelope, body: bytes) -> Answer:
        """Passes on a request of traces that was kept back, once; `body` is plain."""
        if envelope.wire == "http":
            sent = await self.send_http(envelope.target, envelope.headers, compress(body, envelope.encoding))
            if sent is None:
                return Answer("again", "no answer")
            taken, detail, reply = http_answer(sent[0]), f"HTTP {sent[0]}", sent[2]
            after = retry_after({name.decode("latin-1"): value.decode("latin-1") for name, value in sent[1]})
        else:
            metadata = [
                (key.decode(), value if key.endswith(b"-bin") else value.decode()) for key, value in envelope.headers
            ]
            gzip = bool(envelope.encoding)
            code, _, trailers, reply = await self.send_grpc(envelope.target, metadata, body, gzip=gzip, remaining=None)
            after = retry_info(trailers)
            taken, detail = grpc_answer(code, after), code.name
        if taken == "accepted":
            return Answer("accepted", rejected=0 if envelope.json else rejected("traces", reply))
        return Answer(taken, detail, after=after)

    @staticmethod
    def lasting(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
        """The headers that belong to what is sent, and not to the connection, to one request, or to nobody's eyes."""
        return [each for each in _end_to_end(headers) if not _CREDENTIAL.search(each[0])]

    def can_wait(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request can be kept without what its sender is let in by: there is nothing, or it is replaced."""
        secret = (name.lower().decode("latin-1") for name, _ in headers if _CREDENTIAL.search(name.lower()))
        return all(name in self._headers for name in secret)

    async def close(self) -> None:
        """Releases the connections; may be called twice."""
        if self._session is not None:
            await self._session.close()
        if self._channel is not None:
            await self._channel.close(None)

    @contextmanager
    def _request(self, protocol: str, body: bytes) -> Iterator[_Request]:
        """Counts a request whatever its end, and refuses it where too much is under way."""
        request = _Request(refused=self._in_flight > 0 and self._in_flight + len(body) > MAX_IN_FLIGHT)
        self._in_flight += len(body)
        begun = time.monotonic()
        try:
            yield request
        finally:
            self._in_flight -= len(body)
            self._requests.labels(protocol, request.outcome).inc()
            self._seconds.labels(protocol).observe(time.monotonic() - begun)

    def _call(self, method: str) -> Any:
        if self._channel is None:
            self._channel = open_channel(self._grpc or "")
        if method not in self._calls:
            self._calls[method] = self._channel.unary_unary(method, None, None)  # bytes in, bytes out
        return self._calls[method]


async def _limited(response: aiohttp.ClientResponse) -> tuple[Headers, bytes]:
    """Headers and body of an answer; one that is too long to be an answer over OTLP counts by its status alone."""
    parts, size = [], 0
    async for part in response.content.iter_chunked(_PIECE):
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER:
            response.close()
            return [], b""
    return _end_to_end(response.raw_headers), b"".join(parts)


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of the message, without those of the connection."""
    listed = [(bytes(name).lower(), bytes(value)) for name, value in headers]
    named = {part.strip().lower() for name, value in listed if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in listed if name not in _HOP_BY_HOP and name not in named]


def _text(value: bytes) -> str:
    """A header as text that is written as the same bytes again, where they are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _passed(metadata: Iterable[tuple[str, str | bytes]], but: Sequence[str] = ()) -> Metadata:
    """The metadata that a message may carry: what the protocol itself writes it writes anew, all `but` these."""
    return tuple(
        (key, value)
        for key, value in metadata
        if key in but or not (key.startswith(_RESERVED_METADATA) or key in _OWN_METADATA)
    )


def _grpc_outcome(code: grpc.StatusCode, trailers: Metadata) -> Relayed:
    """A call that failed on the way has no trailers; one that a server answered nearly always has."""
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED} and not trailers:
        return "unreachable"
    return grpc_answer(code, retry_info(trailers))
