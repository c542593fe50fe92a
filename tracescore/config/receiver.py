"""Settings of what listens for OTLP."""

from pydantic import Field

from tracescore.config.types import Address, Duration, Section, Size


class ListenerConfig(Section):
    """An address to listen on."""

    listen: Address
    """Host and port; port 0 takes any free one. A host other than loopback lets other machines send."""


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
