"""Why a request is refused, and how that is answered in both protocols."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from grpc import StatusCode

from tracescore.errors import TracescoreError
from tracescore.net.otlp_answers import grpc_answer

Wire = Literal["http", "grpc"]
Signal = Literal["traces", "logs", "metrics"]
RefusalReason = Literal[
    "malformed",
    "too_large",
    "unsupported_type",
    "unsupported_encoding",
    "full",
    "crowded",
    "slow",
    "failed",
    "disconnected",
    "unreachable",
    "no_destination",
    "loop",
    "unauthenticated",
    "too_many_attempts",
    "throttled",
]


@dataclass(frozen=True, slots=True)
class RefusalStatus:
    """What a refusal is in both protocols."""

    http: HTTPStatus
    grpc: StatusCode
    throttled: bool = False
    """Whether RetryInfo goes with it over gRPC whatever the code."""

    @property
    def retryable(self) -> bool:
        """Whether the sender is to come back, by the table of the OTLP specification; the HTTP status says the same."""
        return grpc_answer(self.grpc, after=0.0 if self.throttled else None) == "again"


REFUSALS: dict[RefusalReason, RefusalStatus] = {
    "malformed": RefusalStatus(HTTPStatus.BAD_REQUEST, StatusCode.INVALID_ARGUMENT),
    # Without RetryInfo this code tells the sender to give up.
    "too_large": RefusalStatus(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, StatusCode.RESOURCE_EXHAUSTED),
    "unsupported_type": RefusalStatus(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, StatusCode.INVALID_ARGUMENT),
    "unsupported_encoding": RefusalStatus(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, StatusCode.UNIMPLEMENTED),
    # Not 429: older exporters take that as final and drop the batch.
    "full": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.UNAVAILABLE),
    # With RetryInfo this code makes a sender wait; opentelemetry-python opens no new connection for it.
    "crowded": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED, throttled=True),
    # Not 408: OTLP does not count it among those after which a sender comes back.
    "slow": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.UNAVAILABLE),
    "failed": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.UNAVAILABLE),
    # Where requests are passed on: nobody answers; the destination takes the other protocol only.
    "unreachable": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.UNAVAILABLE),
    "no_destination": RefusalStatus(HTTPStatus.NOT_IMPLEMENTED, StatusCode.UNIMPLEMENTED),
    "unauthenticated": RefusalStatus(HTTPStatus.UNAUTHORIZED, StatusCode.UNAUTHENTICATED),
    "too_many_attempts": RefusalStatus(HTTPStatus.TOO_MANY_REQUESTS, StatusCode.RESOURCE_EXHAUSTED, throttled=True),
    # One sender is over its share: as `crowded`.
    "throttled": RefusalStatus(HTTPStatus.SERVICE_UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED, throttled=True),
    # To come again is what they are refused for.
    "loop": RefusalStatus(HTTPStatus.LOOP_DETECTED, StatusCode.FAILED_PRECONDITION),
}
"""How each refusal is answered; a client that has gone gets no answer."""


class Refused(TracescoreError):
    """A request that is answered with an error: why, and in words for the sender."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        self.reason: RefusalReason = reason
        self.message = message
        super().__init__(message)

    @property
    def status(self) -> RefusalStatus:
        """How it is answered."""
        return REFUSALS[self.reason]


def too_large(max_size: int) -> Refused:
    """The refusal of a body above the limit."""
    return Refused("too_large", f"body: at most {max_size} bytes expected; send smaller batches")


def crowded() -> Refused:
    """The refusal of a body that comes together with too many others."""
    return Refused("crowded", "too many requests at once; send again later")
