"""Settings of what listens for OTLP."""

from pydantic import Field

from tracescore.config.access import ListenerConfig
from tracescore.config.types import Duration, Section, Size


class SenderLimitsConfig(Section):
    """What one sender may send, known by the name of its token or else by its address."""

    requests_per_second: float | None = Field(default=None, gt=0)
    """Requests of one sender in a second."""
    bytes_per_second: Size | None = None
    """Bytes of bodies, as they come, of one sender in a second."""


class ReceiverConfig(Section):
    """Where and how much OTLP tracescore receives. It refuses a request beyond a limit before it reads it."""

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
    """Rates beyond which tracescore asks one sender to come back later: one token, or else one address. Behind a
    collector all are one sender."""
