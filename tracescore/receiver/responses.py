"""What senders are told: the OTLP export responses and google.rpc.Status, in protobuf and in JSON."""

from __future__ import annotations

import orjson
from google.rpc.status_pb2 import Status
from grpc import StatusCode
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from tracescore.receiver.refusals import Signal


def exported(signal: Signal, rejected: int, json: bool = False) -> bytes:
    """The body that acknowledges a request: empty, or a partial success where pieces were rejected for good."""
    if not rejected:
        return b"{}" if json else b""
    why = f"{rejected} do not parse or have no valid trace and span id; do not send them again"
    if json:
        count = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        return orjson.dumps({"partialSuccess": {count: str(rejected), "errorMessage": why}})
    if signal == "traces":
        spans = ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
        return ExportTraceServiceResponse(partial_success=spans).SerializeToString()
    records = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=why)
    return ExportLogsServiceResponse(partial_success=records).SerializeToString()


def status(code: StatusCode, message: str, json: bool = False) -> bytes:
    """The body of an error."""
    number = code.value[0]
    if json:
        return orjson.dumps({"code": number, "message": message})
    body: bytes = Status(code=number, message=message).SerializeToString()
    return body
