"""Settings of how spans become traces."""

from tracescore.config.types import Duration, Section, Size


class AssemblyConfig(Section):
    """When tracescore takes a trace for complete and reads it."""

    idle: Duration = 5.0
    """tracescore reads a trace when its root span has come and nothing more came for this long."""
    orphan_idle: Duration = 30.0
    """The same while the root, or the parent of a span, is missing."""
    max_wait: Duration = 300.0
    """tracescore reads a trace at the latest this long after its first span."""
    max_held: Size = 256 * 2**20
    """Memory for the spans of open traces; at the limit tracescore asks senders to come back later, and from half of it
    on every sender that holds half itself."""
