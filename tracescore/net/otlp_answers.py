"""What an OTLP answer means to the sender of the request, in one table for both protocols.

Source: the OTLP specification 1.x, "Failures" and "Throttling" of OTLP/gRPC and "Retryable Response Codes" of
OTLP/HTTP.
"""

from collections.abc import Iterable
from typing import Literal

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

OtlpOutcome = Literal["accepted", "again", "refused"]
"""There; not now; never."""
Trailers = Iterable[tuple[str, str | bytes]]

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
"""RESOURCE_EXHAUSTED, which a message that is too large gets as well, is retryable only with RetryInfo."""

_DETAILS = "grpc-status-details-bin"


def http_answer(status: int) -> OtlpOutcome:
    """What an HTTP status says."""
    return "accepted" if 200 <= status < 300 else "again" if status in RETRYABLE_HTTP else "refused"


def grpc_answer(code: grpc.StatusCode, after: float | None) -> OtlpOutcome:
    """What a gRPC status says; `after`: the seconds of its RetryInfo, None without one."""
    if code is grpc.StatusCode.OK:
        return "accepted"
    throttled = code is grpc.StatusCode.RESOURCE_EXHAUSTED and after is not None
    return "again" if throttled or code in RETRYABLE_GRPC else "refused"


def retry_info(trailers: Trailers) -> float | None:
    """Seconds of the RetryInfo in the status details among gRPC trailers, None without one."""
    packed = dict(trailers).get(_DETAILS)
    if not isinstance(packed, bytes):
        return None
    info = RetryInfo()
    try:
        known = any(detail.Unpack(info) for detail in Status.FromString(packed).details)
    except DecodeError:
        return None
    return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9) if known else None


def retry_trailers(code: grpc.StatusCode, message: str, after: float) -> tuple[tuple[str, bytes], ...]:
    """RetryInfo of `after` seconds, inside the status, and alone, where opentelemetry-python looks for it."""
    delay = Duration()
    delay.FromMilliseconds(int(after * 1000))
    retry = RetryInfo(retry_delay=delay)
    detail = AnyMessage()
    detail.Pack(retry)
    status = Status(code=code.value[0], message=message, details=[detail])
    return (_DETAILS, status.SerializeToString()), ("google.rpc.retryinfo-bin", retry.SerializeToString())
