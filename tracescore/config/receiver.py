"""Settings of the OTLP receiver."""

from pydantic import Field

from tracescore.config.access import ListenerConfig
from tracescore.config.types import Duration, Section, Size


class SenderLimitsConfig(Section):
    """The most that one sender may send. tracescore tells senders apart by token, or else by address."""

    requests_per_second: float | None = Field(default=None, gt=0)
    """Requests per second of one sender."""
    bytes_per_second: Size | None = None
    """Bytes of request bodies per second of one sender, before decompression."""


class ReceiverConfig(Section):
    """Where tracescore receives OTLP, and how much. It refuses a request over a limit before it reads it."""

    grpc: ListenerConfig = ListenerConfig(listen="127.0.0.1:4317")
    http: ListenerConfig = ListenerConfig(listen="127.0.0.1:4318")
    max_request: Size = Field(default=16 * 2**20, le=2**31 - 1)
    """Largest request body after decompression."""
    max_spans: int = Field(default=50_000, ge=1)
    """Most spans or log records in one request."""
    max_traces: int = Field(default=20_000, ge=1)
    """Most admitted traces in one request."""
    max_containers: int = Field(default=50_000, ge=1)
    """Most resources and scopes in one request."""
    retry_after: Duration = Field(default=2.0, ge=1.0)
    """How long tracescore asks senders to wait while the spans it holds fill `assembly.max_held` or the spool."""
    per_sender: SenderLimitsConfig | None = None
    """Over these rates tracescore asks a sender to come back later. A sender is one token, or else one address;
    behind a collector all apps are one sender."""
