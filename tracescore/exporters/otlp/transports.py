"""OTLP requests over HTTP and gRPC, with an answer that says what to do next.

The SDK's exporters are not used: they hide partial success and block a thread through their retries.
"""

from collections.abc import Mapping
from typing import Any, Literal

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tracescore.config import OtlpExporterConfig
from tracescore.config.types import is_loopback, target_of
from tracescore.exporters.delivery import Answer
from tracescore.exporters.posting import Posted, Poster
from tracescore.net.otlp_answers import grpc_answer, http_answer, retry_info

ExportSignal = Literal["traces", "logs"]
ExportRequest = ExportTraceServiceRequest | ExportLogsServiceRequest

_METHODS: dict[ExportSignal, tuple[str, type[ExportTraceServiceResponse | ExportLogsServiceResponse]]] = {
    "traces": ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", ExportTraceServiceResponse),
    "logs": ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", ExportLogsServiceResponse),
}
_OPTIONS = [("grpc.max_reconnect_backoff_ms", 5_000)]
"""Without it a channel may stay away from a destination that is back for two minutes."""


class HttpTransport:
    """OTLP/HTTP with protobuf bodies. The endpoint is a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self, settings: OtlpExporterConfig, headers: Mapping[str, str]) -> None:
        base = settings.endpoint.rstrip("/").removesuffix("/v1/traces").removesuffix("/v1/logs")
        self._urls = {"traces": f"{base}/v1/traces", "logs": f"{base}/v1/logs"}
        self._poster = Poster({**headers, "content-type": "application/x-protobuf"}, settings.timeout)

    async def send(self, signal: ExportSignal, request: ExportRequest) -> Answer:
        """One POST, within the configured timeout; never raises for what a destination can do."""
        posted = await self._poster.post(self._urls[signal], request.SerializeToString())
        return posted if isinstance(posted, Answer) else _http_answer(signal, posted)

    async def close(self) -> None:
        """Releases the connections."""
        await self._poster.close()


class GrpcTransport:
    """OTLP/gRPC. An http:// endpoint is in clear text, an https:// one uses TLS with the system's authorities."""

    def __init__(self, settings: OtlpExporterConfig, headers: Mapping[str, str]) -> None:
        self._endpoint, self._timeout = settings.endpoint, settings.timeout
        self._metadata = tuple((name.lower(), value) for name, value in headers.items())
        self._channel: grpc.aio.Channel | None = None

    async def send(self, signal: ExportSignal, request: ExportRequest) -> Answer:
        """One call of the signal's Export; likewise."""
        if self._channel is None:  # belongs to the event loop that runs now
            self._channel = open_channel(self._endpoint)
        call: Any = self._channel.unary_unary(_METHODS[signal][0], None, None)  # bytes in, bytes out
        try:
            body = request.SerializeToString()
            response: bytes = await call(body, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            return _grpc_answer(error)
        return Answer("accepted", rejected=rejected(signal, response))

    async def close(self) -> None:
        """Releases the channel."""
        if self._channel is not None:
            await self._channel.close(None)


def open_channel(url: str) -> grpc.aio.Channel:
    """A channel to an http:// or https:// address; see `channel_target`.

    A proxy that the environment names is used as gRPC does it, but not for loopback: no proxy reaches that.
    """
    target, secure = channel_target(url)
    direct = [("grpc.enable_http_proxy", 0)] if is_loopback(target_of(url, usual=4317)[0]) else []
    if secure:
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS + direct)
    return grpc.aio.insecure_channel(target, _OPTIONS + direct)


def channel_target(url: str) -> tuple[str, bool]:
    """Host and port as gRPC reads them, and whether over TLS: 443 is the usual port then, and 4317 in clear text."""
    host, port = target_of(url, usual=4317)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}", url.startswith("https:")


def _http_answer(signal: ExportSignal, posted: Posted) -> Answer:
    taken = http_answer(posted.status)
    if taken != "accepted":
        return Answer(taken, f"HTTP {posted.status}", after=posted.retry_after)
    return Answer("accepted", rejected=rejected(signal, posted.body))


def _grpc_answer(error: grpc.aio.AioRpcError) -> Answer:
    trailers: Any = error.trailing_metadata() or ()
    code, after = error.code(), retry_info(trailers)
    return Answer(grpc_answer(code, after), code.name, after=after)


def rejected(signal: ExportSignal, response: bytes) -> int:
    """Records that the answer to a request says were refused for good; 0 where it cannot be read."""
    try:
        partial: Any = _METHODS[signal][1].FromString(response).partial_success
    except DecodeError:
        return 0  # the status counts; some servers answer with a body of their own
    return max(0, int(partial.rejected_spans if signal == "traces" else partial.rejected_log_records))
