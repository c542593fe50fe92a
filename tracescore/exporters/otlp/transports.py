"""OTLP requests over HTTP and gRPC, with an answer that says what to do next.

The SDK's exporters are not used: they hide partial success and block a thread through their retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tracescore.config import OtlpExporterConfig
from tracescore.exporters.delivery import Answer
from tracescore.exporters.posting import Posted, Poster

Signal = Literal["traces", "logs"]
Request = ExportTraceServiceRequest | ExportLogsServiceRequest

RETRYABLE_HTTP = frozenset({429, 502, 503, 504})
RETRYABLE_GRPC = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Both as the OTLP specification has them; RESOURCE_EXHAUSTED is retryable only with RetryInfo."""


_METHODS: dict[Signal, tuple[str, type[ExportTraceServiceResponse | ExportLogsServiceResponse]]] = {
    "traces": ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", ExportTraceServiceResponse),
    "logs": ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", ExportLogsServiceResponse),
}
_OPTIONS = [("grpc.max_reconnect_backoff_ms", 30_000)]
"""Without it a channel may stay away from a destination that is back for two minutes."""


class Transport(Protocol):
    """Sends requests to one destination."""

    async def send(self, signal: Signal, request: Request) -> Answer:
        """One attempt, within the configured timeout; never raises for what a destination can do."""
        ...

    async def close(self) -> None:
        """Releases the connection."""
        ...


class HttpTransport:
    """OTLP/HTTP with protobuf bodies. The endpoint is a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self, settings: OtlpExporterConfig, headers: Mapping[str, str]) -> None:
        base = settings.endpoint.rstrip("/").removesuffix("/v1/traces").removesuffix("/v1/logs")
        self._urls = {"traces": f"{base}/v1/traces", "logs": f"{base}/v1/logs"}
        self._poster = Poster({**headers, "content-type": "application/x-protobuf"}, settings.timeout)

    async def send(self, signal: Signal, request: Request) -> Answer:
        """One POST."""
        posted = await self._poster.post(self._urls[signal], request.SerializeToString())
        return posted if isinstance(posted, Answer) else _http_answer(signal, posted)

    async def close(self) -> None:
        """Releases the connections."""
        await self._poster.close()


class GrpcTransport:
    """OTLP/gRPC. An http:// endpoint is in clear text, an https:// one uses TLS with the system's authorities."""

    def __init__(self, settings: OtlpExporterConfig, headers: Mapping[str, str]) -> None:
        host, port = settings.target
        self._target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._secure, self._timeout = settings.endpoint.startswith("https:"), settings.timeout
        self._metadata = tuple((name.lower(), value) for name, value in headers.items())
        self._channel: grpc.aio.Channel | None = None
        self._calls: dict[Signal, Any] = {}

    async def send(self, signal: Signal, request: Request) -> Answer:
        """One call of the signal's Export."""
        if self._channel is None:
            self._open()
        try:
            response = await self._calls[signal](request, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            return _grpc_answer(error)
        return Answer("accepted", rejected=_rejected(signal, response))

    async def close(self) -> None:
        """Releases the channel."""
        if self._channel is not None:
            await self._channel.close(None)

    def _open(self) -> None:
        """On the first call, because a channel belongs to the event loop that runs then."""
        if self._secure:
            self._channel = grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), _OPTIONS)
        else:
            self._channel = grpc.aio.insecure_channel(self._target, _OPTIONS)
        for signal, (method, response) in _METHODS.items():
            self._calls[signal] = self._channel.unary_unary(method, _serialise, response.FromString)


def _serialise(request: Request) -> bytes:
    return request.SerializeToString()


def _http_answer(signal: Signal, posted: Posted) -> Answer:
    if posted.status in RETRYABLE_HTTP:
        return Answer("again", f"HTTP {posted.status}", after=posted.retry_after)
    if not 200 <= posted.status < 300:
        return Answer("refused", f"HTTP {posted.status}")
    try:
        response = _METHODS[signal][1].FromString(posted.body)
    except DecodeError:
        return Answer("accepted")  # the status counts; some servers answer with a body of their own
    return Answer("accepted", rejected=_rejected(signal, response))


def _grpc_answer(error: grpc.aio.AioRpcError) -> Answer:
    code, after = error.code(), retry_info(error.trailing_metadata() or ())
    again = code in RETRYABLE_GRPC or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and after is not None)
    return Answer("again" if again else "refused", code.name, after=after)


def rejected_spans(response: bytes) -> int:
    """Spans that the answer to a request of traces says were refused for good; 0 where it cannot be read."""
    try:
        return _rejected("traces", ExportTraceServiceResponse.FromString(response))
    except DecodeError:
        return 0  # the status counts; some servers answer with a body of their own


def _rejected(signal: Signal, response: Any) -> int:
    partial = response.partial_success
    return max(0, int(partial.rejected_spans if signal == "traces" else partial.rejected_log_records))


def retry_info(trailers: Any) -> float | None:
    """Seconds of the RetryInfo in the status details among gRPC trailers, None without one."""
    packed = dict(trailers).get("grpc-status-details-bin")
    if not isinstance(packed, bytes):
        return None
    info = RetryInfo()
    try:
        known = any(detail.Unpack(info) for detail in Status.FromString(packed).details)
    except DecodeError:
        return None
    return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9) if known else None
